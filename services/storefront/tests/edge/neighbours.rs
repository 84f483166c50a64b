//! Stand-ins for catalog and orders. Each has a runtime of its own, so that it can be killed: then
//! its port refuses, and the connections that stood break.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use proto::{
    catalog::{Product, Products},
    money::{Currency, Money},
    order::{Draft, IdempotencyKey, Order, OrderEvent, OrderId, OrderItem, OrderState, Owner},
};
use tokio::{net::TcpListener, runtime::Runtime};

/// A stand-in.
pub(crate) struct Neighbour<B> {
    pub(crate) address: SocketAddr,
    pub(crate) behaviour: B,
    seen: Seen,
    runtime: Option<Runtime>,
}

/// The requests that reached a stand-in.
type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

impl<B> Neighbour<B> {
    async fn start(routes: Router, behaviour: B) -> Self {
        let seen = Seen::default();
        let routes = routes.layer(from_fn_with_state(seen.clone(), note));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let serving = runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(async move { axum::serve(listener, routes).await });
            address
        });
        Self { address: serving.await.expect("it listens"), behaviour, seen, runtime: Some(runtime) }
    }

    /// Ends it as `kill -9` would.
    pub(crate) async fn kill(&mut self) {
        let runtime = self.runtime.take().expect("it is killed once");
        let end = move || runtime.shutdown_timeout(Duration::from_secs(5));
        tokio::task::spawn_blocking(end).await.expect("it ends");
    }

    /// The headers of every request so far to `call`, such as `POST /orders`.
    pub(crate) fn seen(&self, call: &str) -> Vec<HeaderMap> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let matching = seen.iter().filter(|(name, _)| name.starts_with(call));
        matching.map(|(_, headers)| headers.clone()).collect()
    }
}

impl<B> Drop for Neighbour<B> {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn note(State(seen): State<Seen>, request: Request, next: Next) -> Response {
    let call = format!("{} {}", request.method(), request.uri().path());
    let entry = (call, request.headers().clone());
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    next.run(request).await
}

/// A catalog that sells [`products`].
pub(crate) async fn catalog() -> Neighbour<()> {
    let list = || async { Json(Products { products: products() }) };
    let single = |Path(id): Path<String>| async move {
        let found = products().into_iter().find(|product| product.id == id);
        found.map_or(StatusCode::NOT_FOUND.into_response(), |product| Json(product).into_response())
    };
    let routes = Router::new().route("/products", get(list)).route("/products/{id}", get(single));
    Neighbour::start(routes, ()).await
}

/// A catalog that takes requests and never answers.
pub(crate) async fn hung_catalog() -> Neighbour<()> {
    Neighbour::start(Router::new().fallback(std::future::pending::<()>), ()).await
}

pub(crate) fn products() -> Vec<Product> {
    let product = |id: &str, name: &str, minor| Product {
        id: id.into(),
        name: name.into(),
        summary: format!("{name} in one line"),
        description: format!("{name} in full"),
        art: "compass".into(),
        price: Money::new(minor, Currency::Eur),
    };
    vec![product("brass-compass", "Brass compass", 6450), product("rope", "Rope & line", 1999)]
}

/// What orders does next.
#[derive(Clone)]
pub(crate) enum Does {
    /// Places orders; the charge ends in this state.
    Places(OrderState),
    /// Answers every order with this.
    Answers(StatusCode, serde_json::Value),
    /// Takes requests, does nothing and never answers.
    Hangs,
    /// Places orders, and never says so.
    PlacesAndHangs,
}

/// What an orders stand-in does, and the orders it has.
#[derive(Clone)]
pub(crate) struct Orders(Arc<Mutex<(Does, HashMap<OrderId, Order>)>>);

impl Orders {
    pub(crate) fn does(&self, next: Does) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = next;
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.len()
    }

    fn now(&self) -> Does {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn place(&self, id: OrderId, draft: &Draft, state: OrderState) -> (Order, bool) {
        let orders = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1;
        let replayed = orders.contains_key(&id);
        let order = orders.entry(id).or_insert_with(|| order(id, draft, state)).clone();
        (order, replayed)
    }
}

/// An orders service that places what it is sent.
pub(crate) async fn orders() -> Neighbour<Orders> {
    let state = (Does::Places(OrderState::Paid), HashMap::new());
    let orders = Orders(Arc::new(Mutex::new(state)));
    let routes = Router::new()
        .route("/orders", post(place))
        .route("/orders/{id}", get(find))
        .with_state(orders.clone());
    Neighbour::start(routes, orders).await
}

async fn place(State(orders): State<Orders>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers[name].to_str().expect("plain text").to_owned();
    let key = IdempotencyKey::new(&text("idempotency-key")).expect("a good key");
    let owner = Owner::parse(&text("x-owner")).expect("an owner");
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    let draft: Draft = serde_json::from_slice(&body).expect("a draft");
    draft.parse().expect("the edge lets only good drafts through");
    let id = OrderId::derive(&owner, &key);
    let state = match orders.now() {
        Does::Hangs => std::future::pending().await,
        Does::PlacesAndHangs => {
            orders.place(id, &draft, OrderState::Paid);
            std::future::pending().await
        }
        Does::Answers(status, body) => {
            let problem = [(CONTENT_TYPE, "application/problem+json")];
            return (status, problem, body.to_string()).into_response();
        }
        Does::Places(state) => state,
    };
    let (order, replayed) = orders.place(id, &draft, state);
    let status = match order.state {
        OrderState::Paid => StatusCode::CREATED,
        OrderState::Declined => StatusCode::PAYMENT_REQUIRED,
        OrderState::PaymentPending | OrderState::PaymentDeferred => StatusCode::ACCEPTED,
    };
    let mut response = (status, Json(order)).into_response();
    if replayed {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotency-replayed", yes);
    }
    response
}

async fn find(State(orders): State<Orders>, Path(id): Path<OrderId>) -> Response {
    if matches!(orders.now(), Does::Hangs | Does::PlacesAndHangs) {
        std::future::pending().await
    }
    let orders = &orders.0.lock().unwrap_or_else(PoisonError::into_inner).1;
    match orders.get(&id) {
        Some(order) => Json(order).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn order(id: OrderId, draft: &Draft, state: OrderState) -> Order {
    let items: Vec<OrderItem> = draft
        .items
        .iter()
        .filter_map(|item| {
            let product = products().into_iter().find(|product| product.id == item.product_id)?;
            Some(OrderItem {
                product_id: product.id,
                name: product.name,
                quantity: u32::try_from(item.quantity).expect("a good quantity"),
                unit_price: product.price,
            })
        })
        .collect();
    let total = items.iter().map(|item| item.unit_price.minor * i64::from(item.quantity)).sum();
    let placed_at = chrono::Utc::now();
    let event = |state| OrderEvent { state, at: placed_at, reason: None };
    Order {
        id,
        state,
        total: Money::new(total, Currency::Eur),
        items,
        placed_at,
        history: vec![event(OrderState::PaymentPending), event(state)],
    }
}
