//! The catalog or the database is away.

use std::sync::Arc;

use testbed::{Postgres, poll, postgres::Options};

use crate::shop::{SOON, Shop, test, two_mugs};

#[test]
fn without_the_catalog_the_last_prices_are_used() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::alone().await?;
        shop.payments.start().await?;
        let unpriced = shop.post("nobody-knows-01234", &two_mugs(), &[]).await?;
        assert_eq!((unpriced.status, unpriced.header("x-outcome")), (503, "not-executed"));
        assert_eq!(shop.rows().await?, "0 0 0");

        shop.catalog.start().await?;
        let live = shop.post("nobody-knows-01234", &two_mugs(), &[]).await?;
        assert_eq!((live.status, live.id()), (201, unpriced.id()), "the key is still good");
        shop.catalog.stop();
        let remembered = shop.post("remembered-012345", &two_mugs(), &[]).await?;
        assert_eq!(remembered.status, 201, "{remembered:?}");
        assert_eq!(remembered.json["total"], live.json["total"]);
        Ok(())
    })
}

#[test]
fn without_its_database_it_says_so_and_joins_by_itself() -> anyhow::Result<()> {
    test(async {
        let postgres = Arc::new(Postgres::start(Options::default()).await?);
        let shop = Shop::prepare(Arc::clone(&postgres)).await?;
        postgres.part().kill().await?;
        shop.catalog.start().await?;
        shop.payments.start().await?;
        shop.orders.start().await?;

        let key = "the-cellar-is-wet-1";
        let answer = shop.post(key, &two_mugs(), &[]).await?;
        assert_eq!((answer.status, answer.header("x-outcome")), (503, "not-executed"), "{answer:?}");
        assert_eq!(answer.id().len(), 36, "the order's id is known all the same: {answer:?}");
        let unread = shop.get(answer.id()).await?;
        assert_eq!((unread.status, unread.header("x-outcome")), (503, "not-executed"), "{unread:?}");

        postgres.part().start().await?;
        let sold = || async {
            let answer = shop.post(key, &two_mugs(), &[]).await?;
            anyhow::ensure!(answer.status == 201, "{answer:?}");
            Ok(answer)
        };
        let first = poll::until("the order", SOON, sold).await?;
        assert_eq!(first.id(), answer.id());

        // It goes and comes back while orders runs: what was answered holds.
        postgres.part().kill().await?;
        let gone = shop.post("the-cellar-is-wet-2", &two_mugs(), &[]).await?;
        assert_eq!((gone.status, gone.header("x-outcome")), (503, "not-executed"), "{gone:?}");
        postgres.part().start().await?;
        let again = poll::until("the same order", SOON, sold).await?;
        assert_eq!((again.header("idempotency-replayed"), &again.json), ("true", &first.json));
        Ok(())
    })
}

#[test]
fn a_commit_without_an_answer_is_told_as_unknown_and_the_key_finds_out() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        // Postgres takes longer over the commit of an order than the request has time.
        shop.sql(
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql
             AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'",
        )
        .await?;
        shop.sql(
            "CREATE CONSTRAINT TRIGGER lingering AFTER INSERT ON orders
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()",
        )
        .await?;
        let key = "was-it-written-0001";
        let answer = shop.post(key, &two_mugs(), &[("x-timeout-ms", "1000")]).await?;
        assert_eq!((answer.status, answer.header("x-outcome")), (504, "unknown"), "{answer:?}");
        assert_eq!((answer.json["outcome"].as_str(), answer.id().len()), (Some("unknown"), 36));
        assert_eq!(shop.payments.calls(), [], "nothing is charged that may not be ordered");

        // The repeat may have to wait for the end of the first commit.
        poll::until("the trigger to go", SOON, || shop.sql("DROP TRIGGER lingering ON orders")).await?;
        let sold = shop.insist(key, &two_mugs()).await?;
        assert_eq!((sold.status, sold.id()), (201, answer.id()));
        assert_eq!(shop.rows().await?, "1 0 1");
        Ok(())
    })
}
