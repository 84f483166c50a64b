//! The JSON doors under `/api/v1`, for programs.

use std::sync::Arc;

use ::http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_TYPE, LOCATION},
};
use axum::{
    Json, Router,
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use chassis::{Cx, Problem, body};
use proto::{
    catalog::Product,
    order::{Draft, OrderId, Owner},
};
use resilience::{Answer, Classify as _, Outcome, Quality};
use serde::Serialize;

use crate::{
    cart::is_product_id,
    checkout::payment,
    degraded::Degraded,
    http::Shop,
    key::Key,
    orders::{IDEMPOTENCY_REPLAYED, Placed, Said},
    visit::keep_own_answer,
};

/// How good an answer is, as programs read it.
#[derive(Debug, Serialize)]
struct QualityBody {
    kind: &'static str,
    /// How long ago a stale answer was got, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_s: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ProductsBody {
    quality: QualityBody,
    products: Option<Vec<Product>>,
}

#[derive(Debug, Serialize)]
struct ProductBody {
    quality: QualityBody,
    product: Option<Product>,
}

/// The doors, without their common beginning.
pub(crate) fn routes() -> Router<Arc<Shop>> {
    Router::new()
        .route("/products", get(products))
        .route("/products/{id}", get(product))
        .route("/orders", post(place_order))
        .route("/orders/{id}", get(order))
}

async fn products(State(shop): State<Arc<Shop>>, Cx(cx): Cx) -> Response {
    let answer = shop.catalog.products(&keep_own_answer(&cx)).await;
    let (products, quality) = answer.into_parts();
    let body = ProductsBody { quality: quality.into(), products };
    (Degraded::of("catalog", quality), Json(body)).into_response()
}

async fn product(
    State(shop): State<Arc<Shop>>,
    Cx(cx): Cx,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let not_found = || Problem::not_found("there is no such product");
    let Path(id) = id.map_err(|_| not_found())?;
    if !is_product_id(&id) {
        return Err(not_found());
    }
    let answer = shop.catalog.product(&keep_own_answer(&cx), &id).await;
    if let Answer::Live(None) = answer {
        return Err(not_found());
    }
    let (product, quality) = answer.into_parts();
    let body = ProductBody { quality: quality.into(), product: product.flatten() };
    Ok((Degraded::of("catalog", quality), Json(body)).into_response())
}

async fn place_order(
    State(shop): State<Arc<Shop>>,
    Cx(cx): Cx,
    Key(key): Key,
    body::Json(draft): body::Json<Draft>,
) -> Result<Response, Problem> {
    draft.parse().map_err(Problem::fields)?;
    let owner = Owner::Guest;
    let said = shop.orders.place(&keep_own_answer(&cx), &owner, &key, &draft).await;
    let Said { placed, reply } = said.map_err(|error| {
        let unknown = error.class().outcome == Outcome::Unknown;
        let problem = Problem::from(error);
        if unknown {
            // Known before any answer, so that the caller can ask what became of it.
            problem.with("id", OrderId::derive(&owner, &key))
        } else {
            problem
        }
    })?;
    let mut headers = HeaderMap::new();
    let mut degraded = Degraded::default();
    if let Placed::Accepted { order, .. } = placed {
        degraded = degraded.and("payments", payment(order.state));
        let location = HeaderValue::from_str(&format!("/api/v1/orders/{}", order.id));
        headers.extend(location.ok().map(|location| (LOCATION, location)));
    }
    for name in [CONTENT_TYPE, IDEMPOTENCY_REPLAYED] {
        if let Some(value) = reply.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    Ok((reply.status, headers, degraded, reply.body).into_response())
}

async fn order(
    State(shop): State<Arc<Shop>>,
    Cx(cx): Cx,
    id: Result<Path<OrderId>, PathRejection>,
) -> Result<Response, Problem> {
    let not_found = || Problem::not_found("there is no such order");
    let Path(id) = id.map_err(|_| not_found())?;
    let order = shop.orders.get(&keep_own_answer(&cx), id).await.map_err(Problem::from)?;
    let order = order.ok_or_else(not_found)?;
    Ok((Degraded::of("payments", payment(order.state)), Json(order)).into_response())
}

impl From<Quality> for QualityBody {
    fn from(quality: Quality) -> Self {
        let age_s = match quality {
            Quality::Stale { age } => Some(age.as_secs()),
            Quality::Live | Quality::Default | Quality::Deferred | Quality::Missing => None,
        };
        Self { kind: quality.as_str(), age_s }
    }
}
