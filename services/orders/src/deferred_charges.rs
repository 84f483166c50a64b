//! The worker that makes deferred charges: takes them out of the queue, charges, writes the outcome.
//!
//! It shares the breaker of payments with the requests, so it knows at once what they found out and pulls
//! nothing while payments is away; and it has a small bulkhead of its own, so a backlog that drains does not take
//! the places of people who are buying now. Without an answer a charge comes again, after a pause that grows to
//! five seconds, and never for the last time: only what cannot be understood goes to the dead letters.

use std::time::Duration;

use chassis::problem::chain;
use messaging::{Done, Received};
use proto::order::OrderId;
use resilience::{CallContext, Deadline};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    charge_queue::ChargeQueue,
    settle::{Cashier, Charged},
    store::{Store, Waiting},
};

/// Who owns the retries of this work.
const NAME: &str = "orders-worker";
/// How long one charge and the writing of its outcome may take.
const FOR_CHARGING: Duration = Duration::from_secs(4);
/// How long a message that was taken out is held while payments is not asked. Longer than its breaker stays open.
const IN_HAND: Duration = Duration::from_secs(10);

/// Makes deferred charges.
#[derive(Debug, Clone)]
pub(crate) struct DeferredCharges {
    store: Store,
    cashier: Cashier,
    queue: ChargeQueue,
}

impl DeferredCharges {
    /// Takes from `queue`; `cashier` has to be one whose bulkhead is the worker's own.
    pub(crate) fn new(store: Store, cashier: Cashier, queue: ChargeQueue) -> Self {
        Self { store, cashier, queue }
    }

    /// Works until `stop`; what it has taken up by then is brought to its end.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (gate, worker) = (self.cashier.clone(), self.clone());
        let open = move || {
            let gate = gate.clone();
            async move { gate.payments_admits().await }
        };
        let charge = move |id, received: Received| {
            let span =
                tracing::info_span!("charge_deferred", otel.kind = "consumer", attempt = received.attempt);
            if let Some(trace) = &received.message.trace {
                trace.link(&span);
            }
            let worker = worker.clone();
            async move { worker.charge(id).await }.instrument(span)
        };
        if let Err(faults) = self.queue.consume(open, charge, stop).await {
            tracing::error!(%faults, "deferred charges cannot be taken up");
        }
    }

    async fn charge(&self, id: OrderId) -> Done {
        let end = Instant::now() + IN_HAND;
        loop {
            let cx = CallContext::owner(NAME, Deadline::after(FOR_CHARGING));
            let due = match self.store.waiting(&cx, id).await {
                Ok(Waiting::Due(due)) => due,
                // It came twice, or the request was quicker.
                Ok(Waiting::Settled) => return Done::Ack,
                Ok(Waiting::NoSuchOrder) => return Done::Dead(format!("there is no order {id}")),
                Err(error) => {
                    tracing::info!(error = %chain(&error), "a deferred charge cannot be read; it comes again");
                    return Done::Retry;
                }
            };
            match self.cashier.charge(&cx, &due).await {
                Ok(Charged::Settled(_)) => return Done::Ack,
                // The breaker closed its door between the gate and here, as it does on all but the probes. That
                // is no failed try, so the message is not put off for it.
                Ok(Charged::NotAsked) if timeout_at(end, self.cashier.payments_admits()).await.is_ok() => {}
                Ok(Charged::NotAsked | Charged::NoAnswer) => {
                    // The page shall say that it is deferred, also where the request died before it could.
                    if let Err(error) = self.store.note_deferred(&cx, id).await {
                        tracing::info!(error = %chain(&error), "that a charge is deferred is not written");
                    }
                    return Done::Retry;
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "what came of a charge is not written; it comes again");
                    return Done::Retry;
                }
            }
        }
    }
}
