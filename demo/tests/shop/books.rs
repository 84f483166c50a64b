//! What the databases say: the last word on what was sold and charged.

use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::Shop;

/// The databases of one shop.
#[derive(Debug)]
pub(crate) struct Books {
    orders: String,
    payments: String,
}

/// What payments has on one order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Charged {
    /// Its charges: never more than one.
    pub(crate) charges: i64,
    /// The state of the charge.
    pub(crate) state: Option<String>,
    /// Rows in the ledger.
    pub(crate) entries: i64,
    /// Their sum.
    pub(crate) sum: i64,
    /// What the shop got.
    pub(crate) taken: i64,
    /// How often the bank moved money.
    pub(crate) moved: i64,
}

impl Books {
    /// The databases of `shop`.
    pub(crate) fn of(shop: &Shop) -> Self {
        Self { orders: shop.database("orders"), payments: shop.database("payments") }
    }

    /// What payments has on an order.
    pub(crate) async fn charged(&self, order: Uuid) -> Charged {
        let mut payments = PgConnection::connect(&self.payments).await.expect("payments' database");
        let row = sqlx::query(
            "SELECT (SELECT count(*) FROM charges WHERE key = $1) AS charges,
                    (SELECT state FROM charges WHERE key = $1) AS state,
                    count(*) AS entries,
                    coalesce(sum(amount_minor), 0)::bigint AS sum,
                    coalesce(sum(amount_minor) FILTER (WHERE account = 'shop'), 0)::bigint AS taken,
                    (SELECT count(*) FROM bank.transfers WHERE key = $1 AND approved) AS moved
             FROM ledger_entries WHERE charge_key = $1",
        )
        .bind(order)
        .fetch_one(&mut payments)
        .await
        .expect("a row");
        Charged {
            charges: row.get("charges"),
            state: row.get("state"),
            entries: row.get("entries"),
            sum: row.get("sum"),
            taken: row.get("taken"),
            moved: row.get("moved"),
        }
    }

    /// Pieces of a product in stock.
    pub(crate) async fn stock(&self, product: &str) -> i32 {
        self.one("SELECT pieces FROM stock WHERE product_id = $1", product).await
    }

    /// Orders with this id: none or one.
    pub(crate) async fn orders(&self, id: Uuid) -> i64 {
        self.one("SELECT count(*) FROM orders WHERE id::text = $1", &id.to_string()).await
    }

    /// Charges that are still to be made.
    pub(crate) async fn intents(&self) -> i64 {
        self.one("SELECT count(*) FROM intents WHERE $1 = ''", "").await
    }

    /// Sessions of our services that run a statement or hold a transaction open.
    pub(crate) async fn busy_sessions(&self) -> Vec<String> {
        let mut orders = PgConnection::connect(&self.orders).await.expect("orders' database");
        sqlx::query_scalar(
            "SELECT application_name || ' ' || state || ': ' || query FROM pg_stat_activity
             WHERE application_name IN ('catalog', 'orders', 'payments') AND state <> 'idle'",
        )
        .fetch_all(&mut orders)
        .await
        .expect("rows")
    }

    /// Changes the books of orders behind everybody's back.
    pub(crate) async fn spoil(&self, statement: &'static str) {
        let mut orders = PgConnection::connect(&self.orders).await.expect("orders' database");
        let done = sqlx::query(statement).execute(&mut orders).await.expect("done");
        assert_eq!(done.rows_affected(), 1);
    }

    async fn one<T>(&self, query: &'static str, argument: &str) -> T
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        let mut orders = PgConnection::connect(&self.orders).await.expect("orders' database");
        sqlx::query_scalar(query).bind(argument).fetch_one(&mut orders).await.expect("a row")
    }
}
