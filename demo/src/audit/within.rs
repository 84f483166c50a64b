//! What has to agree inside one database: a question each, whose answer is a line for each disagreement.

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use sqlx::PgConnection;

use super::Findings;

/// The questions to the database of orders.
pub(super) const ORDERS: &[&str] = &[
    // An order costs what its lines cost.
    "SELECT format('order %s costs %s, its lines %s', o.id, o.total_minor, coalesce(l.sum, 0))
     FROM orders o LEFT JOIN (
         SELECT order_id, sum(quantity * unit_price_minor) AS sum FROM order_lines GROUP BY order_id
     ) l ON l.order_id = o.id
     WHERE o.total_minor IS DISTINCT FROM l.sum",
    // What came in, less what orders hold, is what is there.
    "SELECT format('%s: %s received, %s held by orders, but %s in stock',
                   s.product_id, s.received, coalesce(h.held, 0), s.pieces)
     FROM stock s LEFT JOIN (
         SELECT l.product_id, sum(l.quantity) AS held FROM order_lines l
         JOIN orders o ON o.id = l.order_id WHERE o.state <> 'declined' GROUP BY l.product_id
     ) h ON h.product_id = s.product_id
     WHERE s.received - coalesce(h.held, 0) <> s.pieces",
    // The last step of its history is where an order stands.
    "SELECT format('order %s is %s, its history ends with %s', o.id, o.state, coalesce(h.state, 'nothing'))
     FROM orders o LEFT JOIN (
         SELECT DISTINCT ON (order_id) order_id, state FROM order_history ORDER BY order_id, seq DESC
     ) h ON h.order_id = o.id
     WHERE h.state IS DISTINCT FROM o.state",
    // Who is not settled is still to be charged, and nobody else.
    "SELECT format('order %s is %s and %s', coalesce(o.id, i.order_id), coalesce(o.state, 'nowhere'),
                   CASE WHEN i.order_id IS NULL THEN 'nobody will charge it' ELSE 'is still to be charged' END)
     FROM orders o FULL JOIN intents i ON i.order_id = o.id
     WHERE coalesce(o.state IN ('payment_pending', 'payment_deferred'), false) <> (i.order_id IS NOT NULL)",
    // Others are told of each paid order, and of no other.
    "SELECT format('order %s is %s, others were %s told that it is paid', o.id, o.state,
                   CASE WHEN e.order_id IS NULL THEN 'not' ELSE 'nevertheless' END)
     FROM orders o LEFT JOIN events e ON e.order_id = o.id AND e.kind = 'order.paid'
     WHERE (o.state = 'paid') <> (e.order_id IS NOT NULL)",
];

/// The questions to the database of payments.
pub(super) const PAYMENTS: &[&str] = &[
    // An approved charge moved its amount from the customers to the shop; any other moved nothing.
    "SELECT format('charge %s over %s is %s, the ledger has %s rows, their sum is %s, the shop got %s',
                   c.key, c.amount_minor, c.state, coalesce(l.rows, 0), coalesce(l.sum, 0), coalesce(l.taken, 0))
     FROM charges c LEFT JOIN (
         SELECT charge_key, count(*) AS rows, sum(amount_minor) AS sum,
                sum(amount_minor) FILTER (WHERE account = 'shop') AS taken,
                min(currency) AS least, max(currency) AS most
         FROM ledger_entries GROUP BY charge_key
     ) l ON l.charge_key = c.key
     WHERE CASE WHEN c.state = 'approved'
                THEN (l.rows, l.sum, l.taken, l.least, l.most)
                     IS DISTINCT FROM (2, 0, c.amount_minor, c.currency, c.currency)
                ELSE l.rows IS NOT NULL END",
    // The books of the bank and ours say the same; where we have not decided, the bank may have.
    "SELECT format('charge %s is %s over %s %s, the bank %s', coalesce(c.key, b.key), coalesce(c.state, 'unknown here'),
                   c.amount_minor, c.currency,
                   CASE WHEN b.key IS NULL THEN 'knows nothing of it'
                        ELSE format('%s %s %s', CASE WHEN b.approved THEN 'moved' ELSE 'declined' END,
                                    b.amount_minor, b.currency) END)
     FROM charges c FULL JOIN bank.transfers b ON b.key = c.key
     WHERE c.key IS NULL
        OR (c.state <> 'pending'
            AND (b.approved, b.amount_minor, b.currency)
                IS DISTINCT FROM (c.state = 'approved', c.amount_minor, c.currency))",
];

/// Asks `questions` and notes what disagrees.
pub(super) async fn check(
    database: &mut PgConnection,
    questions: &[&'static str],
    findings: &mut Findings,
) -> anyhow::Result<()> {
    for &question in questions {
        let mut lines = sqlx::query_scalar::<_, String>(question).fetch(&mut *database);
        while let Some(line) = lines.try_next().await.with_context(|| format!("cannot ask: {question}"))? {
            findings.disagree(line);
        }
    }
    Ok(())
}
