//! What there is to see of a policy: its name, its settings, its parts, and how it is doing.

use super::Policy;
use crate::{
    Breaker, Bulkhead, PolicySnapshot, Refusal, RetrySettings, Timeouts, breaker::State, retry::Retry,
};

impl Policy {
    /// The neighbour's name.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// The neighbour's timeouts; the client takes its connect timeout from here.
    pub fn timeouts(&self) -> Timeouts {
        self.inner.timeouts
    }

    /// How its calls are repeated, if they are.
    pub fn retry(&self) -> Option<RetrySettings> {
        self.inner.retry.as_ref().map(Retry::settings)
    }

    /// Its breaker, to be shared with another policy for the same neighbour.
    pub fn breaker(&self) -> Option<Breaker> {
        self.inner.breaker
    }

    /// Its places.
    pub fn bulkhead(&self) -> Option<Bulkhead> {
        self.inner.bulkhead
    }

    /// The breaker is open and its time is not over.
    pub fn breaker_is_open(&self) -> bool {
        self.inner.breaker.is_some_and(|breaker| breaker.state() == State::Open && breaker.look().is_err())
    }

    /// Looks whether the breaker would let a call through now, and takes nothing: for a worker that
    /// had better not take work on.
    ///
    /// # Errors
    /// What a call would be refused with.
    pub fn would_admit(&self) -> Result<(), Refusal> {
        self.inner.breaker.map_or(Ok(()), Breaker::look)
    }

    /// Waits until the breaker would let a call through. It reserves nothing.
    pub async fn admitting(&self) {
        if let Some(breaker) = self.inner.breaker {
            breaker.admitting().await;
        }
    }

    /// What it looks like now and has done so far.
    pub fn snapshot(&self) -> PolicySnapshot {
        PolicySnapshot {
            name: self.inner.name,
            attempt_timeout: self.inner.timeouts.attempt,
            calls: self.inner.counters.read(),
            breaker: self.inner.breaker.map(Breaker::snapshot),
            bulkhead: self.inner.bulkhead.map(Bulkhead::snapshot),
            retry_budget: self.inner.retry.as_ref().and_then(Retry::budget).map(|budget| budget.snapshot()),
        }
    }
}
