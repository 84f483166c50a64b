//! Situations of a bulkhead, on a paused clock.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn bulkhead(places: u32, waiting: u32) -> Bulkhead {
    Bulkhead::new("payments", BulkheadSettings { places, waiting }).expect("good settings")
}

fn within(millis: u32) -> Deadline {
    Deadline::after(millis * MS)
}

#[tokio::test(start_paused = true)]
async fn of_twelve_at_once_two_run_three_wait_and_seven_are_shed_at_once() {
    let bulkhead = bulkhead(2, 3);
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        calls.spawn(async move {
            let place = bulkhead.enter(within(1000)).await;
            let waited = began.elapsed();
            sleep(100 * MS).await;
            (place.is_ok(), waited)
        });
    }
    let mut ended = calls.join_all().await;
    ended.sort();
    let shed = vec![(false, Duration::ZERO); 7];
    let ran = [0, 0, 100, 100, 200].map(|waited| (true, waited * MS));
    assert_eq!(ended, [shed, ran.to_vec()].concat());
    assert_eq!(bulkhead.snapshot().refused, 7);
}

// On the real clock, whose next tick is up to a millisecond away; the paused one may be on it.
#[tokio::test]
async fn full_and_without_time_to_wait_is_a_refusal_at_once_and_not_after_a_tick() {
    let bulkhead = bulkhead(1, 10);
    let _place = bulkhead.try_enter().expect("free");
    // Ready at the first poll: no timer was asked.
    let mut task = Context::from_waker(Waker::noop());
    let polled = pin!(bulkhead.enter(within(0))).poll(&mut task);
    assert_eq!(polled.map(|result| result.map(drop)), Poll::Ready(Err(Refusal::BulkheadFull)));
}

#[tokio::test(start_paused = true)]
async fn who_came_first_is_served_first_and_nobody_overtakes_the_queue() {
    let bulkhead = bulkhead(1, 10);
    let first = bulkhead.try_enter().expect("free");
    let (order, mut queue) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    for number in 0..5 {
        let order = Arc::clone(&order);
        queue.spawn(async move {
            let place = bulkhead.enter(within(1000)).await.expect("in time");
            assert!(place.was_waited_for());
            assert_eq!(order.fetch_add(1, Ordering::Relaxed), number);
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(bulkhead.snapshot().waiting, 5);
    drop(first);
    assert!(bulkhead.try_enter().is_none(), "the place goes to the queue's head");
    queue.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_up_neither_gets_nor_loses_a_place() {
    let bulkhead = bulkhead(1, 10);
    let place = bulkhead.try_enter().expect("free");
    let began = Instant::now();
    assert!(bulkhead.enter(within(50)).await.is_err());
    assert_eq!(began.elapsed(), 50 * MS);
    drop(place);
    assert_eq!(bulkhead.snapshot().in_use, 0);
    assert!(bulkhead.try_enter().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_goes_away_leaves_the_queue_and_the_next_one_moves_up() {
    let bulkhead = bulkhead(1, 2);
    let place = bulkhead.try_enter().expect("free");
    let gone = tokio::spawn(async move { bulkhead.enter(within(1000)).await.map(drop) });
    let next = tokio::spawn(async move { bulkhead.enter(within(1000)).await.map(drop) });
    tokio::task::yield_now().await;
    assert_eq!(bulkhead.snapshot().waiting, 2);
    gone.abort();
    assert!(gone.await.expect_err("aborted").is_cancelled());
    assert_eq!(bulkhead.snapshot().waiting, 1);
    drop(place);
    assert_eq!(next.await.expect("not aborted"), Ok(()));
    assert_eq!((bulkhead.snapshot().in_use, bulkhead.snapshot().waiting), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_runs_gives_its_place_back() {
    let bulkhead = bulkhead(1, 0);
    let call = async {
        let _place = bulkhead.enter(within(10)).await;
        sleep(60_000 * MS).await;
    };
    assert!(timeout(5 * MS, call).await.is_err());
    assert_eq!(bulkhead.snapshot().in_use, 0);
}

#[test]
fn threads_that_come_at_once_never_hold_more_places_than_there_are() {
    let bulkhead = bulkhead(3, 0);
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    if let Some(_place) = bulkhead.try_enter() {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert!((1..=3).contains(&most.into_inner()));
    assert_eq!(bulkhead.snapshot().in_use, 0);
}

#[test]
fn no_places_is_a_mistake_and_not_no_limit() {
    let faults =
        Bulkhead::new("payments", BulkheadSettings { places: 0, waiting: 1_000_000 }).expect_err("bad");
    assert_eq!(faults.0[0].to_string(), "payments.bulkhead.places is 0: must be 1 to 100000");
    assert_eq!(faults.0[1].name, "payments.bulkhead.waiting");
}
