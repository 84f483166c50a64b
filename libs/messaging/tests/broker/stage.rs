//! What every scene needs: a broker, a handle on it that runs, and a look behind the scenes.

use std::{
    future::Future,
    sync::{Arc, LazyLock, Mutex, Weak},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use lapin::{
    Connection, ConnectionProperties,
    message::BasicGetMessage,
    options::{BasicGetOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};
use messaging::{Accepts, Broker, Consume, Message, PublishError, Route, Settings, Topology};
use resilience::{CallContext, CallError, Deadline, Policy, Timeouts};
use serde_json::json;
use testbed::{RabbitMq, poll, rabbitmq::Options};
use tokio::{runtime::Runtime, sync::OnceCell, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longer than anything takes here on a machine with much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long the tests' publishers wait for a confirm.
pub(crate) const CONFIRM: Duration = Duration::from_millis(1500);
/// The type of the tests' messages.
pub(crate) const KIND: &str = "charge.deferred";

/// One runtime for all tests: what watches over the shared broker must not end with the test that started it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

type Cell = OnceCell<RabbitMq>;

/// The broker that is shared by the tests which run at the same time; the last one takes it down.
static SHARED: Mutex<Weak<Cell>> = Mutex::new(Weak::new());

pub(crate) fn play(scene: impl Future<Output = ()>) {
    RUNTIME.block_on(scene);
}

/// A stage on the shared broker.
pub(crate) async fn shared(topology: Topology) -> Stage {
    let cell = {
        let mut shared = SHARED.lock().expect("no test panics with it");
        shared.upgrade().unwrap_or_else(|| {
            let cell = Arc::new(Cell::new());
            *shared = Arc::downgrade(&cell);
            cell
        })
    };
    cell.get_or_try_init(|| RabbitMq::start(Options::default())).await.expect("a broker");
    let stage = Stage::build(cell, topology);
    stage.connected().await;
    stage
}

/// A stage with a broker of its own, which may be not connected yet.
pub(crate) async fn private(options: Options, topology: Topology) -> Stage {
    let rabbit = RabbitMq::start(options).await.expect("a broker");
    Stage::build(Arc::new(Cell::new_with(Some(rabbit))), topology)
}

/// A broker with a handle on it that runs until the stage is dropped.
pub(crate) struct Stage {
    pub(crate) broker: Broker,
    pub(crate) stop: CancellationToken,
    running: Option<JoinHandle<()>>,
    rabbit: Arc<Cell>,
}

impl Stage {
    fn build(rabbit: Arc<Cell>, topology: Topology) -> Self {
        let url = rabbit.get().expect("it was started").url().clone();
        let timeouts = Timeouts { place: Duration::from_millis(200), ..Timeouts::attempt(CONFIRM) };
        let policy = Policy::builder("rabbitmq", timeouts).build().expect("a policy");
        let settings = Settings::new("test", url.as_str()).expect("settings");
        let broker = Broker::new(settings, topology, policy).expect("a topology");
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (broker, stop) = (broker.clone(), stop.clone());
            async move { broker.run(stop).await }
        });
        Self { broker, stop, running: Some(running), rabbit }
    }

    pub(crate) fn rabbit(&self) -> &RabbitMq {
        self.rabbit.get().expect("it was started")
    }

    pub(crate) async fn connected(&self) {
        let mut state = self.broker.watch();
        let waited = tokio::time::timeout(PATIENCE, state.wait_for(|state| state.is_connected())).await;
        waited
            .map_err(|_| anyhow!("still {}", self.broker.state()))
            .expect("connected in time")
            .expect("the broker's handle lives");
    }

    /// Publishes a message with the number `n` as its id and body.
    pub(crate) async fn publish(&self, queue: &str, n: u32) -> Result<(), CallError<PublishError>> {
        self.broker.publish(&caller(), Route::Queue(queue), &message(n)).await
    }

    /// How many messages wait in a queue, and how many consumers it has.
    pub(crate) async fn look(&self, queue: &str) -> anyhow::Result<(u32, u32)> {
        let connection = self.connect().await?;
        let channel = connection.create_channel().await?;
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let there = channel.queue_declare(queue.into(), passive, FieldTable::default()).await?;
        Ok((there.message_count(), there.consumer_count()))
    }

    /// Takes one message out of a queue, waiting for it.
    pub(crate) async fn take(&self, queue: &str) -> Taken {
        poll::until("a message", PATIENCE, || async {
            let connection = self.connect().await?;
            let channel = connection.create_channel().await?;
            let get = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true });
            Ok(Taken(get.await?.context("the queue is empty")?))
        })
        .await
        .expect("a message comes")
    }

    /// A connection that the code under test knows nothing of.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let url = self.rabbit().url().as_str();
        Ok(Connection::connect(url, ConnectionProperties::default()).await?)
    }

    /// Ends the handle in order.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            tokio::time::timeout(PATIENCE, running)
                .await
                .expect("it ends in time")
                .expect("it does not panic");
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A message as it lay in a queue.
pub(crate) struct Taken(pub(crate) BasicGetMessage);

impl Taken {
    pub(crate) fn number(&self) -> u32 {
        let id = self.0.properties.message_id().as_ref().expect("an id");
        let id: Uuid = id.as_str().parse().expect("an id of ours");
        u32::try_from(id.as_u128()).expect("a number of ours")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&AMQPValue> {
        let headers = self.0.properties.headers().as_ref()?;
        headers.inner().get(name)
    }
}

/// What the tests' consumers take.
pub(crate) fn consume(queue: &str) -> Consume {
    let accepts = Accepts { kind: KIND, versions: 1..=1 };
    Consume::new(queue, [accepts])
}

pub(crate) fn message(n: u32) -> Message {
    Message::new(Uuid::from_u128(n.into()), KIND, 1, &json!({ "n": n })).expect("JSON")
}

pub(crate) fn number(message: &Message) -> u32 {
    u32::try_from(message.id.as_u128()).expect("a number of ours")
}

pub(crate) fn caller() -> CallContext {
    CallContext::owner("test", Deadline::after(Duration::from_secs(10)))
}

/// Waits until what `look` sees is as `wanted`.
pub(crate) async fn eventually(wanted: &str, look: impl FnMut() -> bool) {
    poll::until_true(wanted, PATIENCE, look).await.expect("in time");
}
