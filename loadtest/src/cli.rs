//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use reqwest::Url;

use crate::control::Control;

/// Requests in a run, at most.
const MOST: f64 = 1_000_000.0;

/// Offers load to a running shop at a fixed rate, breaks a part of it meanwhile, and tells whether the shop
/// kept its promises.
///
/// It ends with 0 when all promises held, with 1 when one was broken, with 2 when it could not be run as asked,
/// and with 130 when it was stopped by hand.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a drill
    Run(Run),
}

/// The drills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drill {
    /// Nothing breaks: every answer is live, right, and in time
    Steady,
    /// Payments is killed and started again: no page and no purchase fails; what was bought meanwhile is paid
    /// afterwards, once
    PaymentsKilled,
}

impl Drill {
    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::PaymentsKilled => "payments-killed",
        }
    }

    /// The part that is killed and started again.
    pub(crate) const fn victim(self) -> Option<&'static str> {
        match self {
            Self::Steady => None,
            Self::PaymentsKilled => Some("payments"),
        }
    }
}

/// How a drill is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// Which drill.
    pub(crate) drill: Drill,

    /// Requests a second. They are sent on schedule, whatever the shop makes of them.
    #[arg(long, default_value = "50", value_parser = rate)]
    pub(crate) rate: f64,

    /// How long load is offered after the warm-up, in all; a drill with a fault gives a third each to the times
    /// before, during and after it. With a unit, such as 45s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "45s", value_parser = duration)]
    pub(crate) span: Duration,

    /// How long load is offered before that, to open connections and fill caches. Its answers have to be right
    /// and in time like all others, but not live.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub(crate) warm_up: Duration,

    /// Requests in flight, at most. Those that are due beyond are not sent, and counted as a broken promise.
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) in_flight: u32,

    /// What people ask for, in which order. The same seed is the same load.
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,

    /// The shop's address, on this machine only, such as http://127.0.0.1:8080. [default: the shop that
    /// `cargo run` has started]
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Url>,

    /// The command that takes `kill SERVICE` and `start SERVICE`, such as "docker compose". [default: the
    /// program of `cargo run`, unless --target is given]
    #[arg(long, value_name = "COMMAND", requires = "target", value_parser = Control::parse)]
    pub(crate) control: Option<Control>,

    /// The folder of the shop that `cargo run` has started. [default: the usual one]
    #[arg(long, env = "WATERTIGHT_HOME", value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,
}

impl Run {
    /// Checks what one option alone cannot tell.
    ///
    /// # Errors
    /// Names the options that do not fit together.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        let mut command = Cli::command();
        let mut refuse = |kind, text: String| Err(command.error(kind, text));
        if self.drill.victim().is_some() && self.target.is_some() && self.control.is_none() {
            let text = format!(
                "{} breaks a part of the shop: give --control with --target, such as --control \"docker compose\"",
                self.drill.name()
            );
            return refuse(ErrorKind::MissingRequiredArgument, text);
        }
        if self.span.is_zero() {
            return refuse(ErrorKind::ValueValidation, "--for must be more than nothing".into());
        }
        let all = self.rate * (self.span + self.warm_up).as_secs_f64();
        if all > MOST {
            let text =
                format!("--rate for --for would be {all:.0} requests: at most {MOST:.0} are sent in a run");
            return refuse(ErrorKind::ValueValidation, text);
        }
        Ok(())
    }
}

/// Reads an address, and refuses every other machine: this program is made to break what it talks to.
///
/// # Errors
/// When it is no http address of this machine.
pub(crate) fn target(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|fault| fault.to_string())?;
    if url.scheme() != "http" || url.path() != "/" || url.query().is_some() {
        return Err("must be http://host:port".into());
    }
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
        Ok(url)
    } else {
        Err(format!("{host} is not a loopback address: load is offered to a shop on this machine only"))
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.1..=10_000.0).contains(&rate) => Ok(rate),
        _ => Err("must be 0.1 to 10000 requests a second".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("say the unit, such as 45s or 2m".into());
    }
    let duration = humantime::parse_duration(text).map_err(|fault| fault.to_string())?;
    if duration > Duration::from_secs(3600) { Err("must be at most an hour".into()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Result<Run, clap::Error> {
        let cli = Cli::try_parse_from(["loadtest", "run"].iter().chain(args))?;
        let Command::Run(run) = cli.command;
        run.check().map(|()| run)
    }

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
        let run = run(&["steady"]).unwrap();
        assert_eq!((run.rate, run.span, run.in_flight), (50.0, Duration::from_secs(45), 500));
        for drill in Drill::value_variants() {
            assert_eq!(drill.to_possible_value().unwrap().get_name(), drill.name());
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let here = "--target=http://127.0.0.1:1";
        let cases: [(&[&str], &str); 11] = [
            (&["sunny"], "sunny"),
            (&["steady", "--rate=0"], "--rate"),
            (&["steady", "--rate=NaN"], "--rate"),
            (&["steady", "--for=30"], "--for"),
            (&["steady", "--for=0s"], "--for"),
            (&["steady", "--for=2h"], "--for"),
            (&["steady", "--rate=1000", "--for=1h"], "--rate"),
            (&["steady", "--in-flight=0"], "--in-flight"),
            (&["steady", "--target=http://10.0.0.1:80"], "--target"),
            (&["payments-killed", here], "--control"),
            (&["steady", "--control=docker compose"], "--target"),
        ];
        for (args, named) in cases {
            let error = run(args).expect_err("refused");
            assert!(error.to_string().contains(named), "{args:?}: {error}");
            assert_eq!(error.exit_code(), 2, "{args:?}");
        }
        run(&["payments-killed", here, "--control=docker compose"]).unwrap();
    }

    #[test]
    fn only_this_machine_is_a_target() {
        for text in ["http://127.0.0.1:8080", "http://127.9.9.9", "http://localhost:1", "http://[::1]:80"] {
            assert!(target(text).is_ok(), "{text}");
        }
        for text in [
            "http://10.0.0.1",
            "http://example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://[::2]",
            "http://0.0.0.0",
            "https://127.0.0.1",
            "http://127.0.0.1/shop",
            "127.0.0.1:8080",
        ] {
            assert!(target(text).is_err(), "{text}");
        }
    }
}
