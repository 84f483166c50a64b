//! What travels with a call: the time that is left, who retries, and the trace.

use http::StatusCode;
use tokio::time::Instant;

use crate::{
    neighbours::Does,
    shop::{MS, Shop, json_of},
};

#[tokio::test]
async fn a_visitor_can_ask_for_less_time_and_nonsense_is_ignored() {
    let shop = Shop::open().await;
    for (n, (asked, at_least, at_most)) in [
        (None, 2000, 2700),
        (Some("300"), 1, 225),
        (Some("1000"), 400, 900),
        (Some("999999999"), 2000, 2700),
        (Some("-1"), 2000, 2700),
        (Some("soon"), 2000, 2700),
        (Some("12345678901234567890"), 2000, 2700),
        (Some("300ms"), 2000, 2700),
        (Some(""), 2000, 2700),
    ]
    .into_iter()
    .enumerate()
    {
        let mut request = shop.storefront.order(&format!("deadline-number-{n}"));
        if let Some(asked) = asked {
            request = request.header("x-timeout-ms", asked);
        }
        assert_eq!(request.send().await.expect("sent").status(), StatusCode::CREATED, "{asked:?}");
        let sent = shop.orders.seen("POST /orders");
        let left = sent[n]["x-timeout-ms"].to_str().expect("plain text");
        let left: u32 = left.parse().expect("a number");
        assert!((at_least..=at_most).contains(&left), "{asked:?} became {left}");
    }
}

#[tokio::test]
async fn a_request_whose_time_is_up_is_answered_at_once_and_goes_no_further() {
    let shop = Shop::open().await;
    let start = Instant::now();
    let request = shop.storefront.order("0123456789abcdef").header("x-timeout-ms", "0");
    let (status, body) = json_of(request.send().await.expect("sent")).await;
    assert_eq!((status, &body["code"]), (504, &"DEADLINE_EXCEEDED".into()));
    assert_eq!(body["outcome"], "not-executed");
    let page = shop.storefront.get("/").header("x-timeout-ms", "0").header("accept", "text/html");
    let page = page.send().await.expect("sent");
    assert_eq!(page.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    assert!(page.text().await.expect("a page").contains("This took too long"));
    assert!(start.elapsed() < 500 * MS, "{:?}", start.elapsed());
    assert!(shop.orders.seen("").is_empty() && shop.catalog.seen("").is_empty());
}

#[tokio::test]
async fn the_edge_owns_the_retries_whatever_it_is_told() {
    let shop = Shop::open().await;
    let request =
        shop.storefront.order("0123456789abcdef").header("x-retry-owner", "mallory").header("x-attempt", "7");
    request.send().await.expect("sent");
    let sent = &shop.orders.seen("POST /orders")[0];
    assert_eq!(sent["x-retry-owner"], "storefront");
    assert_eq!(sent["x-attempt"], "1");
    assert_eq!(sent["x-owner"], "guest");
}

#[tokio::test]
async fn what_fails_is_tried_once_more_under_the_same_key() {
    let shop = Shop::open().await;
    let broken = StatusCode::INTERNAL_SERVER_ERROR;
    shop.orders.behaviour.does(Does::Answers(broken, serde_json::Value::Null));
    let (status, body) = json_of(shop.storefront.order("0123456789abcdef").send().await.expect("sent")).await;
    assert_eq!((status, &body["outcome"]), (504, &"unknown".into()));
    let sent = shop.orders.seen("POST /orders");
    assert_eq!(sent.len(), 2);
    for (sent, attempt) in sent.iter().zip(["1", "2"]) {
        assert_eq!(sent["x-attempt"], attempt);
        assert_eq!(sent["x-retry-owner"], "storefront");
        assert_eq!(sent["idempotency-key"], "0123456789abcdef");
    }
}

#[tokio::test]
async fn the_trace_goes_on() {
    let shop = Shop::open().await;
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request = shop.storefront.order("0123456789abcdef");
    let request = request.header("traceparent", format!("00-{trace}-{span}-01"));
    request.send().await.expect("sent");
    let sent = &shop.orders.seen("POST /orders")[0];
    let parts: Vec<_> = sent["traceparent"].to_str().expect("plain text").split('-').collect();
    assert_eq!((parts[0], parts[1], parts[3]), ("00", trace, "01"));
    assert_ne!(parts[2], span, "the storefront has a span of its own");
}
