//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use url::Url;

/// Watertight: a shop that keeps selling while its parts sink.
///
/// Without a command it starts the shop: a private Postgres and RabbitMQ, the services, and this program as their keeper.
#[derive(Debug, Parser)]
#[command(name = "watertight", version)]
pub(crate) struct Cli {
    /// The folder of the shop. A second shop needs a second folder. [default: watertight-UID in the temporary
    /// folder]
    #[arg(long, env = "WATERTIGHT_HOME", global = true, value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// How to start, when no command is given.
    #[command(flatten)]
    pub(crate) up: Up,
}

impl Cli {
    /// Reads a command line. What is said about the start before a command that starts nothing is refused, and not
    /// silently of no effect.
    ///
    /// # Errors
    /// As clap tells them.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut definitions = Self::command();
        let matches = definitions.try_get_matches_from_mut(args)?;
        let said = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(command) = matches.subcommand_name()
            && let Some(id) = ["port", "postgres_url", "amqp_url"].into_iter().find(|id| said(id))
        {
            let what = format!(
                "--{} says how to start, and comes after `up` or alone: not before `{command}`",
                id.replace('_', "-")
            );
            return Err(definitions.error(ErrorKind::ArgumentConflict, what));
        }
        Self::from_arg_matches(&matches)
    }
}

/// How to start the shop.
#[derive(Clone, Debug, Args)]
pub(crate) struct Up {
    /// The port of the shop's pages on 127.0.0.1; 0 takes any free one. [default: 8080 or the next free one]
    #[arg(long, env = "WATERTIGHT_PORT")]
    pub(crate) port: Option<u16>,

    /// A Postgres that is there already, `postgres://user:password@host:port`, instead of a private one. The
    /// databases catalog, orders and payments are made there if they are missing.
    #[arg(long, env = "POSTGRES_URL", hide_env_values = true, value_parser = postgres_url)]
    pub(crate) postgres_url: Option<Url>,

    /// A RabbitMQ that is there already, `amqp://user:password@host:port/%2f`, instead of a private one.
    #[arg(long, env = "AMQP_URL", hide_env_values = true, value_parser = amqp_url)]
    pub(crate) amqp_url: Option<Url>,
}

/// What to compare.
#[derive(Clone, Debug, Args)]
pub(crate) struct Audit {
    /// The database of orders. [default: that of the running shop]
    #[arg(long, env = "ORDERS_DATABASE_URL", hide_env_values = true)]
    pub(crate) orders_database_url: Option<String>,

    /// The database of payments. [default: that of the running shop]
    #[arg(long, env = "PAYMENTS_DATABASE_URL", hide_env_values = true)]
    pub(crate) payments_database_url: Option<String>,

    /// Counts it as a disagreement when an order still waits for its charge.
    #[arg(long)]
    pub(crate) settled: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts the shop and keeps it until Ctrl-C
    Up(Up),
    /// Shows how each part is
    Status {
        /// As JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Kills a part with SIGKILL
    Kill {
        /// A service, `postgres` or `rabbitmq`.
        part: String,
    },
    /// Stops a part with SIGSTOP: it hangs, but is not dead
    Pause {
        /// A service, `postgres` or `rabbitmq`.
        part: String,
    },
    /// Lets a paused part go on
    Resume {
        /// A service, `postgres` or `rabbitmq`.
        part: String,
    },
    /// Starts a part again, on the same port and data
    Start {
        /// A service, `postgres` or `rabbitmq`.
        part: String,
    },
    /// Prints the address of a service's database, for psql
    Database {
        /// A service that has one.
        name: String,
    },
    /// Compares orders, stock, charges, ledger and bank to the cent; ends with 1 if anything disagrees
    Audit(Audit),
    /// Ends the shop, as Ctrl-C in its terminal does
    Down,
    /// Runs one service in this process
    #[command(hide = true, disable_help_flag = true)]
    Service {
        /// Which.
        name: String,
        /// What it is told.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

fn postgres_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|fault| fault.to_string())?;
    match url.scheme() {
        "postgres" | "postgresql" if url.has_host() => Ok(url),
        _ => Err("must be postgres://user:password@host:port".into()),
    }
}

fn amqp_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|fault| fault.to_string())?;
    match url.scheme() {
        "amqp" if url.has_host() => Ok(url),
        _ => Err("must be amqp://user:password@host:port/%2f".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Cli, clap::Error> {
        Cli::read(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_folder_may_stand_on_either_side_and_a_start_is_said_where_something_starts() {
        for line in ["watertight --home x status", "watertight status --home x", "watertight up --port 0"] {
            assert!(read(line).is_ok(), "{line}");
        }
        let refused = read("watertight --port 0 status").expect_err("status starts nothing");
        assert!(refused.to_string().contains("--port"), "{refused}");
    }

    #[test]
    fn a_service_gets_all_that_follows_its_name() {
        let cli =
            Cli::try_parse_from(["watertight", "service", "payments", "--help", "healthcheck"]).unwrap();
        let Some(Command::Service { name, args }) = cli.command else { panic!("not the command") };
        assert_eq!((name.as_str(), args), ("payments", vec!["--help".into(), "healthcheck".into()]));
    }

    #[test]
    fn no_command_takes_the_options_of_up() {
        let cli = Cli::try_parse_from(["watertight", "--port", "0"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.up.port, Some(0));
    }

    #[test]
    fn an_address_of_something_else_is_refused() {
        assert!(postgres_url("postgres://a:b@10.0.0.1:5432").is_ok());
        for text in ["http://a", "postgres:", "nonsense"] {
            assert!(postgres_url(text).is_err(), "{text}");
        }
        assert!(amqp_url("amqp://a:b@10.0.0.1:5672/%2f").is_ok());
        for text in ["http://a", "amqp:", "nonsense"] {
            assert!(amqp_url(text).is_err(), "{text}");
        }
    }
}
