//! What people see when a neighbour is dead, hung, or was never there.

use http::{Method, StatusCode, header};
use tokio::time::Instant;

use crate::{
    neighbours::{Does, catalog, hung_catalog, orders},
    shop::{MS, Shop, Storefront, hasty, json_of, nobody},
};

#[tokio::test]
async fn a_killed_catalog_is_shown_from_memory_with_its_age() {
    let mut shop = Shop::open().await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    browser.get("/").await;
    browser.get("/products/brass-compass").await;
    shop.catalog.kill().await;

    // The last product was remembered from the list.
    for path in ["/", "/products/brass-compass", "/products/rope", "/cart", "/checkout"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.degraded().starts_with("catalog;stale="), "{path}: {}", page.degraded());
        assert!(page.says("the catalogue is not answering"), "{path}: {}", page.html);
    }
    assert!(browser.get("/").await.says("€64.50"));
    let (status, body) = json_of(shop.storefront.get("/api/v1/products").send().await.expect("sent")).await;
    assert_eq!((status, &body["quality"]["kind"]), (200, &"stale".into()));
    assert!(body["quality"]["age_s"].is_u64(), "{body}");
    assert_eq!(body["products"].as_array().map(Vec::len), Some(2));

    // Selling goes on: orders knows the prices.
    let checkout = browser.get("/checkout").await;
    assert!(browser.pay(&checkout, "tok_ok").await.says("Paid. Thank you."));
}

#[tokio::test]
async fn a_list_that_is_fresh_is_not_asked_for_again() {
    let shop = Shop::with(|catalog, orders| storefront::config::Config {
        catalog_fresh: 60_000 * MS,
        ..crate::shop::patient(catalog, orders)
    })
    .await;
    let mut browser = shop.storefront.browser();
    for path in ["/", "/", "/products/rope", "/"] {
        let page = browser.get(path).await;
        assert_eq!((page.status, page.degraded()), (StatusCode::OK, ""), "{path}");
    }
    assert_eq!(shop.catalog.seen("GET /products").len(), 1);
    // One that is not on the list may be new.
    assert_eq!(browser.get("/products/submarine").await.status, StatusCode::NOT_FOUND);
    assert_eq!(shop.catalog.seen("GET /products/submarine").len(), 1);
}

#[tokio::test]
async fn a_catalog_that_was_never_reached_is_named_and_no_page_fails() {
    let orders = orders().await;
    let storefront = Storefront::start(&hasty(nobody().await, orders.address)).await;
    let mut browser = storefront.browser();
    for path in ["/", "/products/rope"] {
        let page = browser.get(path).await;
        assert_eq!((page.status, page.degraded()), (StatusCode::OK, "catalog;missing"), "{path}");
    }
    let cart = browser.add("rope", "1").await;
    assert_eq!((cart.status, cart.degraded()), (StatusCode::OK, "catalog;missing"));
    assert_eq!(browser.get("/checkout").await.status, StatusCode::OK);
    for path in ["/api/v1/products", "/api/v1/products/rope"] {
        let (status, body) = json_of(storefront.get(path).send().await.expect("sent")).await;
        assert_eq!((status, &body["quality"]["kind"]), (200, &"missing".into()));
        assert!(body["products"].is_null() && body["product"].is_null(), "{body}");
    }
}

#[tokio::test]
async fn a_hung_catalog_costs_its_timeout_and_no_page() {
    let (catalog, orders) = (hung_catalog().await, orders().await);
    let storefront = Storefront::start(&hasty(catalog.address, orders.address)).await;
    let start = Instant::now();
    let page = storefront.browser().get("/").await;
    assert_eq!((page.status, page.degraded()), (StatusCode::OK, "catalog;missing"));
    assert!(start.elapsed() < 1500 * MS, "{:?}", start.elapsed());
}

