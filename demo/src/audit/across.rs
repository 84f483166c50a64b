//! What has to agree between two databases: each order and its charge, from two streams in the same order.

use std::cmp::Ordering;

use futures_util::TryStreamExt as _;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Findings;

type Row = (Uuid, String, i64, String);

/// Compares each order with its charge.
pub(super) async fn check(
    orders: &mut PgConnection,
    payments: &mut PgConnection,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut strays = Vec::new();
    {
        let mut orders =
            sqlx::query_as::<_, Row>("SELECT id, state, total_minor, currency FROM orders ORDER BY id")
                .fetch(&mut *orders);
        let mut charges =
            sqlx::query_as::<_, Row>("SELECT key, state, amount_minor, currency FROM charges ORDER BY key")
                .fetch(&mut *payments);
        let (mut order, mut charge) = (orders.try_next().await?, charges.try_next().await?);
        loop {
            let first = match (&order, &charge) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(order), Some(charge)) => order.0.cmp(&charge.0),
            };
            let this_order = if first.is_le() { order.take() } else { None };
            let this_charge = if first.is_ge() { charge.take() } else { None };
            match (&this_order, &this_charge) {
                (Some(order), charge) => compare(order, charge.as_ref(), findings),
                (None, Some(charge)) => strays.push(charge.0),
                (None, None) => {}
            }
            if this_order.is_some() {
                findings.orders += 1;
                order = orders.try_next().await?;
            }
            if this_charge.is_some() {
                findings.charges += 1;
                charge = charges.try_next().await?;
            }
        }
    }
    // Charges of orders that came in after the older snapshot was taken.
    sqlx::query("COMMIT").execute(&mut *orders).await?;
    let known: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM orders WHERE id = ANY($1)")
        .bind(&strays)
        .fetch_all(orders)
        .await?;
    for stray in strays.iter().filter(|stray| !known.contains(stray)) {
        findings.disagree(format!("charge {stray} belongs to no order"));
    }
    Ok(())
}

fn compare(order: &Row, charge: Option<&Row>, findings: &mut Findings) {
    let (id, state, total, currency) = order;
    let (charged, amount) = match charge {
        Some((_, state, amount, of)) => (state.as_str(), Some((*amount, of))),
        None => ("none", None),
    };
    let settled = match state.as_str() {
        "paid" => charged == "approved",
        "declined" => charged == "declined",
        _ => {
            findings.unsettled += 1;
            true
        }
    };
    if !settled {
        findings.disagree(format!("order {id} is {state}, its charge is {charged}"));
    }
    if amount.is_some_and(|amount| amount != (*total, currency)) {
        findings.disagree(format!("order {id} costs {total} {currency}, its charge is over {amount:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &str, minor: i64) -> Row {
        (Uuid::nil(), state.into(), minor, "EUR".into())
    }

    #[test]
    fn an_order_and_its_charge_agree_or_are_named() {
        for (order, charge, unsettled, count) in [
            (row("paid", 5), Some(row("approved", 5)), 0, 0),
            (row("paid", 5), Some(row("approved", 6)), 0, 1),
            (row("paid", 5), Some(row("declined", 5)), 0, 1),
            (row("paid", 5), Some(row("pending", 5)), 0, 1),
            (row("paid", 5), None, 0, 1),
            (row("declined", 5), Some(row("declined", 5)), 0, 0),
            (row("declined", 5), Some(row("approved", 5)), 0, 1),
            (row("payment_deferred", 5), None, 1, 0),
            (row("payment_deferred", 5), Some(row("approved", 5)), 1, 0),
            (row("payment_pending", 5), Some(row("approved", 4)), 1, 1),
        ] {
            let mut findings = Findings::default();
            compare(&order, charge.as_ref(), &mut findings);
            assert_eq!((findings.unsettled, findings.count), (unsettled, count), "{order:?} {charge:?}");
        }
    }
}
