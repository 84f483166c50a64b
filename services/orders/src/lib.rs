//! Orders: takes what people order, owns the stock, and sees every intent to charge through.
//!
//! One purchase goes down through `http`, `place_order`, `catalog`, `store`, `settle` and
//! `payments`, each opened once. What the caller's time did not suffice for, the relay finishes.

mod app;
mod catalog;
mod charge_queue;
mod config;
mod deferred_charges;
mod fingerprint;
mod http;
mod order;
mod payments;
mod place_order;
mod relay;
mod settle;
mod store;

use std::{ffi::OsString, process::ExitCode};

pub use config::Config;

/// Runs the service until SIGTERM, with settings from `args` and the environment.
pub fn start(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    chassis::start("orders", args, app::build)
}
