//! When requests are sent: an open loop.
//!
//! People do not wait for each other. A loop that sends the next request when the last one is answered slows
//! down with the shop, and so leaves out the very requests that would have waited longest (coordinated
//! omission). Here request `n` is due at `began + n / rate`, whatever became of the others, and its latency
//! counts from there: if this program is late, or the shop is, it shows.
//!
//! ```text
//! due         |     |     |     |     |
//! answers     ----->|     |     |     |
//!                   ----------------------->     slow, and nobody behind it waits
//!                         ----->
//! ```
//!
//! The loop is bounded: so many in flight, so many in all. What is due while all places are taken is not
//! sent later, and not forgotten either: it is reported, one by one.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How much is offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Requests a second.
    pub(crate) rate: f64,
    /// Requests in flight, at most.
    pub(crate) in_flight: usize,
    /// Requests in all, at most.
    pub(crate) most: u64,
}

/// One request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Its number, from 0.
    pub(crate) number: u64,
    /// When it is to start. Latency counts from here.
    pub(crate) intended: Instant,
}

impl Pace {
    /// When request `number` is due. Counted from the beginning, so that no error adds up.
    fn due(&self, began: Instant, number: u64) -> Due {
        // There are far fewer than 2^52 of them, so the number is exact.
        let after = Duration::from_secs_f64(number as f64 / self.rate);
        Due { number, intended: began + after }
    }
}

/// Starts what is due, when it is due, until `stop`. Then waits for what is in flight.
///
/// # Panics
/// When a request does.
pub(crate) async fn offer<F>(
    pace: Pace,
    stop: CancellationToken,
    mut start: impl FnMut(Due) -> F,
    mut not_sent: impl FnMut(Due),
) where
    F: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let mut flying = JoinSet::new();
    for number in 0..pace.most {
        let due = pace.due(began, number);
        let stopped = tokio::select! {
            biased;
            () = stop.cancelled() => true,
            () = sleep_until(due.intended) => false,
        };
        if stopped {
            break;
        }
        while let Some(landed) = flying.try_join_next() {
            landed.expect("a request does not panic");
        }
        if flying.len() < pace.in_flight {
            flying.spawn(start(due));
        } else {
            not_sent(due);
        }
    }
    while let Some(landed) = flying.join_next().await {
        landed.expect("a request does not panic");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(rate: f64, in_flight: usize, most: u64) -> Pace {
        Pace { rate, in_flight, most }
    }

    /// Runs the pace against a shop that takes `took(number)`; says when each began, and its latency.
    async fn offered(pace: Pace, took: fn(u64) -> Duration) -> (Vec<(u64, Duration, Duration)>, Vec<u64>) {
        let began = Instant::now();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut away = Vec::new();
        let start = |due: Due| {
            let (seen, sent) = (Arc::clone(&seen), began.elapsed());
            async move {
                tokio::time::sleep(took(due.number)).await;
                seen.lock().unwrap().push((due.number, sent, due.intended.elapsed()));
            }
        };
        offer(pace, CancellationToken::new(), start, |due| away.push(due.number)).await;
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        (seen, away)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_delays_nobody() {
        let took = |number| if number == 1 { 10 * SECOND } else { Duration::from_millis(1) };
        let (seen, away) = offered(pace(10.0, 100, 50), took).await;
        assert_eq!((seen.len(), away.len()), (50, 0));
        for (number, sent, latency) in seen {
            assert_eq!(sent, Duration::from_millis(100 * number), "{number} began when it was due");
            assert!(latency >= took(number) && latency < took(number) + Duration::from_millis(2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_this_program_is_late_counts_as_latency() {
        let intended = Arc::new(Mutex::new(Vec::new()));
        let mut first = true;
        let start = |due: Due| {
            let (intended, late) = (Arc::clone(&intended), first);
            first = false;
            // The first one keeps the only thread to itself for a second.
            let began = due.intended;
            async move {
                if late {
                    tokio::time::advance(SECOND).await;
                }
                intended.lock().unwrap().push(began.elapsed().as_millis());
            }
        };
        offer(pace(4.0, 100, 5), CancellationToken::new(), start, |_| panic!("there is room")).await;
        let mut latencies = intended.lock().unwrap().clone();
        latencies.sort_unstable();
        // Due at 0, 250, 500, 750 and 1000 ms, and nothing could begin before 1000 ms.
        assert_eq!(latencies, [0, 250, 500, 750, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_place_is_named_and_not_sent_later() {
        let (seen, away) = offered(pace(10.0, 3, 25), |_| SECOND).await;
        let numbers: Vec<_> = seen.iter().map(|&(number, ..)| number).collect();
        assert_eq!(numbers.len() + away.len(), 25, "each is one or the other");
        assert_eq!(away[..7], [3, 4, 5, 6, 7, 8, 9]);
        assert!(seen.iter().all(|&(number, sent, _)| sent == Duration::from_millis(100 * number)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_it_is_told_and_waits_for_what_flies() {
        let stop = CancellationToken::new();
        let landed = Arc::new(Mutex::new(0));
        let start = |due: Due| {
            if due.number == 4 {
                stop.cancel();
            }
            let landed = Arc::clone(&landed);
            async move {
                tokio::time::sleep(SECOND).await;
                *landed.lock().unwrap() += 1;
            }
        };
        offer(pace(100.0, 100, u64::MAX), stop.clone(), start, |_| {}).await;
        assert_eq!(*landed.lock().unwrap(), 5);
    }

    #[test]
    fn no_error_adds_up() {
        let began = Instant::now();
        let due = pace(3.0, 1, 1).due(began, 3_000_000);
        assert_eq!(due.intended - began, 1_000_000 * SECOND);
    }
}
