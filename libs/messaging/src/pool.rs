//! The channels for publishing: each carries one message at a time.
//!
//! The obvious way is one channel for all, its confirms matched by number. It is faster, and has two traps. The
//! broker returns a message that no queue wants *before* it confirms it, in a frame without a number, and lapin
//! gives the returned message to whichever confirm comes next: with several under way, the lost message may be
//! reported as kept, and a kept one as lost. And a publisher that gives up waiting leaves its confirm behind,
//! in a list that only grows. With one message at a time, what is returned is what was sent; and a channel whose
//! publisher gave up is thrown away with all it holds, and replaced.

use std::sync::{Mutex, PoisonError};

use lapin::Channel;
use tokio::sync::{Semaphore, mpsc};

/// The idle channels of one session.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Channel>>,
    /// One permit for each idle channel.
    ready: Semaphore,
    size: usize,
    thrown_away: mpsc::UnboundedSender<()>,
}

/// One channel, for one message. Dropped without [`Lease::give_back`] it is thrown away: nobody knows what is
/// still on its way there.
#[derive(Debug)]
pub(crate) struct Lease<'a> {
    pool: &'a Pool,
    channel: Option<Channel>,
}

impl Pool {
    /// With these channels; the receiver hears of each that was thrown away and has to be replaced.
    pub(crate) fn new(channels: Vec<Channel>) -> (Self, mpsc::UnboundedReceiver<()>) {
        let (thrown_away, receiver) = mpsc::unbounded_channel();
        let size = channels.len();
        let pool = Self { idle: Mutex::new(channels), ready: Semaphore::new(size), size, thrown_away };
        (pool, receiver)
    }

    /// Waits for a channel; who waits longest is first.
    pub(crate) async fn lease(&self) -> Lease<'_> {
        loop {
            // It is never closed, so the error does not happen; waiting for ever is then the honest answer.
            let Ok(permit) = self.ready.acquire().await else {
                return std::future::pending().await;
            };
            permit.forget();
            if let Some(channel) = self.take() {
                return Lease { pool: self, channel: Some(channel) };
            }
        }
    }

    /// Puts in a channel, a new one or one whose message was confirmed.
    pub(crate) fn put(&self, channel: Channel) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(channel);
        self.ready.add_permits(1);
    }

    /// Waits until nothing is under way.
    pub(crate) async fn at_rest(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        // As above.
        let _ = self.ready.acquire_many(all).await;
    }

    fn take(&self) -> Option<Channel> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Lease<'_> {
    /// The channel; `None` never happens before it is given back.
    pub(crate) fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }

    /// The broker has answered: the channel can carry the next message.
    pub(crate) fn give_back(mut self) {
        if let Some(channel) = self.channel.take() {
            self.pool.put(channel);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take() {
            drop(channel);
            // Nobody listens once the session is over, and then nothing has to be replaced.
            let _ = self.pool.thrown_away.send(());
        }
    }
}
