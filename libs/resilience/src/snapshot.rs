//! Snapshot: what a policy looks like now and has done so far, for `/resilience` and for metrics.
//!
//! Plain data, computed when it is asked for. Whoever serves it chooses the format.

use std::time::Duration;

use crate::{
    BreakerSnapshot, BulkheadSnapshot, CallError, Classify, Outcome, Refusal,
    retry_budget::RetryBudgetSnapshot, stripes::Counter,
};

/// A policy at one moment. Its fields are read one after another, not all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySnapshot {
    /// The policy's name.
    pub name: &'static str,
    /// The attempt timeout.
    pub attempt_timeout: Duration,
    /// What became of the calls so far.
    pub calls: CallCounts,
    /// Its breaker, if it has one. Two policies may share it.
    pub breaker: Option<BreakerSnapshot>,
    /// Its bulkhead, if it has one.
    pub bulkhead: Option<BulkheadSnapshot>,
    /// Its retry budget, if it has one.
    pub retry_budget: Option<RetryBudgetSnapshot>,
}

/// What became of calls since the policy was made. A call that ended counts once in one of the
/// first seven; one that was given up by its caller counts in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCounts {
    /// Has a result.
    pub ok: u64,
    /// The neighbour said no.
    pub rejected: u64,
    /// It surely did not happen, for a reason on the neighbour's side.
    pub not_executed: u64,
    /// Nobody knows whether it happened.
    pub unknown: u64,
    /// Refused here: no time was left.
    pub no_time_left: u64,
    /// Refused here: the breaker was open.
    pub breaker_open: u64,
    /// Refused here: all places were taken.
    pub bulkhead_full: u64,
    /// Attempts that were made.
    pub attempts: u64,
    /// Attempts that were ended by a timeout, the caller's or the neighbour's.
    pub timed_out: u64,
    /// Attempts that were retries.
    pub retries: u64,
}

/// The counters behind [`CallCounts`].
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) ok: Counter,
    pub(crate) rejected: Counter,
    pub(crate) not_executed: Counter,
    pub(crate) unknown: Counter,
    pub(crate) no_time_left: Counter,
    pub(crate) breaker_open: Counter,
    pub(crate) bulkhead_full: Counter,
    /// Attempts that did not end in a result at once; the good ones are added when it is read, so
    /// that the good path counts one thing and not two.
    pub(crate) failed_attempts: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) retries: Counter,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            ok: Counter::new(),
            rejected: Counter::new(),
            not_executed: Counter::new(),
            unknown: Counter::new(),
            no_time_left: Counter::new(),
            breaker_open: Counter::new(),
            bulkhead_full: Counter::new(),
            failed_attempts: Counter::new(),
            timed_out: Counter::new(),
            retries: Counter::new(),
        }
    }

    /// A call ended.
    pub(crate) fn call_ended<T, E: Classify>(&self, result: &Result<T, CallError<E>>) {
        let counter = match result {
            Ok(_) => &self.ok,
            Err(CallError::Refused { refusal: Refusal::NoTimeLeft, .. }) => &self.no_time_left,
            Err(CallError::Refused { refusal: Refusal::BreakerOpen { .. }, .. }) => &self.breaker_open,
            Err(CallError::Refused { refusal: Refusal::BulkheadFull, .. }) => &self.bulkhead_full,
            Err(error) => match error.class().outcome {
                Outcome::Rejected => &self.rejected,
                Outcome::NotExecuted => &self.not_executed,
                Outcome::Unknown => &self.unknown,
            },
        };
        counter.add_one();
    }

    pub(crate) fn read(&self) -> CallCounts {
        CallCounts {
            ok: self.ok.get(),
            rejected: self.rejected.get(),
            not_executed: self.not_executed.get(),
            unknown: self.unknown.get(),
            no_time_left: self.no_time_left.get(),
            breaker_open: self.breaker_open.get(),
            bulkhead_full: self.bulkhead_full.get(),
            attempts: self.ok.get() + self.failed_attempts.get(),
            timed_out: self.timed_out.get(),
            retries: self.retries.get(),
        }
    }
}
