//! Settling: charges an order, outside any transaction, and writes what came of it in one.
//!
//! The request that placed the order does it first; whatever that did not bring to an end, the relay
//! does again. Both may be at it at once: the charge is made once per order, and the first to write
//! its outcome ends the order.

use std::time::Duration;

use chassis::{database, problem::chain};
use proto::order::{OrderEvent, OrderState};
use resilience::{CallContext, Classify as _, Outcome};
use telemetry::propagation::traceparent;

use crate::{
    payments::Payments,
    store::{Due, Store},
};

/// What is kept of the time for writing the outcome, but never more than a third of it.
const FOR_WRITING: Duration = Duration::from_millis(150);
/// The pause after the relay's first attempt without an answer; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Customers wait for their payment, so a neighbour that is back is noticed within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Charges orders and writes the outcome.
#[derive(Debug, Clone)]
pub(crate) struct Cashier {
    store: Store,
    payments: Payments,
}

impl Cashier {
    pub(crate) fn new(store: Store, payments: Payments) -> Self {
        Self { store, payments }
    }

    /// Charges an order. Returns the step that the order took by it; `None` when it took none, since
    /// it was deferred before, or somebody else was quicker.
    pub(crate) async fn charge(
        &self,
        cx: &CallContext,
        due: &Due,
    ) -> Result<Option<OrderEvent>, database::Error> {
        let for_writing = FOR_WRITING.min(cx.deadline().remaining() / 3);
        let charging = cx.reserve(for_writing);
        let charged = self.payments.charge(&charging, due.id, due.total, &due.card).await;
        let (at, state, reason) = match charged {
            Ok(decision) => {
                let (state, reason) = (decision.state(), decision.reason().map(str::to_owned));
                let trace = traceparent().or_else(|| due.traceparent.clone());
                (self.store.settle(cx, due.id, decision, trace).await?, state, reason)
            }
            Err(error) => {
                let outcome = error.class().outcome;
                if outcome == Outcome::Rejected {
                    tracing::error!(order = %due.id, error = %chain(&error), "payments does not take this charge");
                } else {
                    tracing::info!(%outcome, attempts = due.attempts, error = %chain(&error), "a charge is deferred");
                }
                (
                    self.store.defer(cx, due, pause_after(due.attempts)).await?,
                    OrderState::PaymentDeferred,
                    None,
                )
            }
        };
        Ok(at.map(|at| OrderEvent { state, at, reason }))
    }
}

/// When to charge again after so many attempts of the relay: at once after none.
fn pause_after(attempts: i32) -> Duration {
    match u32::try_from(attempts) {
        Err(_) | Ok(0) => Duration::ZERO,
        Ok(attempts) => growing(FIRST_PAUSE, attempts),
    }
}

/// `first`, doubled with each attempt after the first, up to [`LONGEST_PAUSE`].
pub(crate) fn growing(first: Duration, attempt: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_nothing_to_five_seconds() {
        let pauses: Vec<_> = (0..8).map(|attempts| pause_after(attempts).as_millis()).collect();
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(pause_after(i32::MAX), LONGEST_PAUSE);
    }
}
