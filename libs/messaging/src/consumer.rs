//! Consumer: subscribes, handles, and subscribes again, until it is told to stop.
//!
//! It subscribes only while its gate is open, and ends the subscription when the gate closes. To hold messages
//! back in the process would be easier, and wrong: those are out of reach of every other process, whose own
//! breaker may be closed, and the broker delivers them again only when this one dies.

use std::{fmt, future::Future, sync::Arc};

use futures_util::FutureExt as _;
use tokio::{
    task::{JoinError, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Consume, Done, Received, WorkQueue,
    handling::{Handling, Settled},
    session::Session,
    subscription::{Subscription, give_back},
    supervisor::{self, Lines},
};

/// One consumer with its gate and its handler. Clones are the same; one of them runs.
pub struct Consumer<G, H> {
    parts: Arc<Parts<G, H>>,
}

struct Parts<G, H> {
    consume: Consume,
    queue: Arc<WorkQueue>,
    gate: G,
    handler: Arc<H>,
    lines: Arc<Lines>,
}

/// Why a subscription ended.
enum Ended {
    Stopped,
    GateClosed,
    Lost(String),
}

impl<G, H> Consumer<G, H> {
    pub(crate) fn new(consume: Consume, queue: WorkQueue, gate: G, handler: H, lines: Arc<Lines>) -> Self {
        let (queue, handler) = (Arc::new(queue), Arc::new(handler));
        Self { parts: Arc::new(Parts { consume, queue, gate, handler, lines }) }
    }
}

impl<G, H> Clone for Consumer<G, H> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

impl<G, H> fmt::Debug for Consumer<G, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("consume", &self.parts.consume).finish_non_exhaustive()
    }
}

impl<G, GateOpen, H, Fut> Consumer<G, H>
where
    G: Fn() -> GateOpen,
    GateOpen: Future<Output = ()>,
    H: Fn(Received) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Done> + Send + 'static,
{
    /// Takes messages until `stop`, over every loss of the broker. Then it takes no more, lets the handlers that
    /// run finish within their time, and gives the rest back to the queue.
    pub async fn run(&self, stop: CancellationToken) {
        // The connection stays until this is gone.
        let _counted = self.parts.lines.consumers.token();
        self.parts.run(&stop).await;
    }
}

impl<G, GateOpen, H, Fut> Parts<G, H>
where
    G: Fn() -> GateOpen,
    GateOpen: Future<Output = ()>,
    H: Fn(Received) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Done> + Send + 'static,
{
    async fn run(&self, stop: &CancellationToken) {
        let mut sessions = self.lines.session.subscribe();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = (self.gate)() => {}
            }
            let session = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                // The sender lives in the lines, so it is never gone.
                session = sessions.wait_for(Option::is_some) => session.ok().and_then(|session| session.clone()),
            };
            let Some(session) = session else { continue };
            match self.subscribe(&session, stop).await {
                Ended::Stopped => return,
                Ended::GateClosed => tracing::debug!(queue = self.queue.name(), "takes no messages for now"),
                Ended::Lost(cause) => {
                    tracing::warn!(queue = self.queue.name(), cause, "the subscription is lost");
                    tokio::select! {
                        () = sleep(supervisor::pause()) => {}
                        () = stop.cancelled() => return,
                    }
                }
            }
        }
    }

    /// One subscription, from its beginning to the end of its last handler.
    async fn subscribe(&self, session: &Arc<Session>, stop: &CancellationToken) -> Ended {
        let opening = Subscription::open(session, self.queue.name(), self.consume.at_once);
        let mut subscription = match opening.await {
            Ok(subscription) => subscription,
            Err(fault) => return Ended::Lost(fault.to_string()),
        };
        let mut running = JoinSet::new();
        let mut ended = self.take(&mut subscription, session, &mut running, stop).await;
        if !matches!(ended, Ended::Lost(_))
            && let Err(fault) = subscription.cancel().await
        {
            tracing::debug!(%fault, "the subscription was gone before");
        }
        // Also of a lost subscription: its messages are delivered again, and should not meet themselves here.
        self.finish(&mut running, stop).await;
        if stop.is_cancelled() {
            ended = Ended::Stopped;
        }
        subscription.close().await;
        ended
    }

    /// Takes messages until something ends it.
    async fn take(
        &self,
        subscription: &mut Subscription,
        session: &Arc<Session>,
        running: &mut JoinSet<Settled>,
        stop: &CancellationToken,
    ) -> Ended {
        loop {
            if !self.gate_is_open() {
                return Ended::GateClosed;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Stopped,
                () = session.over() => return Ended::Lost("the session is over".to_owned()),
                Some(ended) = running.join_next() => if let Some(cause) = unanswered(ended) {
                    return Ended::Lost(cause);
                },
                delivery = subscription.next() => match delivery {
                    Ok(delivery) if self.gate_is_open() => {
                        let handling = Handling {
                            session: Arc::clone(session),
                            queue: Arc::clone(&self.queue),
                            delivery,
                        };
                        let (consume, handler) = (self.consume.clone(), Arc::clone(&self.handler));
                        running.spawn(async move { handling.run(&consume, &*handler).await });
                    }
                    Ok(delivery) => {
                        return match give_back(&delivery).await {
                            Ok(()) => Ended::GateClosed,
                            Err(fault) => Ended::Lost(fault.to_string()),
                        };
                    }
                    Err(cause) => return Ended::Lost(cause),
                },
            }
        }
    }

    /// Lets the handlers finish that run, at the end of the process not for long.
    async fn finish(&self, running: &mut JoinSet<Settled>, stop: &CancellationToken) {
        let all = async { while running.join_next().await.is_some() {} };
        let too_long = async {
            stop.cancelled().await;
            sleep(self.consume.finish_within).await;
        };
        tokio::select! {
            () = all => return,
            () = too_long => {}
        }
        tracing::warn!(
            queue = self.queue.name(),
            handlers = running.len(),
            "handlers did not finish; their messages go back"
        );
        running.shutdown().await;
    }

    fn gate_is_open(&self) -> bool {
        (self.gate)().now_or_never().is_some()
    }
}

/// What to say when a handler ended and its message was not answered; then the channel is no good any more.
fn unanswered(ended: Result<Settled, JoinError>) -> Option<String> {
    match ended {
        Ok(Settled::Answered) => None,
        Ok(Settled::Unanswered) => Some("a message could not be answered".to_owned()),
        Err(fault) => Some(fault.to_string()),
    }
}
