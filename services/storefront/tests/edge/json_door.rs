//! The JSON doors: what they refuse, and how, and what they pass on.

use http::{StatusCode, header};
use proto::order::{IdempotencyKey, OrderId, OrderState, Owner};
use serde_json::{Value, json};

use crate::{
    neighbours::{Does, orders},
    shop::{MS, Shop, Storefront, good_order, hasty, header, json_of, nobody},
};

const KEY: &str = "0123456789abcdef";
const JSON: &str = "application/json";

/// A good order with the value at `pointer` replaced.
fn with(pointer: &str, value: Value) -> String {
    let mut order = good_order();
    *order.pointer_mut(pointer).expect("it is there") = value;
    order.to_string()
}

fn number(quantity: &str) -> String {
    good_order().to_string().replace("\"quantity\":1", &format!("\"quantity\":{quantity}"))
}

#[tokio::test]
async fn a_refused_order_says_which_field_and_reaches_nobody() {
    let shop = Shop::open().await;
    let good = good_order().to_string();
    let lines = vec![json!({ "product_id": "rope", "quantity": 1 }); 51];
    let without = |field: &str| {
        let mut order = good_order();
        order.as_object_mut().expect("an object").remove(field);
        order.to_string()
    };
    let total = |total: Value| {
        let mut order = good_order();
        order["expected_total"] = total;
        order.to_string()
    };
    // what, key, content type, body; status, refused field
    let key = Some(KEY);
    let field = |what, body, field| (what, key, JSON, body, 422, field);
    let cases = [
        ("no key", None, JSON, good.clone(), 400, "Idempotency-Key"),
        ("short key", Some("short"), JSON, good.clone(), 422, "Idempotency-Key"),
        ("odd key", Some("0123456789 abcdef"), JSON, good.clone(), 422, "Idempotency-Key"),
        ("a form", key, "application/x-www-form-urlencoded", "name=Ada".into(), 415, ""),
        ("text", key, "text/plain", good.clone(), 415, ""),
        ("not JSON", key, JSON, "{\"items\":".into(), 400, ""),
        ("two bodies", key, JSON, format!("{good} {good}"), 400, ""),
        ("nothing", key, JSON, String::new(), 400, ""),
        ("too large", key, JSON, with("/name", "a".repeat(70_000).into()), 413, ""),
        field("a list", "[1]".into(), "[0]"),
        field("items no list", with("/items", json!("rope")), "items"),
        field("no items", without("items"), "items"),
        field("empty items", with("/items", json!([])), "items"),
        field("too many lines", with("/items", lines.into()), "items"),
        field("name no text", with("/name", json!(7)), "name"),
        field("no name", without("name"), "name"),
        field("no address", with("/email", json!("nobody")), "email"),
        field("no card", without("card"), "card"),
        field("a real card", with("/card", json!("4111111111111111")), "card"),
        field("unknown currency", with("/currency", json!("XBT")), "currency"),
        field("lower case", with("/currency", json!("eur")), "currency"),
        field("product no id", with("/items/0/product_id", json!("../admin")), "items[0].product_id"),
        field("quantity 0", number("0"), "items[0].quantity"),
        field("quantity -1", number("-1"), "items[0].quantity"),
        field("quantity 100", number("100"), "items[0].quantity"),
        field("quantity 1e99", number("1e99"), "items[0].quantity"),
        field("quantity 1.5", number("1.5"), "items[0].quantity"),
        field("quantity a word", number("\"one\""), "items[0].quantity"),
        field("a huge quantity", number("99999999999999999999"), "items[0].quantity"),
        field(
            "expected no number",
            total(json!({ "minor": "1", "currency": "EUR" })),
            "expected_total.minor",
        ),
        field(
            "expected no money",
            total(json!({ "minor": 1, "currency": "XBT" })),
            "expected_total.currency",
        ),
    ];
    for (what, key, kind, body, status, field) in cases {
        let mut request = shop.storefront.post("/api/v1/orders").header(header::CONTENT_TYPE, kind);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.body(body).send().await.expect("it answers");
        assert_eq!(response.status().as_u16(), status, "{what}");
        assert_eq!(header(&response, "content-type"), "application/problem+json", "{what}");
        let (_, body) = json_of(response).await;
        assert_eq!(body["status"], status, "{what}");
        if field.is_empty() {
            assert!(body["detail"].is_string() && body["errors"].is_null(), "{what}: {body}");
        } else {
            assert_eq!(body["errors"][0]["field"], field, "{what}: {body}");
        }
    }
    assert!(shop.orders.seen("").is_empty(), "none of them was sent on");
}

#[tokio::test]
async fn a_post_from_another_site_is_refused() {
    let shop = Shop::open().await;
    for (name, value, status) in [
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 201),
        ("origin", shop.storefront.base.as_str(), 201),
        ("user-agent", "a program", 201),
    ] {
        let response = shop.storefront.order(KEY).header(name, value).send().await.expect("sent");
        assert_eq!(response.status().as_u16(), status, "{name}: {value}");
        if status == 403 {
            assert_eq!(header(&response, "content-type"), "application/problem+json");
        }
    }
    let read = shop.storefront.get("/api/v1/products").header("sec-fetch-site", "cross-site");
    assert_eq!(read.send().await.expect("sent").status(), StatusCode::OK);
}

