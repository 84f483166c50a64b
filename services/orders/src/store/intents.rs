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

use super::{Store, currency, unreadable};

/// Claiming twice claims others.
const CLAIM: Op = Op::once("claim_intents");

const RESCHEDULE: Op = Op::idempotent("reschedule_intent");
const WAITING: Op = Op::idempotent("find_intent");

/// What is known of an order that a message names.
#[derive(Debug, Clone)]
pub(crate) enum Waiting {
    /// Its charge is still to be made.
    Due(Due),
    /// It is paid or declined.
    Settled,
    /// There is none.
    NoSuchOrder,
}

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

impl Store {
    /// Gives back what was claimed: it is due again after `pause`. A relay that lost its lease meanwhile
    /// changes nothing.
    pub(crate) async fn reschedule(&self, cx: &CallContext, due: &Due, pause: Duration) -> Result<(), Error> {
        let (id, attempts, pause) = (due.id, due.attempts, pause.as_secs_f64());
        self.database
            .unit(cx, RESCHEDULE, move |mut tx| {
                Box::pin(async move {
                    sqlx::query(
                        "UPDATE intents SET due_at = now() + make_interval(secs => $2), lease_until = NULL
                         WHERE order_id = $1 AND attempts = $3",
                    )
                    .bind(id.0)
                    .bind(pause)
                    .bind(attempts)
                    .execute(tx.conn()?)
                    .await?;
                    Ok(End::Commit(()))
                })
            })
            .await
    }

    /// Whether the order called `id` still waits for its charge.
    pub(crate) async fn waiting(&self, cx: &CallContext, id: OrderId) -> Result<Waiting, Error> {
        self.database
            .unit(cx, WAITING, move |mut tx| {
                Box::pin(async move {
                    let row: Option<WaitingRow> = sqlx::query_as(
                        "SELECT total_minor, currency, card, attempts, traceparent
                         FROM orders LEFT JOIN intents ON order_id = id WHERE id = $1",
                    )
                    .bind(id.0)
                    .fetch_optional(tx.conn()?)
                    .await?;
                    let waiting = match row {
                        None => Waiting::NoSuchOrder,
                        Some((total_minor, of, Some(card), Some(attempts), traceparent)) => {
                            let unknown = || unreadable("the card of an intent is none");
                            Waiting::Due(Due {
                                id,
                                total: Money::new(total_minor, currency(&of)?),
                                card: Card::new(&card).ok_or_else(unknown)?,
                                attempts,
                                traceparent,
                            })
                        }
                        Some(_) => Waiting::Settled,
                    };
                    Ok(End::Commit(waiting))
                })
            })
            .await
    }
}

/// Total, currency, card, attempts and trace; the last three are there while the order waits.
type WaitingRow = (i64, String, Option<String>, Option<i32>, Option<String>);

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
