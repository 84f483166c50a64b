//! Drills: a fault and its promise, before, during and in recovery. Real processes are killed and paused, and
//! each drill ends with the books in agreement.

#[allow(dead_code, reason = "each test program takes what it needs")]
mod shop;

use std::time::Duration;

use futures_util::future::join_all;
use shop::{
    Shop,
    books::Books,
    customer::{Answer, Customer, new_key, order},
    hops::{assert_one_level_retries, resilience},
};
use testbed::poll;
use uuid::Uuid;

/// No purchase takes longer than the edge lets it, and a little for a busy machine.
const BUDGET: Duration = Duration::from_millis(3300);
/// Deferred orders are paid so soon after their neighbour is back.
const PAID_WITHIN: Duration = Duration::from_secs(10);
/// The same, where RabbitMQ has to boot or to be found again first.
const PAID_AFTER_BROKER: Duration = Duration::from_secs(30);

/// Buys so many mugs, one after the other.
async fn buy(customer: &Customer, times: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..times {
        answers.push(customer.place(&new_key(), &order("enamel-mug", 1, "tok_ok")).await);
    }
    answers
}

/// The same all at once.
async fn buy_at_once(customer: &Customer, times: usize) -> Vec<Answer> {
    join_all(
        (0..times).map(|_| async { customer.place(&new_key(), &order("enamel-mug", 1, "tok_ok")).await }),
    )
    .await
}

fn assert_deferred(answers: &[Answer]) {
    for answer in answers {
        assert_eq!((answer.status.as_u16(), answer.state()), (202, "payment_deferred"), "{answer:?}");
        assert_eq!(answer.degraded.as_deref(), Some("payments;deferred"), "{answer:?}");
        assert!(answer.took < BUDGET, "{answer:?}");
    }
}

async fn assert_paid_once(
    customer: &Customer,
    books: &Books,
    ids: impl IntoIterator<Item = Uuid>,
    within: Duration,
) {
    let ids: Vec<_> = ids.into_iter().collect();
    join_all(ids.iter().map(|&id| customer.wait_for(id, "paid", within))).await;
    for id in ids {
        let charged = books.charged(id).await;
        assert_eq!(
            (charged.charges, charged.moved, charged.entries, charged.sum),
            (1, 1, 2, 0),
            "{id}: {charged:?}"
        );
    }
}

