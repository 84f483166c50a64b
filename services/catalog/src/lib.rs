//! The catalog: what the shop sells, and for how much.
//!
//! It is read by the storefront, which shows it, and by orders, which prices with it. Both remember
//! what they read, so the shop goes on selling while this service is gone.

mod app;
mod config;
mod http;
mod store;

use std::{ffi::OsString, process::ExitCode};

pub use config::Config;

/// Runs the service until SIGTERM, with settings from `args` and the environment.
pub fn start(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    chassis::start("catalog", args, app::build)
}
