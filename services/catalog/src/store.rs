//! Everything that is asked of Postgres.

use chassis::database::{Database, DbError, End, Error};
use proto::{
    catalog::Product,
    money::{Currency, Money},
};
use resilience::{CallContext, Op};
use sqlx::{FromRow, migrate::Migrator};

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!();

const LIST: Op = Op::idempotent("list_products");
const FIND: Op = Op::idempotent("find_product");

/// The products as they are kept.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
}

impl Store {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// All products, in the order of the shop window.
    pub(crate) async fn all(&self, cx: &CallContext) -> Result<Vec<Product>, Error> {
        self.database
            .unit(cx, LIST, |mut tx| {
                Box::pin(async move {
                    let rows: Vec<Row> = sqlx::query_as(
                        "SELECT id, name, summary, description, art, price_minor FROM products ORDER BY position",
                    )
                    .fetch_all(tx.conn()?)
                    .await?;
                    Ok::<_, DbError>(End::Commit(rows.into_iter().map(Product::from).collect()))
                })
            })
            .await
    }

    /// The product called `id`, if there is one.
    pub(crate) async fn one(&self, cx: &CallContext, id: String) -> Result<Option<Product>, Error> {
        self.database
            .unit(cx, FIND, |mut tx| {
                Box::pin(async move {
                    let row: Option<Row> = sqlx::query_as(
                        "SELECT id, name, summary, description, art, price_minor FROM products WHERE id = $1",
                    )
                    .bind(id)
                    .fetch_optional(tx.conn()?)
                    .await?;
                    Ok::<_, DbError>(End::Commit(row.map(Product::from)))
                })
            })
            .await
    }
}

#[derive(FromRow)]
struct Row {
    id: String,
    name: String,
    summary: String,
    description: String,
    art: String,
    price_minor: i64,
}

impl From<Row> for Product {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            name: row.name,
            summary: row.summary,
            description: row.description,
            art: row.art,
            price: Money::new(row.price_minor, Currency::BASE),
        }
    }
}
