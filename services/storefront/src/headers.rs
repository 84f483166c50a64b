//! The headers that tell a browser what a page of this shop never does.

use axum::response::Response;
use http::{
    HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};

/// Each with its reason.
const HEADERS: [(HeaderName, &str); 7] = [
    // Whatever gets into a page, it runs no script, loads nothing from elsewhere, posts nowhere else,
    // and is shown in nobody's frame.
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; \
         base-uri 'none'",
    ),
    // For browsers that do not know frame-ancestors.
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // The address of an order is all it takes to read it, so it is told to no other site. A stricter
    // `no-referrer` would make browsers send `Origin: null` with our own forms.
    (REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=()"),
];

/// Puts them on `response`. An answer that does not say itself how long it may be kept, as the
/// static files do, is for this visitor and this moment.
pub(crate) async fn put(mut response: Response) -> Response {
    put_on(&mut response);
    response
}

/// The same, for answers that are made outside the router.
pub(crate) fn put_on(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