#[tokio::test]
async fn what_orders_says_is_passed_on() {
    let shop = Shop::open().await;
    let first = shop.storefront.order(KEY).send().await.expect("sent");
    assert_eq!(header(&first, "idempotency-replayed"), "");
    let location = header(&first, "location").to_owned();
    let (status, placed) = json_of(first).await;
    assert_eq!((status, &placed["state"]), (201, &"paid".into()));
    let id = OrderId::derive(&Owner::Guest, &IdempotencyKey::new(KEY).expect("good"));
    assert_eq!(placed["id"], id.to_string());
    assert_eq!(location, format!("/api/v1/orders/{id}"));
    let again = shop.storefront.order(KEY).send().await.expect("sent");
    assert_eq!(header(&again, "idempotency-replayed"), "true");
    assert_eq!(json_of(again).await, (201, placed.clone()));

    let (status, order) =
        json_of(shop.storefront.get(&format!("/api/v1/orders/{id}")).send().await.expect("sent")).await;
    assert_eq!((status, &order), (200, &placed));
    assert!(order["history"].as_array().is_some_and(|history| history.len() == 2));

    shop.orders.behaviour.does(Does::Places(OrderState::PaymentDeferred));
    let deferred = shop.storefront.order("another-key-0001").send().await.expect("sent");
    assert_eq!(header(&deferred, "degraded"), "payments;deferred");
    let (status, body) = json_of(deferred).await;
    assert_eq!((status, &body["state"]), (202, &"payment_deferred".into()));

    for (status, code) in [
        (402, "declined"),
        (409, "out_of_stock"),
        (409, "price_changed"),
        (409, "currency_unavailable"),
        (422, "key_reused"),
    ] {
        let answer = json!({ "status": status, "code": code, "id": id, "detail": "no" });
        let status_code = StatusCode::from_u16(status).expect("a status");
        shop.orders.behaviour.does(Does::Answers(status_code, answer.clone()));
        let response = shop.storefront.order("another-key-0002").send().await.expect("sent");
        assert_eq!(header(&response, "content-type"), "application/problem+json");
        assert_eq!(json_of(response).await, (status, answer));
    }
    // An answer that nobody agreed on says nothing about the order.
    for status in [StatusCode::IM_A_TEAPOT, StatusCode::CONFLICT, StatusCode::NOT_FOUND] {
        shop.orders.behaviour.does(Does::Answers(status, json!({ "code": "brew" })));
        let (status, body) = json_of(shop.storefront.order(KEY).send().await.expect("sent")).await;
        assert_eq!((status, &body["outcome"]), (504, &"unknown".into()));
    }
}

#[tokio::test]
async fn orders_dead_is_not_executed_and_orders_hung_is_unknown() {
    let catalog = nobody().await;
    let dead = Storefront::start(&hasty(catalog, nobody().await)).await;
    let response = dead.order(KEY).send().await.expect("sent");
    assert_eq!(header(&response, "x-outcome"), "not-executed");
    let (status, body) = json_of(response).await;
    assert_eq!((status, &body["outcome"]), (503, &"not-executed".into()));
    // Bad input gets its answer all the same, whole.
    let empty = dead.post("/api/v1/orders").header("idempotency-key", KEY).json(&json!({}));
    let (status, body) = json_of(empty.send().await.expect("sent")).await;
    let fields: Vec<_> = body["errors"].as_array().expect("a list").iter().map(|e| &e["field"]).collect();
    assert_eq!(
        (status, fields),
        (422, vec![&json!("items"), &json!("name"), &json!("email"), &json!("card"), &json!("currency")])
    );

    let orders = orders().await;
    orders.behaviour.does(Does::Hangs);
    let hung = Storefront::start(&hasty(catalog, orders.address)).await;
    let start = tokio::time::Instant::now();
    let response = hung.order(KEY).send().await.expect("sent");
    assert_eq!(header(&response, "x-outcome"), "unknown");
    let (status, body) = json_of(response).await;
    assert!(start.elapsed() < 1500 * MS, "{:?}", start.elapsed());
    let id = OrderId::derive(&Owner::Guest, &IdempotencyKey::new(KEY).expect("good"));
    assert_eq!((status, &body["outcome"], &body["id"]), (504, &"unknown".into(), &id.to_string().into()));
}

#[tokio::test]
async fn products_say_how_fresh_they_are() {
    let shop = Shop::open().await;
    let (status, body) = json_of(shop.storefront.get("/api/v1/products").send().await.expect("sent")).await;
    assert_eq!((status, &body["quality"]), (200, &json!({ "kind": "live" })));
    assert_eq!(body["products"][0]["id"], "brass-compass");
    assert_eq!(body["products"][0]["price"], json!({ "minor": 6450, "currency": "EUR" }));
    let single = shop.storefront.get("/api/v1/products/rope").send().await.expect("sent");
    let (status, body) = json_of(single).await;
    assert_eq!((status, &body["product"]["name"]), (200, &"Rope & line".into()));
    for path in [
        "/api/v1/products/no-such-thing",
        "/api/v1/products/No%20Id",
        "/api/v1/products/%ff",
        "/api/v1/orders/11111111-1111-4111-8111-111111111111",
        "/api/v1/orders/1",
        "/api/v1/nothing",
        "/api/v2",
    ] {
        let response = shop.storefront.get(path).send().await.expect("sent");
        assert_eq!(header(&response, "content-type"), "application/problem+json", "{path}");
        assert_eq!(json_of(response).await.0, 404, "{path}");
    }
    let wrong = shop.storefront.get("/api/v1/orders").send().await.expect("sent");
    assert_eq!(json_of(wrong).await.0, 405);
}
