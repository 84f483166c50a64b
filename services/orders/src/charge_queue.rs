//! The queue of deferred charges, in RabbitMQ: what lies in it, how it gets there and how it is taken out.
//!
//! A message says *which* order is to be charged, and nothing more. What it costs and with which card stands in
//! the intent, in orders' own database: a message that comes twice, late or from a copy of the queue finds the
//! order settled and does nothing.

use std::{sync::Arc, time::Duration};

use messaging::{
    Accepts, Broker, Consume, Done, Message, PublishError, Received, Route, Settings, State, Topology,
    TraceContext, WorkQueue,
};
use proto::order::OrderId;
use resilience::{BreakerSettings, BulkheadSettings, CallContext, CallError, Timeouts};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::store::Due;

/// The type of its messages.
const KIND: &str = "charge.deferred";
/// The version of their body.
const VERSION: u32 = 1;
/// The pauses between two tries. A neighbour that is back is noticed within the longest.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// How many are taken and charged at once.
pub(crate) const AT_ONCE: u16 = 8;
/// The broker confirms when it is on disk, in some milliseconds; a hung one is given this long.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(1);

/// The queue of deferred charges.
#[derive(Debug, Clone)]
pub(crate) struct ChargeQueue {
    broker: Broker,
    /// Its pauses and its dead letters are named after it.
    name: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Body {
    order_id: OrderId,
}

impl ChargeQueue {
    /// The queue called `name` on the broker at `url`.
    pub(crate) fn new(url: &str, name: &str) -> anyhow::Result<Self> {
        let breaker = BreakerSettings {
            consecutive_failures: Some(5),
            open_for: Duration::from_secs(1),
            open_for_at_most: Duration::from_secs(4),
            probes: 1,
            ..BreakerSettings::default()
        };
        let policy = chassis::policy("rabbitmq", Timeouts::attempt(CONFIRM_TIMEOUT))
            .breaker(breaker)
            .bulkhead(BulkheadSettings::default())
            .build()?;
        let topology = Topology::new().queue(WorkQueue::new(name).pauses(PAUSES));
        Ok(Self { broker: Broker::new(Settings::new("orders", url)?, topology, policy)?, name: name.into() })
    }

    /// The broker, to be run beside the requests.
    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Resolves when the connection stands.
    pub(crate) async fn connected(&self) {
        // The sender lives as long as the broker, which is ours.
        let _ = self.broker.watch().wait_for(State::is_connected).await;
    }

    /// Publishes that `due` is to be charged, and waits until the broker has it on disk.
    pub(crate) async fn publish(&self, cx: &CallContext, due: &Due) -> Result<(), CallError<PublishError>> {
        let body = Body { order_id: due.id };
        let mut message = Message::new(due.id.0, KIND, VERSION, &body).map_err(|error| {
            // It is a UUID in an object: it cannot fail, and if it does nothing was sent.
            tracing::error!(%error, "a message cannot be written");
            CallError::Failed { neighbour: self.broker.policy().name(), source: PublishError::TooLarge }
        })?;
        if let Some(parent) = &due.traceparent {
            message = message.in_trace(TraceContext { parent: Some(parent.clone()), state: None });
        }
        self.broker.publish(cx, Route::Queue(&self.name), &message).await
    }

    /// Takes messages until `stop`, each with `charge`, and only while `open` resolves.
    pub(crate) async fn consume<G, GateOpen, H, Charging>(
        &self,
        open: G,
        charge: H,
        stop: CancellationToken,
    ) -> Result<(), resilience::Faults>
    where
        G: Fn() -> GateOpen + Send + Sync,
        GateOpen: Future<Output = ()> + Send,
        H: Fn(OrderId, Received) -> Charging + Send + Sync + 'static,
        Charging: Future<Output = Done> + Send + 'static,
    {
        let consume =
            Consume::new(&*self.name, [Accepts { kind: KIND, versions: VERSION..=VERSION }]).at_once(AT_ONCE);
        let handle = move |received: Received| {
            let charging = received.message.json::<Body>().map(|body| charge(body.order_id, received));
            async move {
                match charging {
                    Ok(charging) => charging.await,
                    Err(poison) => Done::Dead(poison.to_string()),
                }
            }
        };
        self.broker.consumer(consume, open, handle)?.run(stop).await;
        Ok(())
    }
}
