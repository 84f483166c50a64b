//! Posts that another site makes in a visitor's name are refused.
//!
//! A cookie that says `SameSite=Lax` does not come with such a post, but another port or a sister
//! domain is the same *site*. So a browser's own word is taken: `Sec-Fetch-Site`, which no page can
//! forge, and `Origin`. A request with neither is a program, which has no visitor's cookie to abuse.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use chassis::Problem;
use http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{HOST, ORIGIN},
};

use crate::refusal::Teller;

/// Lets a request through unless it changes something on behalf of another site.
pub(crate) async fn check(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || is_ours(request.headers(), request.uri()) {
        return next.run(request).await;
    }
    tracing::info!("a post from another site was refused");
    let detail = "this request was made by a page of another site";
    let problem = Problem::new(StatusCode::FORBIDDEN, "cross_site", detail);
    Teller::of(&request).tell(problem).into_response()
}

fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return false;
    }
    let Some(origin) = text(ORIGIN.as_str()) else {
        return true;
    };
    // Which host was asked: HTTP/2 says it in the address.
    let host = uri.authority().map(|authority| authority.as_str()).or_else(|| text(HOST.as_str()));
    let from = origin.split_once("://").map(|(_scheme, host)| host);
    matches!((from, host), (Some(from), Some(host)) if from.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn only_the_shops_own_pages_and_programs_may_post() {
        let site = |value| ("sec-fetch-site", value);
        let origin = |value| ("origin", value);
        let cases: [(&[(&str, &str)], bool); 12] = [
            (&[], true),
            (&[site("same-origin")], true),
            (&[site("none")], true),
            (&[site("cross-site")], false),
            (&[site("same-site")], false),
            (&[origin("http://shop.example:8080")], true),
            (&[origin("https://SHOP.example:8080")], true),
            (&[origin("http://shop.example:8090")], false),
            (&[origin("http://shop.example")], false),
            (&[origin("null")], false),
            (&[origin("")], false),
            (&[site("same-origin"), origin("http://shop.example.evil.example")], false),
        ];
        for (sent, ours) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "shop.example:8080".parse().expect("a host"));
            for (name, value) in sent {
                headers.insert(HeaderName::from_static(name), value.parse().expect("a header value"));
            }
            assert_eq!(is_ours(&headers, &Uri::from_static("/cart")), ours, "{sent:?}");
        }
    }
}
