//! What callers get.

use std::time::Duration;

use anyhow::Context as _;
use proto::payments::{ChargeRequest, Decision};
use resilience::Outcome;
use testbed::poll;
use tokio::time::timeout;
use tonic::Code;
use uuid::Uuid;

use crate::running::{AMPLE, CHARGED, SOON, World, charge_of, meaning};

#[tokio::test]
async fn each_card_gets_its_decision_and_only_approved_ones_move_money() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[]).await?;
    let (yes, no) = (Decision::Approved, Decision::Declined);
    for (card, decision, reason, books) in [
        ("tok_ok", yes, "", CHARGED),
        ("tok_declined", no, "declined by the bank", "declined*1|f*1|"),
        ("tok_insufficient_funds", no, "insufficient funds", "declined*1|f*1|"),
    ] {
        let (key, message) = charge_of(card);
        let first = payments.charge(message.clone(), AMPLE).await?;
        assert_eq!(
            (first.decision(), first.decline_reason.as_str(), first.replayed),
            (decision, reason, false)
        );
        let again = payments.charge(message, AMPLE).await?;
        assert_eq!(
            (again.decision(), again.decline_reason.as_str(), again.replayed),
            (decision, reason, true)
        );
        assert_eq!(world.books(key).await?, books, "{card}");
    }
    let balances = "SELECT account, amount_minor, currency FROM balances ORDER BY account";
    assert_eq!(world.sql(balances).await?, "customers|-1999|EUR shop|1999|EUR");

    let log = payments.log()?;
    assert!(log.contains("the database is ready"), "{log}");
    assert!(!log.contains("tok_"), "a card is in the log: {log}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_charge_is_refused_by_name_and_changes_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[]).await?;
    let (key, message) = charge_of("tok_ok");
    payments.charge(message.clone(), AMPLE).await?;

    type Spoil = fn(&mut ChargeRequest);
    let cases: [(&str, Spoil); 10] = [
        ("key was used before", |m| m.amount_minor += 1),
        ("key was used before", |m| m.currency = "USD".into()),
        ("key was used before", |m| m.card = "tok_slow".into()),
        ("key must be a UUID", |m| m.key.clear()),
        ("key must be a UUID", |m| m.key = "\0".into()),
        ("amount_minor must be", |m| m.amount_minor = 0),
        ("amount_minor must be", |m| m.amount_minor = i64::MIN),
        ("currency must be one of", |m| m.currency = "eur".into()),
        ("card must be one of", |m| m.card = "4111111111111111".into()),
        ("amount_minor must be more than 0; currency", |m| {
            *m = ChargeRequest { key: Uuid::nil().to_string(), ..ChargeRequest::default() };
        }),
    ];
    for (told, spoil) in cases {
        let mut spoilt = message.clone();
        spoil(&mut spoilt);
        let status = payments.charge(spoilt, AMPLE).await.expect_err(told);
        let text = status.message().replace("key: the key", "key").to_owned();
        assert!(text.starts_with(told), "{told}: {text}");
        assert!(!text.contains("4111"), "a card is shown back: {text}");
        assert_eq!(meaning(status), (Code::InvalidArgument, Outcome::Rejected), "{told}");
    }
    let large = ChargeRequest { card: "x".repeat(100_000), ..message };
    let status = payments.charge(large, AMPLE).await.expect_err("too large");
    assert_eq!(status.code(), Code::OutOfRange, "{status}");

    assert_eq!(world.sql("SELECT count(*) FROM charges WHERE state <> 'declined'").await?, "1");
    assert_eq!(world.books(key).await?, CHARGED);
    Ok(())
}

