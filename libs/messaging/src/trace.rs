//! The trace context on its way through the broker.
//!
//! A message is handled long after the request that caused it has ended, once or several times. A child span
//! would stretch that trace over days; so the handler's span starts a trace of its own and *links* to the one
//! that published. The context travels in the headers `traceparent` and `tracestate`, which survive every hop
//! that a message makes, and before that it is kept in the outbox row: the relay that publishes works on nobody's
//! behalf, and its own trace is of no interest.

use std::collections::HashMap;

use lapin::types::{AMQPValue, FieldTable};
use opentelemetry::{propagation::TextMapPropagator as _, trace::TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::headers::{self, WrongType};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// A place in a trace, as W3C writes it. Empty when there is no trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// The value of `traceparent`.
    pub parent: Option<String>,
    /// The value of `tracestate`.
    pub state: Option<String>,
}

impl TraceContext {
    /// The place of the current span.
    pub fn current() -> Self {
        let mut carrier = HashMap::new();
        TraceContextPropagator::new().inject_context(&Span::current().context(), &mut carrier);
        Self {
            parent: carrier.remove(PARENT),
            // The propagator writes an empty one for a trace that has none.
            state: carrier.remove(STATE).filter(|state| !state.is_empty()),
        }
    }

    /// Links `span` to this place. Does nothing when this is none, or not as W3C writes it: a broken trace is no
    /// reason to refuse a message.
    pub fn link(&self, span: &Span) {
        let carrier: HashMap<String, String> = [(PARENT, &self.parent), (STATE, &self.state)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect();
        let there = TraceContextPropagator::new().extract(&carrier);
        let place = there.span().span_context().clone();
        if place.is_valid() {
            span.add_link(place);
        }
    }

    pub(crate) fn write(&self, table: &mut FieldTable) {
        for (name, value) in [(PARENT, &self.parent), (STATE, &self.state)] {
            if let Some(value) = value {
                table.insert(name.into(), AMQPValue::LongString(value.as_str().into()));
            }
        }
    }

    pub(crate) fn read(table: &FieldTable) -> Result<Self, WrongType> {
        let value = |name| headers::text(table, name).map(|value| value.map(ToOwned::to_owned));
        Ok(Self { parent: value(PARENT)?, state: value(STATE)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_through_the_headers_as_it_was() {
        let place = TraceContext {
            parent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            state: Some("vendor=1".into()),
        };
        let mut table = FieldTable::default();
        place.write(&mut table);
        assert_eq!(TraceContext::read(&table), Ok(place));
        assert_eq!(TraceContext::read(&FieldTable::default()), Ok(TraceContext::default()));
    }

    #[test]
    fn a_header_of_another_type_is_told_apart_from_one_that_says_nonsense() {
        let mut table = FieldTable::default();
        table.insert(PARENT.into(), AMQPValue::Boolean(true));
        assert_eq!(TraceContext::read(&table), Err(WrongType));
        table.insert(PARENT.into(), AMQPValue::LongString("nonsense".into()));
        let read = TraceContext::read(&table).unwrap();
        read.link(&Span::none());
        assert_eq!(read.parent.as_deref(), Some("nonsense"));
    }
}
