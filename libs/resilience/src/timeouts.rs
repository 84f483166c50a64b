//! Timeouts: there are three for each neighbour, not one.
//!
//! Setting the connect timeout and forgetting the answer's means to connect in 5 ms and then wait
//! for ever; setting the client's and forgetting the pool's means to wait for ever for a place.
//! All three stand here for one neighbour, and each is cut to what is left of the caller's deadline.

use std::time::Duration;

use crate::settings::Fault;

/// The three timeouts of one neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands. The neighbour is on the same network, so a longer wait only means
    /// that it is not there. Default: 200 ms, or half of `attempt` when that is less.
    pub connect: Duration,
    /// One attempt, from sending until the last byte of the answer, the connect included.
    pub attempt: Duration,
    /// For a place in the bulkhead. Default: 50 ms, or a tenth of `attempt` when that is less: long
    /// enough to ride out a burst, too short to build a queue.
    pub place: Duration,
}

impl Timeouts {
    /// `attempt` for an attempt, and the defaults that go with it.
    pub fn attempt(attempt: Duration) -> Self {
        Self {
            connect: Duration::from_millis(200).min(attempt / 2),
            attempt,
            place: Duration::from_millis(50).min(attempt / 10),
        }
    }

    /// The faults of these settings, named after `neighbour`.
    pub(crate) fn check(&self, neighbour: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.attempt.is_zero() || self.attempt > Duration::from_secs(600) {
            let rule = "must be more than 0 and at most 10 minutes";
            faults.push(Fault::new(format!("{neighbour}.attempt_timeout"), self.attempt, rule));
        }
        for (name, value) in [("connect_timeout", self.connect), ("place_timeout", self.place)] {
            if value.is_zero() || value >= self.attempt {
                let rule = "must be more than 0 and less than the attempt timeout";
                faults.push(Fault::new(format!("{neighbour}.{name}"), value, rule));
            }
        }
        faults
    }
}
