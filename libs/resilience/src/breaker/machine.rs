//! The breaker's machine: the changes of its state word, each one compare-and-swap.
//!
//! Whoever wins the swap does what goes with the change: counts it, and tells the observer. Every
//! function that changes something is given the word of an admission, and does nothing once that
//! word's generation is over.

use std::{
    sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::Duration,
};

use super::{
    BreakerSettings, Cause, Change, Permit, State, WHILE_PROBING,
    window::{Sums, Window},
    word::Word,
};
use crate::{
    Refusal, Verdict,
    clock::{Timeline, millis},
    jitter::Die,
    observe::Observer,
    stripes::Counter,
};

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) word: AtomicU64,
    pub(super) name: &'static str,
    pub(super) settings: BreakerSettings,
    pub(super) slow_after: Option<Duration>,
    pub(super) timeline: Timeline,
    pub(super) observer: Observer,
    pub(super) die: Die,
    pub(super) window: Window,
    /// The rates are past their limits, but the calls too few: the next call, even a success, may
    /// be the one that opens it.
    pub(super) suspect: AtomicBool,
    /// Half-open: when the probe that was let out last has to be back. Written before its place is
    /// taken in the word, so whoever sees the place taken sees the lease.
    pub(super) lease_until_ms: AtomicU64,
    /// How often it opened since it was last closed.
    pub(super) openings_in_a_row: AtomicU32,
    pub(super) openings: AtomicU64,
    pub(super) changed_ms: AtomicU64,
    pub(super) refused: Counter,
}

impl Inner {
    pub(super) fn load(&self) -> Word {
        Word(self.word.load(Acquire))
    }

    fn swap(&self, from: Word, to: Word) -> bool {
        self.word.compare_exchange(from.0, to.0, AcqRel, Relaxed).is_ok()
    }

    pub(super) fn now_ms(&self) -> u64 {
        millis(self.timeline.now())
    }

    pub(super) fn has_free_probe(&self, word: Word) -> bool {
        word.probes_out() < u64::from(self.settings.probes)
    }

