//! Starting and ending it.

use std::{io::IsTerminal as _, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::ParseError,
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::{LogFormat, Settings};

/// One export may take this long, retries included; it also bounds the end of the process.
const EXPORT_TIMEOUT: Duration = Duration::from_millis(500);
/// Spans waiting for export, at most; more are dropped and not waited for.
const QUEUE: usize = 4096;
/// How often waiting spans are sent.
const EXPORT_EVERY: Duration = Duration::from_millis(200);
/// Spans of the transport's own crates would be exported over the very transport they tell of. lapin calls it an
/// error when the broker answers no to a question; what it means is told by whoever asked.
const QUIET: &str = "h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,reqwest=off,lapin=off,opentelemetry=off,\
                     opentelemetry_sdk=warn,opentelemetry_otlp=warn";

/// What keeps logs and traces running; [`Telemetry::shutdown`] ends them.
#[derive(Debug)]
#[must_use = "without its shutdown the last spans are lost"]
pub struct Telemetry {
    traces: SdkTracerProvider,
}

/// Why telemetry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The filter is not well formed.
    #[error("RUST_LOG is not a filter")]
    Filter(#[from] ParseError),
    /// The OTLP address is no address.
    #[error("OTEL_EXPORTER_OTLP_ENDPOINT is not usable")]
    Exporter(#[from] ExporterBuildError),
    /// Something else is listening already.
    #[error("logging was started before")]
    Twice(#[from] TryInitError),
}

/// Starts logs and traces of the service called `service`. Needs a tokio runtime around it. Without
/// an endpoint the spans go nowhere, but the trace context still travels, so that the logs of all
/// services name the same trace.
///
/// # Errors
/// When a setting cannot be used. An unreachable collector is not an error.
pub fn start(service: &'static str, settings: &Settings) -> Result<Telemetry, StartError> {
    let filter = EnvFilter::builder().parse(format!("{QUIET},{}", settings.filter))?;
    let lines = match settings.log_format {
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .boxed(),
        LogFormat::Json => tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr).boxed(),
    };
    let traces = provider(service, settings.otlp_endpoint.as_deref())?;
    // The level of the log does not cut the trace: spans pass at INFO whatever RUST_LOG says.
    let spans = tracing_opentelemetry::layer()
        .with_tracer(traces.tracer(service))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(EnvFilter::new(format!("{QUIET},info")));
    tracing_subscriber::registry().with(spans).with(lines.with_filter(filter)).try_init()?;
    Ok(Telemetry { traces })
}

fn provider(service: &'static str, endpoint: Option<&str>) -> Result<SdkTracerProvider, ExporterBuildError> {
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_resource(Resource::builder().with_service_name(service).build());
    let Some(endpoint) = endpoint else {
        return Ok(provider.build());
    };
    let exporter =
        SpanExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(EXPORT_TIMEOUT).build()?;
    let batch =
        BatchConfigBuilder::default().with_max_queue_size(QUEUE).with_scheduled_delay(EXPORT_EVERY).build();
    Ok(provider
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batch).build())
        .build())
}

impl Telemetry {
    /// Sends what waits, for at most a second, and ends.
    pub async fn shutdown(self) {
        // It blocks its thread, and on a worker of the runtime it would wait for itself.
        let ended =
            tokio::task::spawn_blocking(move || self.traces.shutdown_with_timeout(2 * EXPORT_TIMEOUT)).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans may be lost"),
            Err(error) => tracing::warn!(%error, "the end of tracing panicked"),
        }
    }
}
