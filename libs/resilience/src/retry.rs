//! Retry: once more, where that can help and cannot harm.
//!
//! The obvious loop repeats whatever failed, at once, at every level. Three levels of three
//! attempts are twenty-seven calls at the bottom, all at the moment when it can bear them least; a
//! payment that got through and whose answer was lost is made again; and clients that failed
//! together come back together.
//!
//! So a retry is refused more often than it is made. [`NoRetry`] lists the refusals; each is
//! checked for every failed attempt, and the first that holds is told to the observer. What is left
//! is repeated after a pause with *full* jitter: a random time between nothing and
//! `base * 2^n`, cut at `cap` before the die is thrown, so that no pause is longer than the cap.
//! That spreads a herd over the whole pause instead of moving it.
//!
//! The attempts are counted anew for each call. How many retries all calls together may make is
//! the [retry budget](crate::retry_budget)'s to say.

use std::time::Duration;

use crate::{
    CallContext, Class, Jitter, Op, Outcome,
    jitter::{Die, nanos},
    retry_budget::{RetryBudget, RetryBudgetSettings},
    settings::Fault,
};

/// How failed calls are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Attempts in all, the first included. Default: 3.
    pub attempts: u32,
    /// The longest first pause; it doubles with each. Default: 50 ms, several times what a call on
    /// the same network takes.
    pub base: Duration,
    /// No pause is longer than this. Default: 1 s.
    pub cap: Duration,
    /// Chance in the pauses. Default: random.
    pub jitter: Jitter,
    /// How many retries all calls together may make; `None` is no limit. Default: 10 %.
    pub budget: Option<RetryBudgetSettings>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(50),
            cap: Duration::from_secs(1),
            jitter: Jitter::Random,
            budget: Some(RetryBudgetSettings::default()),
        }
    }
}

/// Why a failed attempt is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoRetry {
    /// One level retries, and it is another one.
    #[error("another level owns the retries")]
    NotOwner,
    /// Our own no, because of a breaker, a bulkhead or the deadline, is not the neighbour's
    /// failure; asking ourselves again changes nothing.
    #[error("it was refused on this side")]
    RefusedHere,
    /// The neighbour is well and said no; it will say no again.
    #[error("the neighbour said no")]
    Rejected,
    /// The same call will fail in the same way a moment later.
    #[error("the failure is not a passing one")]
    Lasting,
    /// It may have happened, and doing it twice would do it twice.
    #[error("it may have happened, and is not idempotent")]
    MayHaveHappened,
    /// It was tried as often as the settings allow.
    #[error("all attempts are used")]
    AttemptsUsed,
    /// The pause, or the one that the neighbour asked for, and the shortest attempt that is worth
    /// making do not fit into what is left. Nobody would wait for the answer, so it fails now.
    #[error("the next attempt could not end in time")]
    NoTimeLeft,
    /// Too many calls fail: retries are for the few, and would be an attack by the many.
    #[error("the retry budget is spent")]
    BudgetSpent,
}

/// What retries one policy's calls.
#[derive(Debug)]
pub(crate) struct Retry {
    settings: RetrySettings,
    die: Die,
    budget: Option<RetryBudget>,
}

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed {
    pub(crate) op: Op,
    pub(crate) class: Class,
    /// It was refused on this side.
    pub(crate) refused_here: bool,
    /// Attempts made in this call, this one included.
    pub(crate) made: u32,
}

// === impl Retry ===

impl Retry {
    pub(crate) fn new(settings: RetrySettings) -> Self {
        Self { settings, die: Die::new(settings.jitter), budget: settings.budget.map(RetryBudget::new) }
    }

    pub(crate) const fn settings(&self) -> RetrySettings {
        self.settings
    }

    pub(crate) const fn budget(&self) -> Option<&RetryBudget> {
        self.budget.as_ref()
    }

    /// A call begins that may be retried later: it pays for a part of a retry.
    pub(crate) fn first_attempt(&self) {
        if let Some(budget) = &self.budget {
            budget.deposit();
        }
    }

    /// The pause before the next attempt, or why there is none. `least` is the shortest attempt
    /// that is worth making.
    pub(crate) fn next(
        &self,
        cx: &CallContext,
        failed: Failed,
        least: Duration,
    ) -> Result<Duration, NoRetry> {
        let Failed { op, class, refused_here, made } = failed;
        if !cx.retry_owner().is_here() {
            return Err(NoRetry::NotOwner);
        }
        if refused_here {
            return Err(NoRetry::RefusedHere);
        }
        if class.outcome == Outcome::Rejected {
            return Err(NoRetry::Rejected);
        }
        if !class.transient {
            return Err(NoRetry::Lasting);
        }
        if class.outcome == Outcome::Unknown && !op.is_idempotent() {
            return Err(NoRetry::MayHaveHappened);
        }
        if made >= self.settings.attempts {
            return Err(NoRetry::AttemptsUsed);
        }
        let pause = self.pause(made - 1).max(class.retry_after.unwrap_or_default());
        if pause.saturating_add(least) > cx.deadline().remaining() {
            return Err(NoRetry::NoTimeLeft);
        }
        // Last, so that nothing is paid for a retry that is not made.
        if self.budget.as_ref().is_some_and(|budget| !budget.withdraw()) {
            return Err(NoRetry::BudgetSpent);
        }
        Ok(pause)
    }

    /// The pause before retry `n`, counted from 0.
    fn pause(&self, n: u32) -> Duration {
        self.die.between(Duration::ZERO, self.settings.longest_pause(n))
    }
}

// === impl RetrySettings ===

impl RetrySettings {
    /// The longest that the pause before retry `n` can be, counted from 0: `base * 2^n`, at most
    /// `cap`, for any `n`.
    pub fn longest_pause(&self, n: u32) -> Duration {
        let factor = 1u64.checked_shl(n).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos(self.base).saturating_mul(factor)).min(self.cap)
    }

    /// The longest that a call can take with these settings when each attempt takes its full
    /// `attempt` and nobody's deadline ends it: for the arithmetic of budgets.
    pub fn longest_call(&self, attempt: Duration) -> Duration {
        let pauses = (0..self.attempts.saturating_sub(1)).map(|n| self.longest_pause(n));
        pauses.fold(attempt.saturating_mul(self.attempts), Duration::saturating_add)
    }

    /// The faults of these settings, named after `neighbour`.
    pub(crate) fn check(&self, neighbour: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |name: &str, value: &dyn std::fmt::Debug, rule: &str| {
            faults.push(Fault::new(format!("{neighbour}.retry.{name}"), value, rule));
        };
        if self.attempts == 0 || self.attempts > 100 {
            refuse("attempts", &self.attempts, "must be 1 to 100, the first attempt included");
        }
        if self.base.is_zero() || self.base > self.cap {
            refuse("base", &self.base, "must be more than 0 and at most cap");
        }
        if self.cap > Duration::from_secs(3600) {
            refuse("cap", &self.cap, "must be at most 1 h");
        }
        faults.extend(self.budget.iter().flat_map(|budget| budget.check(neighbour)));
        faults
    }
}

#[cfg(test)]
mod tests;
