//! Situations of a policy, on a paused clock.

mod retrying;
mod stopped;
mod together;

use tokio::time::advance;

use super::*;
use crate::{BreakerSettings, BulkheadSettings, Class, Jitter, RetrySettings, breaker, breaker::State};

const MS: Duration = Duration::from_millis(1);

/// A failure that says what it is.
#[derive(Debug, PartialEq)]
struct Failure(Class);

impl Classify for Failure {
    fn class(&self) -> Class {
        self.0
    }
}

const DOWN: Failure = Failure(Class::not_executed());
const LOST: Failure = Failure(Class::unknown());
const NO: Failure = Failure(Class::rejected());

fn payments() -> Builder {
    Policy::builder("payments", Timeouts::attempt(200 * MS))
}

fn breaker() -> BreakerSettings {
    BreakerSettings { minimum_calls: 4, probes: 1, jitter: Jitter::Off, ..BreakerSettings::default() }
}

fn caller(budget: Duration) -> CallContext {
    CallContext::from_caller(Deadline::after(budget), None, 1)
}

fn owner(budget: Duration) -> CallContext {
    CallContext::owner("storefront", Deadline::after(budget))
}

async fn hung(_: CallContext) -> Result<(), Failure> {
    sleep(60_000 * MS).await;
    Ok(())
}

async fn charge(policy: Policy, answer: Result<(), Failure>) -> Result<(), CallError<Failure>> {
    let mut answer = Some(answer);
    policy
        .call(&caller(3000 * MS), Op::once("charge"), |_| std::future::ready(answer.take().expect("once")))
        .await
}

