//! Driving a claimed charge to its decision: the bank, then the books. It is on nobody's behalf.
//!
//! The caller's deadline does not end it, nor does the caller hanging up: once the bank was asked,
//! its answer has to be written down, whoever waits. So a drive runs in a task of its own, on time
//! of its own: the bank's limit, and the lease, which it renews while the bank thinks. A short
//! lease that is renewed is better than a long one: it is how long a charge lies still after a
//! crash, while the bank may take as long as it is allowed to.
//!
//! When it has to give up (the bank did not answer, the database is away for longer than the lease)
//! the charge stays pending, and the next claim drives it again. That asks the bank again, under the
//! same key.

use std::time::Duration;

use chassis::problem::chain;
use resilience::{CallContext, Classify as _, Deadline, Outcome};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span, field::Empty};

use crate::{
    bank::Bank,
    charge::Decision,
    running::{Running, Waiter},
    store::{Claimed, Settled, Store},
};

/// Whose work a drive is: its own.
const OWNER: &str = "payments";
/// The pauses between attempts to write a decision: chance up to this one, doubling up to
/// [`SETTLE_CAP`].
const SETTLE_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const SETTLE_CAP: Duration = Duration::from_millis(500);

/// Drives charges.
#[derive(Debug, Clone)]
pub(crate) struct Driver {
    store: Store,
    bank: Bank,
    lease: Duration,
    running: Running,
    tasks: TaskTracker,
}

impl Driver {
    /// A driver that renews its claims often enough for them to hold, when each holds for `lease`.
    pub(crate) fn new(store: Store, bank: Bank, lease: Duration) -> Self {
        Self { store, bank, lease, running: Running::default(), tasks: TaskTracker::new() }
    }

    /// Which charges it is driving.
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// The tasks that a stop has to wait for.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Drives `claimed` in a task of its own, which keeps `place` until it ends.
    pub(crate) fn start(&self, claimed: Claimed, place: OwnedSemaphorePermit) -> Waiter {
        let drive = self.running.begin(claimed.charge.key);
        let waiter = drive.waiter();
        let this = self.clone();
        let work = async move {
            if let Some(decision) = this.drive(claimed).await {
                drive.decided(decision);
            }
            drop(place);
        };
        self.tasks.spawn(work.instrument(span()));
        waiter
    }

    async fn drive(&self, mut claimed: Claimed) -> Option<Decision> {
        let decision = self.ask_the_bank(&mut claimed).await?;
        self.settle(&claimed, decision).await
    }

    async fn ask_the_bank(&self, claimed: &mut Claimed) -> Option<Decision> {
        // More than the bank's own limit, so that it is the bank which is late, and not we in a hurry.
        let cx = CallContext::owner(OWNER, Deadline::after(self.bank.limit() + self.lease));
        let (bank, charge) = (&self.bank, claimed.charge.clone());
        tokio::select! {
            answer = bank.transfer(&cx, &charge) => match answer {
                Ok(decision) => Some(decision),
                Err(error) => {
                    let outcome = error.class().outcome.as_str();
                    let error = chain(&error);
                    tracing::warn!(key = %charge.key, outcome, error, "the bank did not answer; it is asked again later");
                    None
                }
            },
            () = self.keep_lease(claimed) => {
                tracing::info!(key = %charge.key, "somebody else drives this charge now");
                None
            }
        }
    }

    /// Renews the lease again and again; returns when it is lost.
    async fn keep_lease(&self, claimed: &mut Claimed) {
        loop {
            sleep(self.lease / 3).await;
            let cx = CallContext::owner(OWNER, Deadline::after(self.lease / 2));
            match self.store.renew(&cx, claimed).await {
                Ok(Some(until)) => claimed.until = until,
                Ok(None) => return,
                // Without it somebody else may drive the charge as well. That moves nothing twice.
                Err(error) => tracing::debug!(error = chain(&error), "the lease could not be renewed"),
            }
        }
    }

    /// Writes the decision, again and again while the lease holds. The decision that stands then, if
    /// there is one.
    async fn settle(&self, claimed: &Claimed, decision: Decision) -> Option<Decision> {
        let key = claimed.charge.key;
        let mut pause = SETTLE_PAUSE;
        loop {
            let cx = CallContext::owner(OWNER, Deadline::at(claimed.until));
            match self.store.settle(&cx, claimed, decision.clone()).await {
                Ok(Settled::Written) => return Some(decision),
                Ok(Settled::Overtaken(there)) => return there,
                // The tables refuse it: that is a fault of ours, and it will not mend by itself.
                Err(error) if error.class().outcome == Outcome::Rejected => {
                    tracing::error!(%key, error = chain(&error), "the decision is refused by the database");
                    return None;
                }
                Err(error) if Instant::now() + pause >= claimed.until => {
                    tracing::warn!(%key, error = chain(&error), "the decision could not be written; it is asked for again later");
                    return None;
                }
                Err(error) => tracing::debug!(%key, error = chain(&error), "the decision is not written yet"),
            }
            sleep(pause.mul_f64(fastrand::f64())).await;
            pause = (pause * 2).min(SETTLE_CAP);
        }
    }
}

/// A span in the caller's trace, but not inside the caller's span, which may end long before it.
fn span() -> Span {
    let mut here = axum::http::HeaderMap::new();
    telemetry::propagation::inject(&mut here);
    let span = tracing::info_span!(parent: None, "drive charge", trace_id = Empty);
    telemetry::propagation::adopt(&span, &here);
    if let Some(id) = telemetry::propagation::trace_id(&span) {
        span.record("trace_id", tracing::field::display(id));
    }
    span
}
