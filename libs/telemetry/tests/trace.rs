//! Spans and their context, received by a real OTLP collector in this process.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    trace::v1::Span,
};
use telemetry::{LogFormat, Settings, propagation};
use tokio::{net::TcpListener, time::Instant};
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let spans =
            resources.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        self.0.lock().expect("no panic").extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn settings(endpoint: String) -> Settings {
    Settings { filter: "warn".into(), log_format: LogFormat::Json, otlp_endpoint: Some(endpoint) }
}

/// One test for the whole file: logging can be started once in a process.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_crosses_the_wire_whole_and_a_dead_collector_does_not_hold_up_the_end() {
    let collector = Collector::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(collector.clone()))
            .serve_with_incoming_shutdown(TcpIncoming::from(listener), async { drop(stopped.await) }),
    );
    let telemetry = telemetry::start("test", &settings(format!("http://{address}"))).expect("started");

    let caller = tracing::info_span!("caller");
    let mut headers = http::HeaderMap::new();
    caller.in_scope(|| propagation::inject(&mut headers));
    assert!(headers.contains_key("traceparent"), "{headers:?}");
    let callee = tracing::info_span!("callee");
    propagation::adopt(&callee, &headers);
    assert_eq!(propagation::trace_id(&callee), propagation::trace_id(&caller));
    callee.in_scope(|| ());
    drop((caller, callee));

    // The spans come although the log is at `warn`.
    let received = async {
        loop {
            let spans = collector.0.lock().expect("no panic").clone();
            if spans.len() == 2 {
                break spans;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let spans = tokio::time::timeout(Duration::from_secs(10), received).await.expect("two spans");
    let by_name = |name: &str| spans.iter().find(|span| span.name == name).expect(name);
    assert_eq!(by_name("callee").trace_id, by_name("caller").trace_id);
    assert_eq!(by_name("callee").parent_span_id, by_name("caller").span_id);
    assert!(by_name("caller").parent_span_id.is_empty(), "it is the root");

    drop(stop);
    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .expect("in time")
        .expect("no panic")
        .expect("ended");
    (0..5000).for_each(|_| drop(tracing::info_span!("nobody will see this").entered()));
    let began = Instant::now();
    telemetry.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_filter_that_is_none_is_refused() {
    let bad = Settings { filter: "orders=loud".into(), ..settings("http://127.0.0.1:1".into()) };
    let error = telemetry::start("test", &bad).expect_err("refused");
    assert!(error.to_string().contains("RUST_LOG"), "{error}");
}
