//! The way of a request in, for HTTP and gRPC alike: its span, its deadline, one of the places,
//! the router.
//!
//! A service works on so many requests at once (200 by default) and lets more wait, as long as
//! their deadline allows. Places live in one semaphore for the whole service, not in a layer: axum
//! builds a service per request, and a layer's own places would be one set for each.

use std::{convert::Infallible, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderValue, Request, header::ACCEPT, request::Parts};
use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, FromRequestParts, MatchedPath, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use resilience::CallContext;
use tokio::{sync::Semaphore, time::timeout_at};
use tonic::{Code, Status, metadata::MetadataMap};
use tower_http::trace::TraceLayer;
use tracing::{Span, field::Empty};

use crate::{Problem, wire};

/// The largest body that is read.
const MAX_BODY: usize = 64 * 1024;

/// How a service takes requests in.
#[derive(Debug, Clone)]
pub struct Inbound {
    edge: Option<&'static str>,
    longest: Duration,
    refuse: Refuse,
}

/// How a request is told that it is refused, before or instead of its handler.
pub type Refuse = fn(Asked, Problem) -> Response;

/// What kind of answer a request can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A gRPC status.
    Grpc,
    /// A page.
    Page,
    /// `application/problem+json`.
    Json,
}

impl Inbound {
    /// The edge: requests come from outside, their work begins here, and `name` owns the retries.
    /// No request gets more than `longest`.
    pub fn edge(name: &'static str, longest: Duration) -> Self {
        Self { edge: Some(name), longest, refuse }
    }

    /// A service behind the edge: its callers say how long they wait and who retries. No request
    /// gets more than `longest`, and one that does not say gets that.
    pub fn service(longest: Duration) -> Self {
        Self { edge: None, longest, refuse }
    }

    /// Tells refusals with `refuse` instead of gRPC statuses and problem+json.
    #[must_use]
    pub fn refuse_with(self, refuse: Refuse) -> Self {
        Self { refuse, ..self }
    }

    /// `routes`, with everything that stands before them; `places` requests are worked on at once.
    pub fn routes(self, routes: Router, places: usize) -> Router {
        let gate = Gate { inbound: self, places: Arc::new(Semaphore::new(places)) };
        routes
            // innermost: a handler may only read so much
            .layer(DefaultBodyLimit::max(MAX_BODY))
            // then the deadline and a place, so that waiting for one counts against the deadline
            .layer(from_fn_with_state(gate, admit))
            // outermost the span, so that a refusal is seen, too
            .layer(
                TraceLayer::new_for_http()
                    .make_span_with(span)
                    .on_request(())
                    .on_response(note)
                    .on_failure(()),
            )
    }

    fn context(&self, headers: &HeaderMap) -> CallContext {
        match self.edge {
            Some(name) => wire::from_outside(headers, self.longest, name),
            None => wire::from_neighbour(headers, self.longest),
        }
    }
}

#[derive(Debug, Clone)]
struct Gate {
    inbound: Inbound,
    places: Arc<Semaphore>,
}

/// Lets one request through, or tells it why not.
async fn admit(State(gate): State<Gate>, mut request: Request<Body>, next: Next) -> Response {
    let cx = gate.inbound.context(request.headers());
    let asked = Asked::of(&request);
    let refuse = |problem| (gate.inbound.refuse)(asked, problem);
    if cx.deadline().has_passed() {
        return refuse(Problem::expired());
    }
    let deadline = cx.deadline().instant();
    let Ok(Ok(_place)) = timeout_at(deadline, gate.places.acquire()).await else {
        return refuse(Problem::expired());
    };
    request.extensions_mut().insert(cx);
    // Nothing of the request is used after a panic, so there is nothing to find half changed.
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    match timeout_at(deadline, handler).await {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => {
            tracing::error!("a handler panicked");
            refuse(Problem::internal())
        }
        Err(_) => refuse(Problem::timed_out()),
    }
}

impl Asked {
    /// What `request` can read.
    pub fn of<B>(request: &Request<B>) -> Self {
        let wants_page = |value: &HeaderValue| value.to_str().is_ok_and(|kinds| kinds.contains("text/html"));
        if wire::is_grpc(request.headers()) {
            Self::Grpc
        } else if !request.uri().path().starts_with("/api/")
            && request.headers().get(ACCEPT).is_some_and(wants_page)
        {
            Self::Page
        } else {
            Self::Json
        }
    }
}

/// How services without pages tell a refusal.
pub fn refuse(asked: Asked, problem: Problem) -> Response {
    if asked != Asked::Grpc {
        return problem.into_response();
    }
    let code = match problem.status.as_u16() {
        503 => Code::Unavailable,
        504 => Code::DeadlineExceeded,
        _ => Code::Internal,
    };
    let mut headers = HeaderMap::new();
    if let Some(outcome) = problem.outcome {
        headers.insert(wire::OUTCOME, HeaderValue::from_static(outcome.as_str()));
    }
    Status::with_metadata(code, problem.detail, MetadataMap::from_headers(headers)).into_http()
}

/// The context of the request that a handler serves.
#[derive(Debug, Clone)]
pub struct Cx(pub CallContext);

impl<S: Sync> FromRequestParts<S> for Cx {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(context(&parts.extensions)))
    }
}

/// The context that came in with a request; for gRPC handlers, whose requests carry the same
/// extensions. A router that is not behind the stack has none, and gets one whose time is up:
/// no deadline, no call.
pub fn context(extensions: &::http::Extensions) -> CallContext {
    let none = || CallContext::from_caller(resilience::Deadline::after(Duration::ZERO), None, 1);
    extensions.get().cloned().unwrap_or_else(none)
}

/// The span of a request. It names the route and not the path, which may hold what only the
/// customer should know, such as the id of a guest's order.
fn span(request: &Request<Body>) -> Span {
    let grpc = wire::is_grpc(request.headers());
    let route = match request.extensions().get::<MatchedPath>() {
        _ if grpc => request.uri().path(),
        Some(route) => route.as_str(),
        None => "",
    };
    let method = request.method().as_str();
    let name = if grpc { route.trim_start_matches('/').to_owned() } else { format!("{method} {route}") };
    let span = tracing::info_span!(
        "request",
        otel.name = name,
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        trace_id = Empty,
    );
    telemetry::propagation::adopt(&span, request.headers());
    if let Some(id) = telemetry::propagation::trace_id(&span) {
        span.record("trace_id", tracing::field::display(id));
    }
    span
}

fn note(response: &Response, took: Duration, span: &Span) {
    span.record("http.response.status_code", response.status().as_u16());
    tracing::debug!(parent: span, status = response.status().as_u16(), ?took, "answered");
}

#[cfg(test)]
mod tests;
