//! The handle on the broker that a service keeps.

use std::{sync::Arc, time::Duration};

use resilience::{CallContext, CallError, Fault, Faults, Op, Policy};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Consume, Consumer, MAX_BODY, Message, PublishError, Route, Settings, State, Topology,
    publish::confirmed,
    session::Session,
    supervisor::{self, Lines},
};

/// Publishing is idempotent for whoever receives: the broker may deliver any message twice, so a consumer looks
/// at the message's id in any case, and a second publishing is nothing new to it.
const PUBLISH: Op = Op::idempotent("publish");

/// The broker, as one process uses it. Cheap to clone; clones are the same.
///
/// It is made at once and connects when it [runs](Broker::run), which a service does beside its requests; until
/// then, and whenever the broker is away, publishing fails at once.
#[derive(Clone, Debug)]
pub struct Broker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    topology: Topology,
    policy: Policy,
    lines: Arc<Lines>,
}

impl Broker {
    /// The broker at the address in `settings`, with everything in `topology` on it, called as `policy` says.
    ///
    /// # Errors
    /// When the topology breaks a rule; says which.
    pub fn new(settings: Settings, topology: Topology, policy: Policy) -> Result<Self, Faults> {
        topology.check()?;
        Ok(Self { inner: Arc::new(Inner { settings, topology, policy, lines: Arc::new(Lines::new()) }) })
    }

    /// Connects, and connects again whenever that is needed, until `stop`. Then it waits for the consumers to
    /// end, closes the connection and returns. It has to run once in a process.
    pub async fn run(&self, stop: CancellationToken) {
        let Inner { settings, topology, lines, .. } = &*self.inner;
        supervisor::run(settings, topology, lines, &stop).await;
    }

    /// How messages are published: its policy, to be seen beside the others.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// What is declared.
    pub fn topology(&self) -> &Topology {
        &self.inner.topology
    }

    /// How the connection is.
    pub fn state(&self) -> State {
        self.inner.lines.state.borrow().clone()
    }

    /// Follows how the connection is.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.inner.lines.state.subscribe()
    }

    /// Publishes a message and waits until the broker has it on disk.
    ///
    /// # Errors
    /// When the broker did not confirm it. `class().outcome` says whether it may have it all the same: a timeout
    /// and a connection that broke are `Unknown`, everything before sending is `NotExecuted`.
    pub async fn publish(
        &self,
        cx: &CallContext,
        route: Route<'_>,
        message: &Message,
    ) -> Result<(), CallError<PublishError>> {
        self.inner.policy.call(cx, PUBLISH, |_attempt| self.publish_once(route, message)).await
    }

    async fn publish_once(&self, route: Route<'_>, message: &Message) -> Result<(), PublishError> {
        let properties = message.properties().ok_or(PublishError::TooLarge)?;
        if message.body.len() > MAX_BODY {
            return Err(PublishError::TooLarge);
        }
        let session = self.session()?;
        if session.is_blocked() {
            return Err(PublishError::Blocked);
        }
        // The wait for a channel is not the wait for the broker: who gets none has sent nothing.
        let lease = tokio::select! {
            lease = timeout(self.inner.policy.timeouts().place, session.pool().lease()) => {
                lease.map_err(|_| PublishError::Busy)?
            }
            () = session.over() => return Err(PublishError::Down(Duration::ZERO)),
        };
        let published = confirmed(lease, route, properties, &message.body).await;
        if let Err(PublishError::Unroutable { .. }) = &published
            && self.declares(route)
        {
            session.end("a queue or exchange of ours is gone");
        }
        published
    }

    /// A consumer, which takes messages from a queue while it [runs](Consumer::run): each with `handler`, and only
    /// while `gate` is open. The gate is asked before each message and has to resolve when messages may be taken,
    /// such as `|| breaker.admitting()`. While it does not, the messages stay in the queue, for other processes.
    ///
    /// # Errors
    /// When the queue is not one of the topology, or a setting breaks a rule.
    pub fn consumer<G, H>(&self, consume: Consume, gate: G, handler: H) -> Result<Consumer<G, H>, Faults> {
        Faults(consume.check()).into_result()?;
        let Some(queue) = self.inner.topology.find(&consume.queue).cloned() else {
            let rule = "must be a queue of the topology";
            return Err(Faults(vec![Fault::new("consume.queue", consume.queue, rule)]));
        };
        Ok(Consumer::new(consume, queue, gate, handler, Arc::clone(&self.inner.lines)))
    }

    fn session(&self) -> Result<Arc<Session>, PublishError> {
        let session = self.inner.lines.session.borrow().clone();
        session.ok_or_else(|| match self.state() {
            State::Down { since, .. } => PublishError::Down(since.elapsed()),
            // It is just coming or going.
            State::Connected | State::Blocked { .. } => PublishError::Down(Duration::ZERO),
        })
    }

    fn declares(&self, route: Route<'_>) -> bool {
        match route {
            Route::Queue(name) => self.inner.topology.declarations().any(|queue| queue.name == name),
            Route::Exchange(name) => self.inner.topology.exchanges().any(|exchange| exchange == name),
        }
    }
}
