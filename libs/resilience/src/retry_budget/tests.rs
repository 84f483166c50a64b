//! Situations of a retry budget, on a paused clock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn budget(percent: u8, floor_per_second: u32, cap: u32) -> RetryBudget {
    RetryBudget::new(RetryBudgetSettings { percent, floor_per_second, cap })
}

fn drain(budget: &RetryBudget) -> u64 {
    let mut taken = 0;
    while budget.withdraw() {
        taken += 1;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn a_share_is_exactly_that_share() {
    for percent in [1, 10, 15, 30, 40, 60, 75, 99, 100] {
        let budget = budget(percent, 0, 1_000);
        drain(&budget);
        for _ in 0..1_000 {
            budget.deposit();
        }
        assert_eq!(drain(&budget), u64::from(percent) * 10, "{percent} % of 1000 first attempts");
    }
}

#[tokio::test(start_paused = true)]
async fn when_everything_fails_retries_are_a_tenth_and_the_savings() {
    let budget = budget(10, 0, 20);
    let mut retries = 0;
    for _ in 0..10_000 {
        budget.deposit();
        retries += u64::from(budget.withdraw()) + u64::from(budget.withdraw());
    }
    // The very first paid into a full budget.
    assert_eq!(retries, 20 + 9_999 / 10);
}

#[tokio::test(start_paused = true)]
async fn it_recovers_by_good_calls_and_at_low_traffic_by_time() {
    let budget = budget(10, 2, 20);
    drain(&budget);
    (0..30).for_each(|_| budget.deposit());
    assert_eq!(budget.available(), 3);
    assert_eq!(drain(&budget), 3);
    advance(SECOND / 2).await;
    assert_eq!(drain(&budget), 1, "half a second of two a second");
    advance(SECOND / 4).await;
    assert_eq!(drain(&budget), 0);
    advance(SECOND / 4).await;
    assert_eq!(drain(&budget), 1, "a refused withdrawal does not lose what has flowed in");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_night_and_a_busy_day_save_up_no_more_than_the_cap() {
    let budget = budget(100, 1_000, 20);
    advance(10 * 3600 * SECOND).await;
    (0..100_000).for_each(|_| budget.deposit());
    assert_eq!(drain(&budget), 20);
}

#[tokio::test(start_paused = true)]
async fn the_clock_that_wraps_after_49_days_does_no_harm() {
    let budget = budget(10, 1, 20);
    for days in [1, 24, 26, 48, 50, 100, 400] {
        drain(&budget);
        advance(days * 24 * 3600 * SECOND).await;
        assert_eq!(drain(&budget), 20, "after {days} days");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_read_the_clock_earlier_makes_nothing_flow_in_twice() {
    let budget = budget(10, 10, 20);
    drain(&budget);
    let (earlier, later) = (1_000, 1_004);
    let word = (later << 32) | (5 * TOKEN);
    assert_eq!(budget.tokens_at(word, earlier), 5 * TOKEN);
    assert!(is_ahead(word, earlier) && !is_ahead(word, later) && !is_ahead(word, later + 1));
}

#[test]
fn threads_cannot_take_the_same_token_twice() {
    let budget = budget(10, 0, 1_000);
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    budget.deposit();
                    taken.fetch_add(u64::from(budget.withdraw()), Ordering::Relaxed);
                }
            });
        }
    });
    // Deposits into a full budget are lost; otherwise it is exact.
    let (taken, most) = (taken.into_inner(), 1_000 + 4_000);
    assert!(taken <= most, "{taken} of {most}");
    assert!(taken >= most - 1_000, "{taken} of {most}");
}

proptest! {
    #[test]
    fn it_is_never_overdrawn(
        percent in 1u8..=100,
        floor in 0u32..50,
        cap in 1u32..50,
        steps in prop::collection::vec((0u8..3, 0u64..3_000), 0..400),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let budget = budget(percent, floor, cap);
            let (mut deposits, mut taken, mut millis) = (0, 0, 0);
            for (what, pause) in steps {
                match what {
                    0 => {
                        budget.deposit();
                        deposits += 1;
                    }
                    1 => taken += u64::from(budget.withdraw()),
                    _ => {
                        advance(Duration::from_millis(pause)).await;
                        millis += pause;
                    }
                }
                let thousandths = u64::from(cap) * 1000 + deposits * u64::from(percent) * 10 + millis * u64::from(floor);
                assert!(taken * 1000 <= thousandths);
                assert!(budget.available() <= u64::from(cap));
            }
        });
    }
}
