//! A message: an id, a type with a version, a body of JSON, and the trace it belongs to.
//!
//! The id is what makes at-least-once delivery bearable: whoever publishes the same thing again gives it the
//! same id, and whoever handles it can see that it was done. It is therefore an argument and never made here.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, ShortString},
};
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::{
    TraceContext,
    envelope::{Poison, place},
    headers,
};

/// The largest body, in bytes. A message says what happened to what; who wants more asks for it.
pub const MAX_BODY: usize = 256 * 1024;
/// Written to disk before it is confirmed.
const PERSISTENT: u8 = 2;

/// A message, to be published or as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The same for the same thing, however often it is published.
    pub id: Uuid,
    /// What it is, such as `charge.deferred`. At most 255 bytes.
    pub kind: String,
    /// The version of the body's form, counted from 1.
    pub version: u32,
    /// The body, which is JSON.
    pub body: Vec<u8>,
    /// The trace of whoever wrote it. `None`: that of whoever publishes it.
    pub trace: Option<TraceContext>,
}

impl Message {
    /// A message with `body` as JSON.
    ///
    /// # Errors
    /// When `body` cannot be written as JSON.
    pub fn new(
        id: Uuid,
        kind: impl Into<String>,
        version: u32,
        body: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self { id, kind: kind.into(), version, body: serde_json::to_vec(body)?, trace: None })
    }

    /// The same message in the trace that was kept with it, in an outbox.
    #[must_use]
    pub fn in_trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// The body as a `T`.
    ///
    /// # Errors
    /// When it is not one; that is poison, and `Done::Dead` with its text is what to do about it.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Poison> {
        serde_json::from_slice(&self.body).map_err(|fault| Poison::NotAsAgreed(place(&fault)))
    }

    /// What stands beside the body on the wire; `None` when the type's name is too long for it.
    pub(crate) fn properties(&self) -> Option<BasicProperties> {
        let mut table = FieldTable::default();
        table.insert(headers::VERSION.into(), AMQPValue::LongUInt(self.version));
        table.insert(headers::ATTEMPT.into(), AMQPValue::LongUInt(1));
        match &self.trace {
            Some(trace) => trace.write(&mut table),
            None => TraceContext::current().write(&mut table),
        }
        Some(
            BasicProperties::default()
                .with_content_type("application/json".into())
                .with_delivery_mode(PERSISTENT)
                .with_message_id(self.id.to_string().into())
                .with_type(ShortString::try_new(self.kind.as_str()).ok()?)
                .with_headers(table),
        )
    }
}
