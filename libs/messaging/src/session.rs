//! Session: the connection, with everything that hangs on it. It is opened whole and it dies whole.
//!
//! lapin can recover by itself, and the obvious way is to let it. But its recovery has no limit of time: a broker
//! that accepts the socket and says nothing, as one does that boots or hangs, blocks it for ever (seen three
//! times in three). Nor can it know what a channel meant to us. So nothing is repaired here. When the connection
//! breaks, the heartbeat stays away, or a channel cannot be opened in time, the session is over, its socket is
//! cut, and the supervisor opens another one.
//!
//! It is two connections, in truth: one for publishing, one for consuming. A broker that runs out of memory or disk
//! stops reading from whoever publishes, so on a shared connection it would not hear the acknowledgements either,
//! and those are what would make room.

use std::{future::Future, sync::OnceLock, time::Duration};

use futures_util::{StreamExt as _, stream::select};
use lapin::{Channel, Connection, Event, options::ConfirmSelectOptions, protocol::constants::REPLY_SUCCESS};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    connect::{Cutter, connect},
    declare::{self, Unsettled},
    pool::Pool,
    settings::Settings,
    topology::Topology,
};

/// For each step that is a few round trips on the same network.
pub(crate) const STEP: Duration = Duration::from_secs(2);
/// How often the connection is looked at, in case its end was not told.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// An open connection to the broker, ready to publish and consume.
#[derive(Debug)]
pub(crate) struct Session {
    publishing: Link,
    consuming: Link,
    pool: Pool,
    over: CancellationToken,
    cause: OnceLock<String>,
}

/// One connection of a session.
#[derive(Debug)]
struct Link {
    // The order is that of the end: first the goodbye, then the socket.
    connection: Connection,
    cutter: Cutter,
}

/// What the broker says while a session goes on.
#[derive(Debug)]
pub(crate) enum News {
    /// It takes no messages, and why.
    Blocked(String),
    /// It takes messages again.
    Unblocked,
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("{step} took more than {} ms", limit.as_millis())]
    Slow { step: &'static str, limit: Duration },
    #[error("{step} failed: {source}")]
    Failed { step: &'static str, source: lapin::Error },
}

/// One step of opening, within its time.
pub(crate) async fn step<T>(
    step: &'static str,
    limit: Duration,
    work: impl Future<Output = lapin::Result<T>>,
) -> Result<T, OpenError> {
    match timeout(limit, work).await {
        Ok(result) => result.map_err(|source| OpenError::Failed { step, source }),
        Err(_) => Err(OpenError::Slow { step, limit }),
    }
}

impl Session {
    /// Connects, declares the topology, opens the channels for publishing. The receiver hears of each of those
    /// that has to be replaced.
    pub(crate) async fn open(
        settings: &Settings,
        topology: &Topology,
        unsettled: &mut Unsettled,
    ) -> Result<(Self, mpsc::UnboundedReceiver<()>), OpenError> {
        let publishing = Link::open(settings).await?;
        let consuming = Link::open(settings).await?;
        declare::all(&publishing.connection, topology, unsettled).await?;
        let mut channels = Vec::with_capacity(settings.channels);
        for _ in 0..settings.channels {
            channels.push(step("opening a channel", STEP, publishing.channel_with_confirms()).await?);
        }
        let (pool, thrown_away) = Pool::new(channels);
        let (over, cause) = (CancellationToken::new(), OnceLock::new());
        let session = Self { publishing, consuming, pool, over, cause };
        Ok((session, thrown_away))
    }

    /// The channels for publishing.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The broker takes no messages just now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.publishing.connection.status().blocked()
    }

    /// Resolves when the session is over.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Ends it, as of no use any more. The first cause counts.
    pub(crate) fn end(&self, cause: impl Into<String>) {
        // Set already: somebody saw it before.
        let _ = self.cause.set(cause.into());
        self.over.cancel();
    }

    /// Cuts the sockets. Consumers may hold a session for a while after its end, and until then a broker that
    /// wakes up would take us for alive and keep their messages.
    pub(crate) fn cut(&self) {
        self.publishing.cutter.cut();
        self.consuming.cutter.cut();
    }

    /// A channel for consuming.
    pub(crate) async fn channel(&self) -> lapin::Result<Channel> {
        self.consuming.connection.create_channel().await
    }

    /// Watches it until it is over, replaces channels that were thrown away, and tells what the broker says.
    /// Returns the cause of its end.
    pub(crate) async fn watch(
        &self,
        mut thrown_away: mpsc::UnboundedReceiver<()>,
        tell: impl Fn(News),
    ) -> String {
        let mut events =
            select(self.publishing.connection.events_listener(), self.consuming.connection.events_listener());
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut to_replace = 0_usize;
        while !self.over.is_cancelled() {
            tokio::select! {
                () = self.over.cancelled() => {}
                Some(event) = events.next() => match event {
                    // A soft error is that of one channel, and whoever used it has heard of it.
                    Event::Error(error) if !error.is_amqp_soft_error() => self.end(error.to_string()),
                    Event::ConnectionBlocked(reason) => tell(News::Blocked(reason)),
                    Event::ConnectionUnblocked => tell(News::Unblocked),
                    _ => {}
                },
                Some(()) = thrown_away.recv() => to_replace += 1,
                _ = looks.tick() => {
                    if !(self.publishing.is_open() && self.consuming.is_open()) {
                        self.end("the connection is gone");
                    }
                }
            }
            // A blocked broker would not hear it, and is not sick for that.
            while to_replace > 0 && !self.is_blocked() && !self.over.is_cancelled() {
                to_replace -= 1;
                match step("replacing a channel", STEP, self.publishing.channel_with_confirms()).await {
                    Ok(channel) => self.pool.put(channel),
                    Err(_) if self.is_blocked() => to_replace += 1,
                    Err(fault) => self.end(fault.to_string()),
                }
            }
        }
        self.cause.get().cloned().unwrap_or_default()
    }

    /// Says goodbye to a broker that is well, after what is under way.
    pub(crate) async fn close(&self) {
        if timeout(STEP, self.pool.at_rest()).await.is_err() {
            tracing::warn!("messages were still on their way to the broker at the end");
        }
        self.end("closed by us");
        for link in [&self.consuming, &self.publishing] {
            let close = link.connection.close(REPLY_SUCCESS, "OK".into());
            if let Err(fault) = step("closing", STEP, close).await {
                tracing::debug!(%fault, "no goodbye");
            }
        }
    }
}

impl Link {
    async fn open(settings: &Settings) -> Result<Self, OpenError> {
        let cutter = Cutter::default();
        let connection = step("connecting", STEP, connect(settings, &cutter)).await?;
        Ok(Self { connection, cutter })
    }

    fn is_open(&self) -> bool {
        self.connection.status().connected()
    }

    async fn channel_with_confirms(&self) -> lapin::Result<Channel> {
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }
}
