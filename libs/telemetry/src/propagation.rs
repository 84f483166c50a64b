//! The trace context on the wire: `traceparent` and `tracestate` in the headers of HTTP, and in the
//! metadata of gRPC, which are the same type underneath.

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    propagation::TextMapPropagator as _,
    trace::{TraceContextExt as _, TraceId},
};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Makes `span` a child of the span that the caller named in `headers`. Has to run before the span
/// is entered for the first time; without a valid header the span starts a trace.
pub fn adopt(span: &Span, headers: &HeaderMap) {
    let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    // It fails when no OpenTelemetry layer is there or the span is filtered out: then there is no
    // trace to join.
    let _ = span.set_parent(caller);
}

/// Names the current span in `headers`, so that the neighbour's spans become its children.
pub fn inject(headers: &mut HeaderMap) {
    let here = Span::current().context();
    TraceContextPropagator::new().inject_context(&here, &mut HeaderInjector(headers));
}

/// The current span as the text of a `traceparent`, to be kept with work that is done later; `None`
/// outside any trace.
pub fn traceparent() -> Option<String> {
    let mut headers = HeaderMap::new();
    inject(&mut headers);
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    Some(text.to_owned())
}

/// The trace that `span` belongs to, for the log; `None` outside any trace.
pub fn trace_id(span: &Span) -> Option<TraceId> {
    let context = span.context();
    let id = context.span().span_context().trace_id();
    (id != TraceId::INVALID).then_some(id)
}
