//! The door: `POST /orders` and `GET /orders/{id}`.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use chassis::{Cx, Problem, body, problem::chain};
use proto::{
    FieldError,
    order::{Draft, IdempotencyKey, Order, OrderId, OrderState, Owner},
};
use resilience::{Classify as _, Outcome};
use uuid::Uuid;

use crate::place_order::{Counter, NotPlaced, Placed};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const OWNER: HeaderName = HeaderName::from_static("x-owner");

/// What is kept of the time for the answer itself, but never more than a tenth of it. An answer that
/// comes from here tells the order's id; one that comes because the time is up cannot.
const FOR_ANSWERING: Duration = Duration::from_millis(20);

pub(crate) fn routes(counter: Counter) -> Router {
    Router::new()
        .route("/orders", post(place))
        .route("/orders/{id}", get(find))
        .fallback(async || Problem::not_found("there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            let detail = "orders are placed with POST /orders and read with GET /orders/{id}";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .with_state(counter)
}

async fn find(
    State(counter): State<Counter>,
    Cx(cx): Cx,
    id: Result<Path<Uuid>, PathRejection>,
) -> Result<Json<Order>, Problem> {
    let unknown = || Problem::not_found("there is no such order");
    let Path(id) = id.map_err(|_| unknown())?;
    counter.find(&cx, OrderId(id)).await?.map(Json).ok_or_else(unknown)
}

async fn place(
    State(counter): State<Counter>,
    Cx(cx): Cx,
    headers: HeaderMap,
    body::Json(draft): body::Json<Draft>,
) -> Result<Response, Problem> {
    let cx = cx.reserve(FOR_ANSWERING.min(cx.deadline().remaining() / 10));
    let key = key(&headers)?;
    let owner = owner(&headers)?;
    let id = OrderId::derive(&owner, &key);
    let wanted = draft.parse().map_err(|faults| Problem::fields(faults).with("id", id))?;
    match counter.place(&cx, owner, &key, wanted).await {
        Ok(placed) => Ok(stands(placed)),
        Err(why) => Err(refused(why, &draft).with("id", id)),
    }
}

fn key(headers: &HeaderMap) -> Result<IdempotencyKey, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Err(bad_header(
            &IDEMPOTENCY_KEY,
            "is missing; it names the purchase, so that it is made once",
        ));
    };
    let key = value.to_str().ok().and_then(IdempotencyKey::new);
    key.ok_or_else(|| bad_header(&IDEMPOTENCY_KEY, IdempotencyKey::RULE))
}

fn owner(headers: &HeaderMap) -> Result<Owner, Problem> {
    let Some(value) = headers.get(OWNER) else {
        return Ok(Owner::Guest);
    };
    let owner = value.to_str().ok().and_then(Owner::parse);
    owner.ok_or_else(|| bad_header(&OWNER, "must be 'guest' or 'user:' and a UUID"))
}

fn bad_header(name: &HeaderName, what: &str) -> Problem {
    let detail = format!("the header {name} {what}");
    let errors = [FieldError::new(name.as_str(), what)];
    Problem::new(StatusCode::BAD_REQUEST, "bad_header", detail).with("errors", errors)
}

/// The answer for an order that stands.
fn stands(Placed { order, replayed }: Placed) -> Response {
    let location = HeaderValue::from_str(&format!("/orders/{}", order.id));
    let mut response = match order.state {
        OrderState::Paid => (StatusCode::CREATED, Json(order)).into_response(),
        OrderState::PaymentPending | OrderState::PaymentDeferred => {
            (StatusCode::ACCEPTED, Json(order)).into_response()
        }
        OrderState::Declined => declined(&order).into_response(),
    };
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    if replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn declined(order: &Order) -> Problem {
    let reason = order.history.last().and_then(|step| step.reason.as_deref());
    Problem::new(StatusCode::PAYMENT_REQUIRED, "declined", "the bank declined the payment; nothing was sold")
        .with("id", order.id)
        .with("state", order.state)
        .with("total", order.total)
        .with("reason", reason)
}

/// The answer when there is no order.
fn refused(why: NotPlaced, draft: &Draft) -> Problem {
    let conflict = |code, detail: &str| Problem::new(StatusCode::CONFLICT, code, detail);
    match why {
        NotPlaced::KeyReused => {
            let detail = "this idempotency key belongs to an order with other content";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail)
        }
        NotPlaced::CurrencyUnavailable(currency) => {
            conflict("currency_unavailable", "orders cannot be paid in this currency at the moment")
                .with("currency", currency)
        }
        NotPlaced::UnknownProducts(products) => Problem::fields(unknown(&products, draft)),
        NotPlaced::PriceChanged(total) => {
            conflict("price_changed", "the order now costs something else").with("total", total)
        }
        NotPlaced::TooMuch => {
            Problem::fields([FieldError::new("items", "cost more together than can be paid at once")])
        }
        NotPlaced::OutOfStock(products) => {
            conflict("out_of_stock", "there are not enough pieces left").with("products", products)
        }
        NotPlaced::NoPrices(error) => {
            tracing::warn!(error = %chain(&error), "there are no prices");
            Problem::unavailable("the prices are not available; nothing was ordered")
        }
        NotPlaced::NotRead(error) if error.class().outcome != Outcome::Rejected => {
            tracing::warn!(error = %chain(&error), "an order cannot be looked up");
            Problem::unavailable("orders are not available; nothing was ordered")
        }
        NotPlaced::NotRead(error) | NotPlaced::NotWritten(error) => error.into(),
    }
}

/// The fields of `draft` that name the unknown `products`.
fn unknown(products: &[String], draft: &Draft) -> Vec<FieldError> {
    let items = draft.items.iter().enumerate();
    items
        .filter(|(_, item)| products.contains(&item.product_id))
        .map(|(at, _)| FieldError::new(format!("items[{at}].product_id"), "there is no such product"))
        .collect()
}
