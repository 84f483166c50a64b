//! The one table that says what an answer of a neighbour means: HTTP status codes, gRPC status
//! codes and SQLSTATEs to outcome, evidence and whether trying again may help.
//!
//! What the neighbour says itself (`x-outcome`) goes before what its code suggests. When in doubt
//! it is [`Outcome::Unknown`]: the price of that is a question, the price of the other mistake is a
//! second charge.

use std::{error::Error, time::Duration};

use ::http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use resilience::{Class, Outcome, Verdict};
use tonic::Code;

use crate::wire;

/// The neighbour is not to blame and took nothing on: it sheds load, or is on its way out.
const SHED: Class = Class::not_executed().with_verdict(Verdict::Neutral);
/// The neighbour reports that the time it was given ran out.
const OUT_OF_TIME: Class = Class::unknown().with_verdict(Verdict::TimedOut);

/// What an HTTP status means; `None` when it is an answer for the caller to read (2xx, 3xx and the
/// 4xx that tell the caller about its own request).
pub fn of_http(status: StatusCode, headers: &HeaderMap) -> Option<Class> {
    let class = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => SHED,
        // A breaker that opened for it would turn one call that was shed into a second of none.
        StatusCode::SERVICE_UNAVAILABLE if headers.contains_key(wire::OVERLOADED) => SHED,
        StatusCode::GATEWAY_TIMEOUT => OUT_OF_TIME,
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => Class::unknown().lasting(),
        status if status.is_server_error() => Class::unknown(),
        _ => return None,
    };
    Some(said(class, wire::outcome(headers)).after(retry_after(headers)))
}

/// What a gRPC status means.
pub fn of_grpc(status: &tonic::Status) -> Class {
    let class = match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unauthenticated => Class::rejected(),
        Code::Unimplemented => Class::rejected().with_verdict(Verdict::Failure),
        Code::ResourceExhausted => SHED,
        // The neighbour works, but on this very thing somebody else does already.
        Code::Aborted => Class::unknown().with_verdict(Verdict::Healthy),
        Code::DeadlineExceeded => OUT_OF_TIME,
        // tonic's own timer, on either side, reports itself as CANCELLED.
        Code::Cancelled if status.message() == "Timeout expired" => OUT_OF_TIME,
        Code::Unavailable | Code::Cancelled if never_sent(status) => Class::not_executed(),
        Code::Ok | Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
            Class::unknown()
        }
    };
    said(class, wire::outcome(status.metadata().as_ref())).after(retry_after(status.metadata().as_ref()))
}

/// What a failed statement means, inside a transaction that was not committed: whatever it is, it
/// was not executed.
pub fn of_sql(error: &sqlx::Error) -> Class {
    let sqlx::Error::Database(database) = error else {
        return Class::not_executed();
    };
    let state = database.code().unwrap_or_default();
    match state.as_ref() {
        // The statement timeout, which is what was left of the caller's deadline.
        "57014" => Class::not_executed().with_verdict(Verdict::TimedOut),
        // Serialization failure, deadlock: the price of concurrency, not an illness.
        "40001" | "40P01" => Class::not_executed().with_verdict(Verdict::Healthy),
        // Data, constraints, syntax: the database is well and says no; it will say no again.
        state if ["22", "23", "42"].iter().any(|class| state.starts_with(class)) => Class::rejected(),
        _ => Class::not_executed(),
    }
}

/// What a failed COMMIT means: only an answer that names a rolled-back transaction is certain.
pub fn of_commit(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(database)
            if database.code().is_some_and(|state| state.starts_with("40") || state.starts_with("23")) =>
        {
            of_sql(error)
        }
        _ => Class::unknown(),
    }
}

fn said(class: Class, outcome: Option<Outcome>) -> Class {
    match outcome {
        Some(outcome) if class.outcome != Outcome::Rejected => Class { outcome, ..class },
        _ => class,
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// The request cannot have reached the neighbour: no connection stood, or it was being closed
/// before the request was taken from the queue.
fn never_sent(status: &tonic::Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.downcast_ref::<tonic::ConnectError>().is_some()
            || error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
        {
            return true;
        }
        cause = error.source();
    }
    false
}
