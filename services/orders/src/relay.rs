//! The relay: brings charges that are due from the outbox to the queue.
//!
//! An intent becomes due when its request gave it up, or by itself when that request died. The relay takes what
//! is due by lease, so replicas take different ones and those of a dead one come free; it publishes outside any
//! transaction, and a confirm does *not* end an intent: it is only looked at again a minute later. An intent ends
//! with the outcome on its order. So a message that gets lost is sent again, and one that comes twice finds the
//! order settled.

use std::time::Duration;

use chassis::{database, problem::chain};
use futures_util::future::join_all;
use resilience::{CallContext, Deadline};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    charge_queue::ChargeQueue,
    store::{Due, Store},
};

/// Who owns this work.
const NAME: &str = "orders-relay";
/// How many intents are taken up at once.
const BATCH: i64 = 50;
/// How long one statement about intents may take.
const FOR_WRITING: Duration = Duration::from_secs(2);
/// How long publishing one message may take.
const FOR_PUBLISHING: Duration = Duration::from_secs(2);
/// How long what was claimed is out of others' reach: longer than this process can be at it.
const LEASE: Duration = Duration::from_secs(10);
/// When a published intent is looked at again, should its message have been lost.
const AFTER_CONFIRM: Duration = Duration::from_secs(60);
/// When an intent that could not be published is tried again.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How often it looks when there is nothing to do.
const IDLE: Duration = Duration::from_millis(200);
/// The longest pause while the database is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Publishes what is due.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    store: Store,
    queue: ChargeQueue,
}

impl Relay {
    pub(crate) fn new(store: Store, queue: ChargeQueue) -> Self {
        Self { store, queue }
    }

    /// Works until `stop`; what it has taken up by then is brought to its end.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut pause, mut failed) = (IDLE, 0);
        while timeout(pause, stop.cancelled()).await.is_err() {
            // Nothing is taken up that could not be passed on.
            tokio::select! {
                () = self.queue.connected() => {}
                () = stop.cancelled() => return,
            }
            (pause, failed) = match self.round().await {
                Ok(0) => (IDLE, 0),
                Ok(_) => (Duration::ZERO, 0),
                Err(error) => {
                    failed += 1;
                    let pause = growing(IDLE, failed);
                    tracing::debug!(error = %chain(&error), ?pause, "no charges can be taken up");
                    (pause, failed)
                }
            };
        }
    }

    /// Takes up what is due, and publishes it. Returns how much that was.
    async fn round(&self) -> Result<usize, database::Error> {
        let cx = CallContext::owner(NAME, Deadline::after(FOR_WRITING));
        let due = self.store.claim(&cx, BATCH, LEASE).await?;
        join_all(due.iter().map(|due| self.publish(due))).await;
        Ok(due.len())
    }

    async fn publish(&self, due: &Due) {
        let cx = CallContext::owner(NAME, Deadline::after(FOR_PUBLISHING));
        let again = match self.queue.publish(&cx, due).await {
            Ok(()) => AFTER_CONFIRM,
            Err(error) => {
                tracing::info!(error = %chain(&error), "a charge could not be published; it is due again");
                AFTER_FAILURE
            }
        };
        let cx = CallContext::owner(NAME, Deadline::after(FOR_WRITING));
        if let Err(error) = self.store.reschedule(&cx, due, again).await {
            // Its lease ends by itself.
            tracing::info!(error = %chain(&error), "when a charge is due again is not written");
        }
    }
}

/// `first`, doubled with each failure after the first, up to [`LONGEST_PAUSE`].
fn growing(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_five_seconds() {
        let pauses: Vec<_> = (1..8).map(|failures| growing(IDLE, failures).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(growing(IDLE, u32::MAX), LONGEST_PAUSE);
    }
}
