//! Somebody who buys: with a browser's forms and cookies, or as a program with JSON.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use testbed::poll;
use uuid::Uuid;

use super::Shop;

/// What follows a purchase is done soon, or never.
const SOON: Duration = Duration::from_secs(30);

/// Somebody who buys at one shop.
#[derive(Debug, Clone)]
pub(crate) struct Customer {
    base: String,
    client: Client,
}

/// An answer of the JSON doors.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Whether it tells of an order that was placed before.
    pub(crate) replayed: bool,
    /// The header that names what is degraded.
    pub(crate) degraded: Option<String>,
    /// How long it took.
    pub(crate) took: Duration,
    /// Its body.
    pub(crate) body: Value,
}

impl Answer {
    /// The order's id.
    #[track_caller]
    pub(crate) fn id(&self) -> Uuid {
        let id = self.body["id"].as_str().unwrap_or_else(|| panic!("no id in {self:?}"));
        id.parse().expect("a UUID")
    }

    /// The order's state.
    pub(crate) fn state(&self) -> &str {
        self.body["state"].as_str().unwrap_or_default()
    }
}

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its path, after redirects.
    pub(crate) path: String,
    html: String,
}

impl Page {
    /// What a person reads.
    pub(crate) fn text(&self) -> String {
        let page = Html::parse_document(&self.html);
        let main = Selector::parse("main").expect("a selector");
        let words: Vec<_> =
            page.select(&main).flat_map(|main| main.text()).flat_map(str::split_whitespace).collect();
        words.join(" ")
    }

    /// The value of a form's field.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> String {
        let page = Html::parse_document(&self.html);
        let field = Selector::parse(&format!("[name={name}]")).expect("a selector");
        let value = page.select(&field).next().and_then(|field| field.attr("value"));
        value.unwrap_or_else(|| panic!("no field {name} on {}: {}", self.path, self.text())).to_owned()
    }
}

/// A key that nobody has used.
pub(crate) fn new_key() -> String {
    Uuid::new_v4().simple().to_string()
}

/// An order of so many pieces of one product.
pub(crate) fn order(product: &str, quantity: i64, card: &str) -> Value {
    json!({
        "items": [{ "product_id": product, "quantity": quantity }],
        "name": "Ada",
        "email": "ada@example.com",
        "card": card,
        "currency": "EUR",
    })
}

impl Customer {
    /// Somebody with an empty cart.
    pub(crate) fn of(shop: &Shop) -> Self {
        let client = Client::builder().no_proxy().cookie_store(true).timeout(SOON).build().expect("a client");
        Self { base: shop.url(""), client }
    }

    /// Opens a page.
    pub(crate) async fn open(&self, path: &str) -> Page {
        let request = self.client.get(format!("{}{path}", self.base)).header("accept", "text/html");
        page(request.send().await.expect("an answer")).await
    }

    /// Sends a form, and goes where that leads.
    pub(crate) async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let request = self.client.post(format!("{}{path}", self.base)).header("accept", "text/html");
        let request = request.header("origin", &self.base).header("sec-fetch-site", "same-origin");
        page(request.form(fields).send().await.expect("an answer")).await
    }

    /// Buys one piece of `product` as a browser does, up to the page that follows "Pay".
    pub(crate) async fn buy_by_forms(&self, product: &str, card: &str) -> Page {
        let home = self.open("/").await;
        assert_eq!(home.status, StatusCode::OK, "{}", home.text());
        let cart = self.send("/cart", &[("product_id", product), ("quantity", "1")]).await;
        assert_eq!(cart.status, StatusCode::OK, "{}", cart.text());
        let checkout = self.open("/checkout").await;
        self.pay(&checkout, card).await
    }

    /// Fills in the form of `checkout` and sends it.
    pub(crate) async fn pay(&self, checkout: &Page, card: &str) -> Page {
        let hidden = ["key", "currency", "expected_total"].map(|name| (name, checkout.field(name)));
        let mut fields: Vec<_> = hidden.iter().map(|(name, value)| (*name, value.as_str())).collect();
        fields.extend([("name", "Ada"), ("email", "ada@example.com"), ("card", card)]);
        self.send("/checkout", &fields).await
    }

    /// Sends an order to the JSON door.
    pub(crate) async fn place(&self, key: &str, order: &Value) -> Answer {
        self.place_within(key, order, None).await
    }

    /// The same, with the time that the customer waits.
    pub(crate) async fn place_within(&self, key: &str, order: &Value, timeout_ms: Option<u64>) -> Answer {
        let mut request =
            self.client.post(format!("{}/api/v1/orders", self.base)).header("idempotency-key", key);
        if let Some(timeout) = timeout_ms {
            request = request.header("x-timeout-ms", timeout);
        }
        let began = tokio::time::Instant::now();
        answer(request.json(order).send().await.expect("an answer"), began).await
    }

    /// The same as [`Customer::place`], and again under the same key while the shop says that nothing was
    /// done: it sheds what is too much at once.
    pub(crate) async fn insist(&self, key: &str, order: &Value) -> Answer {
        poll::until("the shop to take the order", SOON, || async {
            let answer = self.place(key, order).await;
            anyhow::ensure!(answer.status != StatusCode::SERVICE_UNAVAILABLE, "{:?}", answer.body);
            Ok(answer)
        })
        .await
        .unwrap_or_else(|fault| panic!("{fault:#}"))
    }

    /// Asks for an order.
    pub(crate) async fn look(&self, id: Uuid) -> Answer {
        let began = tokio::time::Instant::now();
        let request = self.client.get(format!("{}/api/v1/orders/{id}", self.base));
        answer(request.send().await.expect("an answer"), began).await
    }

    /// Waits until an order is in `state`.
    pub(crate) async fn wait_for(&self, id: Uuid, state: &str, within: Duration) -> Answer {
        poll::until(&format!("order {id} to be {state}"), within, || async {
            let seen = self.look(id).await;
            anyhow::ensure!(seen.state() == state, "it is {:?}", seen.body);
            Ok(seen)
        })
        .await
        .unwrap_or_else(|fault| panic!("{fault:#}"))
    }
}

async fn page(response: Response) -> Page {
    let (status, path) = (response.status(), response.url().path().to_owned());
    Page { status, path, html: response.text().await.expect("a body") }
}

async fn answer(response: Response, began: tokio::time::Instant) -> Answer {
    let status = response.status();
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (replayed, degraded) = (text("idempotency-replayed").is_some(), text("degraded"));
    let body = response.bytes().await.expect("a body");
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|error| panic!("{status} {error}: {}", String::from_utf8_lossy(&body)));
    Answer { status, replayed, degraded, took: began.elapsed(), body }
}
