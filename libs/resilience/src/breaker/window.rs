//! The breaker's window: how many of the recent calls failed, and how many were slow.
//!
//! Two obvious ways are wrong. Counters that start at the last reset never forget: after a million
//! good calls it takes a million bad ones to open. An average that decays forgets by the pace of
//! the calls, and hides a short, complete outage. So it is exact counts of the last N calls, or of
//! the last N seconds.
//!
//! Nothing here locks or allocates. A count may be late by as many calls as there are threads in
//! the middle of `record`; it is never lost.

use std::{
    iter,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::{clock::millis, stripes::Striped};

/// What a window holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once a breaker and never moved; a Box would cost each call a load"
)]
pub(super) enum Window {
    Calls(CallWindow),
    Time(TimeWindow),
}

impl Window {
    pub(super) fn new(setting: super::Window) -> Self {
        match setting {
            super::Window::Calls(size) => Self::Calls(CallWindow::new(size)),
            super::Window::Time(length) => Self::Time(TimeWindow::new(length)),
        }
    }

    /// `now_ms` is what `clock` said a moment ago; it is seldom asked again.
    pub(super) fn record(&self, now_ms: u64, clock: impl Fn() -> u64, failed: bool, slow: bool) {
        match self {
            Self::Calls(window) => window.record(failed, slow),
            Self::Time(window) => window.record(now_ms, clock, failed, slow),
        }
    }

    pub(super) fn sums(&self, now_ms: u64) -> Sums {
        match self {
            Self::Calls(window) => window.sums(),
            Self::Time(window) => window.sums(now_ms),
        }
    }

    /// Forgets everything. Called while the breaker is half-open, when nothing is recorded.
    pub(super) fn clear(&self) {
        match self {
            Self::Calls(window) => window.clear(),
            Self::Time(window) => window.clear(),
        }
    }
}

/// The last N calls: a ring of bits, and a count of those set.
#[derive(Debug)]
pub(super) struct CallWindow {
    size: u64,
    recorded: AtomicU64,
    failures: Ring,
    slow: Ring,
}

impl CallWindow {
    fn new(size: u32) -> Self {
        let recorded = AtomicU64::new(0);
        Self { size: u64::from(size), recorded, failures: Ring::new(size), slow: Ring::new(size) }
    }

    fn record(&self, failed: bool, slow: bool) {
        let at = self.recorded.fetch_add(1, Relaxed) % self.size;
        self.failures.put(at, failed);
        self.slow.put(at, slow);
    }

    fn sums(&self) -> Sums {
        Sums {
            calls: self.recorded.load(Relaxed).min(self.size),
            failures: self.failures.set(),
            slow: self.slow.set(),
        }
    }

    fn clear(&self) {
        self.failures.clear();
        self.slow.clear();
        self.recorded.store(0, Relaxed);
    }
}

#[derive(Debug)]
struct Ring {
    words: Box<[AtomicU64]>,
    set: AtomicU32,
}

impl Ring {
    fn new(size: u32) -> Self {
        let words = iter::repeat_with(AtomicU64::default).take(size.div_ceil(64) as usize).collect();
        Self { words, set: AtomicU32::new(0) }
    }

    /// Writes the bit only where it changes, so that a healthy neighbour costs one load. The count
    /// follows the bit that was really changed, so it cannot drift away from the ring.
    fn put(&self, at: u64, bit: bool) {
        let word = &self.words[(at / 64) as usize];
        let mask = 1 << (at % 64);
        let is_set = word.load(Relaxed) & mask != 0;
        if bit && !is_set && word.fetch_or(mask, Relaxed) & mask == 0 {
            self.set.fetch_add(1, Relaxed);
        } else if !bit && is_set && word.fetch_and(!mask, Relaxed) & mask != 0 {
            self.set.fetch_sub(1, Relaxed);
        }
    }

    fn set(&self) -> u64 {
        u64::from(self.set.load(Relaxed))
    }

    fn clear(&self) {
        for word in &self.words {
            let was = word.swap(0, Relaxed);
            self.set.fetch_sub(was.count_ones(), Relaxed);
        }
    }
}

