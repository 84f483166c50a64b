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
//! | [`consume`], `consumer`, `subscription` | taking messages, and when not to |
//! | `handling`, `settle` | one message through its handler, and what the handler's word does |
//! | [`message`], [`envelope`], `headers` | what a message is, and what is refused as poison |
//! | [`trace`] | the trace context on its way through the broker |
//!
//! It knows lapin and the trace context, and no orders. Delivery is *at least once*, everywhere: a confirm that
//! was lost makes the publisher send again, an acknowledgement that was lost makes the broker deliver again.
//! So whoever handles a message does it by the message's id, and doing it twice is the same as once.

pub mod broker;
mod connect;
pub mod consume;
mod consumer;
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
pub use envelope::{Accepts, Poison};
pub use message::{MAX_BODY, Message};
pub use publish::{PublishError, Route};
pub use settings::Settings;
pub use state::State;
pub use topology::{Topology, WorkQueue};
pub use trace::TraceContext;
