//! What people read on each page, in each state and quality.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use proto::{
    FieldError,
    catalog::Product,
    money::{Currency, Money},
    order::{Card, IdempotencyKey, Order, OrderEvent, OrderId, OrderItem, OrderState, Owner},
};
use resilience::Answer;

use super::{art::SYMBOLS, *};

const SPRITE: &str = include_str!("../../static/art.svg");

fn now() -> DateTime<Utc> {
    "2026-05-03T12:06:10Z".parse().expect("a time")
}

fn frame() -> Frame {
    Frame::new(now(), 3)
}

fn product(id: &str, name: &str, minor: i64) -> Product {
    Product {
        id: id.into(),
        name: name.into(),
        summary: format!("One line about the {name}."),
        description: format!("More about the {name}."),
        art: "bell".into(),
        price: Money::new(minor, Currency::Eur),
    }
}

fn products() -> Vec<Product> {
    vec![product("ships-bell", "Ship's bell", 11_900), product("rope-12", "Marine rope", 5490)]
}

fn stale<T>(value: T) -> Answer<T> {
    Answer::Stale { value, age: Duration::from_secs(185) }
}

fn items() -> Vec<(String, u32)> {
    vec![("ships-bell".into(), 1), ("rope-12".into(), 2)]
}

fn basket(catalogue: Answer<Vec<Product>>) -> Basket {
    Basket::new(&items(), catalogue)
}

fn key() -> IdempotencyKey {
    IdempotencyKey::new("0123456789abcdef").expect("a good key")
}

fn id() -> OrderId {
    OrderId::derive(&Owner::Guest, &key())
}

fn order(history: &[(OrderState, Option<&str>)]) -> Order {
    let placed_at = now() - TimeDelta::seconds(30);
    Order {
        id: id(),
        state: history.last().expect("a state").0,
        total: Money::new(22_880, Currency::Eur),
        items: vec![OrderItem {
            product_id: "rope-12".into(),
            name: "Marine rope".into(),
            quantity: 2,
            unit_price: Money::new(5490, Currency::Eur),
        }],
        placed_at,
        history: history
            .iter()
            .zip(0..)
            .map(|((state, reason), n)| OrderEvent {
                state: *state,
                at: placed_at + TimeDelta::seconds(n * 5),
                reason: reason.map(str::to_owned),
            })
            .collect(),
    }
}

fn order_page(history: &[(OrderState, Option<&str>)]) -> OrderPage {
    OrderPage::new(frame(), id(), Answer::Live(order(history)))
}

fn checkout() -> CheckoutPage {
    CheckoutPage::new(frame(), &key(), basket(Answer::Live(products())))
}

