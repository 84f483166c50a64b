//! The header `Idempotency-Key`, without which nothing is ordered.

use axum::extract::FromRequestParts;
use chassis::Problem;
use http::{StatusCode, request::Parts};
use proto::{FieldError, order::IdempotencyKey};

use crate::orders::IDEMPOTENCY_KEY;

/// The key that came with a request.
#[derive(Debug)]
pub(crate) struct Key(pub(crate) IdempotencyKey);

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let fault = |rule: &str| [FieldError::new("Idempotency-Key", rule)];
        let Some(key) = parts.headers.get(IDEMPOTENCY_KEY) else {
            let detail = "the header Idempotency-Key is missing: it names this purchase, so that sending it \
                          twice buys once";
            let problem = Problem::new(StatusCode::BAD_REQUEST, "missing_key", detail);
            return Err(problem.with("errors", fault(IdempotencyKey::RULE)));
        };
        let key = key.to_str().ok().and_then(IdempotencyKey::new);
        key.map(Self).ok_or_else(|| Problem::fields(fault(IdempotencyKey::RULE)))
    }
}
