//! Breaker: leaves a sick neighbour alone, and finds out gently when it is well again.
//!
//! Without one, every caller waits its full time for an answer that will not come, and holds its
//! thread, its place and its patience meanwhile: the sick one takes the healthy ones along. And the
//! sick one is kept busy with work that nobody will wait for.
//!
//! ```text
//!            too many failures, or slow calls
//!   CLOSED ------------------------------------> OPEN <-----------+
//!     ^                                           |               |
//!     | all probes                open_for passed | (at the next  | one probe failed,
//!     | succeeded                                 v   admission)  | or hung past its lease
//!     +--------------------------------------- HALF_OPEN ---------+
//! ```
//!
//! A breaker looks easy, and most are wrong in the same few places. Here:
//!
//! - A probe's place is taken when it is let out, not when it comes back: at the moment of opening,
//!   fifty waiting callers are still as many probes as the setting says.
//! - A call that is dropped (the caller went away) counts neither way and gives its place back. A
//!   probe that hangs holds its place on lease. Nothing can leave the breaker stuck half-open.
//! - An answer belongs to the generation in which its call was let in. A success that set out
//!   before the trip closes nothing; a failure from then opens nothing again.
//! - What the breaker refuses itself is not counted as the neighbour's failure.
//! - There is no timer task: OPEN becomes HALF_OPEN when the next call asks.
//!
//! It is per process, on purpose: what one process cannot reach another may.
//!
//! ```
//! use std::time::Duration;
//! use resilience::{Breaker, BreakerSettings, Refusal, Verdict, breaker::State};
//!
//! let settings = BreakerSettings { consecutive_failures: Some(2), ..BreakerSettings::default() };
//! let breaker = Breaker::builder("payments", settings).build()?;
//! for _ in 0..2 {
//!     let permit = breaker.admit()?;
//!     permit.finish(Verdict::Failure, Duration::from_millis(3));
//! }
//! assert_eq!(breaker.state(), State::Open);
//! assert!(matches!(breaker.admit(), Err(Refusal::BreakerOpen { .. })));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! A call through a closed breaker costs one load to be let in, and one addition to be counted. It
//! neither locks nor allocates.

mod machine;
mod settings;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod window;
mod word;

use std::{
    future::Future,
    mem,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64},
    time::Duration,
};

use tokio::time::sleep;

use self::{
    machine::{Inner, wait_ms},
    word::Word,
};
pub use self::{
    settings::{BreakerSettings, SlowCalls, Window},
    snapshot::BreakerSnapshot,
    state::{Cause, Change, State},
};
use crate::{
    CallError, Classify, Clock, Faults, Observe, Refusal, Verdict, clock::Timeline, jitter::Die,
    observe::Observer, stripes::Counter,
};

/// How long to wait before asking again while probes are out: how long those take is not known.
const WHILE_PROBING: Duration = Duration::from_millis(100);

/// A circuit breaker. Cheap to copy; made once at start and never freed. Copies are the same one.
#[derive(Debug, Clone, Copy)]
pub struct Breaker {
    inner: &'static Inner,
}

/// Leave to make one call, to be ended by [`Permit::finish`]. Dropped without, the call counts
/// neither way.
#[must_use = "a permit that is dropped at once lets nothing be counted"]
#[derive(Debug)]
pub struct Permit {
    inner: &'static Inner,
    admitted: Word,
}

/// Collects what a [`Breaker`] is made of.
#[derive(Debug)]
pub struct Builder {
    name: &'static str,
    settings: BreakerSettings,
    clock: Clock,
    observer: Observer,
}

// === impl Breaker ===

impl Breaker {
    /// Begins a breaker for the neighbour called `name`; the name is its label everywhere.
    pub fn builder(name: &'static str, settings: BreakerSettings) -> Builder {
        Builder { name, settings, clock: Clock::default(), observer: Observer::default() }
    }

