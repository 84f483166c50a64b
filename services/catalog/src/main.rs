//! The catalog as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    catalog::start(std::env::args_os())
}
