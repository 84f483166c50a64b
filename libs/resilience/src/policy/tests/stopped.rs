//! This process stood still, and its timers fire late: no evidence against anybody.
//!
//! A jump of the paused clock is what a stopped process sees: all the time is gone at once.

use super::*;

#[tokio::test(start_paused = true)]
async fn timers_that_fire_late_are_not_the_neighbours_failure() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for _ in 0..20 {
        let stopped = async |_| {
            advance(5_000 * MS).await;
            sleep(60_000 * MS).await;
            Ok::<(), Failure>(())
        };
        let error =
            policy.call(&caller(30_000 * MS), Op::once("charge"), stopped).await.expect_err("too late");
        assert!(matches!(error, CallError::TimedOut { limit: Limit::Attempt, .. }), "{error}");
    }
    let seen = policy.snapshot().breaker.expect("set");
    assert_eq!((seen.state, seen.calls), (State::Closed, 0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_while_this_process_stood_still_is_not_either() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for _ in 0..20 {
        let stopped = async |_| {
            advance(5_000 * MS).await;
            Err::<(), _>(LOST)
        };
        let error = policy.call(&caller(30_000 * MS), Op::once("charge"), stopped).await.expect_err("broken");
        assert_eq!(error.class().outcome, Outcome::Unknown);
    }
    assert_eq!(policy.snapshot().breaker.expect("set").calls, 0);
}

#[tokio::test(start_paused = true)]
async fn answers_that_only_look_slow_from_here_are_not_slow() {
    let slow = Some(breaker::SlowCalls { longer_than: 100 * MS, percent: 10 });
    let policy = payments().breaker(BreakerSettings { slow, ..breaker() }).build().expect("good settings");
    for _ in 0..20 {
        let stopped = async |_| {
            advance(5_000 * MS).await;
            Ok::<(), Failure>(())
        };
        policy.call(&caller(30_000 * MS), Op::once("charge"), stopped).await.expect("an answer");
    }
    assert_eq!(policy.snapshot().breaker.expect("set").slow, 0);
}