/// How many buckets a time window has. It slides by a bucket, so it is between 9/10 and all of its
/// length long.
pub(super) const BUCKETS: u64 = 10;

/// The last N seconds: ten buckets a stripe, each one packed word, so that a bucket's counts and
/// the time that they belong to change together.
///
/// ```text
/// | epoch 22 | slow 14 | failures 14 | calls 14 |
/// ```
///
/// The epoch is the time in buckets, without its upper bits. What is left over from long ago is
/// taken for present only when it is 21 million buckets old to within ten: 243 days, at a second
/// each, with no call at all in between.
#[derive(Debug)]
pub(super) struct TimeWindow {
    bucket_ms: u64,
    stripes: Striped<[AtomicU64; BUCKETS as usize]>,
}

const COUNT_BITS: u32 = 14;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const EPOCH_SHIFT: u32 = 3 * COUNT_BITS;
const EPOCH: u64 = (1 << (64 - EPOCH_SHIFT)) - 1;
/// A bucket is halved before it is full, with room for every thread that has looked and not yet
/// added. Halving keeps the rates; the counts stay far above any minimum number of calls.
const HALVE_AT: u64 = COUNT - 1024;

impl TimeWindow {
    pub(super) fn new(length: Duration) -> Self {
        Self { bucket_ms: (millis(length) / BUCKETS).max(1), stripes: Striped::new() }
    }

    pub(super) fn record(&self, now_ms: u64, clock: impl Fn() -> u64, failed: bool, slow: bool) {
        let epoch = now_ms / self.bucket_ms;
        let cell = &self.stripes.mine()[(epoch % BUCKETS) as usize];
        let one = 1 | u64::from(failed) << COUNT_BITS | u64::from(slow) << (2 * COUNT_BITS);
        let word = cell.load(Relaxed);
        if word >> EPOCH_SHIFT == epoch & EPOCH && word & COUNT < HALVE_AT {
            cell.fetch_add(one, Relaxed);
        } else {
            self.record_anew(clock, one);
        }
    }

    /// The bucket belongs to another time, or is nearly full.
    ///
    /// It is read before the clock is, and only changed if it is still the same. So it cannot be
    /// of a later time than the clock's: a thread that stood still for a whole window does not wipe
    /// out what others counted meanwhile, and whatever is of another time is of a past one.
    #[cold]
    fn record_anew(&self, clock: impl Fn() -> u64, one: u64) {
        loop {
            let guess = clock() / self.bucket_ms;
            let cell = &self.stripes.mine()[(guess % BUCKETS) as usize];
            let word = cell.load(Relaxed);
            let epoch = clock() / self.bucket_ms;
            if epoch != guess {
                continue;
            }
            let next = if word >> EPOCH_SHIFT != epoch & EPOCH {
                (epoch & EPOCH) << EPOCH_SHIFT | one
            } else if word & COUNT < HALVE_AT {
                word + one
            } else {
                let half = |shift: u32| ((word >> shift & COUNT) / 2) << shift;
                ((epoch & EPOCH) << EPOCH_SHIFT | half(0) | half(COUNT_BITS) | half(2 * COUNT_BITS)) + one
            };
            if cell.compare_exchange(word, next, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    pub(super) fn sums(&self, now_ms: u64) -> Sums {
        let now = now_ms / self.bucket_ms;
        let mut sums = Sums::default();
        for epoch in now.saturating_sub(BUCKETS - 1)..=now {
            for stripe in self.stripes.iter() {
                let word = stripe[(epoch % BUCKETS) as usize].load(Relaxed);
                if word >> EPOCH_SHIFT == epoch & EPOCH {
                    sums.calls += word & COUNT;
                    sums.failures += word >> COUNT_BITS & COUNT;
                    sums.slow += word >> (2 * COUNT_BITS) & COUNT;
                }
            }
        }
        sums
    }

    fn clear(&self) {
        for stripe in self.stripes.iter() {
            for cell in stripe {
                cell.store(0, Relaxed);
            }
        }
    }
}
