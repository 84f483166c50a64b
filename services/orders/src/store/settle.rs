//! Writes what came of a charge. Each write is bound to the states it may start from, so that of
//! several that settle the same order one does, and the others see that it is done.

use chassis::database::{DbError, End, Error, Tx};
use chrono::{DateTime, Utc};
use proto::order::{OrderEvent, OrderId, OrderState};
use resilience::{CallContext, Op};

use super::{Store, names};
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

    /// Notes that the charge of `id` did not answer in time, and makes it due at once. Returns the step
    /// that the order took; `None` when it had left its first state.
    pub(crate) async fn defer(&self, cx: &CallContext, id: OrderId) -> Result<Option<OrderEvent>, Error> {
        self.deferred(cx, id, true).await
    }

    /// The same, where somebody is at the charge already and it shall not become due to others.
    pub(crate) async fn note_deferred(
        &self,
        cx: &CallContext,
        id: OrderId,
    ) -> Result<Option<OrderEvent>, Error> {
        self.deferred(cx, id, false).await
    }

    async fn deferred(
        &self,
        cx: &CallContext,
        id: OrderId,
        due_now: bool,
    ) -> Result<Option<OrderEvent>, Error> {
        let state = OrderState::PaymentDeferred;
        self.database
            .unit(cx, DEFER, move |mut tx| {
                Box::pin(async move {
                    let deferred: Option<(DateTime<Utc>,)> = sqlx::query_as(
                        "WITH deferred AS (
                             UPDATE orders SET state = $2 WHERE id = $1 AND state = ANY($3) RETURNING id, state
                         ), step AS (
                             INSERT INTO order_history (order_id, state)
                             SELECT id, state FROM deferred RETURNING at
                         ), due AS (
                             UPDATE intents SET due_at = now()
                             FROM deferred WHERE intents.order_id = deferred.id AND $4
                         )
                         SELECT at FROM step",
                    )
                    .bind(id.0)
                    .bind(state.as_str())
                    .bind(names(sources(state)))
                    .bind(due_now)
                    .fetch_optional(tx.conn()?)
                    .await?;
                    Ok(End::Commit(deferred.map(|(at,)| OrderEvent { state, at, reason: None })))
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
