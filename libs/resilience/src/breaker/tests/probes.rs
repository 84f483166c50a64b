//! Half-open: where most breakers are wrong.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::*;

#[tokio::test(start_paused = true)]
async fn of_fifty_callers_at_the_moment_of_opening_as_many_are_let_in_as_probes_are_set() {
    let breaker = ready_for_probes(settings()).await;
    let permits: Vec<_> = (0..50).filter_map(|_| breaker.admit().ok()).collect();
    assert_eq!(permits.len(), 2, "the one that switched takes a place too");
}

#[test]
fn of_threads_that_come_at_the_same_moment_as_many_are_let_in_as_probes_are_set() {
    for _ in 0..50 {
        let breaker = breaker(BreakerSettings { open_for: MS, open_for_at_most: MS, ..settings() });
        open(breaker);
        while breaker.look().is_err() {
            std::thread::yield_now();
        }
        let (together, let_in) = (Barrier::new(8), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    let permit = breaker.admit();
                    let_in.fetch_add(usize::from(permit.is_ok()), Ordering::Relaxed);
                    together.wait();
                    drop(permit);
                });
            }
        });
        assert_eq!(let_in.into_inner(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_probes_give_their_places_back() {
    let breaker = ready_for_probes(settings()).await;
    for _ in 0..20 {
        drop(breaker.admit().expect("the place is free again"));
    }
    for _ in 0..20 {
        run(breaker, Verdict::Neutral);
    }
    run(breaker, Verdict::Healthy);
    run(breaker, Verdict::Healthy);
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_gives_its_place_back() {
    let breaker = ready_for_probes(settings()).await;
    for _ in 0..5 {
        let probe = AssertUnwindSafe(|| {
            let _permit = breaker.admit().expect("the place is free again");
            panic!("in the middle of a probe (expected)");
        });
        assert!(catch_unwind(probe).is_err());
    }
    assert_eq!(breaker.snapshot().probes, Some((0, 0)));
}

#[tokio::test(start_paused = true)]
async fn hung_probes_hold_it_no_longer_than_their_lease() {
    let breaker = ready_for_probes(BreakerSettings { probe_lease: 3000 * MS, ..settings() }).await;
    let hung = [breaker.admit().expect("a probe"), breaker.admit().expect("a probe")];
    advance(2999 * MS).await;
    assert_eq!(breaker.admit().expect_err("both out"), Refusal::BreakerOpen { retry_after: WHILE_PROBING });
    assert_eq!(breaker.state(), State::HalfOpen);
    advance(MS).await;
    assert_eq!(breaker.admit().expect_err("given up"), Refusal::BreakerOpen { retry_after: 2000 * MS });
    assert_eq!(breaker.state(), State::Open);
    advance(2000 * MS).await;
    let probe = breaker.admit().expect("a new probe");
    for late in hung {
        late.finish(Verdict::Healthy, 9000 * MS);
    }
    assert_eq!(breaker.snapshot().probes, Some((1, 0)), "an answer after the lease is nobody's");
    probe.finish(Verdict::Healthy, QUICK);
    run(breaker, Verdict::Healthy);
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_admission_ends_also_when_all_probes_hang() {
    let breaker = ready_for_probes(BreakerSettings { probe_lease: 3000 * MS, ..settings() }).await;
    let _hung = [breaker.admit().expect("a probe"), breaker.admit().expect("a probe")];
    let began = tokio::time::Instant::now();
    breaker.admitting().await;
    assert_eq!(began.elapsed(), 3000 * MS);
    assert!(breaker.admit().is_err(), "the lease is over: it opens, for another while");
    breaker.admitting().await;
    assert!(breaker.admit().is_ok());
}

#[tokio::test(start_paused = true)]
async fn successes_that_set_out_before_the_trip_close_nothing() {
    let breaker = breaker(settings());
    let early: Vec<_> = (0..30).map(|_| breaker.admit().expect("closed")).collect();
    open(breaker);
    advance(1000 * MS).await;
    let _probe = breaker.admit().expect("a probe");
    for permit in early {
        permit.finish(Verdict::Healthy, QUICK);
    }
    assert_eq!((breaker.state(), breaker.snapshot().probes), (State::HalfOpen, Some((1, 0))));
    assert_eq!((0..30).filter_map(|_| breaker.admit().ok()).count(), 30, "each gives its place back at once");
}

#[tokio::test(start_paused = true)]
async fn failures_that_set_out_before_the_trip_open_nothing_again() {
    let breaker = breaker(BreakerSettings { consecutive_failures: Some(3), ..settings() });
    let early: Vec<_> = (0..30).map(|_| breaker.admit().expect("closed")).collect();
    open(breaker);
    let mut early = early.into_iter();
    // While it is open,
    early.by_ref().take(10).for_each(|permit| permit.finish(Verdict::Failure, QUICK));
    assert_eq!(breaker.snapshot().openings, 1);
    advance(1000 * MS).await;
    run(breaker, Verdict::Healthy);
    // while it is half-open,
    early.by_ref().take(10).for_each(|permit| permit.finish(Verdict::Failure, QUICK));
    assert_eq!((breaker.state(), breaker.snapshot().probes), (State::HalfOpen, Some((1, 1))));
    run(breaker, Verdict::Healthy);
    // and when it is closed again.
    early.for_each(|permit| permit.finish(Verdict::Failure, QUICK));
    let seen = breaker.snapshot();
    assert_eq!((seen.state, seen.calls, seen.failures_in_a_row), (State::Closed, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_failed_probe_opens_it_whatever_the_minimum_number_of_calls() {
    let breaker = ready_for_probes(BreakerSettings { minimum_calls: 100, ..settings() }).await;
    run(breaker, Verdict::Healthy);
    run(breaker, Verdict::Failure);
    assert_eq!(breaker.state(), State::Open);
    assert!(breaker.admit().is_err());
}

#[tokio::test(start_paused = true)]
async fn it_closes_with_an_empty_window() {
    let breaker = ready_for_probes(settings()).await;
    run(breaker, Verdict::Healthy);
    run(breaker, Verdict::Healthy);
    assert_eq!(breaker.snapshot().calls, 0);
    run(breaker, Verdict::Failure);
    assert_eq!(breaker.state(), State::Closed, "what came before the trip is not held against it twice");
}
