//! Payments: charges a card once per key, remembers the decision for good, and keeps the ledger.
//!
//! A charge is two short transactions with the bank between them, because the bank's call can be
//! neither inside a transaction (it may take seconds) nor made without one before it (a crash would
//! forget that the bank was asked):
//!
//! 1. claim the key: a `pending` row with a lease, or what an earlier call left there;
//! 2. ask the bank, in a task of its own, under the same key however often it is asked;
//! 3. write the decision and its ledger entries, if the claim is still ours.
//!
//! Whoever dies in between leaves a pending row whose lease ends soon; the next call with the key,
//! or the worker, drives it again. The story starts in `charge_once.rs`.

mod app;
mod bank;
mod charge;
mod charge_once;
mod config;
mod drive;
mod grpc;
mod running;
mod store;
mod take_over;

use std::{ffi::OsString, process::ExitCode};

pub use config::Config;

/// Runs the service until SIGTERM, with settings from `args` and the environment.
pub fn start(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    chassis::start("payments", args, app::build)
}
