//! Orders as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    orders::start(std::env::args_os())
}
