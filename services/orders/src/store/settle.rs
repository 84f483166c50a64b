//! Writes what came of a charge. Each write is bound to the states it may start from, so that of
//! several that settle the same order one does, and the others see that it is done.

use std::time::Duration;

use chassis::database::{DbError, End, Error, Tx};
use chrono::{DateTime, Utc};
use proto::order::{OrderId, OrderState};
use resilience::{CallContext, Op};

use super::{Due, Store, names};
use crate::order::{Decision, sources};

const SETTLE: Op = Op::idempotent("settle_order");
const DEFER: Op = Op::idempotent("defer_order");

impl Store {
    /// Writes the bank's decision, ends the intent, and for a paid order writes the event, for a
    /// declined one gives its pieces back. Returns when; `None` when the order is settled already.
    pub(crate) async fn settle(
        &self,
        cx: &CallContext,
        id: OrderId,
        decision: Decision,
        traceparent: Option<String>,
    ) -> Result<Option<DateTime<Utc>>, Error> {
        self.database
            .unit(cx, SETTLE, move |mut tx| {
                Box::pin(async move {
                    let settled: Option<(DateTime<Utc>,)> = sqlx::query_as(
                        "WITH settled AS (
                             UPDATE orders SET state = $2 WHERE id = $1 AND state = ANY($3) RETURNING id, state
                         ), step AS (
                             INSERT INTO order_history (order_id, state, reason)
                             SELECT id, state, $4 FROM settled RETURNING at
                         ), done AS (
                             DELETE FROM intents USING settled WHERE intents.order_id = settled.id
                         ), event AS (
                             INSERT INTO events (kind, order_id, traceparent)
                             SELECT 'order.paid', id, $5 FROM settled WHERE state = 'paid'
                         )
                         SELECT at FROM step",
                    )
                    .bind(id.0)
                    .bind(decision.state().as_str())
                    .bind(names(sources(decision.state())))
                    .bind(decision.reason())
                    .bind(traceparent)
                    .fetch_optional(tx.conn()?)
                    .await?;
                    let Some((at,)) = settled else {
                        return Ok(End::Rollback(None));
                    };
                    if decision.state() == OrderState::Declined {
                        give_back(&mut tx, id).await?;
                    }
                    Ok(End::Commit(Some(at)))
                })
            })
            .await
    }

    /// Notes that the charge did not answer in time, and makes it due in half of `pause` to all of
    /// it. Returns when the order came into its new state; `None` when it had left the first one.
    pub(crate) async fn defer(
        &self,
        cx: &CallContext,
        due: &Due,
        pause: Duration,
    ) -> Result<Option<DateTime<Utc>>, Error> {
        let (id, attempts, pause) = (due.id, due.attempts, pause.as_secs_f64());
        self.database
            .unit(cx, DEFER, move |mut tx| {
                Box::pin(async move {
                    let deferred: Option<(DateTime<Utc>,)> = sqlx::query_as(
                        "WITH deferred AS (
                             UPDATE orders SET state = $2 WHERE id = $1 AND state = ANY($3) RETURNING id, state
                         ), step AS (
                             INSERT INTO order_history (order_id, state)
                             SELECT id, state FROM deferred RETURNING at
                         ), again AS (
                             -- A worker that lost its lease meanwhile leaves it to the next one.
                             UPDATE intents
                             SET due_at = now() + make_interval(secs => $4 * (0.5 + random() / 2)), lease_until = NULL
                             WHERE order_id = $1 AND attempts = $5
                         )
                         SELECT at FROM step",
                    )
                    .bind(id.0)
                    .bind(OrderState::PaymentDeferred.as_str())
                    .bind(names(sources(OrderState::PaymentDeferred)))
                    .bind(pause)
                    .bind(attempts)
                    .fetch_optional(tx.conn()?)
                    .await?;
                    Ok(End::Commit(deferred.map(|(at,)| at)))
                })
            })
            .await
    }
}

/// Gives the pieces of a declined order back.
async fn give_back(tx: &mut Tx<'_>, id: OrderId) -> Result<(), DbError> {
    sqlx::query(
        "SELECT FROM stock WHERE product_id IN (SELECT product_id FROM order_lines WHERE order_id = $1)
         ORDER BY product_id FOR NO KEY UPDATE",
    )
    .bind(id.0)
    .execute(tx.conn()?)
    .await?;
    sqlx::query(
        "UPDATE stock SET pieces = pieces + line.quantity
         FROM order_lines line WHERE line.order_id = $1 AND line.product_id = stock.product_id",
    )
    .bind(id.0)
    .execute(tx.conn()?)
    .await?;
    Ok(())
}
