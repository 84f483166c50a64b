//! Windows: exact counts of the recent past, held against a naive model.

use std::{cell::Cell, collections::VecDeque};

use proptest::prelude::*;

use super::{
    super::window::{BUCKETS, Sums, Window as Counting},
    *,
};

fn sums<'a>(calls: impl Iterator<Item = &'a (bool, bool)>) -> Sums {
    calls.fold(Sums::default(), |sums, &(failed, slow)| Sums {
        calls: sums.calls + 1,
        failures: sums.failures + u64::from(failed),
        slow: sums.slow + u64::from(slow),
    })
}

proptest! {
    #[test]
    fn the_last_n_calls_are_counted_exactly(
        size in 1u32..200,
        calls in prop::collection::vec(any::<(bool, bool)>(), 0..600),
        cleared_at in 0usize..600,
    ) {
        let window = Counting::new(Window::Calls(size));
        let mut model = VecDeque::new();
        for (at, &(failed, slow)) in calls.iter().enumerate() {
            if at == cleared_at {
                window.clear();
                model.clear();
            }
            window.record(0, || 0, failed, slow);
            model.push_back((failed, slow));
            if model.len() > size as usize {
                model.pop_front();
            }
            prop_assert_eq!(window.sums(0), sums(model.iter()));
        }
    }

    #[test]
    fn the_last_n_seconds_are_counted_exactly(
        seconds in 1u64..100,
        start_ms in 0u64..100_000_000_000,
        calls in prop::collection::vec((0u64..5_000, any::<bool>(), any::<bool>()), 0..300),
        // A few gaps of up to 200 days: whatever is left over from long ago does not count.
        gaps in prop::collection::btree_map(0usize..300, 0u64..200 * 24 * 3_600_000, 0..3),
    ) {
        let window = Counting::new(Window::Time(Duration::from_secs(seconds)));
        let bucket_ms = seconds * 1000 / BUCKETS;
        let (mut now_ms, mut model) = (start_ms, Vec::new());
        for (at, &(pause_ms, failed, slow)) in calls.iter().enumerate() {
            now_ms += pause_ms + gaps.get(&at).copied().unwrap_or(0);
            window.record(now_ms, || now_ms, failed, slow);
            model.push((now_ms / bucket_ms, (failed, slow)));
            let first = (now_ms / bucket_ms).saturating_sub(BUCKETS - 1);
            let recent = model.iter().filter(|(bucket, _)| *bucket >= first).map(|(_, call)| call);
            prop_assert_eq!(window.sums(now_ms), sums(recent));
        }
    }
}

#[test]
fn a_window_forgets_step_by_step_and_not_at_an_edge() {
    let window = Counting::new(Window::Time(Duration::from_secs(10)));
    for second in 0..10 {
        window.record(second * 1000, || second * 1000, true, false);
    }
    let left: Vec<_> = (9..20).map(|second| window.sums(second * 1000).failures).collect();
    assert_eq!(left, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn a_million_calls_in_one_bucket_keep_their_rates() {
    let window = Counting::new(Window::Time(Duration::from_secs(10)));
    for call in 0u32..1_000_000 {
        window.record(500, || 500, call % 4 == 0, call % 10 == 0);
    }
    let Sums { calls, failures, slow } = window.sums(500);
    assert!(calls > 5_000, "{calls} is more than any minimum number of calls");
    let share = |part: u64| part as f64 / calls as f64;
    assert!((share(failures) - 0.25).abs() < 0.01, "{failures} of {calls}");
    assert!((share(slow) - 0.10).abs() < 0.01, "{slow} of {calls}");
}

#[test]
fn a_thread_that_stood_still_for_a_whole_window_wipes_nothing_out() {
    let window = Counting::new(Window::Time(Duration::from_secs(10)));
    window.record(25_000, || 25_000, true, false);
    window.record(15_000, || 25_000, true, false);
    assert_eq!(window.sums(25_000).failures, 2);
}

#[test]
fn threads_that_record_at_once_lose_no_call() {
    for setting in [Window::Calls(50_000), Window::Time(Duration::from_secs(10))] {
        let window = Counting::new(setting);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..10_000).for_each(|call| window.record(0, || 0, call % 2 == 0, call % 5 == 0))
                });
            }
        });
        assert_eq!(window.sums(0), Sums { calls: 40_000, failures: 20_000, slow: 8_000 });
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_hundred_idle_days_it_counts_as_on_the_first() {
    let breaker = breaker(BreakerSettings { window: Window::Time(10_000 * MS), ..settings() });
    for _ in 0..3 {
        run(breaker, Verdict::Failure);
    }
    advance(100 * DAY).await;
    assert_eq!(breaker.snapshot().calls, 0);
    for _ in 0..3 {
        run(breaker, Verdict::Failure);
        assert_eq!(breaker.state(), State::Closed);
    }
    run(breaker, Verdict::Failure);
    assert_eq!(breaker.state(), State::Open);
    advance(100 * DAY).await;
    assert!(breaker.admit().is_ok());
}

#[test]
fn what_is_left_over_from_155_days_ago_is_in_nobodys_way() {
    let window = Counting::new(Window::Time(Duration::from_secs(16)));
    for second in 0..16 {
        window.record(second * 1000, || second * 1000, true, false);
    }
    let later = 13_420_227_143;
    for second in 0..14 {
        let now = later + second * 1000;
        window.record(now, || now, false, false);
        assert_eq!(window.sums(now), Sums { calls: second + 1, failures: 0, slow: 0 });
    }
}

#[test]
fn a_call_on_the_edge_of_two_buckets_is_counted_in_one_of_them() {
    let window = Counting::new(Window::Time(Duration::from_secs(10)));
    let reading = Cell::new(8_998);
    let clock = || {
        reading.set(reading.get() + 1);
        reading.get()
    };
    window.record(8_998, clock, true, false);
    assert_eq!(window.sums(reading.get()).failures, 1);
}
