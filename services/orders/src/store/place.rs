//! Writes an order: its row, its lines, its first step and the intent to charge it, and takes its
//! pieces from the stock, in one transaction.

use std::collections::BTreeMap;

use chassis::database::{DbError, End, Error, Tx};
use chrono::{DateTime, Utc};
use proto::order::OrderState;
use resilience::{CallContext, Op};

use super::{Kept, Store, find};
use crate::order::NewOrder;

/// A repeat finds the first one by its id.
const PLACE: Op = Op::idempotent("place_order");

/// What came of an order that was to be placed.
#[derive(Debug)]
pub(crate) enum Placing {
    /// It is placed, at that time, and its charge is to be made.
    Placed(DateTime<Utc>),
    /// There is an order of this id already.
    Exists(Box<Kept>),
    /// There are not enough pieces of these products; nothing was written.
    OutOfStock(Vec<String>),
}

impl Store {
    /// Places `order`. `traceparent` goes with the intent, for whoever charges it later.
    pub(crate) async fn place(
        &self,
        cx: &CallContext,
        order: NewOrder,
        traceparent: Option<String>,
    ) -> Result<Placing, Error> {
        let due_after = self.charge_due_after;
        self.database
            .unit(cx, PLACE, move |mut tx| {
                Box::pin(async move {
                    // The order first: a second one of the same id waits here for the first one's
                    // end, and holds nothing. The stock last, since its rows are shared by all.
                    let placed = insert(&mut tx, &order, traceparent, due_after.as_secs_f64()).await?;
                    let Some(placed_at) = placed else {
                        let first = find(&mut tx, order.id, due_after).await?;
                        let first = first.ok_or(DbError::Statement(sqlx::Error::RowNotFound))?;
                        return Ok(End::Rollback(Placing::Exists(Box::new(first))));
                    };
                    let missing = take(&mut tx, &order).await?;
                    if missing.is_empty() {
                        Ok(End::Commit(Placing::Placed(placed_at)))
                    } else {
                        Ok(End::Rollback(Placing::OutOfStock(missing)))
                    }
                })
            })
            .await
    }
}

/// Writes everything but the stock; `None` when there is an order of this id already.
async fn insert(
    tx: &mut Tx<'_>,
    order: &NewOrder,
    traceparent: Option<String>,
    due_after_s: f64,
) -> Result<Option<DateTime<Utc>>, DbError> {
    let lines = &order.items;
    let products: Vec<_> = lines.iter().map(|line| line.product_id.as_str()).collect();
    let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
    let prices: Vec<_> = lines.iter().map(|line| line.unit_price.minor).collect();
    let placed: Option<(DateTime<Utc>,)> = sqlx::query_as(
        "WITH placed AS (
             INSERT INTO orders (id, owner, fingerprint, state, total_minor, currency, name, email)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (id) DO NOTHING
             RETURNING id, state, placed_at
         ), lines AS (
             INSERT INTO order_lines (order_id, product_id, name, quantity, unit_price_minor)
             SELECT placed.id, line.product_id, line.name, line.quantity, line.price
             FROM placed, UNNEST($9::text[], $10::text[], $11::int[], $12::bigint[])
                          AS line (product_id, name, quantity, price)
         ), step AS (
             INSERT INTO order_history (order_id, state) SELECT id, state FROM placed
         ), intent AS (
             INSERT INTO intents (order_id, card, due_at, traceparent)
             SELECT id, $13, now() + make_interval(secs => $14), $15 FROM placed
         )
         SELECT placed_at FROM placed",
    )
    .bind(order.id.0)
    .bind(order.owner.to_string())
    .bind(&order.fingerprint.0)
    .bind(OrderState::PaymentPending.as_str())
    .bind(order.total.minor)
    .bind(order.total.currency.code())
    .bind(&order.buyer.name)
    .bind(&order.buyer.email)
    .bind(products)
    .bind(names)
    .bind(quantities(order)?)
    .bind(prices)
    .bind(order.card.token())
    .bind(due_after_s)
    .bind(traceparent)
    .fetch_optional(tx.conn()?)
    .await?;
    Ok(placed.map(|(placed_at,)| placed_at))
}

/// Takes the pieces of `order` from the stock. Says which products there are too few of, and takes
/// nothing then.
async fn take(tx: &mut Tx<'_>, order: &NewOrder) -> Result<Vec<String>, DbError> {
    let products: Vec<_> = order.items.iter().map(|line| line.product_id.as_str()).collect();
    // Locked in one order by everyone, so that two orders of the same products cannot each hold
    // what the other waits for.
    let there: Vec<(String, i32)> = sqlx::query_as(
        "SELECT product_id, pieces FROM stock WHERE product_id = ANY($1) ORDER BY product_id FOR NO KEY UPDATE",
    )
    .bind(&products)
    .fetch_all(tx.conn()?)
    .await?;
    let there: BTreeMap<_, _> = there.into_iter().collect();
    let wanted = quantities(order)?;
    let missing: Vec<_> = products
        .iter()
        .zip(&wanted)
        .filter(|(product, wanted)| there.get(**product).is_none_or(|pieces| pieces < wanted))
        .map(|(product, _)| (*product).to_owned())
        .collect();
    if missing.is_empty() {
        sqlx::query(
            "UPDATE stock SET pieces = pieces - line.quantity
             FROM UNNEST($1::text[], $2::int[]) AS line (product_id, quantity)
             WHERE stock.product_id = line.product_id",
        )
        .bind(&products)
        .bind(wanted)
        .execute(tx.conn()?)
        .await?;
    }
    Ok(missing)
}

fn quantities(order: &NewOrder) -> Result<Vec<i32>, DbError> {
    order.items.iter().map(|line| i32::try_from(line.quantity).map_err(super::unreadable)).collect()
}