#[tokio::test(start_paused = true)]
async fn an_attempt_gets_the_attempt_timeout_and_no_more() {
    let seen = payments().build().expect("good settings");
    let seen = seen
        .call(&caller(3000 * MS), Op::once("charge"), async |cx| Ok::<_, Failure>(cx.deadline().remaining()))
        .await;
    assert_eq!(seen.expect("answered"), 200 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_hung_neighbour_is_given_its_full_time_and_that_is_evidence() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for _ in 0..4 {
        let error = policy.call(&caller(3000 * MS), Op::once("charge"), hung).await.expect_err("hung");
        assert!(matches!(error, CallError::TimedOut { limit: Limit::Attempt, .. }), "{error}");
        assert_eq!((error.class().outcome, error.class().verdict), (Outcome::Unknown, Verdict::Failure));
    }
    assert!(policy.breaker_is_open());
    assert_eq!(policy.snapshot().calls.timed_out, 4);
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_a_hurry_is_no_evidence_against_the_neighbour() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for _ in 0..20 {
        let error = policy.call(&caller(50 * MS), Op::once("charge"), hung).await.expect_err("hung");
        assert!(matches!(error, CallError::TimedOut { limit: Limit::Caller, after, .. } if after == 50 * MS));
        assert_eq!((error.class().outcome, error.class().verdict), (Outcome::Unknown, Verdict::Neutral));
    }
    assert_eq!(policy.snapshot().breaker.expect("set").calls, 0);
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_reports_its_time_ran_out_is_blamed_only_for_its_whole_time() {
    struct RanOut;
    impl Classify for RanOut {
        fn class(&self) -> Class {
            Class::unknown().with_verdict(Verdict::TimedOut)
        }
    }
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for (budget, failures) in [(50 * MS, 0), (3000 * MS, 1)] {
        let told = async |_| Err::<(), _>(RanOut);
        assert!(policy.call(&caller(budget), Op::once("charge"), told).await.is_err());
        assert_eq!(policy.snapshot().breaker.expect("set").failures, failures, "{budget:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_time_nothing_is_sent_and_nobody_is_blamed() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    let mut sent = 0;
    for _ in 0..20 {
        let outcome = policy
            .call(&caller(4 * MS), Op::once("charge"), |_| {
                sent += 1;
                async { Ok::<(), Failure>(()) }
            })
            .await
            .expect_err("too late");
        assert_eq!((sent, outcome.class().outcome), (0, Outcome::NotExecuted));
    }
    let seen = policy.snapshot();
    assert_eq!((seen.calls.no_time_left, seen.calls.attempts, seen.breaker.expect("set").calls), (20, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_no_is_healthy_and_a_failure_opens() {
    let policy = payments().breaker(breaker()).build().expect("good settings");
    for _ in 0..20 {
        charge(policy, Err(NO)).await.expect_err("declined");
    }
    assert_eq!(policy.snapshot().breaker.expect("set").failures, 0);
    while !policy.breaker_is_open() {
        charge(policy, Err(DOWN)).await.expect_err("down");
    }
    let error = charge(policy, Ok(())).await.expect_err("open");
    assert!(matches!(error, CallError::Refused { refusal: Refusal::BreakerOpen { .. }, .. }), "{error}");
    assert_eq!((error.class().outcome, error.class().verdict), (Outcome::NotExecuted, Verdict::Neutral));
    assert_eq!(error.class().retry_after, Some(5000 * MS));
    assert!(!error.class().transient);
}

#[tokio::test(start_paused = true)]
async fn slow_is_measured_without_the_wait_for_a_place() {
    let slow = Some(breaker::SlowCalls { longer_than: 100 * MS, percent: 50 });
    let policy = payments()
        .breaker(BreakerSettings { slow, ..breaker() })
        .bulkhead(BulkheadSettings { places: 1, waiting: 10 })
        .build()
        .expect("good settings");
    let call = async || {
        let answer = async |_| {
            sleep(15 * MS).await;
            Ok::<_, Failure>(())
        };
        policy.call(&caller(3000 * MS), Op::once("charge"), answer).await
    };
    let mut first_ten = Vec::new();
    for _ in 0..5 {
        let (first, second) = tokio::join!(call(), call());
        first_ten.extend([first.is_ok(), second.is_ok()]);
    }
    assert_eq!((first_ten, policy.snapshot().breaker.expect("set").slow), (vec![true; 10], 0));
}

#[tokio::test(start_paused = true)]
async fn the_counts_tell_what_became_of_each_call() {
    let policy =
        payments().breaker(BreakerSettings { minimum_calls: 100, ..breaker() }).build().expect("good");
    for answer in [Ok(()), Ok(()), Err(NO), Err(DOWN), Err(DOWN), Err(DOWN), Err(LOST)] {
        let _ = charge(policy, answer).await;
    }
    let calls = policy.snapshot().calls;
    assert_eq!((calls.ok, calls.rejected, calls.not_executed, calls.unknown), (2, 1, 3, 1));
    assert_eq!((calls.attempts, calls.retries, calls.timed_out), (7, 0, 0));
}

#[tokio::test]
async fn refused_settings_are_named_all_at_once() {
    let timeouts = Timeouts { connect: 300 * MS, attempt: 200 * MS, place: Duration::ZERO };
    let faults = Policy::builder("payments", timeouts)
        .min_attempt(200 * MS)
        .retry(RetrySettings { attempts: 0, ..RetrySettings::default() })
        .bulkhead(BulkheadSettings { places: 0, waiting: 0 })
        .breaker(BreakerSettings { probes: 0, probe_lease: 300 * MS, ..breaker() })
        .build()
        .expect_err("bad");
    let names: Vec<_> = faults.0.iter().map(|fault| fault.name.as_str()).collect();
    let expected = [
        "payments.connect_timeout",
        "payments.place_timeout",
        "payments.min_attempt",
        "payments.retry.attempts",
        "payments.bulkhead.places",
        "payments.breaker.probes",
        "payments.breaker.probe_lease",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        faults.0[0].to_string(),
        "payments.connect_timeout is 300ms: must be more than 0 and less than the attempt timeout"
    );
}
