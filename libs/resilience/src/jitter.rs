//! Jitter: chance on purpose, so that a thousand clients that failed together do not come back
//! together.
//!
//! It has to differ between processes (all seeded alike is no jitter at all), and it has to be the
//! same twice in a test. Hence a setting: chance from the operating system, from a seed, or none.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Where chance comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Different in every process and thread.
    #[default]
    Random,
    /// The same sequence for the same seed, for tests.
    Seeded(u64),
    /// None: every pause has its full length.
    Off,
}

/// What draws. It holds no lock, so no call waits for another one's draw.
#[derive(Debug)]
pub(crate) struct Die {
    jitter: Jitter,
    draws: AtomicU64,
}

impl Die {
    pub(crate) const fn new(jitter: Jitter) -> Self {
        Self { jitter, draws: AtomicU64::new(0) }
    }

    /// A duration between `least` and `most`, both included; `most` without jitter.
    pub(crate) fn between(&self, least: Duration, most: Duration) -> Duration {
        let (least_ns, most_ns) = (nanos(least), nanos(most));
        if least_ns >= most_ns {
            return most;
        }
        match self.jitter {
            Jitter::Off => most,
            Jitter::Random => Duration::from_nanos(fastrand::u64(least_ns..=most_ns)),
            Jitter::Seeded(seed) => {
                let draw = self.draws.fetch_add(1, Ordering::Relaxed);
                // The generator mixes its seed, so neighbouring seeds do not give similar draws.
                let mut rng = fastrand::Rng::with_seed(seed ^ draw.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                Duration::from_nanos(rng.u64(least_ns..=most_ns))
            }
        }
    }
}

/// Whole nanoseconds, at most `u64::MAX` (584 years).
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
