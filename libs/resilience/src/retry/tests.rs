//! Pauses and refusals of a retry, on a paused clock.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{Deadline, Verdict};

const MS: Duration = Duration::from_millis(1);

fn settings() -> RetrySettings {
    RetrySettings { budget: None, ..RetrySettings::default() }
}

fn owner(left: Duration) -> CallContext {
    CallContext::owner("storefront", Deadline::after(left))
}

fn failed(class: Class) -> Failed {
    Failed { op: Op::idempotent("whoami"), class, refused_here: false, made: 1 }
}

fn durations() -> impl Strategy<Value = Duration> {
    (1u64..=3_600_000_000_000).prop_map(Duration::from_nanos)
}

proptest! {
    #[test]
    fn no_pause_is_longer_than_the_cap_nor_than_its_power_of_two(
        n in any::<u32>(),
        base in durations(),
        cap in durations(),
        seed in any::<u64>(),
    ) {
        let (base, cap) = (base.min(cap), base.max(cap));
        let settings = RetrySettings { base, cap, jitter: Jitter::Seeded(seed), ..settings() };
        let retry = Retry::new(settings);
        let longest = settings.longest_pause(n);
        prop_assert!(retry.pause(n) <= longest);
        prop_assert!(longest <= cap);
        let exact = u128::from(nanos(base)).saturating_mul(1u128.checked_shl(n).unwrap_or(u128::MAX));
        prop_assert_eq!(longest.as_nanos(), exact.min(cap.as_nanos()));
    }
}

#[test]
fn the_pause_never_falls_back_at_high_attempts() {
    let longest: Vec<_> = (0..=5_000).map(|n| settings().longest_pause(n)).collect();
    assert!(longest.is_sorted());
    assert_eq!(longest[..6], [50, 100, 200, 400, 800, 1000].map(|millis| millis * MS));
    assert_eq!(settings().longest_pause(u32::MAX), 1000 * MS);
}

#[test]
fn full_jitter_spreads_over_the_whole_pause() {
    let retry = Retry::new(RetrySettings { jitter: Jitter::Seeded(7), ..settings() });
    let pauses: Vec<_> = (0..4_000).map(|_| retry.pause(4)).collect();
    for quarter in 0..4 {
        let range = quarter * 200 * MS..(quarter + 1) * 200 * MS;
        let share = pauses.iter().filter(|pause| range.contains(pause)).count();
        assert!((800..=1_200).contains(&share), "{share} of 4000 in {range:?}");
    }
}

#[test]
fn two_clients_do_not_pause_alike_and_the_same_seed_does() {
    let pauses = |jitter| {
        let retry = Retry::new(RetrySettings { jitter, ..settings() });
        (0..20).map(|_| retry.pause(4)).collect::<Vec<_>>()
    };
    assert_ne!(pauses(Jitter::Random), pauses(Jitter::Random));
    assert_ne!(pauses(Jitter::Seeded(1)), pauses(Jitter::Seeded(2)));
    assert_eq!(pauses(Jitter::Seeded(1)), pauses(Jitter::Seeded(1)));
    assert_eq!(pauses(Jitter::Off), [800 * MS; 20]);
    let threads = (0..4).map(|_| std::thread::spawn(move || pauses(Jitter::Random)));
    let first: BTreeSet<_> = threads.map(|thread| thread.join().expect("no panic")[0]).collect();
    assert!(first.len() > 1, "threads are not seeded alike");
}

#[tokio::test(start_paused = true)]
async fn only_the_owner_retries() {
    let retry = Retry::new(settings());
    let deadline = Deadline::after(3000 * MS);
    let owner = CallContext::owner("storefront", deadline);
    assert!(retry.next(&owner, failed(Class::not_executed()), 5 * MS).is_ok());
    let callers = CallContext::from_caller(deadline, Some("storefront".into()), 1);
    for cx in [callers, CallContext::from_caller(deadline, None, 1), owner.for_attempt(1, deadline)] {
        assert_eq!(retry.next(&cx, failed(Class::not_executed()), 5 * MS), Err(NoRetry::NotOwner));
    }
}

