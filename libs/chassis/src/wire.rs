//! The call context on the wire: how long the caller waits, who may retry, which attempt this is.
//!
//! | over | deadline | retries |
//! | --- | --- | --- |
//! | HTTP | `x-timeout-ms` | `x-retry-owner`, `x-attempt` |
//! | gRPC | `grpc-timeout` | the same |
//!
//! Times are relative, so clocks need not agree. Whatever is not well formed is ignored, as if it
//! were not there; it never gives a caller more time, and never fails the request.

use std::{sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use resilience::{CallContext, Deadline, Outcome};

/// How long an HTTP caller waits, in whole milliseconds. `0`: not any more.
pub const TIMEOUT_MS: HeaderName = HeaderName::from_static("x-timeout-ms");
/// How long a gRPC caller waits; its format is gRPC's.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Who retries. A service that is called without it does not.
pub const RETRY_OWNER: HeaderName = HeaderName::from_static("x-retry-owner");
/// Which attempt of its owner this is, from 1.
pub const ATTEMPT: HeaderName = HeaderName::from_static("x-attempt");
/// How a failing service tells its caller which failure it was; see [`outcome`].
pub const OUTCOME: HeaderName = HeaderName::from_static(OUTCOME_NAME);
/// The same name as gRPC metadata.
pub(crate) const OUTCOME_NAME: &str = "x-outcome";

/// Says with a 503 that the service is well and has more to do than it can take: its caller comes again, and
/// does not hold it against it. gRPC has a status for that, RESOURCE_EXHAUSTED.
pub const OVERLOADED: HeaderName = HeaderName::from_static("x-overloaded");

/// Whether the request is a gRPC call.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The context of a request from a neighbour that is trusted to name the owner of the retries. Its
/// deadline is at most `longest` away.
pub fn from_neighbour(headers: &HeaderMap, longest: Duration) -> CallContext {
    let owner = headers.get(RETRY_OWNER).and_then(|name| name.to_str().ok()).filter(|name| is_name(name));
    let attempt = headers.get(ATTEMPT).and_then(|value| digits(value, 4)).unwrap_or(1);
    let attempt = u32::try_from(attempt).unwrap_or(1);
    CallContext::from_caller(deadline(headers, longest), owner.map(Arc::from), attempt)
}

/// The context of a request from outside, which begins here: `name` owns the retries, whatever the
/// request says, and the deadline is at most `longest` away.
pub fn from_outside(headers: &HeaderMap, longest: Duration, name: &'static str) -> CallContext {
    CallContext::owner(name, deadline(headers, longest))
}

fn deadline(headers: &HeaderMap, longest: Duration) -> Deadline {
    let asked = if is_grpc(headers) {
        headers.get(GRPC_TIMEOUT).and_then(grpc_timeout)
    } else {
        headers.get(TIMEOUT_MS).and_then(|value| digits(value, 9)).map(Duration::from_millis)
    };
    Deadline::after(asked.unwrap_or(longest).min(longest))
}

/// Writes the context of an outgoing HTTP call, trace context included.
pub fn into_http(cx: &CallContext, headers: &mut HeaderMap) {
    let left = cx.deadline().remaining().as_millis().min(u128::from(u32::MAX));
    headers.insert(TIMEOUT_MS, HeaderValue::from(u32::try_from(left).unwrap_or(u32::MAX)));
    into_both(cx, headers);
}

/// Writes the context of an outgoing gRPC call, but for its deadline, which tonic writes itself.
pub(crate) fn into_both(cx: &CallContext, headers: &mut HeaderMap) {
    if let Some(owner) = cx.retry_owner().name().and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(RETRY_OWNER, owner);
        headers.insert(ATTEMPT, HeaderValue::from(cx.attempt()));
    }
    telemetry::propagation::inject(headers);
}

/// What a failing neighbour said about its failure.
pub fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    match headers.get(OUTCOME)?.as_bytes() {
        b"not-executed" => Some(Outcome::NotExecuted),
        b"unknown" => Some(Outcome::Unknown),
        _ => None,
    }
}

/// A number of at most `longest` digits, and nothing but digits: no sign, no space, no fraction.
fn digits(value: &HeaderValue, longest: usize) -> Option<u64> {
    let text = value.as_bytes();
    if text.is_empty() || text.len() > longest || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// gRPC's format: at most eight digits and a unit.
fn grpc_timeout(value: &HeaderValue) -> Option<Duration> {
    let (unit, number) = value.as_bytes().split_last()?;
    let number = digits(&HeaderValue::from_bytes(number).ok()?, 8)?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONGEST: Duration = Duration::from_millis(3000);

    fn headers(pairs: &[(HeaderName, &[u8])]) -> HeaderMap {
        let value = |bytes| HeaderValue::from_bytes(bytes).expect("a header value");
        pairs.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect()
    }

    fn left(headers: &HeaderMap) -> Duration {
        from_neighbour(headers, LONGEST).deadline().remaining()
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_can_ask_for_less_time_and_not_for_more() {
        for (text, expected) in [("300", 300), ("0", 0), ("2999", 2999), ("3001", 3000), ("999999999", 3000)]
        {
            let headers = headers(&[(TIMEOUT_MS, text.as_bytes())]);
            assert_eq!(left(&headers), Duration::from_millis(expected), "{text}");
        }
        assert_eq!(left(&HeaderMap::new()), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_well_formed_is_ignored() {
        for text in ["", " ", "-1", "+5", "1e3", "300ms", "3.5", "0x10", "1234567890", "\u{663}"] {
            let headers = headers(&[(TIMEOUT_MS, text.as_bytes())]);
            assert_eq!(left(&headers), LONGEST, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn grpc_says_it_its_own_way() {
        let kind = (CONTENT_TYPE, b"application/grpc".as_slice());
        for (text, expected) in [
            ("250m", 250),
            ("1S", 1000),
            ("250000u", 250),
            ("0n", 0),
            ("99999999H", 3000),
            ("+5S", 3000),
            ("123456789m", 3000),
            ("m", 3000),
            ("", 3000),
            ("5", 3000),
            ("-5m", 3000),
        ] {
            let headers = headers(&[kind.clone(), (GRPC_TIMEOUT, text.as_bytes())]);
            assert_eq!(left(&headers), Duration::from_millis(expected), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_context_survives_the_wire_and_the_edge_believes_nobody() {
        let edge = CallContext::owner("storefront", Deadline::after(Duration::from_millis(700)));
        let mut sent = HeaderMap::new();
        into_http(&edge, &mut sent);
        let received = from_neighbour(&sent, LONGEST);
        assert_eq!(received.deadline(), edge.deadline());
        assert_eq!(received.retry_owner().name(), Some("storefront"));
        assert!(!received.retry_owner().is_here());
        sent.insert(RETRY_OWNER, HeaderValue::from_static("mallory"));
        let outside = from_outside(&sent, LONGEST, "storefront");
        assert_eq!((outside.retry_owner().name(), outside.attempt()), (Some("storefront"), 1));
        assert!(outside.retry_owner().is_here());
    }

    proptest! {
        #[test]
        fn no_header_panics_or_buys_time(bytes in proptest::collection::vec(any::<u8>(), 0..40), grpc: bool) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(async {
                tokio::time::pause();
                let mut headers = HeaderMap::new();
                for name in [TIMEOUT_MS, GRPC_TIMEOUT, RETRY_OWNER, ATTEMPT] {
                    headers.insert(name, value.clone());
                }
                if grpc {
                    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                }
                assert!(left(&headers) <= LONGEST);
                assert!(from_neighbour(&headers, LONGEST).attempt() >= 1);
            });
        }
    }
}
