//! Breaker and bulkhead together, cancelled calls, and two policies with one breaker.

use tokio::{task::JoinSet, time::timeout};

use super::*;

fn places(places: u32, waiting: u32) -> BulkheadSettings {
    BulkheadSettings { places, waiting }
}

#[tokio::test(start_paused = true)]
async fn of_twelve_at_once_two_run_and_the_shed_ones_blame_nobody() {
    let policy = payments().breaker(breaker()).bulkhead(places(2, 0)).build().expect("good settings");
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        calls.spawn(async move {
            let answer = async |_| {
                sleep(100 * MS).await;
                Ok::<(), Failure>(())
            };
            policy.call(&caller(3000 * MS), Op::once("charge"), answer).await.map_err(|error| error.class())
        });
    }
    let ended = calls.join_all().await;
    assert_eq!(ended.iter().filter(|it| it.is_ok()).count(), 2);
    let shed = Class::not_executed().with_verdict(Verdict::Neutral).lasting();
    assert!(ended.iter().all(|it| it.is_ok() || *it == Err(shed)));
    let seen = policy.snapshot();
    assert_eq!((seen.calls.bulkhead_full, seen.bulkhead.expect("set").in_use), (10, 0));
    assert_eq!(seen.breaker.expect("set").calls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_gets_no_place_gives_its_probes_place_back() {
    let open = BreakerSettings { open_for: 100 * MS, ..breaker() };
    let policy = payments().breaker(open).bulkhead(places(1, 0)).build().expect("good settings");
    while !policy.breaker_is_open() {
        charge(policy, Err(DOWN)).await.expect_err("down");
    }
    advance(100 * MS).await;
    let place = policy.bulkhead().expect("set").try_enter().expect("free");
    for _ in 0..5 {
        let error = charge(policy, Ok(())).await.expect_err("full");
        assert!(matches!(error, CallError::Refused { refusal: Refusal::BulkheadFull, .. }), "{error}");
    }
    assert_eq!(policy.snapshot().breaker.expect("set").probes, Some((0, 0)));
    drop(place);
    charge(policy, Ok(())).await.expect("the probe");
    assert_eq!(policy.snapshot().breaker.expect("set").state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn those_who_waited_for_a_place_while_it_opened_are_not_sent() {
    let policy = payments().breaker(breaker()).bulkhead(places(4, 50)).build().expect("good settings");
    let mut calls = JoinSet::new();
    for _ in 0..40 {
        calls.spawn(async move {
            let answer = async |_| {
                sleep(10 * MS).await;
                Err::<(), _>(DOWN)
            };
            policy
                .call(&caller(3000 * MS), Op::once("charge"), answer)
                .await
                .map_err(|error| error.failure().is_some())
        });
    }
    let sent = calls.join_all().await.into_iter().filter(|it| *it == Err(true)).count();
    assert_eq!(sent, 4, "the first four failed and opened it");
    assert_eq!(policy.snapshot().calls.breaker_open, 36);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_is_bounded_and_leaves_time_for_the_attempt() {
    let policy = payments().bulkhead(places(1, 10)).build().expect("good settings");
    let _place = policy.bulkhead().expect("set").try_enter().expect("free");
    for (left, waited) in [(3000, 20), (15, 10), (5, 0)] {
        let began = Instant::now();
        let error = policy.call(&caller(left * MS), Op::once("charge"), hung).await.expect_err("full");
        assert!(matches!(error, CallError::Refused { refusal: Refusal::BulkheadFull, .. }), "{error}");
        assert_eq!(began.elapsed(), waited * MS);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_gives_everything_back_and_counts_neither_way() {
    let policy = payments().breaker(breaker()).bulkhead(places(2, 2)).build().expect("good settings");
    for _ in 0..20 {
        assert!(timeout(50 * MS, policy.call(&caller(3000 * MS), Op::once("charge"), hung)).await.is_err());
    }
    let seen = policy.snapshot();
    assert_eq!((seen.bulkhead.expect("set").in_use, seen.breaker.expect("set").calls), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hung_neighbour_is_found_out_by_its_timeouts_with_all_places_taken() {
    let policy = payments().breaker(breaker()).bulkhead(places(4, 0)).build().expect("good settings");
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        calls.spawn(async move { policy.call(&caller(3000 * MS), Op::once("charge"), hung).await.is_err() });
    }
    let began = Instant::now();
    assert_eq!(calls.join_all().await, [true; 4]);
    assert_eq!(began.elapsed(), 200 * MS);
    assert!(policy.breaker_is_open());
}

#[tokio::test(start_paused = true)]
async fn a_worker_shares_the_breaker_and_not_the_places() {
    let policy = payments().breaker(breaker()).bulkhead(places(1, 0)).build().expect("good settings");
    let worker = Policy::builder("payments-deferred", Timeouts::attempt(200 * MS))
        .shared_breaker(policy.breaker().expect("set"))
        .bulkhead(places(1, 0))
        .build()
        .expect("good settings");
    let place = policy.bulkhead().expect("set").try_enter();
    charge(worker, Ok(())).await.expect("it has its own place");
    drop(place);
    while worker.would_admit().is_ok() {
        charge(policy, Err(DOWN)).await.expect_err("down");
    }
    charge(worker, Ok(())).await.expect_err("open for both");
    let began = Instant::now();
    worker.admitting().await;
    assert_eq!(began.elapsed(), 5000 * MS);
    charge(worker, Ok(())).await.expect("the probe");
    assert_eq!(policy.snapshot().breaker.expect("set").state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_lease_shorter_than_the_timeouts_is_refused_for_a_shared_breaker_too() {
    let policy =
        payments().breaker(BreakerSettings { probe_lease: 500 * MS, ..breaker() }).build().expect("good");
    let slower = Policy::builder("payments-deferred", Timeouts::attempt(5000 * MS));
    let faults = slower.shared_breaker(policy.breaker().expect("set")).build().expect_err("bad");
    assert_eq!(faults.0[0].name, "payments-deferred.breaker.probe_lease");
}
