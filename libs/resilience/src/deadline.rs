//! Deadline: the point in time after which the answer is of no use to anybody.
//!
//! A timeout at each hop is the obvious way, and wrong: three hops of three seconds are nine, and
//! the one at the bottom works for a caller who left six seconds ago. So one point in time is set
//! at the edge, travels down with the call, and every step may only make it *earlier*
//! ([`Deadline::within`]). On the wire it is a duration, since clocks of two machines need not
//! agree; in the process it is an instant of the monotonic clock, so time spent anywhere counts.

use std::time::Duration;

use tokio::time::Instant;

/// As far off as a deadline can be. It keeps absurd durations from overflowing the clock.
const FARTHEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// A point in time after which nobody waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// `budget` from now; budgets over 30 days are cut to that.
    pub fn after(budget: Duration) -> Self {
        Self(Instant::now() + budget.min(FARTHEST))
    }

    /// At `instant`.
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant itself, for `tokio::time::timeout_at`.
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// The earlier of this deadline and `limit` from now. Never later than this one.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        self.min(Self::after(limit))
    }

    /// `time` earlier, so that the caller of the next step keeps `time` for its own answer. A
    /// deadline that cannot be earlier is as good as expired.
    #[must_use]
    pub fn reserve(self, time: Duration) -> Self {
        Self(self.0.checked_sub(time).unwrap_or_else(Instant::now))
    }

    /// What is left; zero when it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Nothing is left.
    pub fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::{advance, pause};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn asking_for_more_than_the_caller_has_gives_what_the_caller_has() {
        let parent = Deadline::after(500 * MS);
        assert_eq!(parent.within(2000 * MS), parent);
        assert_eq!(parent.within(200 * MS).remaining(), 200 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_and_then_it_is_over() {
        let deadline = Deadline::after(500 * MS);
        advance(499 * MS).await;
        assert!(!deadline.has_passed());
        advance(MS).await;
        assert!(deadline.has_passed());
        advance(100 * MS).await;
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn reserved_time_is_left_for_the_caller() {
        let deadline = Deadline::after(500 * MS);
        assert_eq!(deadline.reserve(150 * MS).remaining(), 350 * MS);
        assert!(deadline.reserve(501 * MS).has_passed());
        assert!(deadline.reserve(Duration::MAX).has_passed());
    }

    proptest! {
        #[test]
        fn no_step_makes_it_later(budget in any::<Duration>(), limit in any::<Duration>(), kept in any::<Duration>()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(async {
                pause();
                let parent = Deadline::after(budget);
                assert!(parent.within(limit) <= parent);
                assert!(parent.reserve(kept) <= parent);
                assert!(parent.remaining() <= budget);
            });
        }
    }
}
