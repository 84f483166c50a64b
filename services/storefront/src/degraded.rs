//! The `Degraded` header: what of an answer is not as on a good day, for programs to read.
//!
//! A structured field (RFC 9651), a list of neighbours with what is wrong about each:
//! `catalog;stale=312, payments;deferred`. An answer without it is whole.

use std::{convert::Infallible, fmt::Write as _};

use axum::response::{IntoResponseParts, ResponseParts};
use http::{HeaderName, HeaderValue};
use resilience::Quality;

/// The header's name.
pub const DEGRADED: HeaderName = HeaderName::from_static("degraded");

/// What of an answer is degraded; it goes with the response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Degraded(String);

impl Degraded {
    /// Only what `neighbour` gave, if it is degraded.
    pub fn of(neighbour: &str, quality: Quality) -> Self {
        Self::default().and(neighbour, quality)
    }

    /// Adds what `neighbour` gave, if it is degraded. `neighbour` is a lower-case word.
    #[must_use]
    pub fn and(mut self, neighbour: &str, quality: Quality) -> Self {
        if !quality.is_degraded() {
            return self;
        }
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{neighbour};{}", quality.as_str());
        if let Quality::Stale { age } = quality {
            let _ = write!(self.0, "={}", age.as_secs());
        }
        self
    }

    fn header(&self) -> Option<HeaderValue> {
        (!self.0.is_empty()).then(|| HeaderValue::from_str(&self.0).ok()).flatten()
    }
}

impl IntoResponseParts for Degraded {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Some(value) = self.header() {
            response.headers_mut().insert(DEGRADED, value);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_lists_what_is_degraded_and_nothing_else() {
        assert_eq!(Degraded::of("catalog", Quality::Live).header(), None);
        let age = Duration::from_millis(312_900);
        let all = Degraded::of("catalog", Quality::Stale { age })
            .and("orders", Quality::Live)
            .and("payments", Quality::Deferred)
            .and("loyalty", Quality::Missing);
        assert_eq!(all.header().expect("degraded"), "catalog;stale=312, payments;deferred, loyalty;missing");
    }
}