    /// The neighbour's name.
    pub fn name(self) -> &'static str {
        self.inner.name
    }

    /// What it was built with.
    pub fn settings(self) -> BreakerSettings {
        self.inner.settings
    }

    /// The state in its word. An open one whose time is over says open until somebody asks to be
    /// let in.
    pub fn state(self) -> State {
        self.inner.load().state()
    }

    /// Lets a call through, or refuses it. Closed, it is one load.
    ///
    /// # Errors
    /// [`Refusal::BreakerOpen`], with the time after which asking again may help.
    pub fn admit(self) -> Result<Permit, Refusal> {
        let word = self.inner.load();
        if word.state() == State::Closed {
            return Ok(Permit { inner: self.inner, admitted: word });
        }
        self.inner.admit_unless_open().inspect_err(|_| self.inner.refused.add_one())
    }

    /// Looks whether a call would be let through now, without taking a probe's place: for a worker
    /// that had better not take work on.
    ///
    /// # Errors
    /// [`Refusal::BreakerOpen`], with the time after which asking again may help.
    pub fn look(self) -> Result<(), Refusal> {
        let word = self.inner.load();
        let now_ms = self.inner.now_ms();
        let refusal = match word.state() {
            State::Closed => None,
            State::Open => wait_ms(word.until_ms().saturating_sub(now_ms)),
            State::HalfOpen if self.inner.has_free_probe(word) || self.inner.lease_is_over(now_ms) => None,
            State::HalfOpen => Some(WHILE_PROBING),
        };
        refusal.map_or(Ok(()), |retry_after| Err(Refusal::BreakerOpen { retry_after }))
    }

    /// Waits until a call would be let through. It reserves nothing: another caller may be first.
    pub async fn admitting(self) {
        while let Err(refusal) = self.look() {
            // Bounded on both sides: probes may close it at any moment, and a wait of nothing spins.
            let pause = refusal.retry_after().unwrap_or(WHILE_PROBING);
            sleep(pause.clamp(Duration::from_millis(1), Duration::from_secs(1))).await;
        }
    }

    /// The breaker alone around one call, without a policy: refused, or made and counted by its
    /// error's [`Classify`]. A future that is dropped counts neither way.
    ///
    /// # Errors
    /// [`CallError::Refused`] when it is open, [`CallError::Failed`] with what `call` reported.
    pub async fn call<T, E: Classify>(
        self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        let neighbour = self.inner.name;
        let permit = self.admit().map_err(|refusal| CallError::Refused { neighbour, refusal })?;
        let started = self.inner.timeline.now();
        let result = call.await;
        let elapsed = self.inner.timeline.now().saturating_sub(started);
        let verdict = result.as_ref().map_or_else(|error| error.class().verdict, |_| Verdict::Healthy);
        permit.finish(verdict, elapsed);
        result.map_err(|source| CallError::Failed { neighbour, source })
    }

    /// What it looks like now.
    pub fn snapshot(self) -> BreakerSnapshot {
        self.inner.snapshot()
    }
}

// === impl Permit ===

impl Permit {
    /// Ends the call: what it said about the neighbour, and how long it took, without waits on this
    /// side.
    pub fn finish(self, verdict: Verdict, elapsed: Duration) {
        self.inner.finish(self.admitted, verdict, elapsed);
        mem::forget(self);
    }

    /// The breaker has not changed its state since. After a wait, one that has should be asked
    /// again: those who queued while it opened would otherwise all go and see for themselves.
    pub fn is_current(&self) -> bool {
        self.inner.load().same_generation(self.admitted)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.finish(self.admitted, Verdict::Neutral, Duration::ZERO);
    }
}

// === impl Builder ===

impl Builder {
    /// The clock of windows and open times. Default: [`Clock::Coarse`].
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Who is told when the state changes. Default: nobody.
    #[must_use]
    pub fn observer(mut self, observer: &'static dyn Observe) -> Self {
        self.observer = Observer(Some(observer));
        self
    }

    /// The breaker, closed.
    ///
    /// # Errors
    /// Every refused setting, by name.
    pub fn build(self) -> Result<Breaker, Faults> {
        let Self { name, settings, clock, observer } = self;
        Faults(settings.check(name)).into_result()?;
        let inner = Inner {
            word: AtomicU64::new(Word::FIRST.0),
            name,
            settings,
            slow_after: settings.slow.map(|slow| slow.longer_than),
            timeline: Timeline::start(clock),
            observer,
            die: Die::new(settings.jitter),
            window: window::Window::new(settings.window),
            suspect: AtomicBool::new(false),
            lease_until_ms: AtomicU64::new(0),
            openings_in_a_row: AtomicU32::new(0),
            openings: AtomicU64::new(0),
            changed_ms: AtomicU64::new(0),
            refused: Counter::new(),
        };
        Ok(Breaker { inner: Box::leak(Box::new(inner)) })
    }
}
