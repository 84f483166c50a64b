//! The relay: brings every charge to its end that the request which placed the order did not, be it
//! that the time ran out, the customer went away, or this process was killed.
//!
//! It takes charges that are due by lease, so replicas take different ones and the charges of a dead
//! one come free. It never makes up its mind that a charge failed: without an answer the charge is
//! due again, after a pause that grows to five seconds.

use std::time::Duration;

use chassis::{database, problem::chain};
use futures_util::future::join_all;
use resilience::{CallContext, Deadline};
use telemetry::propagation;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    settle::{Cashier, growing},
    store::{Due, Store},
};

/// Who owns the retries of this work.
const NAME: &str = "orders-worker";
/// How many charges are made at once.
const BATCH: i64 = 10;
/// How long a claim may take.
const FOR_CLAIMING: Duration = Duration::from_secs(2);
/// How long one charge and the writing of its outcome may take.
const FOR_CHARGING: Duration = Duration::from_secs(4);
/// How long what was claimed is out of others' reach: longer than this process can be at it.
const LEASE: Duration = Duration::from_secs(10);
/// How often it looks when there is nothing to do.
const IDLE: Duration = Duration::from_millis(200);

/// Charges what is due.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    store: Store,
    cashier: Cashier,
}

impl Relay {
    pub(crate) fn new(store: Store, cashier: Cashier) -> Self {
        Self { store, cashier }
    }

    /// Works until `stop`; what it has taken up by then is brought to its end.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut pause, mut failed) = (IDLE, 0);
        while timeout(pause, stop.cancelled()).await.is_err() {
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

    /// Takes up what is due, and charges it. Returns how much that was.
    async fn round(&self) -> Result<usize, database::Error> {
        let cx = CallContext::owner(NAME, Deadline::after(FOR_CLAIMING));
        let due = self.store.claim(&cx, BATCH, LEASE).await?;
        join_all(due.iter().map(|due| self.charge(due))).await;
        Ok(due.len())
    }

    /// Charges one order.
    async fn charge(&self, due: &Due) {
        let span = tracing::info_span!("charge_due", otel.kind = "internal", attempts = due.attempts);
        if let Some(traceparent) = &due.traceparent {
            propagation::link(&span, traceparent);
        }
        let cx = CallContext::owner(NAME, Deadline::after(FOR_CHARGING));
        if let Err(error) = self.cashier.charge(&cx, due).instrument(span).await {
            tracing::warn!(error = %chain(&error), "what came of a charge is not written; it is due again");
        }
    }
}
