//! The same key: one order, one charge.

use testbed::poll;

use crate::{
    payments::Mood,
    shop::{SOON, Shop, draft, test, two_mugs},
};

#[test]
fn the_same_key_twice_at_the_same_moment_is_one_order_and_one_charge() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let before = shop.stock("enamel-mug").await?;
        shop.payments.set(Mood::Hung);
        let order = two_mugs();
        let (key, order) = ("a-double-click-01", &order);
        let released = async {
            poll::until_true("a charge", SOON, || !shop.payments.calls().is_empty()).await?;
            shop.payments.set(Mood::Well);
            anyhow::Ok(())
        };
        let (one, other, released) =
            tokio::join!(shop.post(key, order, &[]), shop.post(key, order, &[]), released);
        let (one, other) = (one?, other?);
        released?;

        assert_eq!((one.status, other.status), (201, 201), "{one:?} {other:?}");
        assert_eq!(one.json, other.json);
        let replayed = [&one, &other].map(|answer| answer.header("idempotency-replayed"));
        assert!(replayed == ["true", ""] || replayed == ["", "true"], "{replayed:?}");
        assert_eq!(shop.payments.calls().len(), 1);
        assert_eq!(shop.rows().await?, "1 0 1");
        assert_eq!(shop.stock("enamel-mug").await?, before - 2);
        Ok(())
    })
}

#[test]
fn a_repeat_of_a_running_order_says_that_it_is_running_when_its_time_is_up() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        shop.payments.set(Mood::Hung);
        let (key, order) = ("an-impatient-one-1", two_mugs());
        let repeat = async {
            poll::until_true("a charge", SOON, || !shop.payments.calls().is_empty()).await?;
            shop.post(key, &order, &[("x-timeout-ms", "300")]).await
        };
        let (first, repeat) = tokio::join!(shop.post(key, &order, &[]), repeat);
        let (first, repeat) = (first?, repeat?);
        assert_eq!((repeat.status, repeat.json["state"].as_str()), (202, Some("payment_pending")));
        assert_eq!(repeat.header("idempotency-replayed"), "true");
        assert_eq!((first.status, first.json["state"].as_str()), (202, Some("payment_deferred")));
        shop.payments.set(Mood::Well);
        shop.until(first.id(), "paid").await?;
        Ok(())
    })
}

#[test]
fn the_same_key_with_other_content_is_refused() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let key = "a-key-used-twice-1";
        let first = shop.post(key, &two_mugs(), &[]).await?;
        let others = [
            draft("enamel-mug", 1, "tok_ok"),
            draft("ditty-bag", 2, "tok_ok"),
            draft("enamel-mug", 2, "tok_slow"),
        ];
        for other in others {
            let answer = shop.post(key, &other, &[]).await?;
            assert_eq!((answer.status, answer.json["code"].as_str()), (422, Some("idempotency_key_reused")));
            assert_eq!(answer.id(), first.id());
        }
        assert_eq!(shop.rows().await?, "1 0 1");
        Ok(())
    })
}
