//! Problem: how a service says no over HTTP, as RFC 9457's `application/problem+json`.
//!
//! What the client reads is here; what the log keeps is written where the failure is known.

use ::http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use resilience::{CallError, Classify, Outcome, Refusal, Verdict};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::wire;

/// The media type of a problem.
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The code of [`Problem::overloaded`].
const OVERLOADED: &str = "overloaded";

/// One refusal or failure, as the client reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// A name for programs, such as `out_of_stock`.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
    /// For failures: whether the request can have been carried out.
    pub outcome: Option<Outcome>,
    /// When to come back, in whole seconds.
    pub retry_after_s: Option<u64>,
    /// Further members of the body.
    pub members: Map<String, Value>,
}

impl Problem {
    /// A problem with a `code` for programs and a `detail` for people.
    pub fn new(status: StatusCode, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            detail: detail.into(),
            outcome: None,
            retry_after_s: None,
            members: Map::new(),
        }
    }

    /// The caller's time was up before anything was done.
    pub fn expired() -> Self {
        let detail = "the request's time was up before anything was done";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED", detail).with_outcome(Outcome::NotExecuted)
    }

    /// The caller's time ran out while the work was going on.
    pub fn timed_out() -> Self {
        let detail = "the work did not end within the request's time";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED", detail).with_outcome(Outcome::Unknown)
    }

    /// Something here cannot do its work now, and nothing was done.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).with_outcome(Outcome::NotExecuted)
    }

    /// The service is well, and has more to do than it can take. Nothing was done.
    pub fn overloaded() -> Self {
        let detail = "there is more to do at the moment than this service takes on; nothing was done";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, detail)
            .with_outcome(Outcome::NotExecuted)
            .with_retry_after(1)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// A fault of this service itself. The detail stays in the log.
    pub fn internal() -> Self {
        let detail = "the service made a mistake; it has been logged";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).with_outcome(Outcome::Unknown)
    }

    /// Adds whether the request can have been carried out; it becomes `x-outcome`, too.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Adds when to come back.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Adds a member to the body. A value that JSON cannot hold is left out.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.members.insert(member.to_owned(), value);
        }
        self
    }

    /// The refused fields of an input, each with its path and what is wrong.
    pub fn fields(errors: impl Serialize) -> Self {
        let detail = "some fields of the request are not acceptable";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_fields", detail).with("errors", errors)
    }

    /// The body.
    pub fn to_json(&self) -> Value {
        let mut body = self.members.clone();
        let title = self.status.canonical_reason().unwrap_or("Problem");
        body.insert("title".into(), title.into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("code".into(), self.code.as_str().into());
        body.insert("detail".into(), self.detail.as_str().into());
        if let Some(outcome) = self.outcome {
            body.insert("outcome".into(), outcome.as_str().into());
        }
        Value::Object(body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, MEDIA_TYPE);
        if let Some(outcome) = self.outcome {
            headers.insert(wire::OUTCOME, HeaderValue::from_static(outcome.as_str()));
        }
        if self.code == OVERLOADED {
            headers.insert(wire::OVERLOADED, HeaderValue::from_static("1"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl<E: Classify + std::error::Error + 'static> From<CallError<E>> for Problem {
    /// A neighbour's failure as this service's own: 503 when surely nothing was done, 504 when the time
    /// was up or nobody knows, 500 when the neighbour refused what this service sent, which is a mistake here.
    /// The causes go to the log, and not to the client.
    fn from(error: CallError<E>) -> Self {
        let class = error.class();
        let outcome = class.outcome;
        if let CallError::Refused { .. } = error {
            // Why a breaker opened was told when it did; that it is open is not news for each request.
            tracing::debug!(%outcome, error = %chain(&error), "a neighbour was not asked");
        } else {
            tracing::warn!(%outcome, error = %chain(&error), "a neighbour gave no answer");
        }
        let out_of_time = matches!(error, CallError::Refused { refusal: Refusal::NoTimeLeft, .. })
            || class.verdict == Verdict::TimedOut;
        let overloaded = matches!(error, CallError::Refused { refusal: Refusal::BulkheadFull, .. });
        match class.outcome {
            Outcome::NotExecuted if out_of_time => Self::expired(),
            Outcome::NotExecuted if overloaded => Self::overloaded(),
            Outcome::NotExecuted => {
                let problem =
                    Self::unavailable("something this service needs is not answering; nothing was done");
                match class.retry_after {
                    Some(pause) => problem.with_retry_after(pause.as_secs().max(1)),
                    None => problem,
                }
            }
            Outcome::Unknown => Self::timed_out(),
            Outcome::Rejected => Self::internal(),
        }
    }
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use resilience::Class;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it failed")]
    struct Failure(Class);

    impl Classify for Failure {
        fn class(&self) -> Class {
            self.0
        }
    }

    #[test]
    fn a_neighbours_failure_is_told_as_what_it_was() {
        let failed = |class| CallError::Failed { neighbour: "peer", source: Failure(class) };
        let refused = |refusal| CallError::<Failure>::Refused { neighbour: "peer", refusal };
        let gone = Class::not_executed();
        use Outcome::{NotExecuted, Unknown};
        let refused_while_open = Refusal::BreakerOpen { retry_after: std::time::Duration::ZERO };
        for (error, status, outcome, verdict) in [
            (failed(gone), 503, NotExecuted, Verdict::Failure),
            (failed(gone.with_verdict(Verdict::TimedOut)), 504, NotExecuted, Verdict::TimedOut),
            (failed(Class::unknown()), 504, Unknown, Verdict::TimedOut),
            (failed(Class::rejected()), 500, Unknown, Verdict::Failure),
            (refused(Refusal::NoTimeLeft), 504, NotExecuted, Verdict::TimedOut),
            (refused(refused_while_open), 503, NotExecuted, Verdict::Failure),
            // Who is well and has too much to do is not ill for it.
            (refused(Refusal::BulkheadFull), 503, NotExecuted, Verdict::Neutral),
        ] {
            let problem = Problem::from(error);
            assert_eq!((problem.status.as_u16(), problem.outcome), (status, Some(outcome)), "{problem:?}");
            // And that is how the caller reads it.
            let response = problem.into_response();
            let read = crate::outcome::of_http(response.status(), response.headers()).expect("a failure");
            assert_eq!((read.outcome, read.verdict), (outcome, verdict), "{response:?}");
        }
    }
}
