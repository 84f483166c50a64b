//! Supervisor: opens a session, watches it, and opens another when it dies, for as long as the process lives.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    declare::{SETTLED, Unsettled},
    session::{News, Session},
    settings::Settings,
    state::State,
    topology::Topology,
};

/// The pause between two tries, halved at random at most: many processes lose the broker in the same moment.
const PAUSE: Duration = Duration::from_secs(1);
/// How long consumers may take at the end. Each has its own, shorter limit.
const CONSUMERS_WITHIN: Duration = Duration::from_secs(60);

/// What the supervisor tells the others.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) session: watch::Sender<Option<Arc<Session>>>,
    pub(crate) state: watch::Sender<State>,
    /// The consumers that run, which need the session until they have ended.
    pub(crate) consumers: TaskTracker,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let down = State::Down { since: Instant::now(), cause: "not started".into() };
        Self { session: watch::channel(None).0, state: watch::channel(down).0, consumers: TaskTracker::new() }
    }

    /// Takes the session out of use. How long it is down counts from the first time.
    fn down(&self, cause: &str) {
        self.session.send_replace(None);
        self.state.send_modify(|state| {
            let since = match state {
                State::Down { since, .. } => *since,
                State::Connected | State::Blocked { .. } => Instant::now(),
            };
            *state = State::Down { since, cause: cause.into() };
        });
    }
}

/// The pause before the next try.
pub(crate) fn pause() -> Duration {
    PAUSE.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Keeps the connection until `stop`, then lets the consumers end and closes it.
pub(crate) async fn run(settings: &Settings, topology: &Topology, lines: &Lines, stop: &CancellationToken) {
    let mut unsettled = Unsettled::new();
    let mut told = String::new();
    lines.consumers.reopen();
    while !stop.is_cancelled() {
        let cause = tokio::select! {
            cause = keep(settings, topology, lines, &mut unsettled) => cause,
            () = stop.cancelled() => break,
        };
        let was_there = lines.session.borrow().is_some();
        lines.down(&cause);
        // A broker that is away for an hour is one line and not 3600.
        if was_there || told != cause {
            tracing::warn!(cause, "the broker is not connected");
            told = cause;
        }
        tokio::select! {
            () = sleep(pause()) => {}
            () = stop.cancelled() => {}
        }
    }
    let session = lines.session.borrow().clone();
    if let Some(session) = session {
        end(&session, lines).await;
    }
    lines.down("closed by us");
}

/// One session, from its opening to its end; returns the cause. Dropped at a stop, it leaves the session to be
/// ended in order.
async fn keep(settings: &Settings, topology: &Topology, lines: &Lines, unsettled: &mut Unsettled) -> String {
    let (session, thrown_away) = match Session::open(settings, topology, unsettled).await {
        Ok(opened) => opened,
        Err(fault) => return fault.to_string(),
    };
    let session = Arc::new(session);
    let tell = |news| {
        lines.state.send_replace(match news {
            News::Unblocked => State::Connected,
            News::Blocked(reason) => State::Blocked { since: Instant::now(), reason: reason.into() },
        });
    };
    let watched = session.watch(thrown_away, tell);
    tokio::pin!(watched);
    if !unsettled.is_empty() {
        tokio::select! {
            cause = &mut watched => return cause,
            () = sleep(SETTLED) => unsettled.clear(),
        }
    }
    tracing::info!(
        host = settings.uri.authority.host,
        port = settings.uri.authority.port,
        "broker connected"
    );
    // In this order: who sees the state may publish.
    lines.session.send_replace(Some(Arc::clone(&session)));
    lines.state.send_replace(State::Connected);
    let cause = watched.await;
    session.cut();
    cause
}

async fn end(session: &Session, lines: &Lines) {
    lines.consumers.close();
    if tokio::time::timeout(CONSUMERS_WITHIN, lines.consumers.wait()).await.is_err() {
        tracing::warn!("a consumer did not end in time");
    }
    session.close().await;
}
