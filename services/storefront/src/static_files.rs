//! The stylesheet and the pictures, which are part of the program.

use std::hash::{DefaultHasher, Hasher as _};

use axum::{
    Router,
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};

/// Browsers keep them for five minutes, and then ask whether they have changed.
const KEEP: HeaderValue = HeaderValue::from_static("public, max-age=300");

#[derive(Debug, Clone)]
struct StaticFile {
    content: &'static str,
    kind: HeaderValue,
    etag: HeaderValue,
}

/// Their routes.
pub(crate) fn routes() -> Router {
    const SVG: &str = "image/svg+xml";
    let file = |content: &'static str, kind| {
        let file = StaticFile::new(content, kind);
        get(move |headers: HeaderMap| async move { file.serve(&headers) })
    };
    Router::new()
        .route("/static/style.css", file(include_str!("../static/style.css"), "text/css; charset=utf-8"))
        .route("/static/art.svg", file(include_str!("../static/art.svg"), SVG))
        .route("/static/favicon.svg", file(include_str!("../static/favicon.svg"), SVG))
}

impl StaticFile {
    fn new(content: &'static str, kind: &'static str) -> Self {
        let mut hash = DefaultHasher::new();
        hash.write(content.as_bytes());
        let etag = format!("\"{:016x}\"", hash.finish());
        Self {
            content,
            kind: HeaderValue::from_static(kind),
            etag: HeaderValue::from_str(&etag).expect("quoted hex digits"),
        }
    }

    fn serve(&self, asked: &HeaderMap) -> Response {
        let headers = [(CACHE_CONTROL, KEEP), (CONTENT_TYPE, self.kind.clone()), (ETAG, self.etag.clone())];
        let unchanged = asked.get(IF_NONE_MATCH).is_some_and(|known| *known == self.etag);
        if unchanged {
            (StatusCode::NOT_MODIFIED, headers).into_response()
        } else {
            (headers, self.content).into_response()
        }
    }
}
