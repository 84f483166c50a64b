//! Envelope: from what the broker delivers to a message, or to the reason why it is none.
//!
//! A message that cannot be understood must neither stop the consumer nor come back for ever. It goes to the dead
//! letters with its reason, where people look. Whether it can be understood is decided here, by a pure function:
//! any bytes in, a message or a reason out, never a panic.

use std::ops::RangeInclusive;

use lapin::{
    BasicProperties,
    types::{FieldTable, ShortString},
};
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::{MAX_BODY, Message, TraceContext, headers};

/// A type of message that a consumer understands, and in which versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepts {
    /// The type, such as `charge.deferred`.
    pub kind: &'static str,
    /// The versions.
    pub versions: RangeInclusive<u32>,
}

/// Why a message cannot be understood, now or later. Its text is the reason among the dead letters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Poison {
    /// It has no headers at all.
    #[error("it has no headers")]
    NoHeaders,
    /// One that has to be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// One is there, but is not what it has to be.
    #[error("{0} is of the wrong type")]
    WrongType(&'static str),
    /// The consumer does not know this type.
    #[error("its type {0:?} is not known here")]
    UnknownType(String),
    /// It knows the type, but not this version of it.
    #[error("version {version} of {kind} is not known here")]
    UnknownVersion {
        /// The type.
        kind: String,
        /// The version.
        version: u32,
    },
    /// The body is larger than [`MAX_BODY`].
    #[error("its body has {0} bytes, the most is {MAX_BODY}")]
    TooLarge(usize),
    /// The body is not JSON.
    #[error("its body is not JSON: {0}")]
    NotJson(String),
    /// The body is JSON, but not what the type and version say.
    #[error("its body is not what was agreed: {0}")]
    NotAsAgreed(String),
}

/// The message in a delivery, and which attempt at it this is, counted from 1.
pub(crate) fn open(
    queue: &str,
    accepts: &[Accepts],
    properties: &BasicProperties,
    body: &[u8],
) -> Result<(Message, u32), Poison> {
    if body.len() > MAX_BODY {
        return Err(Poison::TooLarge(body.len()));
    }
    let table = properties.headers().as_ref().ok_or(Poison::NoHeaders)?;
    let id = required(properties.message_id().as_ref(), "message-id")?;
    let id = Uuid::try_parse(id).map_err(|_| Poison::WrongType("message-id"))?;
    let kind = required(properties.kind().as_ref(), "type")?;
    let version = number(table, headers::VERSION)?.ok_or(Poison::Missing(headers::VERSION))?;
    let attempt = number(table, headers::ATTEMPT)?.unwrap_or(1);
    let trace = TraceContext::read(table).map_err(|_| Poison::WrongType("traceparent or tracestate"))?;

    let known = accepts
        .iter()
        .find(|known| known.kind == kind)
        .ok_or_else(|| Poison::UnknownType(kind.chars().take(80).collect()))?;
    if !known.versions.contains(&version) {
        let kind = kind.to_owned();
        return Err(Poison::UnknownVersion { kind, version });
    }
    serde_json::from_slice::<IgnoredAny>(body).map_err(|fault| Poison::NotJson(place(&fault)))?;

    let message = Message { id, kind: kind.to_owned(), version, body: body.to_vec(), trace: Some(trace) };
    let attempt = attempt.max(1).saturating_add(headers::deaths(table, queue));
    Ok((message, attempt))
}

/// Where in the body, and not what stands there: that may be somebody's name.
pub(crate) fn place(fault: &serde_json::Error) -> String {
    format!("line {}, column {}", fault.line(), fault.column())
}

fn required<'a>(value: Option<&'a ShortString>, name: &'static str) -> Result<&'a str, Poison> {
    value.map(ShortString::as_str).ok_or(Poison::Missing(name))
}

fn number(table: &FieldTable, name: &'static str) -> Result<Option<u32>, Poison> {
    headers::number(table, name).map_err(|_| Poison::WrongType(name))
}

#[cfg(test)]
mod tests;
