//! The breaker's states, and why it goes from one to another.

use std::fmt;

/// What a breaker does with calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Lets them through, and counts.
    Closed,
    /// Refuses them.
    Open,
    /// Lets a few through, to see.
    HalfOpen,
}

/// A breaker went from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The breaker's name.
    pub breaker: &'static str,
    /// The state that it left.
    pub from: State,
    /// The state that it is in now.
    pub to: State,
    /// Why.
    pub cause: Cause,
}

/// Why a breaker changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Too large a share of the calls failed.
    FailureRate,
    /// Too large a share of the calls was slow.
    SlowRate,
    /// Too many failed with no success in between.
    ConsecutiveFailures,
    /// It was open for its time.
    OpenTimeOver,
    /// A probe failed, or was slow.
    ProbeFailed,
    /// A probe did not come back within its lease.
    ProbeHung,
    /// All probes succeeded.
    ProbesSucceeded,
}

// === impl State ===

impl State {
    /// The name in logs, spans, metrics and snapshots.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailureRate => "too many calls failed",
            Self::SlowRate => "too many calls were slow",
            Self::ConsecutiveFailures => "too many failures in a row",
            Self::OpenTimeOver => "the open time is over",
            Self::ProbeFailed => "a probe failed",
            Self::ProbeHung => "a probe did not come back",
            Self::ProbesSucceeded => "all probes succeeded",
        })
    }
}
