//! Bulkhead: so many places for one neighbour, so that it cannot take all of them.
//!
//! A service can do two hundred things at once. One neighbour that has become slow will have all
//! two hundred waiting for it within seconds, and then what does not need it at all stands still
//! too. With twenty places the other hundred and eighty go on.
//!
//! A place that is free is taken at once. When all are taken a call waits, in a queue that has an
//! end, for a time that has an end; then it is shed. Both ends matter: a queue without them is
//! where requests go to time out.
//!
//! tokio's semaphore does the work: it is fair (first come, first served, and nobody overtakes a
//! queue), and a waiter that goes away neither loses nor keeps a place. What it must not be asked
//! is `timeout(0, acquire())`: that is not a refusal at once but after the timer's next tick, 1 ms
//! later. So it is tried first, and a wait of no time is none.
//!
//! ```
//! # use std::time::Duration;
//! use resilience::{Bulkhead, BulkheadSettings, Deadline, Refusal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bulkhead = Bulkhead::new("payments", BulkheadSettings { places: 1, waiting: 10 })?;
//! let place = bulkhead.enter(Deadline::after(Duration::from_millis(50))).await?;
//! let full = bulkhead.enter(Deadline::after(Duration::from_millis(1))).await;
//! assert_eq!(full.expect_err("taken"), Refusal::BulkheadFull);
//! drop(place);
//! assert_eq!(bulkhead.snapshot().in_use, 0);
//! # Ok(()) }
//! ```

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout_at,
};

use crate::{Deadline, Faults, Refusal, settings::Fault, stripes::Counter};

/// How many calls to a neighbour may run at once, and how many may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkheadSettings {
    /// Calls at once. Default: 20, a tenth of what a service serves at once; in front of a pool of
    /// connections, its size.
    pub places: u32,
    /// Calls that may wait for a place; the next one is shed at once. 0: nobody waits. Default: 20,
    /// each place's next user.
    pub waiting: u32,
}

impl Default for BulkheadSettings {
    fn default() -> Self {
        Self { places: 20, waiting: 20 }
    }
}

/// The places of one neighbour. Cheap to copy; made once at start and never freed. Copies are the
/// same one.
#[derive(Debug, Clone, Copy)]
pub struct Bulkhead {
    inner: &'static Inner,
}

/// A place that is held until it is dropped.
#[must_use = "a place that is dropped at once is free again"]
#[derive(Debug)]
pub struct Place {
    _permit: SemaphorePermit<'static>,
    waited: bool,
}

/// A bulkhead at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkheadSnapshot {
    /// The neighbour's name.
    pub name: &'static str,
    /// Places there are.
    pub places: u32,
    /// Places taken.
    pub in_use: u32,
    /// Calls that wait for one.
    pub waiting: u32,
    /// Calls shed since it was made.
    pub refused: u64,
}

#[derive(Debug)]
struct Inner {
    name: &'static str,
    settings: BulkheadSettings,
    places: Semaphore,
    waiting: AtomicU32,
    refused: Counter,
}

// === impl Bulkhead ===

impl Bulkhead {
    /// The places of the neighbour called `name`, all free.
    ///
    /// # Errors
    /// Every refused setting, by name.
    pub fn new(name: &'static str, settings: BulkheadSettings) -> Result<Self, Faults> {
        Faults(settings.check(name)).into_result()?;
        let inner = Inner {
            name,
            settings,
            places: Semaphore::new(settings.places as usize),
            waiting: AtomicU32::new(0),
            refused: Counter::new(),
        };
        Ok(Self { inner: Box::leak(Box::new(inner)) })
    }

    /// What it was built with.
    pub fn settings(self) -> BulkheadSettings {
        self.inner.settings
    }

    /// Takes a place that is free now.
    pub fn try_enter(self) -> Option<Place> {
        let permit = self.inner.places.try_acquire().ok()?;
        Some(Place { _permit: permit, waited: false })
    }

    /// Takes a place, or waits for one until `until`. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`Refusal::BulkheadFull`]: at once when the queue is full or there is no time to wait, else
    /// at `until`.
    pub async fn enter(self, until: Deadline) -> Result<Place, Refusal> {
        if let Some(place) = self.try_enter() {
            return Ok(place);
        }
        self.wait(until).await.inspect_err(|_| self.inner.refused.add_one())
    }

    async fn wait(self, until: Deadline) -> Result<Place, Refusal> {
        if until.has_passed() {
            return Err(Refusal::BulkheadFull);
        }
        let _queued = Queued::join(self.inner).ok_or(Refusal::BulkheadFull)?;
        match timeout_at(until.instant(), self.inner.places.acquire()).await {
            Ok(Ok(permit)) => Ok(Place { _permit: permit, waited: true }),
            // The semaphore is never closed; if it were, nobody could get a place.
            Ok(Err(_)) | Err(_) => Err(Refusal::BulkheadFull),
        }
    }

    /// What it looks like now.
    pub fn snapshot(self) -> BulkheadSnapshot {
        let Inner { name, settings, places, waiting, refused } = self.inner;
        let free = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
        BulkheadSnapshot {
            name,
            places: settings.places,
            in_use: settings.places.saturating_sub(free),
            waiting: waiting.load(Relaxed),
            refused: refused.get(),
        }
    }
}

// === impl Place ===

impl Place {
    /// It was not free at once. What was true before the wait should be looked at again.
    pub fn was_waited_for(&self) -> bool {
        self.waited
    }
}

/// A place in the queue; dropped, it is somebody else's.
struct Queued(&'static Inner);

impl Queued {
    /// One step, not look and then join: two who look at once would both join.
    fn join(inner: &'static Inner) -> Option<Self> {
        let room = |waiting: u32| (waiting < inner.settings.waiting).then_some(waiting + 1);
        inner.waiting.fetch_update(Relaxed, Relaxed, room).ok().map(|_| Self(inner))
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

// === impl BulkheadSettings ===

impl BulkheadSettings {
    /// The faults of these settings, named after `neighbour`.
    pub(crate) fn check(&self, neighbour: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        // Some libraries take 0 for "no limit", others wait for ever. Here it is refused.
        if self.places == 0 || self.places > 100_000 {
            faults.push(Fault::new(
                format!("{neighbour}.bulkhead.places"),
                self.places,
                "must be 1 to 100000",
            ));
        }
        if self.waiting > 100_000 {
            faults.push(Fault::new(
                format!("{neighbour}.bulkhead.waiting"),
                self.waiting,
                "must be 0 to 100000",
            ));
        }
        faults
    }
}

#[cfg(test)]
mod tests;