/// The words between the tags, with single spaces, as they are read out.
fn words_of(page: &impl Template) -> String {
    let html = page.render().expect("renders");
    let mut text = String::new();
    let mut rest = html.as_str();
    while let Some((words, tag)) = rest.split_once('<') {
        text.push_str(words);
        text.push(' ');
        rest = tag.split_once('>').expect("tags are closed").1;
    }
    let text = text.replace("&#39;", "'").replace("&#60;", "<").replace("&#62;", ">").replace("&times;", "x");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn reads(page: &impl Template, expected: &[&str]) {
    let text = words_of(page);
    for words in expected {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

#[track_caller]
fn lacks(page: &impl Template, unwanted: &[&str]) {
    let html = page.render().expect("renders");
    for words in unwanted {
        assert!(!html.contains(words), "{words:?} is in: {html}");
    }
}

#[test]
fn the_home_page_sells_every_product() {
    let page = IndexPage::new(frame(), Answer::Live(products()));
    reads(
        &page,
        &[
            "Ship's bell",
            "€119.00",
            "Marine rope",
            "€54.90",
            "Add to cart : Marine rope",
            "Cart 3 , 3 pieces",
        ],
    );
    let html = page.render().expect("renders");
    assert_eq!(html.matches(r#"method="post" action="/cart""#).count(), 2);
    assert!(html.contains(r#"href="/products/rope-12""#), "{html}");
    lacks(&page, &["class=\"note\"", "not answering"]);
}

#[test]
fn no_page_shows_an_old_answer_as_a_fresh_one() {
    const OLD: &str = "are from 12:03 UTC (3 minutes ago); the catalogue is not answering at the moment.";
    reads(&IndexPage::new(frame(), stale(products())), &["These products and prices", OLD, "€119.00"]);
    reads(&ProductPage::new(frame(), stale(products().remove(0))), &["This product and its price", OLD]);
    reads(&CartPage::new(frame(), basket(stale(products()))), &["These prices", OLD, "€228.80"]);
    let checkout = CheckoutPage::new(frame(), &key(), basket(stale(products())));
    reads(&checkout, &["These prices", OLD, "Pay €228.80", "we ask you again before anything is charged"]);
    let usual = IndexPage::new(frame(), Answer::Default(products()));
    reads(&usual, &["The catalogue is not answering; what you see is our usual selection"]);
    let paid = order(&[(OrderState::PaymentPending, None)]);
    reads(
        &OrderPage::new(frame(), id(), stale(paid)),
        &["This is how the order stood at 12:03 UTC (3 minutes ago); we cannot look it up at the moment."],
    );
}

#[test]
fn a_catalogue_without_memory_is_said_and_nothing_is_made_up() {
    const NOTHING: &str = "The catalogue is not answering and we have nothing remembered. Your cart is kept.";
    reads(&IndexPage::new(frame(), Answer::Missing), &[NOTHING, "Look again"]);
    reads(&ProductPage::new(frame(), Answer::Missing), &[NOTHING, "Look again"]);
    let cart = CartPage::new(frame(), basket(Answer::Missing));
    reads(&cart, &[NOTHING, "Ships bell", "Price not known at the moment"]);
    lacks(&cart, &["€", "/checkout"]);
    let checkout = CheckoutPage::new(frame(), &key(), basket(Answer::Missing));
    reads(&checkout, &[NOTHING, "not all prices are known"]);
    lacks(&checkout, &["€", "<form"]);
}

#[test]
fn the_product_page_offers_a_quantity() {
    let page = ProductPage::new(frame(), Answer::Live(products().remove(0)));
    reads(&page, &["Ship's bell", "More about the Ship's bell.", "€119.00", "Quantity", "Add to cart"]);
    assert!(page.render().expect("renders").contains(r#"min="1" max="99" value="1""#));
}

#[test]
fn the_cart_adds_up_and_can_be_changed() {
    let page = CartPage::new(frame(), basket(Answer::Live(products())));
    reads(
        &page,
        &["€54.90 each", "€109.80", "Total €228.80", "Check out", "Update the quantity of Marine rope"],
    );
    let html = page.render().expect("renders");
    assert_eq!(html.matches("<form").count(), 4);
    assert_eq!(html.matches(r#"name="quantity" value="0""#).count(), 2);
    let empty = CartPage::new(Frame::new(now(), 0), Basket::new(&[], Answer::Missing));
    reads(&empty, &["Your cart is empty."]);
    lacks(&empty, &["not answering", "<form"]);
}

#[test]
fn a_product_that_is_no_longer_sold_stops_the_checkout() {
    let sold = basket(Answer::Live(vec![products().remove(0)]));
    assert_eq!(sold.total(), None);
    let page = CartPage::new(frame(), sold);
    reads(&page, &["Rope 12 We no longer sell this. Please remove it."]);
    lacks(&page, &["/checkout"]);
}

#[test]
fn a_sum_that_cannot_be_told_is_not_told() {
    let mut mixed = products();
    mixed[0].price.currency = Currency::Jpy;
    assert_eq!(basket(Answer::Live(mixed)).total(), None);
    let mut huge = products();
    huge[1].price.minor = i64::MAX;
    assert_eq!(basket(Answer::Live(huge)).total(), None);
    let yen = Basket::new(
        &[("tea".into(), 2)],
        Answer::Live(vec![Product { price: Money::new(700, Currency::Jpy), ..product("tea", "Tea", 0) }]),
    );
    reads(&CartPage::new(frame(), yen), &["Total ¥1400"]);
}

#[test]
fn a_frozen_cart_cannot_be_changed_or_ordered() {
    let page = CartPage::frozen(frame(), basket(Answer::Live(products())), id());
    reads(&page, &["We are checking your order. Please do not order again.", "2 pieces"]);
    lacks(&page, &["<form", "<input", "/checkout"]);
    assert!(page.render().expect("renders").contains(&format!("href=\"/orders/{}\"", id())));
}

#[test]
fn the_checkout_carries_key_and_total_and_names_every_test_card() {
    let html = checkout().render().expect("renders");
    for field in [
        r#"name="key" value="0123456789abcdef""#,
        r#"name="currency" value="EUR""#,
        r#"name="expected_total" value="22880""#,
    ] {
        assert!(html.contains(field), "{field} is not in: {html}");
    }
    for card in Card::TEST_CARDS {
        assert!(html.contains(&format!("<option value=\"{card}\">")), "{card}");
    }
    reads(
        &checkout(),
        &["A card the bank declines", "2 x Marine rope €109.80", "Total €228.80", "Pay €228.80"],
    );
}

#[test]
fn refused_fields_are_told_beside_them_and_on_top() {
    let faults = ["name", "email", "card", "items"].map(|field| FieldError::new(field, "is not right"));
    let page = checkout().name("Ada & co").faults(&faults);
    reads(&page, &["Please look at this again", "Items is not right."]);
    let html = page.render().expect("renders");
    assert!(html.contains(r#"value="Ada &#38; co""#), "{html}");
    for field in ["name", "email", "card"] {
        assert!(html.contains(&format!("<a href=\"#{field}\">")), "{field} is not in the summary");
        assert!(html.contains(&format!("id=\"{field}-fault\"")), "{field} has no words beside it");
        let after = html.split_once(&format!("id=\"{field}\"")).expect("the field is there").1;
        let tag = after.split_once('>').expect("closed").0;
        assert!(tag.contains("aria-invalid") && tag.contains(&format!("{field}-fault")), "{tag}");
    }
    lacks(&checkout(), &["aria-invalid", "-fault"]);
}

#[test]
fn a_second_try_says_why_and_keeps_the_key() {
    let page = checkout().trouble(Trouble::Unavailable);
    reads(
        &page,
        &["Ordering is unavailable for the moment", "Your cart is kept", "Try again and pay €228.80"],
    );
    assert!(page.render().expect("renders").contains(r#"value="0123456789abcdef""#));
    for (trouble, words) in [
        (Trouble::PriceChanged, "This is what it costs now."),
        (Trouble::OutOfStock, "Please choose fewer in your cart"),
        (Trouble::CurrencyUnavailable, "You can pay in euros."),
        (Trouble::KeyUsed, "please fill it in again"),
    ] {
        reads(&checkout().trouble(trouble), &[words, "Pay €228.80"]);
    }
}

#[test]
fn an_order_says_how_it_stands() {
    use OrderState::{Declined, Paid, PaymentDeferred, PaymentPending};

    let paid = order_page(&[(PaymentPending, None), (PaymentDeferred, None), (Paid, None)]);
    reads(
        &paid,
        &["Paid. Thank you.", "Order placed 12:05:40 UTC", "Paid 12:05:50 UTC", "2 x Marine rope €109.80"],
    );
    lacks(&paid, &["http-equiv=\"refresh\""]);

    let declined = order_page(&[(PaymentPending, None), (Declined, Some("Not enough money on the card."))]);
    reads(&declined, &["Your payment was declined", "Not enough money on the card.", "Try another card"]);
    lacks(&declined, &["http-equiv=\"refresh\""]);

    reads(&order_page(&[(PaymentPending, None)]), &["Your payment is being made"]);
    reads(
        &order_page(&[(PaymentPending, None), (PaymentDeferred, None)]),
        &["Your order is accepted", "Payment will be taken when the bank answers, and only once."],
    );
    reads(&OrderPage::checking(frame(), id()), &["We are checking your order. Please do not order again."]);
}

#[test]
fn an_order_that_still_moves_looks_again_at_its_own_address() {
    use OrderState::{PaymentDeferred, PaymentPending};

    let meta = format!("<meta http-equiv=\"refresh\" content=\"3; url=/orders/{}\">", id());
    for page in [
        order_page(&[(PaymentPending, None)]),
        order_page(&[(PaymentPending, None), (PaymentDeferred, None)]),
        OrderPage::checking(frame(), id()),
    ] {
        assert!(page.render().expect("renders").contains(&meta));
    }
}

#[test]
fn problems_say_what_happened_and_where_to_go() {
    let faults = [FieldError::new("quantity", "must be 0 to 99")];
    for (page, words, way_on) in [
        (ProblemPage::not_found(frame()), "There is no page at this address.", "href=\"/\""),
        (ProblemPage::no_such_order(frame()), "We have no such order", "href=\"/\""),
        (
            ProblemPage::never_placed(frame()),
            "Nothing was charged, and your cart is kept.",
            "href=\"/checkout\"",
        ),
        (ProblemPage::unavailable(frame()), "Ordering is unavailable for the moment", "href=\"/checkout\""),
        (ProblemPage::unknown_outcome(frame(), id()), "Please do not order again.", "href=\"/orders/"),
        (ProblemPage::timed_out(frame()), "This took too long", "href=\"\""),
        (ProblemPage::too_large(frame()), "larger than anything this shop asks for", "href=\"/\""),
        (ProblemPage::refused(frame(), &faults), "Quantity must be 0 to 99.", "href=\"/cart\""),
        (ProblemPage::generic(frame()), "It is our fault, not yours", "href=\"\""),
    ] {
        reads(&page, &[words]);
        assert!(page.render().expect("renders").contains(way_on), "{way_on} is missing beside {words:?}");
    }
}

#[test]
fn what_people_and_neighbours_wrote_stays_text() {
    const EVIL: &str = "\"><script>alert('x')</script>";
    let bad = Product {
        art: EVIL.into(),
        summary: EVIL.into(),
        description: EVIL.into(),
        ..product(EVIL, EVIL, 100)
    };
    let evil_items = [(EVIL.to_owned(), 1)];
    let evil_basket = |answer| Basket::new(&evil_items, answer);
    let mut bad_order =
        order(&[(OrderState::PaymentPending, Some(EVIL)), (OrderState::Declined, Some(EVIL))]);
    bad_order.items[0].name = EVIL.into();
    let fault = [FieldError::new("currency", EVIL)];

    let live = || Answer::Live(vec![bad.clone()]);
    let pages = [
        IndexPage::new(frame().banner(EVIL).note(EVIL), live()).render(),
        ProductPage::new(frame(), Answer::Live(bad.clone())).render(),
        CartPage::new(frame(), evil_basket(live())).render(),
        CartPage::new(frame(), evil_basket(Answer::Missing)).render(),
        CheckoutPage::new(frame(), &key(), evil_basket(live())).name(EVIL).faults(&fault).render(),
        OrderPage::new(frame(), id(), Answer::Live(bad_order)).render(),
        ProblemPage::refused(frame(), &fault).render(),
    ];
    for page in pages {
        let html = page.expect("renders");
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("&#60;script&#62;"), "{html}");
    }
}

#[test]
fn every_page_is_sound_html_for_a_strict_content_policy() {
    let faults = ["name", "email", "card"].map(|field| FieldError::new(field, "is not right"));
    let pages = [
        IndexPage::new(frame(), stale(products())).render(),
        IndexPage::new(frame(), Answer::Missing).render(),
        ProductPage::new(frame(), Answer::Live(products().remove(0))).render(),
        ProductPage::new(frame(), Answer::Missing).render(),
        CartPage::new(frame(), basket(Answer::Live(products()))).render(),
        CartPage::frozen(frame(), basket(Answer::Missing), id()).render(),
        checkout().faults(&faults).render(),
        checkout().trouble(Trouble::Unavailable).render(),
        order_page(&[(OrderState::PaymentPending, None), (OrderState::Paid, None)]).render(),
        OrderPage::checking(frame(), id()).render(),
        ProblemPage::generic(frame()).render(),
    ];
    for page in pages {
        let html = page.expect("renders");
        assert_eq!(html.matches("<h1").count(), 1, "one headline: {html}");
        for needed in ["<html lang=\"en\">", "<main id=\"content\"", "href=\"#content\"", "<nav aria-label"] {
            assert!(html.contains(needed), "{needed} is not in: {html}");
        }
        for banned in ["style=", "<style", "<script", "onclick", "http://", "https://"] {
            assert!(!html.contains(banned), "{banned} is in: {html}");
        }
        for symbol in html.split("art.svg#").skip(1) {
            let name = symbol.split_once('"').expect("quoted").0;
            assert!(SPRITE.contains(&format!("<symbol id=\"{name}\"")), "there is no picture {name:?}");
        }
        for input in html.split("<input ").skip(1).chain(html.split("<select ").skip(1)) {
            let tag = input.split_once('>').expect("closed").0;
            if !tag.contains("type=\"hidden\"") {
                let id =
                    tag.split_once("id=\"").expect("a field has an id").1.split_once('"').expect("quoted").0;
                assert!(html.contains(&format!("for=\"{id}\"")), "{id} has no label");
            }
        }
    }
}

#[test]
fn unknown_pictures_are_an_anchor() {
    for name in SYMBOLS {
        assert_eq!(art::symbol(name), name);
        assert!(SPRITE.contains(&format!("<symbol id=\"{name}\"")), "{name}");
    }
    assert_eq!(art::symbol("submarine"), "anchor");
    assert_eq!(art::symbol("mark"), "anchor", "the shop's own signs are not pictures of products");
}

#[test]
fn ages_and_times_are_in_words() {
    for (seconds, text) in [
        (0, "a moment ago"),
        (45, "45 seconds ago"),
        (60, "1 minute ago"),
        (185, "3 minutes ago"),
        (7199, "1 hour ago"),
        (172_800, "2 days ago"),
    ] {
        assert_eq!(words::ago(Duration::from_secs(seconds)), text);
    }
    assert_eq!(words::as_of(now(), Duration::from_secs(86_400)), "2 May, 12:06 UTC (1 day ago)");
    assert!(words::as_of(now(), Duration::MAX).ends_with("days ago"), "an absurd age is no panic");
}
