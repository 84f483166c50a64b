//! Settling: charges an order, outside any transaction, and writes what came of it in one.
//!
//! The request that placed the order does it first; whatever that did not bring to an end, the worker for
//! deferred charges does again. Both may be at it at once: the charge is made once per order, and the first
//! to write its outcome ends the order.

use std::time::Duration;

use chassis::{database, problem::chain};
use proto::order::OrderEvent;
use resilience::{CallContext, CallError, Classify as _, Outcome};
use telemetry::propagation::traceparent;

use crate::{
    payments::Payments,
    store::{Due, Store},
};

/// What is kept of the time for writing the outcome, but never more than a third of it.
const FOR_WRITING: Duration = Duration::from_millis(150);

/// Charges orders and writes the outcome.
#[derive(Debug, Clone)]
pub(crate) struct Cashier {
    store: Store,
    payments: Payments,
}

/// What came of a charge.
#[derive(Debug)]
pub(crate) enum Charged {
    /// The bank decided, and that is written: the step that the order took; `None` when somebody else
    /// was quicker to write it.
    Settled(Option<OrderEvent>),
    /// Nobody knows yet. The charge has to be made again, which is the same as making it once.
    NoAnswer,
    /// Payments was not asked: its breaker is open, or no place or time was left here.
    NotAsked,
}

impl Cashier {
    pub(crate) fn new(store: Store, payments: Payments) -> Self {
        Self { store, payments }
    }

    /// Charges an order, and writes the decision if there is one.
    ///
    /// # Errors
    /// When the decision cannot be written. It stands nevertheless, and is found by the next charge.
    pub(crate) async fn charge(&self, cx: &CallContext, due: &Due) -> Result<Charged, database::Error> {
        let for_writing = FOR_WRITING.min(cx.deadline().remaining() / 3);
        let charging = cx.reserve(for_writing);
        match self.payments.charge(&charging, due.id, due.total, &due.card).await {
            Ok(decision) => {
                let (state, reason) = (decision.state(), decision.reason().map(str::to_owned));
                let trace = traceparent().or_else(|| due.traceparent.clone());
                let at = self.store.settle(cx, due.id, decision, trace).await?;
                Ok(Charged::Settled(at.map(|at| OrderEvent { state, at, reason })))
            }
            Err(error @ CallError::Refused { .. }) => {
                tracing::debug!(error = %chain(&error), "payments is not asked");
                Ok(Charged::NotAsked)
            }
            Err(error) => {
                let outcome = error.class().outcome;
                if outcome == Outcome::Rejected {
                    tracing::error!(order = %due.id, error = %chain(&error), "payments does not take this charge");
                } else {
                    tracing::info!(%outcome, error = %chain(&error), "a charge has no answer");
                }
                Ok(Charged::NoAnswer)
            }
        }
    }

    /// Resolves when payments takes charges: at once while its breaker is closed.
    pub(crate) async fn payments_admits(&self) {
        self.payments.policy().admitting().await;
    }
}
