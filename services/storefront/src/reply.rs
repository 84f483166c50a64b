//! What goes out with a page: its status, and what the cart's cookie becomes.

use std::convert::Infallible;

use askama::Template;
use axum::response::{Html, IntoResponse as _, IntoResponseParts, Redirect, Response, ResponseParts};
use chassis::Problem;
use http::{HeaderValue, StatusCode, header::SET_COOKIE};

/// `page`, whole: it is rendered before anything is sent, so its status and headers are true of all
/// of it.
pub(crate) fn page(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            Problem::internal().into_response()
        }
    }
}

/// Sends the visitor to `address` with a GET, so that a reload repeats nothing.
pub(crate) fn see(address: &str) -> Response {
    Redirect::to(address).into_response()
}

/// The cart's cookie, where it has changed.
#[derive(Debug, Clone)]
pub(crate) struct SetCart(pub(crate) Option<HeaderValue>);

impl IntoResponseParts for SetCart {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Some(cookie) = self.0 {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        Ok(response)
    }
}
