//! How somebody is told no: people by a page, programs by problem+json.

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use chassis::{Problem, inbound::Asked};
use chrono::Utc;
use http::{
    HeaderValue, StatusCode,
    header::{ACCEPT, RETRY_AFTER},
};

use crate::{
    cart::Cart,
    headers,
    pages::{Action, Frame, ProblemPage, words},
    reply,
};

/// Tells a visitor no, in what they read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Teller {
    asked: Asked,
    cart_count: u32,
}

impl Teller {
    /// For whoever sent `request`. Outside `/api/` people read a page, whatever they accept, unless
    /// they ask for JSON.
    pub(crate) fn of(request: &Request) -> Self {
        let accepts = |kind| {
            let accepted = request.headers().get_all(ACCEPT);
            accepted.iter().any(|value| value.to_str().is_ok_and(|kinds| kinds.contains(kind)))
        };
        let json = request.uri().path().starts_with("/api/") || (accepts("json") && !accepts("text/html"));
        let (asked, cart_count) =
            if json { (Asked::Json, 0) } else { (Asked::Page, Cart::of(request.headers()).pieces()) };
        Self { asked, cart_count }
    }

    /// Says it.
    pub(crate) fn tell(self, problem: Problem) -> Response {
        match self.asked {
            Asked::Page => page(Frame::new(Utc::now(), self.cart_count), &problem),
            Asked::Json | Asked::Grpc => problem.into_response(),
        }
    }
}

/// Tells refusals that come from before the router: too late, or a panic. The cart cannot be seen
/// from there, so its count is missing on the page.
pub(crate) fn refuse(asked: Asked, problem: Problem) -> Response {
    let teller = Teller { asked, cart_count: 0 };
    let mut response = teller.tell(problem);
    headers::put_on(&mut response);
    response
}

fn page(frame: Frame, problem: &Problem) -> Response {
    let page = match problem.status {
        StatusCode::NOT_FOUND => ProblemPage::not_found(frame),
        StatusCode::PAYLOAD_TOO_LARGE => ProblemPage::too_large(frame),
        StatusCode::GATEWAY_TIMEOUT => ProblemPage::timed_out(frame),
        status if status.is_server_error() => ProblemPage::generic(frame),
        _ => ProblemPage::new(frame, "knot", "We could not take that")
            .text(words::sentence(&problem.detail) + ".")
            .text("Nothing was changed.")
            .action(Action::new("/", "See the products"))
            .action(Action::new("/cart", "Go to the cart")),
    };
    let mut response = reply::page(problem.status, &page);
    if let Some(seconds) = problem.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if let Some(outcome) = problem.outcome {
        let outcome = HeaderValue::from_static(outcome.as_str());
        response.headers_mut().insert(chassis::wire::OUTCOME, outcome);
    }
    response
}
