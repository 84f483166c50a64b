//! Policy: everything that stands between this process and one neighbour, in the one right order.
//!
//! From the outside in, and why here:
//!
//! 1. the caller's **deadline**: nothing inside may outlast it, retries and pauses included;
//! 2. **retry**: outside the breaker, so that each attempt is counted by it and refused by it, and
//!    not one whole loop of them;
//! 3. **breaker**: before the bulkhead, so that what is refused takes no place and no queue;
//! 4. **bulkhead**: outside the attempt timeout, so that the wait for a place does not eat the
//!    neighbour's time, and a neighbour is not blamed for our queue;
//! 5. the **attempt timeout** around the client.
//!
//! Each but the first and last is optional. A policy is made once at start, is named after its
//! neighbour, and the same object wraps whatever reaches it: HTTP, gRPC, SQL, a broker.
//!
//! It is one timer per attempt, at the earlier of attempt timeout and deadline, and not a timeout
//! inside a timeout: two nested ones cost twice, and race for who reports the failure.
//!
//! The result of a call tells the truth about *all* its attempts. When the first one timed out and
//! the second was refused by the breaker, the call may have happened: it is `Unknown`, not
//! `NotExecuted`.
//!
//! ```
//! # use std::time::Duration;
//! use resilience::{BreakerSettings, BulkheadSettings, Policy, RetrySettings, Timeouts};
//!
//! let payments = Policy::builder("payments", Timeouts::attempt(Duration::from_millis(2000)))
//!     .retry(RetrySettings::default())
//!     .breaker(BreakerSettings { consecutive_failures: Some(5), ..BreakerSettings::default() })
//!     .bulkhead(BulkheadSettings { places: 20, waiting: 20 })
//!     .build()?;
//! // The worker has a bulkhead of its own, and the same opinion of the neighbour.
//! let worker = Policy::builder("payments-deferred", Timeouts::attempt(Duration::from_millis(2000)))
//!     .shared_breaker(payments.breaker().expect("just set"))
//!     .bulkhead(BulkheadSettings { places: 2, waiting: 0 })
//!     .build()?;
//! assert!(worker.would_admit().is_ok());
//! # Ok::<_, resilience::Faults>(())
//! ```

mod builder;
mod parts;
#[cfg(test)]
mod tests;

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

pub use self::builder::Builder;
use crate::{
    Breaker, Bulkhead, CallContext, CallError, Class, Classify, Deadline, Limit, Op, Outcome, Refusal,
    Timeouts, Verdict,
    breaker::Permit,
    bulkhead::Place,
    clock::Timeline,
    observe::{Attempt, Observer},
    retry::{Failed, Retry},
    snapshot::Counters,
};

/// A timer that fires so much later than it was set for says that *this* process stood still:
/// stopped, suspended, or starved of a processor. What it then ends, or what then turns out to have
/// taken too long, is no evidence against the neighbour.
const LATE: Duration = Duration::from_millis(250);

/// How one neighbour is called. Cheap to copy; made once at start and never freed. Copies are the
/// same one.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    inner: &'static Inner,
}

#[derive(Debug)]
struct Inner {
    name: &'static str,
    timeouts: Timeouts,
    min_attempt: Duration,
    retry: Option<Retry>,
    breaker: Option<Breaker>,
    bulkhead: Option<Bulkhead>,
    timeline: Timeline,
    observer: Observer,
    counters: Counters,
}

/// What an attempt holds while it runs; dropped, all of it is given back.
struct Admission {
    permit: Option<Permit>,
    place: Option<Place>,
}

impl Policy {
    /// Calls the neighbour: `attempt` makes one attempt with the context that it is given, whose
    /// deadline it has to send along, and is called again for each retry.
    ///
    /// # Errors
    /// [`CallError`] says whether the call can have happened. Dropping the returned future gives
    /// up the call and everything it held, and counts neither way.
    pub async fn call<T, E, F, Fut>(&self, cx: &CallContext, op: Op, attempt: F) -> Result<T, CallError<E>>
    where
        E: Classify,
        F: FnMut(CallContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let result = self.attempts(cx, op, attempt).await;
        self.inner.counters.call_ended(&result);
        result
    }

