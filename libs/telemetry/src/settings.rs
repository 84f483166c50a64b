//! The settings of logs and traces.

use clap::{Args, ValueEnum};

/// Where logs and traces go.
#[derive(Debug, Clone, Args)]
#[group(skip)] // the structs of all libraries are called Settings
#[command(next_help_heading = "Telemetry")]
pub struct Settings {
    /// What to log, in the syntax of `tracing`'s filters, such as `info,orders=debug`.
    #[arg(long = "log", env = "RUST_LOG", default_value = "info", hide_env_values = true)]
    pub filter: String,

    /// How a line of the log is written.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Where traces are sent: an OTLP/gRPC address such as `http://127.0.0.1:4317`. Unset: nowhere.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    pub otlp_endpoint: Option<String>,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}
