//! Load at a fixed rate against a running shop, faults meanwhile, and whether its promises held.
//!
//! | file | what it is for |
//! | --- | --- |
//! | `cli` | what can be said on the command line |
//! | `scenario` | a run from its first request to its last, with the fault in its middle |
//! | `schedule` | **when** requests are sent: an open loop, whatever the answers do |
//! | `traffic` | **what** is asked, and how |
//! | `judge` | whether an answer is right, and how good |
//! | `phase`, `record` | to which part of the run an answer belongs; counts and histograms |
//! | `control` | who breaks and heals the parts |
//! | `settle` | whether every accepted order was paid in the end, once |
//! | `promise` | what each drill promises, and whether it held |
//! | `report` | what people and programs read at the end |

mod cli;
mod control;
mod judge;
mod phase;
mod promise;
mod record;
mod report;
mod scenario;
mod schedule;
mod settle;
mod traffic;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::control::Control;
use crate::traffic::Door;

/// A promise was broken.
const BROKEN: u8 = 1;
/// It could not be run as asked; also what clap ends with.
const NOT_RUN: u8 = 2;
/// Stopped by hand, as shells tell it.
const STOPPED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let cli::Command::Run(options) = cli::Cli::parse().command;
    options.check().unwrap_or_else(|refused| refused.exit());
    run(options).await.unwrap_or_else(|fault| {
        report::say(&format!("{fault:#}"));
        ExitCode::from(NOT_RUN)
    })
}

async fn run(options: cli::Run) -> anyhow::Result<ExitCode> {
    let control = match (&options.control, &options.target) {
        (Some(control), _) => control.clone(),
        (None, Some(_)) => Control::Nobody,
        (None, None) => Control::beside(options.home.clone())?,
    };
    let target = match &options.target {
        Some(target) => target.clone(),
        None => {
            let told = control.storefront().await?.context("the shop does not tell its address")?;
            cli::target(told.as_str()).map_err(anyhow::Error::msg)?
        }
    };
    report::say(&format!("{} against {target}", options.drill.name()));
    let shown = scenario::run(&options, Door::new(target)?, &control).await?;
    let promises = promise::promises(options.drill, &shown);
    std::io::stdout().write_all(report::report(&options, &shown, &promises).as_bytes())?;
    Ok(ExitCode::from(match promises.iter().all(|promise| promise.kept) {
        _ if shown.stopped => STOPPED,
        true => 0,
        false => BROKEN,
    }))
}
