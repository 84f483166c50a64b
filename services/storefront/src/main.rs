//! The storefront as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    storefront::start(std::env::args_os())
}
