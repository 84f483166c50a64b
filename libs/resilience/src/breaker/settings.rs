//! The breaker's settings: what opens it, for how long, and what closes it again.

use std::time::Duration;

use crate::{
    Jitter,
    settings::{Fault, percent},
};

/// When a breaker opens, for how long, and how it closes again.
///
/// At least one of `failure_percent`, `slow` and `consecutive_failures` has to be set; each opens
/// it on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// What rates are taken of. Default: the last 10 seconds.
    pub window: Window,
    /// No rate is taken of fewer calls than this: one failure out of one call is 100 %, and no
    /// evidence. Default: 10. Does not hold for `consecutive_failures`, nor half-open.
    pub minimum_calls: u32,
    /// Opens when at least this share of the window failed, in percent. Default: 50.
    pub failure_percent: Option<u8>,
    /// Opens when too many calls are slow. Default: none, since only you know what slow is.
    pub slow: Option<SlowCalls>,
    /// Opens at so many failures with no success in between, whatever the window says. Default:
    /// none.
    pub consecutive_failures: Option<u32>,
    /// How long it stays open the first time. Default: 5 s.
    pub open_for: Duration,
    /// The open time doubles each time that probes fail, up to this. Default: 30 s. Equal to
    /// `open_for`, it does not grow.
    pub open_for_at_most: Duration,
    /// Shortens each open time by up to a fifth, so that processes do not probe all at once. It
    /// never lengthens it. Default: random.
    pub jitter: Jitter,
    /// How many calls are let through half-open. All of them must succeed; one that fails, or is
    /// slow where `slow` is set, opens it again. Default: 3.
    pub probes: u32,
    /// A probe that has not come back after this time is given up, and counts as failed. It is for
    /// callers without a timeout; in a policy it must be longer than the waits for place and
    /// answer. Default: 10 s.
    pub probe_lease: Duration,
}

/// What rates are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last so many calls, at most 65,536. Exact; costs threads that call at once more than
    /// time does.
    Calls(u32),
    /// The calls of the last so much time, from 1 s to 1 h, in ten buckets: it slides by a tenth.
    Time(Duration),
}

/// Too many slow calls open the breaker: a neighbour that answers late fails nobody, and takes
/// everybody's places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowCalls {
    /// A call that takes at least this long is slow, whatever its outcome. Not less than 10 ms: the
    /// coarse clock's step would be most of it.
    pub longer_than: Duration,
    /// Opens when at least this share of the window was slow, in percent.
    pub percent: u8,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            window: Window::Time(Duration::from_secs(10)),
            minimum_calls: 10,
            failure_percent: Some(50),
            slow: None,
            consecutive_failures: None,
            open_for: Duration::from_secs(5),
            open_for_at_most: Duration::from_secs(30),
            jitter: Jitter::Random,
            probes: 3,
            probe_lease: Duration::from_secs(10),
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl BreakerSettings {
    /// The faults of these settings, named after `neighbour`.
    pub(crate) fn check(&self, neighbour: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |name: &str, value: &dyn std::fmt::Debug, rule: &str| {
            faults.push(Fault::new(format!("{neighbour}.breaker.{name}"), value, rule));
        };
        match self.window {
            Window::Calls(size) if size == 0 || size > 65_536 => {
                refuse("window", &self.window, "must be 1 to 65536 calls");
            }
            Window::Time(length) if length < Duration::from_secs(1) || length > Duration::from_secs(3600) => {
                refuse("window", &self.window, "must be 1 s to 1 h");
            }
            Window::Calls(size) if self.minimum_calls > size => {
                refuse("minimum_calls", &self.minimum_calls, "must not be more than the window holds");
            }
            Window::Calls(_) | Window::Time(_) => {}
        }
        // Above it, a nearly full bucket that is halved could fall below the minimum.
        if self.minimum_calls == 0 || self.minimum_calls > 5_000 {
            refuse("minimum_calls", &self.minimum_calls, "must be 1 to 5000");
        }
        if self.failure_percent.is_some_and(|it| !percent(it)) {
            refuse("failure_percent", &self.failure_percent, "must be 1 to 100");
        }
        if self.slow.is_some_and(|slow| !percent(slow.percent)) {
            refuse("slow.percent", &self.slow, "must be 1 to 100");
        }
        if self.slow.is_some_and(|slow| slow.longer_than < Duration::from_millis(10)) {
            refuse("slow.longer_than", &self.slow, "must be at least 10 ms");
        }
        if self.consecutive_failures == Some(0) {
            refuse("consecutive_failures", &self.consecutive_failures, "must be at least 1");
        }
        if self.failure_percent.is_none() && self.slow.is_none() && self.consecutive_failures.is_none() {
            refuse(
                "failure_percent",
                &self.failure_percent,
                "must be set where nothing else opens the breaker",
            );
        }
        if self.open_for < Duration::from_millis(1) || self.open_for > DAY {
            refuse("open_for", &self.open_for, "must be 1 ms to 1 day");
        }
        if self.open_for_at_most < self.open_for || self.open_for_at_most > DAY {
            refuse("open_for_at_most", &self.open_for_at_most, "must be at least open_for and at most 1 day");
        }
        if self.probes == 0 || self.probes > 1_000 {
            refuse("probes", &self.probes, "must be 1 to 1000");
        }
        if self.probe_lease < Duration::from_millis(100) || self.probe_lease > DAY {
            refuse("probe_lease", &self.probe_lease, "must be 100 ms to 1 day");
        }
        faults
    }
}
