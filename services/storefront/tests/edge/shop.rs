//! The storefront under test, between its stand-ins.

use std::{net::SocketAddr, sync::OnceLock, time::Duration};

use reqwest::{Client, RequestBuilder, Response, redirect};
use serde_json::{Value, json};
use storefront::{app, config::Config};
use tokio::net::TcpListener;

use crate::{
    browser::Browser,
    neighbours::{Neighbour, Orders, catalog, orders},
};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// A storefront on a free port. It goes when its test's runtime does.
pub(crate) struct Storefront {
    pub(crate) base: String,
    pub(crate) client: Client,
}

/// The storefront with both neighbours well.
pub(crate) struct Shop {
    pub(crate) storefront: Storefront,
    pub(crate) catalog: Neighbour<()>,
    pub(crate) orders: Neighbour<Orders>,
}

/// The default settings.
pub(crate) fn patient(catalog: SocketAddr, orders: SocketAddr) -> Config {
    let url = |at: SocketAddr| format!("http://{at}").parse().expect("an address");
    Config {
        edge_deadline: 3000 * MS,
        catalog_url: url(catalog),
        catalog_timeout: 800 * MS,
        // Each page asks, so that each fault is seen on the next one.
        catalog_fresh: Duration::ZERO,
        orders_url: url(orders),
        orders_timeout: 2700 * MS,
        cookie_secure: false,
    }
}

/// Settings for tests in which a neighbour hangs.
pub(crate) fn hasty(catalog: SocketAddr, orders: SocketAddr) -> Config {
    Config {
        edge_deadline: 1500 * MS,
        catalog_timeout: 250 * MS,
        orders_timeout: 500 * MS,
        ..patient(catalog, orders)
    }
}

/// An address at which nobody listens.
pub(crate) async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("an address")
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::with(patient).await
    }

    pub(crate) async fn with(settings: fn(SocketAddr, SocketAddr) -> Config) -> Self {
        let (catalog, orders) = (catalog().await, orders().await);
        let config = settings(catalog.address, orders.address);
        Self { storefront: Storefront::start(&config).await, catalog, orders }
    }
}

impl Storefront {
    pub(crate) async fn start(config: &Config) -> Self {
        trace();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let routes = app::routes(config).expect("good settings");
        let routes = app::inbound(config).routes(routes, 200);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let client = Client::builder()
            .no_proxy()
            .timeout(10_000 * MS)
            .redirect(redirect::Policy::none())
            .build()
            .expect("a client");
        Self { base, client }
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.base.clone(), self.client.clone())
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.base))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.base))
    }

    /// A good order by JSON.
    pub(crate) fn order(&self, key: &str) -> RequestBuilder {
        self.post("/api/v1/orders").header("idempotency-key", key).json(&good_order())
    }
}

pub(crate) fn good_order() -> Value {
    json!({
        "items": [{ "product_id": "brass-compass", "quantity": 1 }],
        "name": "Ada",
        "email": "ada@example.com",
        "card": "tok_ok",
        "currency": "EUR",
    })
}

/// Status and JSON body of an answer.
pub(crate) async fn json_of(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, response.json().await.expect("a JSON body"))
}

/// The header `name` of an answer, or nothing.
pub(crate) fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().expect("plain text"))
}

/// Traces, as a service has them: without, no trace context travels.
fn trace() {
    static TELEMETRY: OnceLock<telemetry::Telemetry> = OnceLock::new();
    TELEMETRY.get_or_init(|| {
        let settings = telemetry::Settings {
            filter: "off".into(),
            log_format: telemetry::LogFormat::Text,
            otlp_endpoint: None,
        };
        telemetry::start("storefront", &settings).expect("it is started once")
    });
}
