//! What is left when a part dies in the middle, and what becomes of it.

use proto::payments::Decision;
use resilience::Outcome;
use tonic::Code;

use crate::running::{AMPLE, CHARGED, SHORT, World, charge_of, meaning};

const BOOKED: &str = "customers:-1999EUR,shop:1999EUR";

#[tokio::test]
async fn a_killed_driver_leaves_a_charge_that_is_driven_again_unasked() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[("BANK_SLOW", "4s")]).await?;
    let (key, _) = payments.begun().await;
    payments.part.kill().await?;
    assert_eq!(world.books(key).await?, "pending*1||", "the bank has not been asked to the end");

    payments.part.start().await?;
    world.approved(key).await?;
    assert_eq!(world.books(key).await?, format!("approved*2|t*1|{BOOKED}"));
    Ok(())
}

#[tokio::test]
async fn a_crash_after_the_bank_moves_no_money_twice() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[]).await?;
    payments.part.kill().await?;
    // More than the worker drives at once, each with the money moved and nothing written down.
    world
        .sql(
            "WITH forgotten AS (
                 INSERT INTO charges (key, amount_minor, currency, card, claim, lease_until)
                 SELECT gen_random_uuid(), 1000 + n, 'EUR', 'tok_ok', gen_random_uuid(), now() - interval '1 second'
                 FROM generate_series(1, 50) AS n RETURNING key, amount_minor, currency
             )
             INSERT INTO bank.transfers (key, amount_minor, currency, approved, decline_reason)
             SELECT key, amount_minor, currency, true, '' FROM forgotten",
        )
        .await?;
    // One whose driver may still live: its lease holds.
    let (held, message) = charge_of("tok_ok");
    world
        .sql(&format!(
            "INSERT INTO charges (key, amount_minor, currency, card, claim, lease_until)
             VALUES ('{held}', 1999, 'EUR', 'tok_ok', gen_random_uuid(), now() + interval '1 hour')"
        ))
        .await?;

    payments.part.start().await?;
    world.becomes("50", "SELECT count(*) FROM charges WHERE state = 'approved'").await?;
    let twice = "SELECT count(*), min(asked), max(asked) FROM bank.transfers WHERE approved";
    assert_eq!(world.sql(twice).await?, "50|2|2");
    let booked = "SELECT count(*), sum(amount_minor) FILTER (WHERE account = 'shop') FROM ledger_entries";
    assert_eq!(world.sql(booked).await?, format!("100|{}", (1..=50).map(|n| 1000 + n).sum::<i64>()));

    let status = payments.charge(message.clone(), SHORT).await.expect_err("somebody else drives it");
    assert_eq!(meaning(status).1, Outcome::Unknown);
    assert_eq!(world.books(held).await?, "pending*1||");
    // Its lease is over: a repeat, or the worker, whoever comes first, drives it.
    world.sql(&format!("UPDATE charges SET lease_until = now() WHERE key = '{held}'")).await?;
    let reply = payments.charge(message, AMPLE).await?;
    assert_eq!(reply.decision(), Decision::Approved);
    assert_eq!(world.books(held).await?, format!("approved*2|t*1|{BOOKED}"));
    Ok(())
}

#[tokio::test]
async fn without_its_database_it_says_so_and_joins_by_itself() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.postgres.part().kill().await?;
    let payments = world.payments_alone(&[("BANK_SLOW", "3s")]).await?;
    let (key, message) = charge_of("tok_ok");
    let status = payments.charge(message.clone(), AMPLE).await.expect_err("it was never there");
    assert_eq!(meaning(status), (Code::Unavailable, Outcome::NotExecuted));
    world.postgres.part().start().await?;
    payments.joined().await?;
    let reply = payments.charge(message, AMPLE).await?;
    assert!(!reply.replayed && reply.decision() == Decision::Approved, "{reply:?}");
    assert_eq!(world.books(key).await?, CHARGED);

    // It goes while the bank thinks: the bank cannot write, or we cannot.
    let (begun, _) = payments.begun().await;
    world.postgres.part().kill().await?;
    let status = payments.charge(charge_of("tok_ok").1, AMPLE).await.expect_err("it has gone");
    assert_eq!(meaning(status), (Code::Unavailable, Outcome::NotExecuted));
    payments.part.spec().ready.ask().await?;
    world.postgres.part().start().await?;
    world.approved(begun).await?;
    assert!(world.books(begun).await?.ends_with(BOOKED), "{}", world.books(begun).await?);
    Ok(())
}

#[tokio::test]
async fn a_stop_finishes_what_was_begun() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[("BANK_SLOW", "3s")]).await?;
    let (key, _) = payments.begun().await;
    assert!(payments.part.stop().await?);
    assert_eq!(world.books(key).await?, CHARGED);
    Ok(())
}
