//! Observing: what a policy tells, to whom, and when.
//!
//! The patterns know no metrics and no logs; they call a trait whose methods do nothing unless
//! someone implements them. They are called on the path of the call, outside any lock and after
//! places and permits were given back: they must be quick, and must not panic.
//!
//! What can be counted is not told here but kept ([`crate::snapshot`]): a gauge that is computed
//! when it is read cannot keep a state that was left.

use std::{fmt, time::Duration};

use crate::{Limit, NoRetry, Op, Outcome, Refusal, Verdict, breaker::Change};

/// Told what happens in a policy. Every method has a default that does nothing.
pub trait Observe: Send + Sync {
    /// An attempt was made, and ended.
    fn attempt_finished(&self, attempt: &Attempt) {
        let _ = attempt;
    }

    /// A breaker went from one state to another.
    fn breaker_changed(&self, change: &Change) {
        let _ = change;
    }

    /// The policy called `policy` refused to make an attempt.
    fn refused(&self, policy: &'static str, op: Op, refusal: Refusal) {
        let _ = (policy, op, refusal);
    }

    /// A failed attempt is repeated after `pause`; `attempt` is the number of the next one.
    fn retrying(&self, policy: &'static str, op: Op, attempt: u32, pause: Duration) {
        let _ = (policy, op, attempt, pause);
    }

    /// A failed attempt is not repeated, and why. Not told where somebody else owns the retries.
    fn not_retried(&self, policy: &'static str, op: Op, why: NoRetry) {
        let _ = (policy, op, why);
    }
}

/// One attempt that ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Attempt {
    /// The policy's name.
    pub policy: &'static str,
    /// What was called.
    pub op: Op,
    /// Which attempt of its owner it was, counted from 1.
    pub number: u32,
    /// How long it took, without the wait for a place. By tokio's clock.
    pub elapsed: Duration,
    /// What became of it; `None` when it has a result.
    pub outcome: Option<Outcome>,
    /// What it said about the neighbour's health.
    pub verdict: Verdict,
    /// The limit that ended it, if one did.
    pub timed_out: Option<Limit>,
}

/// The observer of a policy, if it has one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Observer(pub(crate) Option<&'static dyn Observe>);

impl Observer {
    pub(crate) fn tell(self, what: impl FnOnce(&dyn Observe)) {
        if let Some(observer) = self.0 {
            what(observer);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(set)" } else { "Observer(none)" })
    }
}
