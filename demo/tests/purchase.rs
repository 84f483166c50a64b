//! Purchases through the whole shop: real processes, real Postgres, the front door.

#[allow(dead_code, reason = "each test program takes what it needs")]
mod shop;

use std::time::Duration;

use shop::{
    Shop,
    books::{Books, Charged},
    customer::{Customer, new_key, order},
};
use testbed::poll;

/// What a paid order of `minor` cents leaves behind.
fn charged_once(minor: i64) -> Charged {
    Charged { charges: 1, state: Some("approved".into()), entries: 2, sum: 0, taken: minor, moved: 1 }
}

/// One shop for all of them: to start one takes longer than to buy.
#[tokio::test(flavor = "multi_thread")]
async fn the_shop_sells() {
    let shop = Shop::up().await;
    what_is_bought_is_paid_once_and_what_is_declined_goes_back(&shop).await;
    one_key_is_one_purchase(&shop).await;
    who_waits_300_ms_is_answered_in_300_ms_although_the_bank_takes_5_s(&shop).await;
    the_scarce_are_sold_as_often_as_they_are_there(&shop).await;
    the_audit_finds_what_does_not_agree(&shop).await;
}

async fn what_is_bought_is_paid_once_and_what_is_declined_goes_back(shop: &Shop) {
    let (ada, books) = (Customer::of(shop), Books::of(shop));

    // By forms, as a browser does.
    let page = ada.buy_by_forms("brass-compass", "tok_ok").await;
    assert_eq!(page.status, 200, "{}", page.text());
    let id = page
        .path
        .strip_prefix("/orders/")
        .unwrap_or_else(|| panic!("{}", page.text()))
        .parse()
        .expect("an id");
    let paid = ada.look(id).await;
    assert_eq!((paid.status.as_u16(), paid.state()), (200, "paid"));
    let total = paid.body["total"]["minor"].as_i64().expect("a total");
    assert!(page.text().to_lowercase().contains("paid"), "{}", page.text());
    assert_eq!(books.charged(id).await, charged_once(total));
    assert_eq!(books.stock("brass-compass").await, 99_999);

    // By JSON.
    let paid = ada.place(&new_key(), &order("brass-compass", 2, "tok_ok")).await;
    assert_eq!((paid.status.as_u16(), paid.state()), (201, "paid"), "{paid:?}");
    assert_eq!(paid.body["total"]["minor"].as_i64(), Some(2 * total));
    assert_eq!(books.charged(paid.id()).await, charged_once(2 * total));
    assert_eq!(books.stock("brass-compass").await, 99_997);

    // Declined: the customer is told, the stock is back, no money moved.
    for card in ["tok_declined", "tok_insufficient_funds"] {
        let no = ada.place(&new_key(), &order("brass-compass", 5, card)).await;
        assert_eq!((no.status.as_u16(), no.state()), (402, "declined"), "{no:?}");
        let declined =
            Charged { state: Some("declined".into()), entries: 0, taken: 0, moved: 0, ..charged_once(0) };
        assert_eq!(books.charged(no.id()).await, declined);
    }
    assert_eq!(books.stock("brass-compass").await, 99_997);
}

async fn one_key_is_one_purchase(shop: &Shop) {
    let (ada, books) = (Customer::of(shop), Books::of(shop));
    let key = new_key();
    let wanted = order("storm-lantern", 1, "tok_ok");
    let answers = futures_util::future::join_all((0..8).map(|_| ada.place(&key, &wanted))).await;
    for answer in &answers {
        assert_eq!((answer.status.as_u16(), answer.state()), (201, "paid"), "{answer:?}");
        assert_eq!(answer.id(), answers[0].id());
    }
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1, "one of them placed it");
    let total = answers[0].body["total"]["minor"].as_i64().expect("a total");
    assert_eq!(books.orders(answers[0].id()).await, 1);
    assert_eq!(books.charged(answers[0].id()).await, charged_once(total));
    assert_eq!(books.stock("storm-lantern").await, 99_999);

    for other in [order("storm-lantern", 2, "tok_ok"), order("storm-lantern", 1, "tok_slow")] {
        let refused = ada.place(&key, &other).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.body["code"], "idempotency_key_reused");
    }
    assert_eq!(books.stock("storm-lantern").await, 99_999);
}

async fn who_waits_300_ms_is_answered_in_300_ms_although_the_bank_takes_5_s(shop: &Shop) {
    let (ada, books) = (Customer::of(shop), Books::of(shop));
    // Once at leisure: prices are known, connections stand.
    let warm = ada.place(&new_key(), &order("ships-bell", 1, "tok_ok")).await;
    assert_eq!(warm.status, 201, "{warm:?}");

    let hurried = ada.place_within(&new_key(), &order("ships-bell", 1, "tok_slow"), Some(300)).await;
    assert!(hurried.took < Duration::from_millis(400), "{hurried:?}");
    assert_eq!(hurried.status, 202, "{hurried:?}");
    poll::until("Postgres to be left in peace", Duration::from_secs(2), || async {
        let busy = books.busy_sessions().await;
        anyhow::ensure!(busy.is_empty(), "{busy:?}");
        Ok(())
    })
    .await
    .unwrap_or_else(|fault| panic!("{fault:#}"));

    // It is paid all the same, and once.
    let paid = ada.wait_for(hurried.id(), "paid", Duration::from_secs(30)).await;
    let total = paid.body["total"]["minor"].as_i64().expect("a total");
    assert_eq!(books.charged(hurried.id()).await, charged_once(total));

    // Whose time is up is answered at once, and nothing of it arrives below.
    let late = ada.place_within(&new_key(), &order("ships-bell", 1, "tok_ok"), Some(0)).await;
    assert_eq!((late.status.as_u16(), &late.body["outcome"]), (504, &"not-executed".into()), "{late:?}");
}

async fn the_scarce_are_sold_as_often_as_they_are_there(shop: &Shop) {
    let (ada, books) = (Customer::of(shop), Books::of(shop));
    let there = books.stock("pocket-telescope").await;
    let wanted = order("pocket-telescope", 1, "tok_ok");
    let keys: Vec<_> = (0..30).map(|_| new_key()).collect();
    let answers = futures_util::future::join_all(keys.iter().map(|key| ada.insist(key, &wanted))).await;
    let sold = answers.iter().filter(|answer| answer.status == 201).count();
    let refused =
        answers.iter().filter(|answer| answer.status == 409 && answer.body["code"] == "out_of_stock").count();
    assert_eq!((sold, refused), (usize::try_from(there).expect("a number"), 30 - sold), "{answers:?}");
    assert_eq!(books.stock("pocket-telescope").await, 0);
}

async fn the_audit_finds_what_does_not_agree(shop: &Shop) {
    let books = Books::of(shop);
    let audit = shop.cli(["audit", "--settled"]);
    assert!(audit.contains("RESULT audit.disagreements 0 count"), "{audit}");
    books.spoil("UPDATE stock SET pieces = pieces - 1 WHERE product_id = 'brass-compass'").await;
    let spoiled = shop.try_cli(["audit"]);
    assert_eq!(spoiled.code, Some(1), "{}", spoiled.text);
    assert!(spoiled.text.contains("brass-compass: 100000 received, 3 held"), "{}", spoiled.text);
}