/// The end of each drill: everything is settled, and the books agree.
async fn assert_settled(shop: &Shop) {
    poll::until("everything to be settled", Duration::from_secs(30), || async {
        let audit = shop.try_cli(["audit", "--settled"]);
        anyhow::ensure!(audit.code == Some(0), "{}", audit.text);
        Ok(())
    })
    .await
    .unwrap_or_else(|fault| panic!("{fault:#}"));
    assert_one_level_retries(shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_is_killed_and_nothing_bought_is_lost() {
    let shop = Shop::up().await;
    let (ada, books) = (Customer::of(&shop), Books::of(&shop));
    let before = ada.place(&new_key(), &order("enamel-mug", 1, "tok_ok")).await;
    assert_eq!(
        (before.status.as_u16(), before.state(), before.degraded.as_deref()),
        (201, "paid", None),
        "{before:?}"
    );

    shop.cli(["kill", "payments"]);
    let mut deferred = buy(&ada, 8).await;
    assert_deferred(&deferred);
    // The breaker is open: nobody waits for payments, nobody calls it but for a probe now and then.
    poll::until("the breaker to open", Duration::from_secs(5), || async {
        let state = resilience(&shop, "orders").await.breaker("payments").to_owned();
        anyhow::ensure!(state == "OPEN", "it is {state}");
        Ok(())
    })
    .await
    .unwrap_or_else(|fault| panic!("{fault:#}"));
    let open = resilience(&shop, "orders").await;
    let more = buy(&ada, 20).await;
    assert_deferred(&more);
    let after = resilience(&shop, "orders").await;
    let refused = after.count("payments", "/calls/refused/breaker_open")
        - open.count("payments", "/calls/refused/breaker_open");
    let attempts = after.count("payments", "/calls/attempts") - open.count("payments", "/calls/attempts");
    assert_eq!(refused + attempts, 20, "each purchase was refused at once or was a probe");
    assert!(attempts <= 6, "{attempts} attempts");
    let quick = more.iter().filter(|answer| answer.took < Duration::from_millis(500)).count();
    assert!(quick >= 15, "{:?}", more.iter().map(|answer| answer.took).collect::<Vec<_>>());
    deferred.extend(more);

    // People read what happens.
    let page = ada.open(&format!("/orders/{}", deferred[0].id())).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Payment will be taken"), "{}", page.text());
    let bought = ada.buy_by_forms("enamel-mug", "tok_ok").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    assert!(bought.text().contains("Payment will be taken"), "{}", bought.text());

    shop.cli(["start", "payments"]);
    assert_paid_once(&ada, &books, deferred.iter().map(Answer::id), PAID_WITHIN).await;
    let live = poll::until("purchases to be paid at once again", PAID_WITHIN, || async {
        let answer = ada.place(&new_key(), &order("enamel-mug", 1, "tok_ok")).await;
        anyhow::ensure!(answer.state() == "paid", "{answer:?}");
        Ok(answer)
    })
    .await;
    assert_eq!(live.expect("live again").status, 201);
    let seen = resilience(&shop, "orders").await;
    let life = seen.changes("payments");
    assert_eq!((life[0], life.last()), ("OPEN", Some(&"CLOSED")), "{life:?}");
    assert!(life.windows(2).any(|pair| pair == ["HALF_OPEN", "CLOSED"]), "{life:?}");
    assert_settled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_hangs_and_only_the_charge_waits_for_it() {
    let shop = Shop::up().await;
    let (ada, books) = (Customer::of(&shop), Books::of(&shop));
    let before = ada.place(&new_key(), &order("enamel-mug", 1, "tok_ok")).await;
    assert_eq!(before.state(), "paid", "{before:?}");

    shop.cli(["pause", "payments"]);
    // The first ones are given their two seconds, and then the breaker knows.
    let waiting = buy_at_once(&ada, 8);
    let looking = async {
        for _ in 0..20 {
            let seen = ada.look(before.id()).await;
            assert_eq!((seen.status.as_u16(), seen.state()), (200, "paid"));
            assert!(seen.took < Duration::from_millis(500), "{:?}", seen.took);
        }
    };
    let (mut deferred, ()) = futures_util::future::join(waiting, looking).await;
    assert_deferred(&deferred);
    assert_ne!(resilience(&shop, "orders").await.breaker("payments"), "CLOSED");
    let more = buy(&ada, 10).await;
    assert_deferred(&more);
    let quick = more.iter().filter(|answer| answer.took < Duration::from_millis(500)).count();
    assert!(quick >= 6, "{:?}", more.iter().map(|answer| answer.took).collect::<Vec<_>>());
    deferred.extend(more);

    shop.cli(["resume", "payments"]);
    assert_paid_once(&ada, &books, deferred.iter().map(Answer::id), PAID_WITHIN).await;
    assert_settled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_hangs_after_its_commit_and_the_page_says_that_we_are_checking() {
    let shop = Shop::up().await;
    let (ada, books) = (Customer::of(&shop), Books::of(&shop));
    ada.open("/").await;
    ada.send("/cart", &[("product_id", "enamel-mug"), ("quantity", "2")]).await;
    let checkout = ada.open("/checkout").await;

    // The bank takes its time, so orders is paused when the order stands and its answer is not out.
    let stopped = books.stock("enamel-mug").await;
    let (page, ()) = futures_util::future::join(ada.pay(&checkout, "tok_slow"), async {
        poll::until("the commit", Duration::from_secs(5), || async {
            anyhow::ensure!(books.stock("enamel-mug").await == stopped - 2, "not yet");
            Ok(())
        })
        .await
        .expect("committed");
        shop.cli(["pause", "orders"]);
    })
    .await;
    assert_eq!(page.status, 504, "{}", page.text());
    assert!(page.text().contains("checking"), "{}", page.text());
    assert!(page.text().contains("do not order again"), "{}", page.text());
    // The cart is frozen: it asks nobody to order again.
    let cart = ada.open("/cart").await;
    assert_eq!(cart.status, 200);
    assert!(cart.text().contains("checking"), "{}", cart.text());

    shop.cli(["resume", "orders"]);
    // The same form once more is the same order.
    let again = poll::until("orders to answer again", Duration::from_secs(20), || async {
        let page = ada.pay(&checkout, "tok_slow").await;
        anyhow::ensure!(
            page.status == 200 && page.path.starts_with("/orders/"),
            "{} {}",
            page.status,
            page.text()
        );
        Ok(page)
    })
    .await
    .unwrap_or_else(|fault| panic!("{fault:#}"));
    let id = again.path.trim_start_matches("/orders/").parse().expect("an id");
    assert_paid_once(&ada, &books, [id], Duration::from_secs(20)).await;
    assert_eq!(books.stock("enamel-mug").await, stopped - 2, "it was bought once");
    assert_settled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_dies_during_a_deferral_and_the_outbox_waits_for_it() {
    let shop = Shop::up().await;
    let (ada, books) = (Customer::of(&shop), Books::of(&shop));
    shop.cli(["kill", "payments"]);
    shop.cli(["kill", "rabbitmq"]);
    let deferred = buy(&ada, 10).await;
    assert_deferred(&deferred);
    shop.cli(["start", "payments"]);
    // Without the broker nobody brings them to payments, and nothing is forgotten meanwhile.
    assert_eq!(books.intents().await, 10);

    shop.cli(["start", "rabbitmq"]);
    assert_paid_once(&ada, &books, deferred.iter().map(Answer::id), PAID_AFTER_BROKER).await;
    assert_settled(&shop).await;

    // Confirmed messages are not the end of an intent: they lie in the queue while payments is away.
    shop.cli(["kill", "payments"]);
    let deferred = buy(&ada, 5).await;
    assert_deferred(&deferred);
    poll::until("the relay to have published them", Duration::from_secs(10), || async {
        let published = resilience(&shop, "orders").await.count("rabbitmq", "/calls/ok");
        anyhow::ensure!(published >= 15, "{published} are published");
        Ok(())
    })
    .await
    .unwrap_or_else(|fault| panic!("{fault:#}"));
    assert_eq!(books.intents().await, 5, "none is done by a confirm");
    shop.cli(["kill", "rabbitmq"]);
    shop.cli(["start", "payments"]);
    shop.cli(["start", "rabbitmq"]);
    assert_paid_once(&ada, &books, deferred.iter().map(Answer::id), PAID_AFTER_BROKER).await;
    assert_settled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_killed_under_purchases_and_every_accepted_one_is_there() {
    let shop = Shop::up().await;
    let ada = Customer::of(&shop);
    let before = buy_at_once(&ada, 5).await;
    assert!(before.iter().all(|answer| answer.state() == "paid"), "{before:?}");

    let keys: Vec<_> = (0..40).map(|_| new_key()).collect();
    let wanted = order("enamel-mug", 1, "tok_ok");
    let buying = join_all(keys.iter().map(|key| async {
        // As a customer does who is told that nothing was done, or that nobody knows: the same again.
        poll::until("an answer that says how it stands", Duration::from_secs(60), || async {
            let answer = ada.place(key, &wanted).await;
            let status = answer.status.as_u16();
            anyhow::ensure!(status != 503 && status != 504, "{answer:?}");
            Ok(answer)
        })
        .await
        .unwrap_or_else(|fault| panic!("{fault:#}"))
    }));
    let killing = async {
        let first = poll::until("the first of them to be placed", Duration::from_secs(10), || async {
            let seen = resilience(&shop, "orders").await.count("postgres", "/calls/ok");
            anyhow::ensure!(seen > 40, "not yet");
            Ok(())
        });
        first.await.unwrap_or_else(|fault| panic!("{fault:#}"));
        shop.cli(["kill", "postgres"]);
        shop.cli(["start", "postgres"]);
    };
    let (answers, ()) = futures_util::future::join(buying, killing).await;
    for answer in &answers {
        assert!(["paid", "payment_deferred", "payment_pending"].contains(&answer.state()), "{answer:?}");
    }
    let books = Books::of(&shop);
    assert_paid_once(&ada, &books, answers.iter().map(Answer::id), PAID_AFTER_BROKER).await;
    let sold = i32::try_from(before.len() + answers.len()).expect("a number");
    assert_eq!(books.stock("enamel-mug").await, 100_000 - sold, "each was bought once");
    assert_settled(&shop).await;
}
