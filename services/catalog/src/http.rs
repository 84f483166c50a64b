//! The door: `GET /products` and `GET /products/{id}`.

use axum::{
    Json, Router,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    routing::get,
};
use chassis::{Cx, Problem};
use proto::catalog::{Product, Products};

use crate::store::Store;

pub(crate) fn routes(store: Store) -> Router {
    Router::new()
        .route("/products", get(list))
        .route("/products/{id}", get(one))
        .fallback(async || Problem::not_found("there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            let detail = "this address is only read, with GET";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .with_state(store)
}

async fn list(State(store): State<Store>, Cx(cx): Cx) -> Result<Json<Products>, Problem> {
    Ok(Json(Products { products: store.all(&cx).await? }))
}

async fn one(
    State(store): State<Store>,
    Cx(cx): Cx,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Product>, Problem> {
    let unknown = || Problem::not_found("there is no such product");
    // What cannot be an id is not asked for: Postgres would refuse some of it, such as a NUL.
    let Path(id) = id.ok().filter(|Path(id)| is_id(id)).ok_or_else(unknown)?;
    store.one(&cx, id).await?.map(Json).ok_or_else(unknown)
}

fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}
