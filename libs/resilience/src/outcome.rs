//! Outcome: a remote call has three, not two. It was done, it was not done, or *nobody knows*.
//!
//! The obvious `Result` folds the last two into "error", and then someone repeats a payment that
//! did go through. So a failure says which it was ([`Outcome`]), and, as a thing apart, what it is
//! evidence of ([`Verdict`]): a neighbour that says "no such product" is well. What counts as which
//! is said once per client, in its implementation of [`Classify`], and used by breaker and retry
//! alike.

use std::{fmt, time::Duration};

/// What became of a call that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It surely did not happen. Safe to repeat, which is not the same as worth repeating.
    NotExecuted,
    /// It went out and no answer came. Only an operation declared idempotent may be repeated.
    Unknown,
    /// The neighbour is well and said no. Never repeated.
    Rejected,
}

impl Outcome {
    /// The name in logs, spans and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotExecuted => "not-executed",
            Self::Unknown => "unknown",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a finished attempt says about the health of the neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It works, even if it said no.
    Healthy,
    /// It does not.
    Failure,
    /// Nothing either way.
    Neutral,
    /// The neighbour itself reported that the time it was given ran out. The [`Policy`](crate::Policy)
    /// resolves it: a failure when that was the neighbour's whole attempt timeout, neutral when the
    /// caller's deadline had cut it short. A breaker by itself, which knows no deadline, counts it
    /// as a failure.
    TimedOut,
}

/// What one failed attempt was: outcome, evidence, and whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Did it happen?
    pub outcome: Outcome,
    /// Is the neighbour ill?
    pub verdict: Verdict,
    /// May the same call succeed a moment later?
    pub transient: bool,
    /// The neighbour asked to be left alone for this long before another attempt.
    pub retry_after: Option<Duration>,
}

impl Class {
    /// It surely did not happen, the neighbour is ill, trying again may help.
    pub const fn not_executed() -> Self {
        Self { outcome: Outcome::NotExecuted, verdict: Verdict::Failure, transient: true, retry_after: None }
    }

    /// Nobody knows, the neighbour is ill, trying again may help.
    pub const fn unknown() -> Self {
        Self { outcome: Outcome::Unknown, ..Self::not_executed() }
    }

    /// The neighbour is well and said no; it will say no again.
    pub const fn rejected() -> Self {
        Self { outcome: Outcome::Rejected, verdict: Verdict::Healthy, transient: false, retry_after: None }
    }

    /// The same, with another say on the neighbour's health.
    #[must_use]
    pub const fn with_verdict(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }

    /// The same, but trying again is of no use.
    #[must_use]
    pub const fn lasting(self) -> Self {
        Self { transient: false, ..self }
    }

    /// The same, with the neighbour's wish to be left alone for `pause`.
    #[must_use]
    pub const fn after(self, pause: Option<Duration>) -> Self {
        Self { retry_after: pause, ..self }
    }
}

/// How a client's error type says what a failure was.
pub trait Classify {
    /// What this failure was.
    fn class(&self) -> Class;
}

/// Why a call was refused on this side, before anything was sent. Never retried, and never counted
/// against the neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller's time is up, or what is left is too short to be worth an attempt.
    #[error("no time is left")]
    NoTimeLeft,
    /// The neighbour is ill, and is left alone for a while.
    #[error("its circuit breaker is open")]
    BreakerOpen {
        /// When asking again may help; zero is never given.
        retry_after: Duration,
    },
    /// All of this neighbour's places are taken, and none came free in time.
    #[error("all of its places are taken")]
    BulkheadFull,
}

impl Refusal {
    /// The name in logs, spans and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoTimeLeft => "no-time-left",
            Self::BreakerOpen { .. } => "breaker-open",
            Self::BulkheadFull => "bulkhead-full",
        }
    }

    /// When asking again may help, where that is known.
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::BreakerOpen { retry_after } => Some(retry_after),
            Self::NoTimeLeft | Self::BulkheadFull => None,
        }
    }
}

/// Which of two limits ended an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The neighbour's own attempt timeout: it had its full time. Evidence of illness.
    Attempt,
    /// The caller's deadline came first: the neighbour had less than its time. No evidence.
    Caller,
}

/// Why a call through a [`Policy`](crate::Policy) has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError<E> {
    /// Refused on this side; nothing was sent.
    #[error("{neighbour} was not called: {refusal}")]
    Refused {
        /// Who would have been called.
        neighbour: &'static str,
        /// Why not.
        refusal: Refusal,
    },
    /// No answer came in time.
    #[error("{neighbour} did not answer within {} ms", after.as_millis())]
    TimedOut {
        /// Who was called.
        neighbour: &'static str,
        /// How long the last attempt was given.
        after: Duration,
        /// What set that time.
        limit: Limit,
    },
    /// The client reported a failure.
    #[error("{neighbour} failed")]
    Failed {
        /// Who was called.
        neighbour: &'static str,
        /// What the client reported.
        #[source]
        source: E,
    },
}

impl<E: Classify> Classify for CallError<E> {
    fn class(&self) -> Class {
        match self {
            Self::Refused { refusal, .. } => {
                Class::not_executed().with_verdict(Verdict::Neutral).lasting().after(refusal.retry_after())
            }
            Self::TimedOut { limit: Limit::Attempt, .. } => Class::unknown(),
            Self::TimedOut { limit: Limit::Caller, .. } => Class::unknown().with_verdict(Verdict::Neutral),
            Self::Failed { source, .. } => source.class(),
        }
    }
}

impl<E> CallError<E> {
    /// The client's own error, when that is what it was.
    pub fn failure(&self) -> Option<&E> {
        match self {
            Self::Failed { source, .. } => Some(source),
            Self::Refused { .. } | Self::TimedOut { .. } => None,
        }
    }
}