#[tokio::test(start_paused = true)]
async fn each_failure_that_is_not_repeated_has_its_reason() {
    let retry = Retry::new(settings());
    let cx = owner(3000 * MS);
    let next = |failed: Failed| retry.next(&cx, failed, 5 * MS).map(drop);
    let unknown = failed(Class::unknown());
    assert_eq!(next(unknown), Ok(()));
    assert_eq!(next(Failed { op: Op::once("charge"), ..unknown }), Err(NoRetry::MayHaveHappened));
    assert_eq!(next(Failed { op: Op::once("charge"), ..failed(Class::not_executed()) }), Ok(()));
    assert_eq!(next(Failed { refused_here: true, ..unknown }), Err(NoRetry::RefusedHere));
    assert_eq!(next(failed(Class::rejected())), Err(NoRetry::Rejected));
    assert_eq!(next(failed(Class { transient: true, ..Class::rejected() })), Err(NoRetry::Rejected));
    assert_eq!(next(failed(Class::unknown().lasting())), Err(NoRetry::Lasting));
    assert_eq!(next(Failed { made: 2, ..unknown }), Ok(()));
    assert_eq!(next(Failed { made: 3, ..unknown }), Err(NoRetry::AttemptsUsed));
    // A neighbour that is well and asks for a moment is given it.
    let busy = Class::not_executed().with_verdict(Verdict::Healthy).after(Some(700 * MS));
    assert_eq!(retry.next(&cx, failed(busy), 5 * MS), Ok(700 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_cannot_end_in_time_is_not_begun() {
    let retry = Retry::new(RetrySettings { jitter: Jitter::Off, ..settings() });
    let unknown = failed(Class::unknown());
    assert_eq!(retry.next(&owner(55 * MS), unknown, 5 * MS), Ok(50 * MS));
    assert_eq!(retry.next(&owner(54 * MS), unknown, 5 * MS), Err(NoRetry::NoTimeLeft));
    assert_eq!(retry.next(&owner(Duration::ZERO), unknown, 5 * MS), Err(NoRetry::NoTimeLeft));
    let pushed_back = failed(Class::unknown().after(Some(Duration::MAX)));
    assert_eq!(retry.next(&owner(3000 * MS), pushed_back, 5 * MS), Err(NoRetry::NoTimeLeft));
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_ends_retries_and_a_retry_that_is_not_made_costs_nothing() {
    let budget = RetryBudgetSettings { percent: 10, floor_per_second: 0, cap: 2 };
    let retry = Retry::new(RetrySettings { budget: Some(budget), ..settings() });
    let cx = owner(3000 * MS);
    for _ in 0..10 {
        assert!(retry.next(&cx, failed(Class::rejected()), 5 * MS).is_err());
        assert_eq!(retry.next(&owner(MS), failed(Class::unknown()), 5 * MS), Err(NoRetry::NoTimeLeft));
    }
    let made: Vec<_> = (0..4).map(|_| retry.next(&cx, failed(Class::unknown()), 5 * MS).is_ok()).collect();
    assert_eq!(made, [true, true, false, false]);
    assert_eq!(retry.next(&cx, failed(Class::unknown()), 5 * MS), Err(NoRetry::BudgetSpent));
}

#[test]
fn the_longest_call_is_all_attempts_and_all_pauses() {
    let settings = RetrySettings { attempts: 4, ..settings() };
    assert_eq!(settings.longest_call(1000 * MS), (4000 + 50 + 100 + 200) * MS);
    assert_eq!(RetrySettings { attempts: 1, ..settings }.longest_call(1000 * MS), 1000 * MS);
}

#[test]
fn refused_settings_are_named_all_at_once() {
    let budget = Some(RetryBudgetSettings { percent: 0, floor_per_second: 2_000, cap: 0 });
    let bad = RetrySettings { attempts: 0, base: 2 * MS, cap: MS, budget, ..settings() };
    let names: Vec<_> = bad.check("iam").into_iter().map(|fault| fault.name).collect();
    let budget = ["iam.retry_budget.percent", "iam.retry_budget.floor_per_second", "iam.retry_budget.cap"];
    assert_eq!(names[..2], ["iam.retry.attempts", "iam.retry.base"]);
    assert_eq!(names[2..], budget);
}