#[tokio::test]
async fn orders_refusing_keeps_cart_and_key_and_the_same_form_buys_later() {
    let mut shop = Shop::with(hasty).await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    let checkout = browser.get("/checkout").await;
    let key = checkout.hidden("key").expect("a key").to_owned();
    shop.orders.kill().await;

    let page = browser.pay(&checkout, "tok_ok").await;
    assert_eq!((page.status, page.degraded()), (StatusCode::SERVICE_UNAVAILABLE, "orders;missing"));
    assert!(page.says("Ordering is unavailable for the moment") && page.says("cart is kept"));
    assert_eq!(page.hidden("key"), Some(key.as_str()), "the same key");
    assert!(browser.get("/cart").await.says("€19.99"), "the cart is kept");
    let unseen = browser.get("/orders/11111111-1111-4111-8111-111111111111").await;
    assert_eq!((unseen.status, unseen.degraded()), (StatusCode::SERVICE_UNAVAILABLE, "orders;missing"));
    assert!(unseen.says("cannot look up"), "{}", unseen.html);

    // Orders is back, at another address, so with a new storefront: the form is the same one.
    let back = orders().await;
    let storefront = Storefront::start(&hasty(shop.catalog.address, back.address)).await;
    let mut later = storefront.browser();
    later.cookies = browser.cookies.clone();
    assert!(later.pay(&page, "tok_ok").await.says("Paid. Thank you."));
    let sent = back.seen("POST /orders");
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["idempotency-key"], key);
}

#[tokio::test]
async fn an_order_without_an_answer_freezes_the_cart_until_it_is_found() {
    let shop = Shop::with(hasty).await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    let checkout = browser.get("/checkout").await;
    shop.orders.behaviour.does(Does::PlacesAndHangs);

    let start = Instant::now();
    let page = browser.pay(&checkout, "tok_ok").await;
    assert!(start.elapsed() < 1500 * MS, "within the budget: {:?}", start.elapsed());
    assert_eq!(page.status, StatusCode::GATEWAY_TIMEOUT);
    assert!(page.says("We are checking your order. Please do not order again."));
    let link = page.html.split("href=\"/orders/").nth(1).and_then(|rest| rest.split('"').next());
    let order = format!("/orders/{}", link.expect("a link to the order"));

    let cart = browser.get("/cart").await;
    assert!(cart.says("We are checking your order") && cart.says(&order) && cart.says("€19.99"));
    let unchanged = browser.add("rope", "5").await;
    assert!(unchanged.says("€19.99"), "a frozen cart does not change");
    let tries = shop.orders.seen("POST").len();
    let asked = browser.get("/checkout").await;
    assert_eq!((asked.path.as_str(), asked.status), (order.as_str(), StatusCode::SERVICE_UNAVAILABLE));
    assert!(asked.says("We are checking your order"));
    let form = [("key", checkout.hidden("key").expect("a key"))];
    let sent = browser.once(Method::POST, "/checkout", &form).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    assert_eq!(sent.headers[header::LOCATION], order);
    assert_eq!(shop.orders.seen("POST").len(), tries, "nothing is ordered again");

    shop.orders.behaviour.does(Does::Places(proto::order::OrderState::Paid));
    assert!(browser.get(&order).await.says("Paid. Thank you."));
    assert!(browser.cookies.is_empty(), "the cart is empty");
    assert_eq!(shop.orders.behaviour.count(), 1);
}

#[tokio::test]
async fn an_order_that_never_arrived_opens_the_cart_again_under_the_same_key() {
    let shop = Shop::with(hasty).await;
    let mut browser = shop.storefront.browser();
    browser.add("rope", "1").await;
    let checkout = browser.get("/checkout").await;
    shop.orders.behaviour.does(Does::Hangs);
    assert_eq!(browser.pay(&checkout, "tok_ok").await.status, StatusCode::GATEWAY_TIMEOUT);
    shop.orders.behaviour.does(Does::Places(proto::order::OrderState::Paid));

    let asked = browser.get("/checkout").await;
    assert_eq!(asked.status, StatusCode::NOT_FOUND, "the frozen cart asks first");
    assert!(asked.says("Your order was not placed"), "{}", asked.html);
    let again = browser.get("/checkout").await;
    assert_eq!((again.path.as_str(), again.status), ("/checkout", StatusCode::OK));
    assert_eq!(again.hidden("key"), checkout.hidden("key"));
    assert!(browser.pay(&again, "tok_ok").await.says("Paid. Thank you."));
    assert_eq!(shop.orders.behaviour.count(), 1);
}

#[tokio::test]
async fn with_everything_gone_the_shop_still_answers() {
    let storefront = Storefront::start(&hasty(nobody().await, nobody().await)).await;
    let mut browser = storefront.browser();
    for path in ["/", "/cart", "/products/rope"] {
        assert_eq!(browser.get(path).await.status, StatusCode::OK, "{path}");
    }
    browser.add("rope", "1").await;
    assert_eq!(browser.get("/checkout").await.status, StatusCode::OK);
    let catalog = catalog().await;
    let storefront = Storefront::start(&hasty(catalog.address, nobody().await)).await;
    assert_eq!(storefront.browser().get("/").await.degraded(), "");
}
