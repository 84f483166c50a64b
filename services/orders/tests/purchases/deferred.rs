//! Payments does not answer: the order is taken, and paid once when it does.

use std::time::Duration;

use testbed::poll;
use tokio::time::{Instant, timeout};

use crate::{
    payments::Mood,
    shop::{SOON, Shop, draft, test, two_mugs},
};

#[test]
fn a_hung_payments_service_costs_the_callers_time_and_no_more() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        // A first order, so that connections and statements are there.
        assert_eq!(shop.post("to-warm-it-up-00001", &two_mugs(), &[]).await?.status, 201);
        shop.payments.set(Mood::Hung);
        let sent = Instant::now();
        let answer = shop.post("a-hurried-order-01", &two_mugs(), &[("x-timeout-ms", "300")]).await?;
        let took = sent.elapsed();

        assert_eq!(answer.status, 202, "{answer:?}");
        let state = answer.json["state"].as_str().unwrap_or_default();
        assert!(["payment_deferred", "payment_pending"].contains(&state), "{state}");
        // The rest is what this machine needs to run the processes of several tests at once.
        assert!(took < Duration::from_millis(300 + 700), "{took:?}");
        poll::until("nothing to run in Postgres", SOON, || async {
            let busy = shop
                .sql(
                    "SELECT count(*) FILTER (WHERE state <> 'idle'), count(*) > 0 FROM pg_stat_activity
                     WHERE application_name = 'orders' AND datname = current_database()",
                )
                .await?;
            anyhow::ensure!(busy == "0|t", "connections at work, and whether there are any: {busy}");
            Ok(())
        })
        .await?;

        shop.payments.set(Mood::Well);
        shop.until(answer.id(), "paid").await?;
        assert_eq!(shop.rows().await?, "2 0 2");
        Ok(())
    })
}

#[test]
fn without_payments_orders_are_taken_at_once_and_paid_once_when_it_is_back() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::alone().await?;
        shop.catalog.start().await?;
        let sent = Instant::now();
        let answer = shop.post("payments-is-gone-1", &two_mugs(), &[]).await?;
        assert!(sent.elapsed() < Duration::from_millis(1500), "{:?}", sent.elapsed());
        assert_eq!((answer.status, answer.json["state"].as_str()), (202, Some("payment_deferred")));
        assert_eq!(answer.history(), ["payment_pending", "payment_deferred"]);

        // The worker tries again and again, and the intent stands until the outcome is on the order.
        poll::until("the worker to have tried three times", SOON, || async {
            let tried = shop.attempts("payments-deferred").await?;
            anyhow::ensure!(tried >= 3, "{tried}");
            Ok(())
        })
        .await?;
        assert_eq!(shop.rows().await?, "1 1 0");

        shop.payments.start().await?;
        let paid = shop.until(answer.id(), "paid").await?;
        assert_eq!(paid.history(), ["payment_pending", "payment_deferred", "paid"]);
        assert_eq!(shop.payments.calls_for(answer.id()), 1);
        assert_eq!(shop.rows().await?, "1 0 1");
        let again = shop.post("payments-is-gone-1", &two_mugs(), &[]).await?;
        assert_eq!((again.status, again.header("idempotency-replayed")), (201, "true"));
        Ok(())
    })
}

#[test]
fn a_deferred_order_that_is_declined_gives_its_pieces_back() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::alone().await?;
        shop.catalog.start().await?;
        let before = shop.stock("ditty-bag").await?;
        let answer = shop.post("no-money-later-001", &draft("ditty-bag", 4, "tok_declined"), &[]).await?;
        assert_eq!((answer.status, shop.stock("ditty-bag").await?), (202, before - 4));
        shop.payments.start().await?;
        shop.until(answer.id(), "declined").await?;
        assert_eq!((shop.stock("ditty-bag").await?, shop.rows().await?.as_str()), (before, "1 0 0"));
        Ok(())
    })
}

#[test]
fn a_customer_who_hangs_up_is_served_all_the_same() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        shop.payments.set(Mood::Hung);
        let order = two_mugs();
        let charged = poll::until_true("a charge", SOON, || !shop.payments.calls().is_empty());
        // The charge comes after the commit; then the request is given up, and its connection closed.
        tokio::select! {
            answer = shop.post("a-lost-connection-1", &order, &[]) => anyhow::bail!("it was answered: {answer:?}"),
            charged = charged => charged?,
        }
        let id = shop.payments.calls()[0].key.clone();
        assert_eq!(shop.sql("SELECT state FROM orders").await?, "payment_pending");
        shop.payments.set(Mood::Well);
        let paid = shop.until(&id, "paid").await?;
        assert_eq!(paid.history(), ["payment_pending", "paid"]);
        assert_eq!(shop.payments.calls_for(&id), 2, "one of the request, one of the relay");
        assert_eq!(shop.rows().await?, "1 0 1");
        Ok(())
    })
}

#[test]
fn what_a_killed_process_has_begun_the_next_one_ends() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        shop.payments.set(Mood::Hung);
        let order = two_mugs();
        let killed = async {
            poll::until_true("a charge", SOON, || !shop.payments.calls().is_empty()).await?;
            shop.orders.kill().await
        };
        let (answer, killed) = tokio::join!(shop.post("killed-in-the-act-1", &order, &[]), killed);
        killed?;
        assert!(answer.is_err(), "{answer:?}");
        shop.payments.set(Mood::Well);
        shop.orders.start().await?;
        let answer = shop.insist("killed-in-the-act-1", &order).await?;
        assert!(answer.status < 300, "{answer:?}");
        assert_eq!(answer.header("idempotency-replayed"), "true");
        shop.until(answer.id(), "paid").await?;
        assert_eq!(shop.rows().await?, "1 0 1");
        Ok(())
    })
}

#[test]
fn several_replicas_share_the_work() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::alone().await?;
        shop.catalog.start().await?;
        let other = shop.replica().await?;
        let order = two_mugs();
        let keys: Vec<_> = (0..20).map(|n| format!("one-of-twenty-{n:04}")).collect();
        let posts = keys.iter().map(|key| shop.insist(key, &order));
        let answers = futures_util::future::try_join_all(posts).await?;
        assert!(answers.iter().all(|answer| answer.status == 202), "{answers:?}");

        shop.payments.start().await?;
        for answer in &answers {
            shop.until(answer.id(), "paid").await?;
        }
        // Without leases both would ask for each. Now and then an answer is late on a busy machine,
        // and is asked for again.
        let calls = shop.payments.calls().len();
        assert!((20..25).contains(&calls), "{calls} charges were asked for");
        assert_eq!(shop.rows().await?, "20 0 20");
        assert!(timeout(SOON, other.stop()).await??, "it ran to the end");
        Ok(())
    })
}

#[test]
fn a_charge_that_payments_finds_malformed_stays_deferred() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        shop.payments.set(Mood::Picky);
        let answer = shop.post("our-own-mistake-01", &two_mugs(), &[]).await?;
        assert_eq!((answer.status, answer.json["state"].as_str()), (202, Some("payment_deferred")));
        assert!(shop.log()?.contains("payments does not take this charge"));
        shop.payments.set(Mood::Well);
        shop.until(answer.id(), "paid").await?;
        Ok(())
    })
}
