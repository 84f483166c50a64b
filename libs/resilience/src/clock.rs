//! Clock: what the patterns read time from, and what a read costs.
//!
//! Through a healthy policy the clock is the dearest thing: a precise read takes about 22 ns, more
//! than the rest of a breaker. But a breaker's window is made of tenths of seconds. So windows,
//! open times and slow calls read the kernel's coarse clock (3 ns, a step of about 4 ms), and who
//! wants them finer says so and pays. Both are monotonic: a wall clock that is set does not matter.
//!
//! Deadlines and timers do not go through here. They are tokio's, always precise.

use std::time::Duration;

use tokio::time::Instant;

/// Which clock a breaker or a policy reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC_COARSE`: 3 ns a read, a step of 1 to 10 ms (4 ms where the kernel ticks 250
    /// times a second). Elsewhere than on Linux it is the same as [`Clock::Precise`]. With the
    /// feature `test-clock` it is too, and follows tokio's paused clock.
    #[default]
    Coarse,
    /// tokio's clock: 22 ns a read, to the nanosecond. It follows tokio's paused clock.
    Precise,
}

/// A clock with its own zero, so that times fit in few bits and a paused clock may begin anywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    clock: Clock,
    precise_start: Instant,
    coarse_start: u64,
}

impl Timeline {
    pub(crate) fn start(clock: Clock) -> Self {
        Self { clock, precise_start: Instant::now(), coarse_start: coarse::nanos().unwrap_or(0) }
    }

    /// Time since the start; it never runs backwards below zero.
    pub(crate) fn now(&self) -> Duration {
        if self.clock == Clock::Coarse
            && let Some(nanos) = coarse::nanos()
        {
            return Duration::from_nanos(nanos.saturating_sub(self.coarse_start));
        }
        Instant::now().saturating_duration_since(self.precise_start)
    }
}

/// Whole milliseconds of `time`; 584 million years do not overflow it.
pub(crate) const fn millis(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1000).saturating_add(time.subsec_millis() as u64)
}

#[cfg(all(target_os = "linux", not(test), not(feature = "test-clock")))]
mod coarse {
    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn nanos() -> Option<u64> {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let seconds = u64::try_from(now.tv_sec).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(now.tv_nsec).ok()?)
    }
}

#[cfg(not(all(target_os = "linux", not(test), not(feature = "test-clock"))))]
mod coarse {
    pub(super) const fn nanos() -> Option<u64> {
        None
    }
}
