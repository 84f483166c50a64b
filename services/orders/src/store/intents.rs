//! Takes up charges that are due, by lease: several replicas take different ones, and one that dies
//! holds what it took no longer than its lease.

use std::time::Duration;

use chassis::database::{End, Error};
use proto::{
    money::Money,
    order::{Card, OrderId},
};
use resilience::{CallContext, Op};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Store, currency};

/// Claiming twice claims others.
const CLAIM: Op = Op::once("claim_intents");

/// A charge that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(crate) id: OrderId,
    pub(crate) total: Money,
    pub(crate) card: Card,
    /// How often the relay took it up, this time included; 0 while the first request charges it.
    pub(crate) attempts: i32,
    /// The span of the request that placed the order.
    pub(crate) traceparent: Option<String>,
}

impl Store {
    /// Takes up to `most` charges that are due, for as long as `lease`. By Postgres's clock, which
    /// all replicas share.
    pub(crate) async fn claim(
        &self,
        cx: &CallContext,
        most: i64,
        lease: Duration,
    ) -> Result<Vec<Due>, Error> {
        self.database
            .unit(cx, CLAIM, move |mut tx| {
                Box::pin(async move {
                    let rows: Vec<Row> = sqlx::query_as(
                        "WITH due AS (
                             SELECT order_id FROM intents
                             WHERE due_at <= now() AND (lease_until IS NULL OR lease_until <= now())
                             ORDER BY due_at LIMIT $1
                             FOR UPDATE SKIP LOCKED
                         )
                         UPDATE intents
                         SET lease_until = now() + make_interval(secs => $2), attempts = attempts + 1
                         FROM due JOIN orders ON orders.id = due.order_id
                         WHERE intents.order_id = due.order_id
                         RETURNING intents.order_id, total_minor, currency, card, attempts, traceparent",
                    )
                    .bind(most)
                    .bind(lease.as_secs_f64())
                    .fetch_all(tx.conn()?)
                    .await?;
                    Ok(End::Commit(rows.into_iter().filter_map(readable).collect()))
                })
            })
            .await
    }
}

#[derive(FromRow)]
struct Row {
    order_id: Uuid,
    total_minor: i64,
    currency: String,
    card: String,
    attempts: i32,
    traceparent: Option<String>,
}

/// `row`, unless it holds what this program cannot have written: such a one is told of each time
/// its lease ends, and holds up nobody else.
fn readable(row: Row) -> Option<Due> {
    let (Ok(currency), Some(card)) = (currency(&row.currency), Card::new(&row.card)) else {
        tracing::error!(order = %row.order_id, "the intent to charge this order cannot be read");
        return None;
    };
    Some(Due {
        id: OrderId(row.order_id),
        total: Money::new(row.total_minor, currency),
        card,
        attempts: row.attempts,
        traceparent: row.traceparent,
    })
}
