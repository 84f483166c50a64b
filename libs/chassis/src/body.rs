//! JSON bodies that come in: every way they can be wrong has its answer, which names the field.

use ::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    response::IntoResponse as _,
};
use serde::de::DeserializeOwned;

use crate::Problem;

/// The body of a request, read as `T`.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            let detail = "the body must be sent as application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    let detail = "the body is larger than this service takes";
                    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
                }
                _ => Problem::new(StatusCode::BAD_REQUEST, "bad_body", "the body broke off"),
            }
        })?;
        parse(&bytes).map(Self)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        if error.is_data() {
            let message = error.to_string();
            Problem::fields([serde_json::json!({ "field": path, "message": message })])
        } else {
            Problem::new(StatusCode::BAD_REQUEST, "bad_json", format!("the body is not JSON: {error}"))
        }
    })?;
    json.end().map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "bad_json", format!("the body is not JSON: {error}"))
    })?;
    Ok(value)
}

fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Cart {
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        quantity: i64,
    }

    #[test]
    fn a_wrong_type_names_its_field() {
        let problem = parse::<Cart>(br#"{"items":[{"quantity":1},{"quantity":"two"}]}"#).expect_err("a word");
        assert_eq!(problem.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(problem.members["errors"][0]["field"], "items[1].quantity");
    }

    #[test]
    fn what_is_not_json_says_so() {
        for body in ["", "{", "{\"items\":[]} x", "\u{1F6A2}"] {
            let problem = parse::<Cart>(body.as_bytes()).expect_err(body);
            assert_eq!(
                (problem.status, problem.code.as_str()),
                (StatusCode::BAD_REQUEST, "bad_json"),
                "{body}"
            );
        }
        let cart = parse::<Cart>(br#"{"items":[{"quantity":7}]}"#).expect("well formed");
        assert_eq!(cart.items[0].quantity, 7);
    }
}
