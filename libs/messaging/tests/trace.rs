//! One purchase stays one story: the handler's span links to the span of whoever wrote the message.

use std::sync::{Arc, Mutex};

use messaging::TraceContext;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().expect("no test panics with it").extend(batch);
        Ok(())
    }
}

#[test]
fn a_span_links_to_the_one_that_wrote_the_message() {
    let kept = Kept::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let context = tracing::info_span!("write").in_scope(TraceContext::current);
        assert!(context.parent.is_some());
        context.link(&tracing::info_span!("handle"));
        TraceContext::default().link(&tracing::info_span!("handle without"));
    });
    let spans = kept.0.lock().unwrap();
    let span = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (write, handle) = (span("write"), span("handle"));
    let [link] = handle.links.links.as_slice() else { panic!("{:?}", handle.links) };
    assert_eq!(link.span_context.span_id(), write.span_context.span_id());
    assert_eq!(link.span_context.trace_id(), write.span_context.trace_id());
    assert_ne!(handle.span_context.trace_id(), write.span_context.trace_id(), "a trace of its own");
    assert!(span("handle without").links.links.is_empty());
}
