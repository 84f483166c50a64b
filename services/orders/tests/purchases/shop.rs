//! One shop per test: a database of its own on the Postgres that the tests share, the program, and
//! its neighbours.

use std::{
    net::SocketAddr,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Part, Postgres, RabbitMq, Ready, Spec, poll, ports, postgres::Options, rabbitmq};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Mutex,
};

use crate::{catalog::FakeCatalog, payments::FakePayments};

/// Longer than anything takes that is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// One runtime for all tests: the parts that they share live on it.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().enable_all().build().expect("a runtime"));
/// The Postgres of all tests; the last one to let go of it ends it.
static POSTGRES: Mutex<Weak<Postgres>> = Mutex::const_new(Weak::new());
/// The RabbitMQ of all tests, in which each shop has a queue of its own.
static RABBITMQ: Mutex<Weak<RabbitMq>> = Mutex::const_new(Weak::new());
/// How many databases were made.
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// Runs one test.
pub(crate) fn test(story: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    RUNTIME.block_on(story)
}

/// A runtime for one server, so that ending it ends every connection, as the end of a process would.
pub(crate) fn server_runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// A shop, with ports and a database of its own.
pub(crate) struct Shop {
    // The order is that of the end: the program before what it uses.
    pub(crate) orders: Part,
    pub(crate) payments: FakePayments,
    pub(crate) catalog: FakeCatalog,
    pub(crate) postgres: Arc<Postgres>,
    _rabbitmq: Arc<RabbitMq>,
    at: SocketAddr,
    database: String,
    client: reqwest::Client,
    folder: TempDir,
}

/// What the shop answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Shop {
    /// A shop that sells: all of it is there.
    pub(crate) async fn open() -> anyhow::Result<Self> {
        let shop = Self::alone().await?;
        shop.catalog.start().await?;
        shop.payments.start().await?;
        Ok(shop)
    }

    /// Orders and its database, with no neighbour there yet.
    pub(crate) async fn alone() -> anyhow::Result<Self> {
        let shop = Self::prepare(shared_postgres().await?).await?;
        shop.orders.start().await?;
        shop.joined().await?;
        Ok(shop)
    }

    /// A shop on `postgres` where nothing is started yet.
    pub(crate) async fn prepare(postgres: Arc<Postgres>) -> anyhow::Result<Self> {
        let database = format!("orders_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let url = postgres.create_database(&database).await?;
        let rabbitmq = shared_rabbitmq().await?;
        let folder = tempfile::tempdir()?;
        let (at, catalog_at, payments_at) =
            (ports::free_address()?, ports::free_address()?, ports::free_address()?);
        let spec = Spec::new("orders", env!("CARGO_BIN_EXE_orders"), folder.path().join("orders.log"))
            .env("RUST_LOG", "info,orders=debug,chassis=debug,sqlx=debug")
            .env("DATABASE_URL", url.as_str())
            // Time enough on a machine that runs several tests at once.
            .env("CATALOG_TIMEOUT", "2s")
            .env("DATABASE_ACQUIRE_TIMEOUT", "1s")
            .env("CATALOG_URL", format!("http://{catalog_at}"))
            .env("PAYMENTS_URL", format!("http://{payments_at}"))
            .env("AMQP_URL", rabbitmq.url().as_str())
            .env("CHARGE_QUEUE", format!("charges.{database}"));
        Ok(Self {
            orders: Part::new(listening(spec, at)?),
            payments: FakePayments::absent(payments_at),
            catalog: FakeCatalog::absent(catalog_at),
            postgres,
            _rabbitmq: rabbitmq,
            at,
            database,
            client: reqwest::Client::builder().no_proxy().timeout(SOON).build()?,
            folder,
        })
    }

    /// Another process of orders on the same database.
    pub(crate) async fn replica(&self) -> anyhow::Result<Part> {
        let mut spec = self.orders.spec().clone();
        spec.log = self.folder.path().join("replica.log");
        let part = Part::new(listening(spec, ports::free_address()?)?);
        part.start().await?;
        Ok(part)
    }

    /// Waits until orders has found its database.
    async fn joined(&self) -> anyhow::Result<()> {
        poll::until("orders to join its database", SOON, || async {
            let answer = self.get("00000000-0000-0000-0000-000000000000").await?;
            ensure!(answer.status == 404, "{answer:?}");
            Ok(())
        })
        .await
    }

    /// Sends an order; `headers` are added.
    pub(crate) async fn post(
        &self,
        key: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<Answer> {
        self.post_with(&[&[("idempotency-key", key)], headers].concat(), body.to_string()).await
    }

    /// Sends any body with these headers, and as JSON if they do not say something else.
    pub(crate) async fn post_with(&self, headers: &[(&str, &str)], body: String) -> anyhow::Result<Answer> {
        let mut request = self.client.post(format!("http://{}/orders", self.at)).body(body);
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::read(request.send().await?).await
    }

    /// Sends an order until it has an answer for good, as the storefront would: with the same key.
    pub(crate) async fn insist(&self, key: &str, body: &Value) -> anyhow::Result<Answer> {
        poll::until("an answer", SOON, || async {
            let answer = self.post(key, body, &[]).await?;
            ensure!(![503, 504].contains(&answer.status), "{answer:?}");
            Ok(answer)
        })
        .await
    }

    /// The order called `id`.
    pub(crate) async fn get(&self, id: &str) -> anyhow::Result<Answer> {
        Answer::read(self.client.get(format!("http://{}/orders/{id}", self.at)).send().await?).await
    }

    /// How often orders has tried to call a neighbour, by the policy of this name.
    pub(crate) async fn attempts(&self, policy: &str) -> anyhow::Result<u64> {
        let Ready::Http { address, .. } = &self.orders.spec().ready else {
            anyhow::bail!("orders has no admin address");
        };
        let answer =
            Answer::read(self.client.get(format!("http://{address}/resilience")).send().await?).await?;
        let policies = answer.json["policies"].as_array().context("policies")?;
        let mine = policies.iter().find(|known| known["name"] == policy).context("no such policy")?;
        mine["calls"]["attempts"].as_u64().context("a number")
    }

    /// Waits until the order called `id` is in `state`.
    pub(crate) async fn until(&self, id: &str, state: &str) -> anyhow::Result<Answer> {
        poll::until(state, SOON, || async {
            let answer = self.get(id).await?;
            ensure!(answer.json["state"] == state, "{answer:?}");
            Ok(answer)
        })
        .await
    }

    /// What one statement gives, on one line.
    pub(crate) async fn sql(&self, statement: &str) -> anyhow::Result<String> {
        Ok(self.postgres.query(&self.database, statement).await?.trim().to_owned())
    }

    /// How many pieces of `product` are left.
    pub(crate) async fn stock(&self, product: &str) -> anyhow::Result<i32> {
        Ok(self.sql(&format!("SELECT pieces FROM stock WHERE product_id = '{product}'")).await?.parse()?)
    }

    /// How many orders, intents and events there are.
    pub(crate) async fn rows(&self) -> anyhow::Result<String> {
        let count = |table| format!("(SELECT count(*) FROM {table})");
        let all = ["orders", "intents", "events"].map(count).join(", ");
        self.sql(&format!("SELECT concat_ws(' ', {all})")).await
    }

    /// Everything that orders has logged.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        std::fs::read_to_string(&self.orders.spec().log).context("its log")
    }
}

