//! One key, one charge: the use case behind `Charge`.
//!
//! Claim the key, or learn what became of it; then wait for the decision for as long as the caller
//! does. From the claim on everything runs in tasks of its own, so a caller may hang up at any
//! moment: the charge goes on, and a repeat with the same key meets its result.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use chassis::{database, problem::chain};
use resilience::CallContext;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout_at},
};
use tracing::Instrument as _;

use crate::{
    charge::{Charge, Decision, Key},
    drive::Driver,
    running::Waiter,
    store::{Found, Store},
};

/// What is kept of the caller's time for the answer, so that it hears "not decided yet" from us
/// instead of its own clock; but no more than a quarter of a short one.
const ANSWER: Duration = Duration::from_millis(50);
/// The pauses between two looks at a charge that is driven elsewhere: from this one, doubling up to
/// [`LOOK_CAP`].
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// The longest such pause.
const LOOK_CAP: Duration = Duration::from_millis(250);

/// Takes charges.
#[derive(Debug, Clone)]
pub(crate) struct Charges {
    store: Store,
    driver: Driver,
    places: Arc<Semaphore>,
}

/// A decision, and whether it was made by this very call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) decision: Decision,
    /// An earlier call with the same key has made it.
    pub(crate) replayed: bool,
}

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the key was used before, for another amount, currency or card")]
    OtherContent,
    #[error("as many charges as possible are being made already")]
    Busy,
    #[error("the bank has not decided yet")]
    Undecided,
    #[error("the key could not be claimed")]
    NotClaimed(#[source] database::Error),
}

/// Whom to wait for.
enum Claim {
    Ours(Waiter),
    Theirs(Option<Waiter>),
    Decided(Decision),
}

impl Charges {
    /// Charges are driven by `driver`, and only so many at once as there are `places`.
    pub(crate) fn new(store: Store, driver: Driver, places: Arc<Semaphore>) -> Self {
        Self { store, driver, places }
    }

    /// Charges once per key.
    pub(crate) async fn charge_once(&self, cx: &CallContext, charge: Charge) -> Result<Answer, Failure> {
        let cx = cx.reserve(answer_time(cx));
        let key = charge.key;
        let (waiter, replayed) = match self.claim(&cx, charge).await? {
            Claim::Decided(decision) => {
                return Ok(Answer { decision, replayed: true });
            }
            Claim::Ours(waiter) => (Some(waiter), false),
            Claim::Theirs(waiter) => (waiter, true),
        };
        let decision = timeout_at(cx.deadline().instant(), self.decision(&cx, key, waiter)).await;
        Ok(Answer { decision: decision.map_err(|_| Failure::Undecided)?, replayed })
    }

    /// Claims the charge and has it driven, in a task: between the two nobody's leaving may step in.
    async fn claim(&self, cx: &CallContext, charge: Charge) -> Result<Claim, Failure> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Failure::Busy)?;
        let (store, driver, cx) = (self.store.clone(), self.driver.clone(), cx.clone());
        let key = charge.key;
        let claim = async move {
            Ok(match store.claim(&cx, charge).await.map_err(Failure::NotClaimed)? {
                Found::Ours(claimed) => Claim::Ours(driver.start(claimed, place)),
                Found::Theirs => Claim::Theirs(driver.running().waiter(key)),
                Found::Decided(decision) => Claim::Decided(decision),
                Found::OtherContent => return Err(Failure::OtherContent),
            })
        };
        let claim = self.driver.tasks().spawn(claim.in_current_span());
        claim.await.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))
    }

    /// The decision on `key`, whenever it comes. Whoever drives it here tells; otherwise, and when
    /// that drive ends without a decision, the row is looked at until somebody has written one.
    async fn decision(&self, cx: &CallContext, key: Key, waiter: Option<Waiter>) -> Decision {
        if let Some(waiter) = waiter
            && let Some(decision) = waiter.wait().await
        {
            return decision;
        }
        let mut pause = LOOK_PAUSE;
        loop {
            match self.store.decision(cx, key).await {
                Ok(Some(decision)) => return decision,
                Ok(None) => {}
                Err(error) => tracing::debug!(%key, error = chain(&error), "the charge cannot be looked at"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_CAP);
        }
    }
}

/// What to keep of the caller's time.
fn answer_time(cx: &CallContext) -> Duration {
    ANSWER.min(cx.deadline().remaining() / 4)
}

#[cfg(test)]
mod tests {
    use resilience::Deadline;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_is_kept_for_the_answer_and_most_of_it_is_used() {
        for (budget, kept) in [(2000, 50), (300, 50), (200, 50), (100, 25), (0, 0)] {
            let cx = CallContext::from_caller(Deadline::after(Duration::from_millis(budget)), None, 1);
            assert_eq!(answer_time(&cx), Duration::from_millis(kept), "{budget}");
        }
    }
}
