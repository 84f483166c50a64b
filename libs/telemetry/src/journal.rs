//! The journal: the last changes of this process's breakers, in order, beside a line in the log.
//!
//! A state that is looked at now and then misses what was short, and a probe is short. So the
//! changes are kept as they happen, as many as a person reads.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use resilience::{Observe, breaker::Change};

/// Changes that are kept.
const KEPT: usize = 64;

/// The journal of this process; policies are told of it with `Builder::observer`.
pub static JOURNAL: Journal = Journal { changes: Mutex::new(VecDeque::new()) };

/// The last changes of breakers.
#[derive(Debug)]
pub struct Journal {
    changes: Mutex<VecDeque<(SystemTime, Change)>>,
}

impl Journal {
    /// The changes that are kept, oldest first, each with its time.
    pub fn changes(&self) -> Vec<(SystemTime, Change)> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

impl Observe for Journal {
    fn breaker_changed(&self, change: &Change) {
        let Change { breaker, from, to, cause, .. } = change;
        tracing::warn!(%breaker, %from, %to, %cause, "a breaker changed");
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() == KEPT {
            changes.pop_front();
        }
        changes.push_back((SystemTime::now(), *change));
    }
}