/// `spec`, answering at `at`, and for its keepers at a port of its own.
fn listening(spec: Spec, at: SocketAddr) -> anyhow::Result<Spec> {
    let admin = ports::free_address()?;
    Ok(spec
        .env("LISTEN", at.to_string())
        .env("ADMIN_LISTEN", admin.to_string())
        .ready(Ready::Http { address: admin, path: "/ready".into() }))
}

async fn shared_rabbitmq() -> anyhow::Result<Arc<RabbitMq>> {
    let mut shared = RABBITMQ.lock().await;
    if let Some(rabbitmq) = shared.upgrade() {
        return Ok(rabbitmq);
    }
    let rabbitmq = Arc::new(RabbitMq::start(rabbitmq::Options::default()).await?);
    *shared = Arc::downgrade(&rabbitmq);
    Ok(rabbitmq)
}

async fn shared_postgres() -> anyhow::Result<Arc<Postgres>> {
    let mut shared = POSTGRES.lock().await;
    if let Some(postgres) = shared.upgrade() {
        return Ok(postgres);
    }
    let postgres = Arc::new(Postgres::start(Options::default()).await?);
    *shared = Arc::downgrade(&postgres);
    Ok(postgres)
}

impl Answer {
    async fn read(response: reqwest::Response) -> anyhow::Result<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let json = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self { status, headers, text, json })
    }

    /// A header's text; empty when it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The order's id.
    pub(crate) fn id(&self) -> &str {
        self.json["id"].as_str().unwrap_or_default()
    }

    /// The states that the order was in, oldest first.
    pub(crate) fn history(&self) -> Vec<&str> {
        let steps = self.json["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        steps.iter().filter_map(|step| step["state"].as_str()).collect()
    }
}

/// An order of one product.
pub(crate) fn draft(product: &str, quantity: i64, card: &str) -> Value {
    json!({
        "items": [{ "product_id": product, "quantity": quantity }],
        "name": "Ada Lovelace",
        "email": "ada@example.com",
        "card": card,
        "currency": "EUR",
    })
}

/// An order that is paid on a good day.
pub(crate) fn two_mugs() -> Value {
    draft("enamel-mug", 2, "tok_ok")
}
