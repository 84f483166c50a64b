//! What a breaker looks like, for people and metrics: computed when asked, so it cannot be out of
//! date.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::{State, machine::Inner};

/// A breaker at one moment. Its fields are read one after another, not all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// The neighbour's name.
    pub name: &'static str,
    /// The state.
    pub state: State,
    /// How long it has been in that state.
    pub in_state_for: Duration,
    /// Open: when a call may be let through again; zero when the next one is.
    pub retry_after: Option<Duration>,
    /// Half-open: probes let out, and of those the ones that succeeded.
    pub probes: Option<(u64, u64)>,
    /// Calls in the window.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that were slow.
    pub slow: u64,
    /// Closed: failures with no success in between, where the settings count them.
    pub failures_in_a_row: u64,
    /// How often it opened since it was made.
    pub openings: u64,
    /// Changes of state since it was made, up to four million.
    pub generation: u64,
    /// Calls refused since it was made.
    pub refused: u64,
}

impl Inner {
    pub(super) fn snapshot(&self) -> BreakerSnapshot {
        let word = self.load();
        let now_ms = self.now_ms();
        let sums = self.window.sums(now_ms);
        let state = word.state();
        BreakerSnapshot {
            name: self.name,
            state,
            in_state_for: Duration::from_millis(now_ms.saturating_sub(self.changed_ms.load(Relaxed))),
            retry_after: (state == State::Open)
                .then(|| Duration::from_millis(word.until_ms().saturating_sub(now_ms))),
            probes: (state == State::HalfOpen).then(|| (word.probes_out(), word.probes_succeeded())),
            calls: sums.calls,
            failures: sums.failures,
            slow: sums.slow,
            failures_in_a_row: if state == State::Closed { word.failures_in_a_row() } else { 0 },
            openings: self.openings.load(Relaxed),
            generation: word.generation(),
            refused: self.refused.get(),
        }
    }
}
