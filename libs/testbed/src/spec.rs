//! How a part is run: all that it takes to start it, the first time or again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::ready::Ready;

/// How to run a part.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What people call it.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    /// Whether the program gets only the variables above, and none of ours. For servers, which read more
    /// variables than one thinks of.
    pub own_environment: bool,
    /// Its output, appended. A log belongs to one part alone, see `guard.rs`.
    pub log: PathBuf,
    /// Where it runs; `None`: where we do.
    pub dir: Option<PathBuf>,
    /// Whom it runs as; `None`: as ourselves.
    pub account: Option<Account>,
    /// When it counts as started.
    pub ready: Ready,
    /// How long that may take.
    pub ready_within: Duration,
    /// How it is asked to end.
    pub stop: Stop,
}

/// An orderly end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal that asks for it. It goes to the program alone, not to its children.
    pub signal: Signal,
    /// How long it may take; then the part is killed.
    pub within: Duration,
}

impl Spec {
    /// A program with its log: our environment, no check of readiness, SIGTERM and 10 s to end.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            own_environment: false,
            log: log.into(),
            dir: None,
            account: None,
            ready: Ready::Spawned,
            ready_within: Duration::from_secs(20),
            stop: Stop { signal: Signal::SIGTERM, within: Duration::from_secs(10) },
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets when it counts as started.
    #[must_use]
    pub fn ready(mut self, ready: Ready) -> Self {
        self.ready = ready;
        self
    }
}
