//! RabbitMQ for what can wait: a connection that is rebuilt whole, publishing that knows whether it worked,
//! and consumers that go on by themselves.
//!
//! A broker looks like a thing that is simply there, and most programs treat it so: connect at start, publish,
//! forget. Then it restarts, and the program holds a channel that fails for ever; or it hangs, and the program
//! hangs with it; or a queue was renamed, and every message is acknowledged and thrown away. What this crate
//! does about it:
//!
//! | file | subject |
//! | --- | --- |
//! | [`broker`] | the handle that a service keeps: run, publish, consume, look at the state |
//! | `supervisor` | opens a session, watches it, and opens another when it dies |
//! | `session`, `connect` | one connection with all that hangs on it; every step has a limit |
//! | [`topology`], `declare` | which queues there are, how later and dead work, how they come to be |
//! | [`publish`], `pool` | one message, mandatory and persistent, and what became of it |
//! | [`consume`], [`consumer`], `subscription` | taking messages, and when not to |
//! | `handling`, `settle` | one message through its handler, and what the handler's word does |
//! | [`message`], [`envelope`], `headers` | what a message is, and what is refused as poison |
//! | [`trace`] | the trace context on its way through the broker |
//!
//! It knows lapin and the trace context, and no orders. Delivery is *at least once*, everywhere: a confirm that
//! was lost makes the publisher send again, an acknowledgement that was lost makes the broker deliver again.
//! So whoever handles a message does it by the message's id, and doing it twice is the same as once.
//!
//! ```no_run
//! # use std::time::Duration;
//! use messaging::{Accepts, Broker, Consume, Done, Message, Received, Route, Settings, Topology, WorkQueue};
//! use resilience::{CallContext, Deadline, Policy, Timeouts};
//! # use tokio_util::sync::CancellationToken;
//! # use uuid::Uuid;
//!
//! # async fn charge(_: Received) -> Done { Done::Ack }
//! # async fn story(stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder("rabbitmq", Timeouts::attempt(Duration::from_millis(1000))).build()?;
//! let broker = Broker::new(
//!     Settings::new("orders", "amqp://shop:secret@127.0.0.1:5672/%2f")?,
//!     Topology::new().queue(WorkQueue::new("charges.deferred")),
//!     policy,
//! )?;
//!
//! let accepts = [Accepts { kind: "charge.deferred", versions: 1..=1 }];
//! let gate = || async { /* such as: breaker.admitting().await */ };
//! let consumer = broker.consumer(Consume::new("charges.deferred", accepts), gate, charge)?;
//!
//! // Beside the requests, each a worker of the service:
//! let connection = broker.run(stop.clone());
//! let consuming = consumer.run(stop);
//!
//! // And whoever has something that can wait:
//! let cx = CallContext::owner("relay", Deadline::after(Duration::from_secs(2)));
//! let message = Message::new(Uuid::from_u128(1), "charge.deferred", 1, &"order 1")?;
//! broker.publish(&cx, Route::Queue("charges.deferred"), &message).await?;
//! # connection.await; consuming.await;
//! # Ok(()) }
//! ```

pub mod broker;
mod connect;
pub mod consume;
pub mod consumer;
mod declare;
pub mod envelope;
mod handling;
mod headers;
pub mod message;
mod pool;
pub mod publish;
mod session;
mod settings;
mod settle;
mod state;
mod subscription;
mod supervisor;
pub mod topology;
pub mod trace;

pub use broker::Broker;
pub use consume::{Consume, Done, Received};
pub use consumer::Consumer;
pub use envelope::{Accepts, Poison};
pub use message::{MAX_BODY, Message};
pub use publish::{PublishError, Route};
pub use settings::Settings;
pub use state::State;
pub use topology::{Topology, WorkQueue};
pub use trace::TraceContext;
