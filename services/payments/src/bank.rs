//! The bank: a neighbour that moves money once per key, however often it is asked.
//!
//! It is simulated here, with books of its own (schema `bank`) that stand for another company's
//! system: hence its SQL is in this file, and not in `store.rs`. What it decides hangs on the card
//! alone, so every drill knows what must come out.

use std::time::Duration;

use chassis::database::{self, Database, End};
use proto::order::Card;
use resilience::{CallContext, CallError, Faults, Op, Policy, Timeouts};
use tokio::time::sleep;

use crate::charge::{Charge, Decision};

const TRANSFER: Op = Op::idempotent("transfer");

/// Why the bank has not answered.
pub(crate) type Error = CallError<database::Error>;

/// The bank.
#[derive(Debug, Clone)]
pub(crate) struct Bank {
    policy: Policy,
    books: Database,
    slow: Duration,
}

impl Bank {
    /// A bank that keeps its books in `books`, is waited for at most `limit`, and takes `slow` for a
    /// slow card.
    pub(crate) fn new(books: Database, limit: Duration, slow: Duration) -> Result<Self, Faults> {
        let policy = chassis::policy("bank", Timeouts::attempt(limit)).build()?;
        Ok(Self { policy, books, slow })
    }

    /// How it is called.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The longest that one call takes.
    pub(crate) fn limit(&self) -> Duration {
        self.policy.timeouts().attempt
    }

    /// Moves the money, or declines to. The answer to a key never changes.
    pub(crate) async fn transfer(&self, cx: &CallContext, charge: &Charge) -> Result<Decision, Error> {
        self.policy.call(cx, TRANSFER, |cx| self.answer(cx, charge.clone())).await
    }

    async fn answer(&self, cx: CallContext, charge: Charge) -> Result<Decision, database::Error> {
        // Before anything is written: a caller who gives up on a slow bank cannot know.
        sleep(self.delay(&charge.card)).await;
        let (approved, reason) = match decide(&charge.card) {
            Decision::Approved => (true, String::new()),
            Decision::Declined { reason } => (false, reason),
        };
        self.books
            .unit(&cx, TRANSFER, move |mut tx| {
                Box::pin(async move {
                    let (approved, reason) = sqlx::query_as(
                        "INSERT INTO bank.transfers AS first (key, amount_minor, currency, approved, decline_reason)
                         VALUES ($1, $2, $3, $4, $5)
                         ON CONFLICT (key) DO UPDATE SET asked = first.asked + 1
                         RETURNING approved, decline_reason",
                    )
                    .bind(charge.key.0)
                    .bind(charge.amount.minor)
                    .bind(charge.amount.currency.code())
                    .bind(approved)
                    .bind(reason)
                    .fetch_one(tx.conn()?)
                    .await?;
                    Ok(End::Commit(if approved { Decision::Approved } else { Decision::Declined { reason } }))
                })
            })
            .await
    }

    fn delay(&self, card: &Card) -> Duration {
        if card.token() == "tok_slow" { self.slow } else { Duration::ZERO }
    }
}

/// What the bank says to `card`.
fn decide(card: &Card) -> Decision {
    match card.token() {
        "tok_ok" | "tok_slow" => Decision::Approved,
        "tok_insufficient_funds" => Decision::Declined { reason: "insufficient funds".into() },
        _ => Decision::Declined { reason: "declined by the bank".into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_decides() {
        let declined = |reason: &str| Decision::Declined { reason: reason.into() };
        for (token, expected) in Card::TEST_CARDS.into_iter().zip([
            Decision::Approved,
            declined("declined by the bank"),
            declined("insufficient funds"),
            Decision::Approved,
        ]) {
            assert_eq!(decide(&Card::new(token).expect("a test card")), expected, "{token}");
        }
    }
}
