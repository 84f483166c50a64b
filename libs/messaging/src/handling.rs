//! Handling: one delivery, from its envelope through the handler to its answer.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use lapin::message::Delivery;
use tokio::time::timeout;
use tracing::{Instrument as _, Span, field};

use crate::{Consume, Done, Received, WorkQueue, envelope, session::Session, settle};

/// One delivery.
#[derive(Debug)]
pub(crate) struct Handling {
    pub(crate) session: Arc<Session>,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) delivery: Delivery,
}

/// Whether the broker was told what became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Answered,
    Unanswered,
}

impl Handling {
    /// Handles the message and tells the broker what became of it.
    pub(crate) async fn run<H, Fut>(self, consume: &Consume, handler: &H) -> Settled
    where
        H: Fn(Received) -> Fut,
        Fut: Future<Output = Done>,
    {
        let opened = envelope::open(
            self.queue.name(),
            &consume.accepts,
            &self.delivery.properties,
            &self.delivery.data,
        );
        let span = tracing::info_span!(
            "consume",
            otel.kind = "consumer",
            messaging.system = "rabbitmq",
            messaging.destination.name = self.queue.name(),
            messaging.message.id = field::Empty,
            attempt = field::Empty,
        );
        let (attempt, done) = match opened {
            Err(poison) => (1, Done::Dead(poison.to_string())),
            Ok((message, attempt)) => {
                span.record("messaging.message.id", field::display(message.id));
                span.record("attempt", attempt);
                if let Some(trace) = &message.trace {
                    trace.link(&span);
                }
                let received = Received { message, attempt, redelivered: self.delivery.redelivered };
                (attempt, ask(consume, handler, received, &span).await)
            }
        };
        settle::settle(&self.session, &self.queue, &self.delivery, attempt, done).instrument(span).await
    }
}

/// The handler's word. One that panics or hangs has not said anything, so the message comes again.
async fn ask<H, Fut>(consume: &Consume, handler: &H, received: Received, span: &Span) -> Done
where
    H: Fn(Received) -> Fut,
    Fut: Future<Output = Done>,
{
    let id = received.message.id;
    // The handler's state is its own business: nothing of ours is left half-done by its panic.
    let handling = AssertUnwindSafe(async { handler(received).await }).catch_unwind();
    match timeout(consume.handle_within, handling.instrument(span.clone())).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => {
            tracing::error!(%id, "a handler panicked; its message comes again");
            Done::Retry
        }
        Err(_) => {
            tracing::error!(%id, limit = ?consume.handle_within, "a handler took too long; its message comes again");
            Done::Retry
        }
    }
}