    pub(super) fn lease_is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.lease_until_ms.load(Acquire)
    }

    /// Each turn of the loop that does not end it means that another thread got on.
    pub(super) fn admit_unless_open(&'static self) -> Result<Permit, Refusal> {
        let now_ms = self.now_ms();
        loop {
            let word = self.load();
            let admitted = match word.state() {
                State::Closed => {
                    return Ok(Permit { inner: self, admitted: word });
                }
                State::Open => {
                    if let Some(retry_after) = wait_ms(word.until_ms().saturating_sub(now_ms)) {
                        return Err(Refusal::BreakerOpen { retry_after });
                    }
                    word.to_half_open()
                }
                State::HalfOpen if self.has_free_probe(word) => word.probe_out(),
                State::HalfOpen if self.lease_is_over(now_ms) => {
                    self.open(word, Cause::ProbeHung);
                    continue;
                }
                State::HalfOpen => {
                    return Err(Refusal::BreakerOpen { retry_after: WHILE_PROBING });
                }
            };
            self.lease_until_ms.store(now_ms + millis(self.settings.probe_lease), Relaxed);
            if self.swap(word, admitted) {
                if word.state() == State::Open {
                    self.changed(word, admitted, Cause::OpenTimeOver);
                }
                return Ok(Permit { inner: self, admitted });
            }
        }
    }

    pub(super) fn finish(&self, admitted: Word, verdict: Verdict, elapsed: Duration) {
        let slow = self.slow_after.is_some_and(|limit| elapsed >= limit);
        match (admitted.state(), verdict) {
            (State::HalfOpen, Verdict::Neutral) => self.update(admitted, Word::probe_given_back),
            (_, Verdict::Neutral) => {}
            (State::HalfOpen, Verdict::Healthy) if !slow => self.probe_succeeded(admitted),
            (State::HalfOpen, _) => self.open(admitted, Cause::ProbeFailed),
            (_, verdict) => self.count(admitted, verdict != Verdict::Healthy, slow),
        }
    }

    /// A call that was let in while closed came back.
    fn count(&self, admitted: Word, failed: bool, slow: bool) {
        let word = self.load();
        if !word.same_generation(admitted) {
            return;
        }
        if let Some(limit) = self.settings.consecutive_failures {
            if !failed && word.failures_in_a_row() > 0 {
                self.update(admitted, Word::no_failures);
            } else if failed && self.one_more_failure(admitted) >= u64::from(limit) {
                return self.open(admitted, Cause::ConsecutiveFailures);
            }
        }
        if self.settings.failure_percent.is_none() && self.settings.slow.is_none() {
            return;
        }
        let now_ms = self.now_ms();
        self.window.record(now_ms, || self.now_ms(), failed, slow);
        // A good call never makes a rate worse, so there is nothing to add up, unless it may be the
        // one that makes the calls enough.
        if failed || slow || self.suspect.load(Relaxed) {
            self.judge(admitted, self.window.sums(now_ms));
        }
    }

    fn one_more_failure(&self, admitted: Word) -> u64 {
        let mut failures = 0;
        self.update(admitted, |word| {
            let word = word.one_more_failure();
            failures = word.failures_in_a_row();
            word
        });
        failures
    }

    fn judge(&self, admitted: Word, sums: Sums) {
        let past = |part: u64, percent: u8| part * 100 >= sums.calls * u64::from(percent) && part > 0;
        let cause = if self.settings.failure_percent.is_some_and(|percent| past(sums.failures, percent)) {
            Some(Cause::FailureRate)
        } else if self.settings.slow.is_some_and(|slow| past(sums.slow, slow.percent)) {
            Some(Cause::SlowRate)
        } else {
            None
        };
        let enough = sums.calls >= u64::from(self.settings.minimum_calls);
        self.suspect.store(cause.is_some() && !enough, Relaxed);
        if let Some(cause) = cause
            && enough
        {
            self.open(admitted, cause);
        }
    }

    fn probe_succeeded(&self, admitted: Word) {
        loop {
            let word = self.load();
            if !word.same_generation(admitted) {
                return;
            }
            let counted = word.probe_succeeded();
            let all = counted.probes_succeeded() >= u64::from(self.settings.probes);
            if all {
                // Before the change, since afterwards others count already. Nobody counts now.
                self.window.clear();
                self.suspect.store(false, Relaxed);
            }
            let next = if all { counted.to_closed() } else { counted };
            if self.swap(word, next) {
                if all {
                    self.openings_in_a_row.store(0, Relaxed);
                    self.changed(word, next, Cause::ProbesSucceeded);
                }
                return;
            }
        }
    }

    /// Opens, unless the generation of `admitted` is over already.
    fn open(&self, admitted: Word, cause: Cause) {
        let until_ms = self.now_ms() + millis(self.open_time()).max(1);
        loop {
            let word = self.load();
            if !word.same_generation(admitted) {
                return;
            }
            let next = word.to_open(until_ms);
            if self.swap(word, next) {
                self.openings.fetch_add(1, Relaxed);
                self.openings_in_a_row.fetch_add(1, Relaxed);
                return self.changed(word, next, cause);
            }
        }
    }

    fn open_time(&self) -> Duration {
        let doublings = self.openings_in_a_row.load(Relaxed).min(31);
        let longest =
            self.settings.open_for.saturating_mul(1 << doublings).min(self.settings.open_for_at_most);
        self.die.between(longest - longest / 5, longest)
    }

    /// Changes the payload, unless the generation of `admitted` is over already.
    fn update(&self, admitted: Word, mut change: impl FnMut(Word) -> Word) {
        loop {
            let word = self.load();
            if !word.same_generation(admitted) || self.swap(word, change(word)) {
                return;
            }
        }
    }

    fn changed(&self, from: Word, to: Word, cause: Cause) {
        self.changed_ms.store(self.now_ms(), Relaxed);
        let change = Change { breaker: self.name, from: from.state(), to: to.state(), cause };
        self.observer.tell(|observer| observer.breaker_changed(&change));
    }
}

/// `None` when there is nothing to wait for.
pub(super) fn wait_ms(millis: u64) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis))
}