#[tokio::test]
async fn one_key_many_times_at_once_is_one_charge_at_any_replica() -> anyhow::Result<()> {
    let world = World::new().await?;
    let slow = [("BANK_SLOW", "300ms")];
    let replicas = [world.payments(&slow).await?, world.payments(&slow).await?];
    for card in ["tok_ok", "tok_slow"] {
        let (key, message) = charge_of(card);
        let ask = |replica: usize| {
            let (client, message) = (replicas[replica % 2].client(), message.clone());
            tokio::spawn(async move { client.charge(message, AMPLE).await })
        };
        let asked: Vec<_> = (0..24).map(ask).collect();
        let mut made_here = 0;
        for answer in asked {
            let reply = answer.await?.with_context(|| card)?;
            assert_eq!(reply.decision(), Decision::Approved, "{card}");
            made_here += usize::from(!reply.replayed);
        }
        assert_eq!(made_here, 1, "{card}: how many have made the decision");
        assert_eq!(world.books(key).await?, CHARGED, "{card}");
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_bank_is_told_in_time_and_the_charge_goes_on_without_its_caller() -> anyhow::Result<()> {
    let world = World::new().await?;
    // The bank takes more than two leases: the claim has to be renewed meanwhile.
    let payments = world.payments(&[("BANK_SLOW", "7s")]).await?;
    let (key, message) = payments.begun().await;
    let mut told = 0;
    for _ in 0..5 {
        let hurried = payments.charge(message.clone(), Duration::from_millis(300)).await;
        let status = hurried.expect_err("the bank is slow");
        // Aborted: there was time for an answer, and neither our clock nor the service's has ended
        // the call. That is what a busy machine may miss now and then, but not each time.
        if status.code() == Code::Aborted {
            assert_eq!(status.metadata().get("x-outcome").context("no outcome")?, "unknown", "{status}");
            told += 1;
        }
        assert_eq!(meaning(status).1, Outcome::Unknown);
    }
    assert!(told > 0, "nobody was told in time");
    // One who waits long enough hears it as soon as it is known.
    let reply = payments.charge(message.clone(), AMPLE).await?;
    assert!(reply.replayed && reply.decision() == Decision::Approved, "{reply:?}");
    assert_eq!(world.books(key).await?, CHARGED);
    Ok(())
}

#[tokio::test]
async fn callers_who_hang_up_at_any_moment_leave_nothing_undone() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[]).await?;
    for wave in 0..20 {
        let calls = (0..5).map(|n| {
            let (client, (_, message)) = (payments.client(), charge_of("tok_ok"));
            let patience = Duration::from_micros(100 * (5 * wave + n));
            tokio::spawn(timeout(patience, client.charge(message, AMPLE)))
        });
        for call in calls.collect::<Vec<_>>() {
            // Whether it was heard does not matter here.
            drop(call.await?);
        }
    }
    world.becomes("0", "SELECT count(*) FROM charges WHERE state = 'pending'").await?;
    // Nothing had to be found and driven again: whoever was claimed was also driven at once.
    let begun = world.sql("SELECT count(*), max(claims) FROM charges WHERE card = 'tok_ok'").await?;
    let (charges, most_claims) = begun.split_once('|').context("two columns")?;
    assert!(charges != "0" && most_claims == "1", "{begun}");
    assert_eq!(world.sql("SELECT count(*) / 2 FROM ledger_entries").await?, charges);
    assert_eq!(world.sql("SELECT count(*), max(asked) FROM bank.transfers WHERE approved").await?, begun);
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'payments' AND state <> 'idle'";
    world.becomes("0", open).await?;
    Ok(())
}

#[tokio::test]
async fn more_charges_than_it_can_drive_are_shed() -> anyhow::Result<()> {
    let world = World::new().await?;
    let payments = world.payments(&[("CHARGES_AT_ONCE", "1"), ("BANK_SLOW", "3s")]).await?;
    let (key, _) = payments.begun().await;
    let (other, message) = charge_of("tok_ok");
    let status = payments.charge(message.clone(), AMPLE).await.expect_err("its only place is taken");
    assert_eq!(meaning(status), (Code::ResourceExhausted, Outcome::NotExecuted));
    assert_eq!(world.sql(&format!("SELECT count(*) FROM charges WHERE key = '{other}'")).await?, "0");
    world.approved(key).await?;
    let reply =
        poll::until("a place", SOON, || async { Ok(payments.charge(message.clone(), AMPLE).await?) }).await?;
    assert_eq!(reply.decision(), Decision::Approved);
    Ok(())
}
