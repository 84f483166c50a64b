//! Buying something by forms, as a browser does it, with everything well.

use http::{StatusCode, header};
use proto::order::OrderState;
use serde_json::json;

use crate::{neighbours::Does, shop::Shop};

#[tokio::test]
async fn a_purchase_by_forms_ends_paid_and_empties_the_cart() {
    let shop = Shop::open().await;
    let mut browser = shop.storefront.browser();

    let home = browser.get("/").await;
    assert_eq!((home.status, home.degraded()), (StatusCode::OK, ""));
    assert!(home.says("Brass compass") && home.says("€64.50"));
    assert!(home.says("Rope &#38; line"), "a name is text: {}", home.html);
    assert!(browser.get("/products/rope").await.says("Rope &#38; line in full"));

    let cart = browser.add("brass-compass", "2").await;
    assert_eq!((cart.path.as_str(), cart.status), ("/cart", StatusCode::OK));
    assert!(cart.says("€129.00"), "{}", cart.html);

    let checkout = browser.get("/checkout").await;
    let order = browser.pay(&checkout, "tok_ok").await;
    assert!(order.path.starts_with("/orders/"), "{order:?}");
    assert_eq!((order.status, order.degraded()), (StatusCode::OK, ""));
    assert!(order.says("Paid. Thank you.") && order.says("€129.00"));
    assert!(!order.says("ada@example.com") && !order.says("tok_ok"));
    assert!(browser.cookies.is_empty(), "the cart is empty again");

    // The browser's back button, and the same form once more: the same order, not another.
    let again = browser.pay(&checkout, "tok_ok").await;
    assert_eq!((again.path, shop.orders.behaviour.count()), (order.path, 1));
}

#[tokio::test]
async fn the_cart_counts_and_keeps_its_limits() {
    let shop = Shop::open().await;
    let mut browser = shop.storefront.browser();
    for path in ["/", "/products/rope"] {
        assert_eq!(browser.get(path).await.hidden("add"), Some("1"), "these buttons add: {path}");
    }
    let add = |quantity| [("product_id", "rope"), ("quantity", quantity), ("add", "1")];
    browser.send("/cart", &add("2")).await;
    let cart = browser.send("/cart", &add("3")).await;
    assert!(cart.says("€99.95"), "five of them: {}", cart.html);
    let cart = browser.add("rope", "1").await;
    assert!(cart.says("€19.99"), "one of them: {}", cart.html);
    let before = browser.cookies.clone();
    for (product, quantity) in [
        ("rope", "-1"),
        ("rope", "100"),
        ("rope", "1e99"),
        ("rope", ""),
        ("rope", "two"),
        ("never-heard-of", "1"),
        ("No Id", "1"),
        ("", "1"),
    ] {
        let page = browser.add(product, quantity).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{product} {quantity}");
        assert!(page.says("<!doctype html>") && page.says("could not make sense"), "{product} {quantity}");
    }
    assert_eq!(browser.cookies, before, "a refused change changes nothing");
    let cart = browser.add("rope", "0").await;
    assert!(cart.says("Your cart is empty") && browser.cookies.is_empty());
    assert_eq!(browser.get("/checkout").await.path, "/cart", "nothing to check out");
}

#[tokio::test]
async fn a_form_with_faults_comes_back_without_what_is_secret() {
    let shop = Shop::open().await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    let checkout = browser.get("/checkout").await;
    let key = checkout.hidden("key").expect("a key").to_owned();
    let form = [
        ("key", key.as_str()),
        ("name", "Grace <b>"),
        ("email", "grace at example"),
        ("card", "4111111111111111"),
        ("currency", "EUR"),
        ("expected_total", "cheap"),
    ];
    let page = browser.send("/checkout", &form).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.says("name=\"name\"") && page.says("Grace &#60;b&#62;"));
    assert!(page.says("id=\"email-fault\"") && page.says("id=\"card-fault\""), "{}", page.html);
    assert!(!page.says("grace at example") && !page.says("4111111111111111"));
    assert_eq!(page.hidden("key"), Some(key.as_str()));
    assert!(shop.orders.seen("POST").is_empty());

    let no_key = [("name", "Ada"), ("email", "a@b.c"), ("card", "tok_ok"), ("currency", "EUR")];
    let page = browser.send("/checkout", &no_key).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.says("16 to 128 letters"), "{}", page.html);
}

#[tokio::test]
async fn a_final_no_keeps_the_cart_and_gives_a_new_key() {
    let shop = Shop::open().await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    let problem = |code: &str| json!({ "code": code, "detail": "no" });
    let invalid = json!({ "code": "invalid_fields", "errors": [{ "field": "items[0].product_id", "message": "is gone" }] });
    for (status, body, shown, new_key, text) in [
        (402, problem("declined"), 402, true, "Your payment was declined"),
        (409, problem("out_of_stock"), 409, true, "do not have enough"),
        (409, problem("price_changed"), 409, true, "A price has changed"),
        (409, problem("currency_unavailable"), 409, true, "currency"),
        (422, problem("key_reused"), 422, true, "used before"),
        (422, invalid, 422, false, "is gone"),
    ] {
        let answer = StatusCode::from_u16(status).expect("a status");
        shop.orders.behaviour.does(Does::Answers(answer, body.clone()));
        let checkout = browser.get("/checkout").await;
        let page = browser.pay(&checkout, "tok_ok").await;
        assert_eq!((page.path.as_str(), page.status.as_u16()), ("/checkout", shown), "{body}");
        assert!(page.says(text), "{body}: {}", page.html);
        let (before, after) = (checkout.hidden("key"), page.hidden("key"));
        assert!(after.is_some() && (before != after) == new_key, "{body}");
        assert!(browser.get("/cart").await.says("€19.99"), "the cart is kept");
    }
}

#[tokio::test]
async fn a_deferred_payment_is_an_order() {
    let shop = Shop::open().await;
    for (state, degraded, text) in [
        (OrderState::PaymentDeferred, "payments;deferred", "Your order is accepted"),
        (OrderState::PaymentPending, "", "Your payment is being made"),
    ] {
        shop.orders.behaviour.does(Does::Places(state));
        let mut browser = shop.storefront.browser();
        browser.add("rope", "1").await;
        let checkout = browser.get("/checkout").await;
        let order = browser.pay(&checkout, "tok_slow").await;
        assert_eq!((order.status, order.degraded()), (StatusCode::OK, degraded));
        assert!(order.path.starts_with("/orders/") && order.says(text));
        assert!(browser.cookies.is_empty(), "{state:?}");
    }
}

#[tokio::test]
async fn the_cookie_is_closed_to_scripts_and_other_sites() {
    let shop = Shop::with(|catalog, orders| storefront::config::Config {
        cookie_secure: true,
        ..crate::shop::patient(catalog, orders)
    })
    .await;
    let form = "product_id=rope&quantity=1";
    let response = shop
        .storefront
        .post("/cart")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let set = crate::shop::header(&response, "set-cookie");
    for rule in ["; Path=/;", "; HttpOnly;", "; SameSite=Lax;", "; Secure"] {
        assert!(set.contains(rule), "{rule}: {set}");
    }
}