    async fn attempts<T, E, F, Fut>(
        &self,
        cx: &CallContext,
        op: Op,
        mut attempt: F,
    ) -> Result<T, CallError<E>>
    where
        E: Classify,
        F: FnMut(CallContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let Inner { name, retry, observer, counters, min_attempt, .. } = self.inner;
        let retry = retry.as_ref().filter(|_| cx.retry_owner().is_here());
        if let Some(retry) = retry {
            retry.first_attempt();
        }
        let mut may_have_happened = None;
        let mut made = 0;
        loop {
            let number = cx.attempt().saturating_add(made);
            let error = match self.attempt(cx, op, number, &mut attempt).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            made += 1;
            let Some(retry) = retry else { return Err(error) };
            let class = error.class();
            let refused_here = matches!(error, CallError::Refused { .. });
            match retry.next(cx, Failed { op, class, refused_here, made }, *min_attempt) {
                Ok(pause) => {
                    if class.outcome == Outcome::Unknown {
                        may_have_happened = Some(error);
                    }
                    counters.retries.add_one();
                    observer.tell(|it| it.retrying(name, op, number.saturating_add(1), pause));
                    // It fits into what is left: that was checked.
                    sleep(pause).await;
                }
                Err(why) => {
                    observer.tell(|it| it.not_retried(name, op, why));
                    // A definite no about an idempotent operation settles what earlier attempts
                    // left open. That this last one was not executed does not.
                    let settled = class.outcome == Outcome::Rejected && !class.transient;
                    return Err(match may_have_happened {
                        Some(earlier) if !settled && class.outcome != Outcome::Unknown => earlier,
                        _ => error,
                    });
                }
            }
        }
    }

    /// One attempt: let in, given a place, timed, judged.
    async fn attempt<T, E, F, Fut>(
        &self,
        cx: &CallContext,
        op: Op,
        number: u32,
        attempt: &mut F,
    ) -> Result<T, CallError<E>>
    where
        E: Classify,
        F: FnMut(CallContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let neighbour = self.inner.name;
        let (admission, now) = match self.admit(cx.deadline()).await {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.inner.observer.tell(|it| it.refused(neighbour, op, refusal));
                return Err(CallError::Refused { neighbour, refusal });
            }
        };
        let own = self.inner.timeouts.attempt;
        let left = cx.deadline().instant().saturating_duration_since(now);
        let (after, limit) = if own <= left { (own, Limit::Attempt) } else { (left, Limit::Caller) };
        let deadline = now + after;

        let started = self.inner.timeline.now();
        let attempt = attempt(cx.for_attempt(number, Deadline::at(deadline)));
        let result = match timeout_at(deadline, attempt).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(CallError::Failed { neighbour, source }),
            Err(_) => Err(CallError::TimedOut { neighbour, after, limit }),
        };
        let elapsed = self.inner.timeline.now().saturating_sub(started);

        let class = result.as_ref().err().map(Classify::class);
        let verdict = match class {
            _ if elapsed > after.saturating_add(LATE) => Verdict::Neutral,
            None => Verdict::Healthy,
            Some(Class { verdict: Verdict::TimedOut, .. }) => match limit {
                Limit::Attempt => Verdict::Failure,
                Limit::Caller => Verdict::Neutral,
            },
            Some(class) => class.verdict,
        };
        admission.end(verdict, elapsed);
        if let Err(error) = &result {
            self.inner.counters.failed_attempts.add_one();
            if matches!(error, CallError::TimedOut { .. }) {
                self.inner.counters.timed_out.add_one();
            }
        }
        self.inner.observer.tell(|it| {
            it.attempt_finished(&Attempt {
                policy: neighbour,
                op,
                number,
                elapsed: now.elapsed(),
                outcome: class.map(|class| class.outcome),
                verdict,
                timed_out: matches!(result, Err(CallError::TimedOut { .. })).then_some(limit),
            });
        });
        result
    }

    /// Everything that an attempt needs before it is made, and the time at which it has it.
    async fn admit(&self, deadline: Deadline) -> Result<(Admission, Instant), Refusal> {
        let Inner { breaker, bulkhead, min_attempt, timeouts, .. } = self.inner;
        let now = Instant::now();
        if deadline.instant().saturating_duration_since(now) < *min_attempt {
            return Err(Refusal::NoTimeLeft);
        }
        let mut permit = breaker.map(Breaker::admit).transpose()?;
        let Some(bulkhead) = bulkhead else {
            return Ok((Admission { permit, place: None }, now));
        };
        if let Some(place) = bulkhead.try_enter() {
            return Ok((Admission { permit, place: Some(place) }, now));
        }
        // Waiting so long that no time is left for the attempt would be of no use.
        let until = deadline.reserve(*min_attempt).min(Deadline::at(now + timeouts.place));
        let place = bulkhead.enter(until).await?;
        if let (Some(breaker), Some(held)) = (breaker, &permit)
            && !held.is_current()
        {
            permit = Some(breaker.admit()?);
        }
        let now = Instant::now();
        if deadline.instant().saturating_duration_since(now) < *min_attempt {
            return Err(Refusal::NoTimeLeft);
        }
        Ok((Admission { permit, place: Some(place) }, now))
    }
}

impl Admission {
    /// The place goes back first: it is over, whatever is counted about it.
    fn end(self, verdict: Verdict, elapsed: Duration) {
        drop(self.place);
        if let Some(permit) = self.permit {
            permit.finish(verdict, elapsed);
        }
    }
}
