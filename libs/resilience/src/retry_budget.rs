//! Retry budget: how many retries all calls to one neighbour together may make.
//!
//! A limit for each call does not limit the sum. When a neighbour goes down, every call fails, and
//! three attempts a call are three times the load on one that just fell over under the single one;
//! it cannot get up. With a budget of 10 % the worst case is 1.1 times.
//!
//! Each first attempt pays a tenth of a token in, each retry takes a whole one. At low traffic a
//! tenth of little is nothing, so a small floor flows in by time; and what can be saved up has a
//! cap, so that a quiet night does not pay for a storm in the morning. First attempts are what is
//! counted, not calls in flight: those would fall as they become retries.
//!
//! One atomic word holds thousandths of tokens and the time of the last withdrawal. Taking is one
//! compare-and-swap: two threads cannot both take the last token.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{
    Clock,
    clock::{Timeline, millis},
    settings::{Fault, percent},
};

/// How much may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudgetSettings {
    /// Retries allowed, in percent of first attempts. Default: 10.
    pub percent: u8,
    /// Retries a second that are allowed in any case. Default: 1.
    pub floor_per_second: u32,
    /// The most that can be saved up, and what there is at the start. Default: 20.
    pub cap: u32,
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self { percent: 10, floor_per_second: 1, cap: 20 }
    }
}

/// One token, in thousandths.
const TOKEN: u64 = 1000;
const LOW: u64 = 0xFFFF_FFFF;

/// The tokens of one neighbour.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    settings: RetryBudgetSettings,
    timeline: Timeline,
    /// `| last withdrawal, ms 32 | thousandths of tokens 32 |`
    word: AtomicU64,
}

// === impl RetryBudget ===

impl RetryBudget {
    pub(crate) fn new(settings: RetryBudgetSettings) -> Self {
        let word = AtomicU64::new(u64::from(settings.cap) * TOKEN);
        Self { settings, timeline: Timeline::start(Clock::Coarse), word }
    }

    /// A first attempt pays in. When all is well the budget is full, and this is one load.
    pub(crate) fn deposit(&self) {
        let part = u64::from(self.settings.percent) * TOKEN / 100;
        // It fails only when nothing is to be changed.
        let _ = self.word.fetch_update(Relaxed, Relaxed, |word| {
            let tokens = word & LOW;
            (tokens < self.most()).then(|| word & !LOW | (tokens + part).min(self.most()))
        });
    }

    /// Takes a token for a retry, if there is one.
    pub(crate) fn withdraw(&self) -> bool {
        let now = self.now();
        let taken = |word: u64| {
            let left = self.tokens_at(word, now).checked_sub(TOKEN)?;
            let stamp = if is_ahead(word, now) { word >> 32 } else { now };
            Some(stamp << 32 | left)
        };
        self.word.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// Retries that could be made now.
    pub(crate) fn available(&self) -> u64 {
        self.tokens_at(self.word.load(Relaxed), self.now()) / TOKEN
    }

    /// The tokens of `word` at `now`, with what flowed in since the last withdrawal. Times wrap
    /// after 49 days; what is idle for longer is taken to be idle for less, which is harmless.
    fn tokens_at(&self, word: u64, now: u64) -> u64 {
        let idle_ms = if is_ahead(word, now) { 0 } else { now.wrapping_sub(word >> 32) & LOW };
        // Thousandths of tokens a millisecond are tokens a second.
        (word & LOW).saturating_add(idle_ms * u64::from(self.settings.floor_per_second)).min(self.most())
    }

    fn most(&self) -> u64 {
        u64::from(self.settings.cap) * TOKEN
    }

    fn now(&self) -> u64 {
        millis(self.timeline.now()) & LOW
    }
}

/// The last withdrawal was made by a thread that read the clock later than this one did.
const fn is_ahead(word: u64, now: u64) -> bool {
    let ahead_ms = (word >> 32).wrapping_sub(now) & LOW;
    ahead_ms > 0 && ahead_ms <= 10_000
}

// === impl RetryBudgetSettings ===

impl RetryBudgetSettings {
    /// The faults of these settings, named after `neighbour`.
    pub(crate) fn check(&self, neighbour: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |name: &str, value: u32, rule: &str| {
            faults.push(Fault::new(format!("{neighbour}.retry_budget.{name}"), value, rule));
        };
        if !percent(self.percent) {
            refuse("percent", u32::from(self.percent), "must be 1 to 100");
        }
        if self.floor_per_second > 1_000 {
            refuse("floor_per_second", self.floor_per_second, "must be 0 to 1000");
        }
        if self.cap == 0 || self.cap > 100_000 {
            refuse("cap", self.cap, "must be 1 to 100000");
        }
        faults
    }
}

/// What there is to see of a retry budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryBudgetSnapshot {
    /// Retries that could be made now.
    pub available: u64,
    /// The most that can be saved up.
    pub cap: u32,
}

impl RetryBudget {
    pub(crate) fn snapshot(&self) -> RetryBudgetSnapshot {
        RetryBudgetSnapshot { available: self.available(), cap: self.settings.cap }
    }
}

#[cfg(test)]
mod tests;
