//! Situations of a breaker, on a paused clock.

mod model;
mod probes;
mod windows;

use std::sync::Mutex;

use tokio::time::advance;

use super::*;
use crate::Class;

const MS: Duration = Duration::from_millis(1);
const QUICK: Duration = Duration::from_millis(2);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Opens at half of at least four calls, for exactly a second; two probes.
fn settings() -> BreakerSettings {
    BreakerSettings {
        window: Window::Calls(100),
        minimum_calls: 4,
        open_for: 1000 * MS,
        open_for_at_most: 8000 * MS,
        jitter: crate::Jitter::Off,
        probes: 2,
        ..BreakerSettings::default()
    }
}

fn breaker(settings: BreakerSettings) -> Breaker {
    Breaker::builder("payments", settings).build().expect("good settings")
}

fn run(breaker: Breaker, verdict: Verdict) {
    breaker.admit().expect("let in").finish(verdict, QUICK);
}

fn open(breaker: Breaker) {
    while breaker.state() == State::Closed {
        run(breaker, Verdict::Failure);
    }
}

/// Opened, and its open time is over.
async fn ready_for_probes(settings: BreakerSettings) -> Breaker {
    let breaker = breaker(settings);
    open(breaker);
    advance(settings.open_for).await;
    breaker
}

#[tokio::test(start_paused = true)]
async fn a_sick_neighbour_is_left_alone_and_taken_back_when_it_is_well() {
    let breaker = breaker(settings());
    for _ in 0..4 {
        run(breaker, Verdict::Failure);
    }
    assert_eq!(breaker.state(), State::Open);
    advance(400 * MS).await;
    assert_eq!(breaker.admit().expect_err("open"), Refusal::BreakerOpen { retry_after: 600 * MS });
    advance(600 * MS).await;
    run(breaker, Verdict::Healthy);
    assert_eq!(breaker.state(), State::HalfOpen);
    run(breaker, Verdict::Healthy);
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn after_a_long_good_time_fifty_failures_in_a_hundred_open_it() {
    let breaker = breaker(BreakerSettings { minimum_calls: 100, ..settings() });
    for _ in 0..2_000 {
        run(breaker, Verdict::Healthy);
    }
    let mut failures = 0;
    while breaker.state() == State::Closed {
        run(breaker, Verdict::Failure);
        failures += 1;
    }
    assert_eq!(failures, 50);
}

#[tokio::test(start_paused = true)]
async fn from_a_cold_start_four_failures_in_five_open_it_although_the_fifth_is_a_success() {
    for window in [Window::Calls(100), Window::Time(10_000 * MS)] {
        let breaker = breaker(BreakerSettings { window, minimum_calls: 5, ..settings() });
        for _ in 0..4 {
            run(breaker, Verdict::Failure);
        }
        assert_eq!(breaker.state(), State::Closed, "four calls are too few");
        run(breaker, Verdict::Healthy);
        assert_eq!(breaker.state(), State::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn one_failure_of_one_call_is_no_evidence() {
    let breaker = breaker(settings());
    for _ in 0..3 {
        run(breaker, Verdict::Failure);
        assert_eq!(breaker.state(), State::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_either_way_is_not_counted() {
    let breaker = breaker(settings());
    for _ in 0..100 {
        run(breaker, Verdict::Neutral);
        drop(breaker.admit().expect("let in"));
    }
    let seen = breaker.snapshot();
    assert_eq!((seen.calls, seen.failures, seen.state), (0, 0, State::Closed));
}

#[tokio::test(start_paused = true)]
async fn what_it_refuses_itself_is_not_the_neighbours_failure() {
    let breaker = breaker(settings());
    open(breaker);
    let before = breaker.snapshot();
    for _ in 0..50 {
        assert!(breaker.admit().is_err());
    }
    let after = breaker.snapshot();
    assert_eq!((after.calls, after.failures, after.openings), (before.calls, before.failures, 1));
    assert_eq!(after.refused, 50);
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_open_it_and_a_success_in_between_begins_anew() {
    let breaker = breaker(BreakerSettings {
        consecutive_failures: Some(3),
        failure_percent: None,
        minimum_calls: 100,
        ..settings()
    });
    for verdict in [Verdict::Failure, Verdict::Failure, Verdict::Healthy, Verdict::Failure, Verdict::Failure]
    {
        run(breaker, verdict);
    }
    assert_eq!((breaker.state(), breaker.snapshot().failures_in_a_row), (State::Closed, 2));
    run(breaker, Verdict::Neutral);
    assert_eq!(breaker.state(), State::Closed);
    run(breaker, Verdict::Failure);
    assert_eq!(breaker.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_fails_nobody_but_is_slow_opens_it() {
    let slow = Some(SlowCalls { longer_than: 500 * MS, percent: 50 });
    let breaker = breaker(BreakerSettings { slow, ..settings() });
    for _ in 0..2 {
        breaker.admit().expect("closed").finish(Verdict::Healthy, 499 * MS);
        breaker.admit().expect("closed").finish(Verdict::Healthy, 500 * MS);
    }
    assert_eq!((breaker.state(), breaker.snapshot().slow), (State::Open, 2));
    advance(1000 * MS).await;
    breaker.admit().expect("a probe").finish(Verdict::Healthy, 500 * MS);
    assert_eq!(breaker.state(), State::Open, "a probe that is still slow proves nothing");
}

#[tokio::test(start_paused = true)]
async fn the_open_time_doubles_with_each_failed_probe_up_to_its_cap_and_begins_anew_when_closed() {
    let breaker = breaker(settings());
    open(breaker);
    for seconds in [1, 2, 4, 8, 8, 8] {
        assert_eq!(breaker.snapshot().retry_after, Some(seconds * 1000 * MS));
        advance(seconds * 1000 * MS).await;
        run(breaker, Verdict::Failure);
        assert_eq!(breaker.state(), State::Open);
    }
    advance(8000 * MS).await;
    run(breaker, Verdict::Healthy);
    run(breaker, Verdict::Healthy);
    open(breaker);
    assert_eq!(breaker.snapshot().retry_after, Some(1000 * MS));
}

#[tokio::test(start_paused = true)]
async fn jitter_shortens_the_open_time_by_up_to_a_fifth_and_never_lengthens_it() {
    let mut seen = Vec::new();
    for seed in 0..200 {
        let breaker = breaker(BreakerSettings { jitter: crate::Jitter::Seeded(seed), ..settings() });
        open(breaker);
        seen.push(breaker.snapshot().retry_after.expect("open"));
    }
    assert!(seen.iter().all(|time| (800 * MS..=1000 * MS).contains(time)), "{seen:?}");
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 50, "{} different times of 200", seen.len());
}

#[tokio::test(start_paused = true)]
async fn looking_takes_no_place_and_waiting_ends_when_a_call_would_be_let_in() {
    let breaker = breaker(settings());
    assert_eq!(breaker.look(), Ok(()));
    open(breaker);
    assert_eq!(breaker.look(), Err(Refusal::BreakerOpen { retry_after: 1000 * MS }));
    let began = tokio::time::Instant::now();
    breaker.admitting().await;
    assert_eq!(began.elapsed(), 1000 * MS);
    for _ in 0..10 {
        assert_eq!(breaker.look(), Ok(()));
    }
    let (_first, _second) = (breaker.admit().expect("a probe"), breaker.admit().expect("a probe"));
    assert!(breaker.look().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_plain_face_counts_by_the_errors_own_word() {
    #[derive(Debug)]
    struct Error(Class);
    impl Classify for Error {
        fn class(&self) -> Class {
            self.0
        }
    }
    let breaker = breaker(settings());
    for _ in 0..10 {
        let no = breaker.call(async { Err::<(), _>(Error(Class::rejected())) }).await;
        assert!(matches!(no, Err(CallError::Failed { .. })));
    }
    assert_eq!(breaker.snapshot().failures, 0, "a neighbour that says no is well");
    for _ in 0..10 {
        let _ = breaker.call(async { Err::<(), _>(Error(Class::not_executed())) }).await;
    }
    let refused = breaker.call(async { Ok::<_, Error>(()) }).await;
    assert!(matches!(refused, Err(CallError::Refused { refusal: Refusal::BreakerOpen { .. }, .. })));
}

#[derive(Default)]
struct Log(Mutex<Vec<Change>>);

impl Observe for Log {
    fn breaker_changed(&self, change: &Change) {
        self.0.lock().expect("not poisoned").push(*change);
    }
}

#[tokio::test(start_paused = true)]
async fn each_change_is_told_once_with_its_cause() {
    let log: &'static Log = Box::leak(Box::default());
    let breaker = Breaker::builder("payments", settings()).observer(log).build().expect("good");
    open(breaker);
    advance(1000 * MS).await;
    run(breaker, Verdict::Failure);
    advance(2000 * MS).await;
    run(breaker, Verdict::Healthy);
    run(breaker, Verdict::Healthy);
    let told: Vec<_> =
        log.0.lock().expect("not poisoned").iter().map(|it| (it.from, it.to, it.cause)).collect();
    assert_eq!(
        told,
        [
            (State::Closed, State::Open, Cause::FailureRate),
            (State::Open, State::HalfOpen, Cause::OpenTimeOver),
            (State::HalfOpen, State::Open, Cause::ProbeFailed),
            (State::Open, State::HalfOpen, Cause::OpenTimeOver),
            (State::HalfOpen, State::Closed, Cause::ProbesSucceeded),
        ]
    );
}

#[test]
fn threads_that_fail_at_once_open_it_once() {
    let log: &'static Log = Box::leak(Box::default());
    let breaker = Breaker::builder("payments", settings()).observer(log).build().expect("good");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..1_000 {
                    if let Ok(permit) = breaker.admit() {
                        permit.finish(Verdict::Failure, QUICK);
                    }
                }
            });
        }
    });
    assert_eq!(log.0.lock().expect("not poisoned").len(), 1);
    assert_eq!((breaker.state(), breaker.snapshot().openings), (State::Open, 1));
}

#[tokio::test(start_paused = true)]
async fn refused_settings_are_named_all_at_once() {
    let bad = BreakerSettings {
        window: Window::Calls(0),
        minimum_calls: 0,
        failure_percent: Some(101),
        slow: Some(SlowCalls { longer_than: MS, percent: 0 }),
        consecutive_failures: Some(0),
        open_for: Duration::ZERO,
        open_for_at_most: 2 * DAY,
        probes: 0,
        probe_lease: Duration::ZERO,
        ..settings()
    };
    let faults = Breaker::builder("payments", bad).build().expect_err("bad");
    let names: Vec<_> = faults.0.iter().map(|fault| fault.name.strip_prefix("payments.breaker.")).collect();
    let expected = [
        "window",
        "minimum_calls",
        "failure_percent",
        "slow.percent",
        "slow.longer_than",
        "consecutive_failures",
        "open_for",
        "open_for_at_most",
        "probes",
        "probe_lease",
    ];
    assert_eq!(names, expected.map(Some));
    let nothing_opens_it = BreakerSettings { failure_percent: None, ..settings() };
    assert!(Breaker::builder("payments", nothing_opens_it).build().is_err());
}
