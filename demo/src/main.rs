//! The whole shop on a bare machine, and the commands that break it.
//!
//! | file | what it is for |
//! | --- | --- |
//! | `cli` | what can be said on the command line |
//! | `up` | `cargo run`: from the first line to the last |
//! | `parts` | **the table of parts**: what the shop is made of, and how each is started |
//! | `shop` | the running parts: kill, pause, resume, start, and the orderly end |
//! | `home` | the folder of a shop: its lock, its door for commands, its logs and data |
//! | `control`, `client` | the two ends of that door |
//! | `audit` | whether the books agree |
//! | `status` | what `status` shows |
//! | `service` | one service, as a process of this same program |
//! | `say` | what people see meanwhile |

mod audit;
mod cli;
mod client;
mod control;
mod home;
mod parts;
mod say;
mod service;
mod shop;
mod status;
mod up;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli::Cli { home, command, up } = match cli::Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(fault) => fault.exit(),
    };
    let done = match command.unwrap_or(cli::Command::Up(up)) {
        cli::Command::Up(options) => up::run(home, options),
        cli::Command::Service { name, args } => return service::run(&name, args),
        cli::Command::Status { json } => client::status(&home, json),
        cli::Command::Kill { part } => client::act(&home, control::Act::Kill, part),
        cli::Command::Pause { part } => client::act(&home, control::Act::Pause, part),
        cli::Command::Resume { part } => client::act(&home, control::Act::Resume, part),
        cli::Command::Start { part } => client::act(&home, control::Act::Start, part),
        cli::Command::Database { name } => client::ask(&home, &control::Request::Database { name }),
        cli::Command::Audit(options) => audit::run(&home, options),
        cli::Command::Down => client::down(&home),
    };
    done.unwrap_or_else(|fault| {
        eprintln!("{fault:#}");
        ExitCode::FAILURE
    })
}
