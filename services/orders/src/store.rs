//! Everything that is asked of Postgres: here orders are found, [`place`] writes them, [`settle`]
//! writes what came of their charge, [`intents`] holds the charges that are still to be made.
//!
//! Every statement locks in the same order, first the order, then its intent, then stock by product,
//! so that no two of them wait for each other.

mod intents;
mod place;
mod settle;

use std::time::Duration;

use chassis::database::{Database, DbError, End, Error, Tx};
use chrono::{DateTime, Utc};
use proto::{
    money::{Currency, Money},
    order::{Order, OrderEvent, OrderId, OrderItem, OrderState},
};
use resilience::{CallContext, Op};
use sqlx::{FromRow, migrate::Migrator};

pub(crate) use intents::{Due, Waiting};
pub(crate) use place::Placing;

use crate::fingerprint::Fingerprint;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!();

const FIND: Op = Op::idempotent("find_order");

/// The orders, the stock and the charges that are still to be made.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
    charge_due_after: Duration,
}

/// An order as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) order: Order,
    pub(crate) fingerprint: Fingerprint,
    /// The request that placed it may still be charging it.
    pub(crate) fresh: bool,
}

impl Store {
    /// A charge is due to the relay `charge_due_after` its order was placed.
    pub(crate) fn new(database: Database, charge_due_after: Duration) -> Self {
        Self { database, charge_due_after }
    }

    /// The order called `id`, if there is one.
    pub(crate) async fn find(&self, cx: &CallContext, id: OrderId) -> Result<Option<Kept>, Error> {
        let due_after = self.charge_due_after;
        self.database
            .unit(cx, FIND, move |mut tx| {
                Box::pin(async move { Ok(End::Commit(find(&mut tx, id, due_after).await?)) })
            })
            .await
    }
}

async fn find(tx: &mut Tx<'_>, id: OrderId, due_after: Duration) -> Result<Option<Kept>, DbError> {
    // State and history in one statement, so that both are of the same moment.
    let steps: Vec<StepRow> = sqlx::query_as(
        "SELECT o.fingerprint, o.state, o.total_minor, o.currency, o.placed_at,
                o.placed_at > now() - make_interval(secs => $2) AS fresh,
                h.state AS step, h.at, h.reason
         FROM orders o JOIN order_history h ON h.order_id = o.id
         WHERE o.id = $1
         ORDER BY h.seq",
    )
    .bind(id.0)
    .bind(due_after.as_secs_f64())
    .fetch_all(tx.conn()?)
    .await?;
    let Some(order) = steps.first() else {
        return Ok(None);
    };
    let lines: Vec<LineRow> = sqlx::query_as(
        "SELECT product_id, name, quantity, unit_price_minor
         FROM order_lines WHERE order_id = $1 ORDER BY product_id",
    )
    .bind(id.0)
    .fetch_all(tx.conn()?)
    .await?;

    let currency = currency(&order.currency)?;
    let item = |line: LineRow| {
        Ok(OrderItem {
            product_id: line.product_id,
            name: line.name,
            quantity: u32::try_from(line.quantity).map_err(unreadable)?,
            unit_price: Money::new(line.unit_price_minor, currency),
        })
    };
    let event = |step: &StepRow| {
        Ok(OrderEvent { state: state(&step.step)?, at: step.at, reason: step.reason.clone() })
    };
    Ok(Some(Kept {
        order: Order {
            id,
            state: state(&order.state)?,
            total: Money::new(order.total_minor, currency),
            items: lines.into_iter().map(item).collect::<Result<_, DbError>>()?,
            placed_at: order.placed_at,
            history: steps.iter().map(event).collect::<Result<_, DbError>>()?,
        },
        fingerprint: Fingerprint(order.fingerprint.clone()),
        fresh: order.fresh,
    }))
}

#[derive(FromRow)]
struct StepRow {
    fingerprint: Vec<u8>,
    state: String,
    total_minor: i64,
    currency: String,
    placed_at: DateTime<Utc>,
    fresh: bool,
    step: String,
    at: DateTime<Utc>,
    reason: Option<String>,
}

#[derive(FromRow)]
struct LineRow {
    product_id: String,
    name: String,
    quantity: i32,
    unit_price_minor: i64,
}

fn state(text: &str) -> Result<OrderState, DbError> {
    OrderState::parse(text).ok_or_else(|| unreadable(format!("{text} is no state of an order")))
}

fn currency(text: &str) -> Result<Currency, DbError> {
    text.parse().map_err(unreadable)
}

/// A row that this program cannot have written.
fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DbError {
    DbError::Statement(sqlx::Error::Decode(error.into()))
}

/// The names of `states`, to be bound to a statement.
fn names(states: &'static [OrderState]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}
