//! The pages' doors under odd requests, and the headers of every answer.

use http::{Method, header};

use crate::shop::{Shop, header};

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn whatever_is_asked_is_answered_by_a_page() {
    let shop = Shop::open().await;
    let long = format!("product_id=rope&quantity={}", "1".repeat(70_000));
    // method, path, content type, body; status
    let cases = [
        (Method::GET, "/nowhere", "", "", 404),
        (Method::GET, "/products/never-heard-of", "", "", 404),
        (Method::GET, "/products/Not%20An%20Id", "", "", 404),
        (Method::GET, "/products/%ff%fe", "", "", 404),
        (Method::GET, "/products/", "", "", 404),
        (Method::GET, "/orders/1", "", "", 404),
        (Method::GET, "/orders/%ff", "", "", 404),
        (Method::GET, "/orders/11111111-1111-4111-8111-111111111111", "", "", 404),
        (Method::GET, "/static/nothing.css", "", "", 404),
        (Method::DELETE, "/cart", "", "", 405),
        (Method::POST, "/", "", "", 405),
        (Method::POST, "/cart", FORM, long.as_str(), 413),
        (Method::POST, "/cart", FORM, "", 422),
        (Method::POST, "/cart", FORM, "product_id=rope&product_id=rope&quantity=1", 422),
        (Method::POST, "/cart", FORM, "product_id=%ff&quantity=1", 422),
        (Method::POST, "/cart", "application/json", "{}", 415),
        (Method::POST, "/checkout", "multipart/form-data", "", 415),
    ];
    for accept in ["text/html", "*/*"] {
        for (method, path, kind, body, status) in &cases {
            let url = format!("{}{path}", shop.storefront.base);
            let mut request = shop
                .storefront
                .client
                .request(method.clone(), url)
                .header(header::ACCEPT, accept)
                .body((*body).to_owned());
            if !kind.is_empty() {
                request = request.header(header::CONTENT_TYPE, *kind);
            }
            let response = request.send().await.expect("it answers");
            assert_eq!(response.status().as_u16(), *status, "{method} {path} {kind}");
            assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8", "{method} {path}");
            let page = response.text().await.expect("a page");
            assert!(page.contains("<h1") && page.contains("href=\"/\""), "{method} {path}: {page}");
        }
    }
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let shop = Shop::open().await;
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        for path in ["/cart", "/checkout"] {
            let request = shop
                .storefront
                .post(path)
                .header(name, value)
                .header(header::CONTENT_TYPE, FORM)
                .body("product_id=rope&quantity=1");
            let response = request.send().await.expect("it answers");
            assert_eq!(response.status().as_u16(), 403, "{path} {name}");
            assert_eq!(header(&response, "set-cookie"), "");
            assert!(response.text().await.expect("a page").contains("<h1"));
        }
    }
}

#[tokio::test]
async fn every_answer_says_what_a_browser_must_not_do() {
    let shop = Shop::open().await;
    for path in ["/", "/cart", "/nowhere", "/static/style.css", "/api/v1/products"] {
        let response = shop.storefront.get(path).send().await.expect("sent");
        let policy = header(&response, "content-security-policy");
        for rule in [
            "default-src 'none'",
            "style-src 'self'",
            "img-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("script"), "{path}");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header(&response, "referrer-policy"), "same-origin", "{path}");
        let kept = header(&response, "cache-control");
        assert_eq!(kept == "no-store", !path.starts_with("/static/"), "{path}: {kept}");
    }
}

#[tokio::test]
async fn static_files_are_sent_once() {
    let shop = Shop::open().await;
    for (path, kind) in [
        ("/static/style.css", "text/css; charset=utf-8"),
        ("/static/art.svg", "image/svg+xml"),
        ("/static/favicon.svg", "image/svg+xml"),
    ] {
        let first = shop.storefront.get(path).send().await.expect("sent");
        assert_eq!((first.status().as_u16(), header(&first, "content-type")), (200, kind));
        let etag = header(&first, "etag").to_owned();
        assert!(etag.len() > 2, "{path}");
        let second = shop.storefront.get(path).header(header::IF_NONE_MATCH, &etag);
        let second = second.send().await.expect("sent");
        assert_eq!((second.status().as_u16(), header(&second, "etag")), (304, etag.as_str()));
        let other = shop.storefront.get(path).header(header::IF_NONE_MATCH, "\"0\"");
        assert_eq!(other.send().await.expect("sent").status().as_u16(), 200);
    }
}
