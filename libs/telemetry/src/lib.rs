//! What a service tells about itself: logs on standard error, traces over OTLP, and the W3C trace
//! context that joins the spans of all services into one trace.
//!
//! A collector that is absent, dead or slow costs a service nothing: spans go through a bounded
//! queue of their own thread, and the end of the process waits a bounded time for it.

pub mod journal;
pub mod propagation;
mod settings;
mod start;

pub use settings::{LogFormat, Settings};
pub use start::{StartError, Telemetry, start};
