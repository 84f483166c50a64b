//! Which charges this process is driving, and who in it waits for one of them.
//!
//! A caller whose charge is driven right here is told the moment it is decided. Everybody else, such
//! as a caller at another replica, has to look at the row.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::charge::{Decision, Key};

type Told = watch::Sender<Option<Decision>>;

/// The charges driven in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<HashMap<Key, Told>>>);

/// One charge being driven. Dropping it sends those who wait away without a decision.
#[derive(Debug)]
pub(crate) struct Drive {
    running: Running,
    key: Key,
    told: Told,
}

/// Somebody who waits for a decision.
#[derive(Debug)]
pub(crate) struct Waiter(watch::Receiver<Option<Decision>>);

impl Running {
    /// Begins to drive `key`. An older drive of it, whose lease has ended, tells only those who wait
    /// for it already.
    pub(crate) fn begin(&self, key: Key) -> Drive {
        let told = watch::channel(None).0;
        self.drives().insert(key, told.clone());
        Drive { running: self.clone(), key, told }
    }

    /// Waits for the decision on `key`, if it is driven here.
    pub(crate) fn waiter(&self, key: Key) -> Option<Waiter> {
        self.drives().get(&key).map(|told| Waiter(told.subscribe()))
    }

    fn drives(&self) -> MutexGuard<'_, HashMap<Key, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drive {
    /// Waits for this drive's decision.
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter(self.told.subscribe())
    }

    /// Tells everybody who waits.
    pub(crate) fn decided(self, decision: Decision) {
        self.told.send_replace(Some(decision));
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let mut drives = self.running.drives();
        if drives.get(&self.key).is_some_and(|told| told.same_channel(&self.told)) {
            drives.remove(&self.key);
        }
    }
}

impl Waiter {
    /// The decision, or `None` when the drive ended without one.
    pub(crate) async fn wait(mut self) -> Option<Decision> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|told| told.clone())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const KEY: Key = Key(Uuid::nil());

    #[tokio::test]
    async fn everybody_who_waits_is_told_and_nothing_is_left_behind() {
        let running = Running::default();
        assert!(running.waiter(KEY).is_none());
        let drive = running.begin(KEY);
        let waiters = [drive.waiter(), running.waiter(KEY).expect("it runs")];
        drive.decided(Decision::Approved);
        for waiter in waiters {
            assert_eq!(waiter.wait().await, Some(Decision::Approved));
        }
        assert!(running.drives().is_empty());
    }

    #[tokio::test]
    async fn a_drive_that_ends_without_a_decision_sends_them_away() {
        let running = Running::default();
        let drive = running.begin(KEY);
        let waiter = drive.waiter();
        drop(drive);
        assert_eq!(waiter.wait().await, None);
    }

    #[tokio::test]
    async fn an_overtaken_drive_leaves_the_newer_one_alone() {
        let running = Running::default();
        let (older, newer) = (running.begin(KEY), running.begin(KEY));
        let waits_for_newer = running.waiter(KEY).expect("it runs");
        drop(older);
        assert!(running.waiter(KEY).is_some());
        newer.decided(Decision::Approved);
        assert_eq!(waits_for_newer.wait().await, Some(Decision::Approved));
    }
}
