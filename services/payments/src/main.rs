//! Payments as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    payments::start(std::env::args_os())
}
