//! What people see while the shop starts and runs: short lines, each with the time since the start.

use std::io::{IsTerminal as _, Write as _};

use tokio::time::Instant;

/// Prints lines with the time that has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Say {
    since: Instant,
}

impl Say {
    /// The time counts from now on.
    pub(crate) fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// A line with the time.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        let elapsed = self.since.elapsed().as_secs_f64();
        for (row, line) in text.as_ref().lines().enumerate() {
            if row == 0 {
                print(&format!("{elapsed:6.1}s  {line}"));
            } else {
                print(&format!("         {line}"));
            }
        }
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }
}

/// A line as it is.
///
/// A terminal that was closed must not end the shop half-way down, as `println!` would: then there is nobody to
/// tell, and nothing is lost by not telling.
pub(crate) fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Text to be seen first, if this is a terminal.
pub(crate) fn strong(text: &str) -> String {
    if std::io::stdout().is_terminal() { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// How people call this program: as they have started it.
pub(crate) fn command() -> &'static str {
    // cargo sets it for what it runs.
    if std::env::var_os("CARGO_PKG_NAME").is_some() { "cargo run --" } else { "watertight" }
}
