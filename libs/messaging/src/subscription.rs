//! Subscription: a channel on which the broker delivers the messages of one queue.

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::{
    Channel,
    message::Delivery,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    protocol::constants::REPLY_SUCCESS,
    types::FieldTable,
};

use crate::session::{OpenError, STEP, Session, step};

/// A running subscription. It is ended by [`Subscription::cancel`] and [`Subscription::close`], or dropped when
/// its connection is gone.
#[derive(Debug)]
pub(crate) struct Subscription {
    channel: Channel,
    deliveries: lapin::Consumer,
}

impl Subscription {
    /// Subscribes to `queue`; the broker sends at most `at_once` messages that were not answered.
    pub(crate) async fn open(session: &Session, queue: &str, at_once: u16) -> Result<Self, OpenError> {
        let channel = step("opening a channel", STEP, session.channel()).await?;
        let qos = channel.basic_qos(at_once, BasicQosOptions::default());
        step("limiting what is delivered", STEP, qos).await?;
        let consume = channel.basic_consume(
            queue.into(),
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let deliveries = step("subscribing", STEP, consume).await?;
        Ok(Self { channel, deliveries })
    }

    /// The next message, or why there will be none.
    pub(crate) async fn next(&mut self) -> Result<Delivery, String> {
        match self.deliveries.next().await {
            Some(Ok(delivery)) => Ok(delivery),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the broker has ended the subscription".to_owned()),
        }
    }

    /// Has the broker send no more, and gives back what came and was not taken.
    pub(crate) async fn cancel(&mut self) -> Result<(), OpenError> {
        let tag = self.deliveries.tag();
        let cancel = self.channel.basic_cancel(tag, BasicCancelOptions::default());
        step("ending a subscription", STEP, cancel).await?;
        while let Some(Some(Ok(delivery))) = self.deliveries.next().now_or_never() {
            give_back(&delivery).await?;
        }
        Ok(())
    }

    /// Closes the channel: whatever was not answered by now goes back to the queue.
    pub(crate) async fn close(self) {
        let close = self.channel.close(REPLY_SUCCESS, "OK".into());
        if let Err(fault) = step("closing a channel", STEP, close).await {
            tracing::debug!(%fault, "the channel was gone before");
        }
    }
}

/// Puts a message back where it was, for whoever takes the next one.
pub(crate) async fn give_back(delivery: &Delivery) -> Result<(), OpenError> {
    let nack = delivery.acker.nack(BasicNackOptions { requeue: true, multiple: false });
    step("giving a message back", STEP, nack).await.map(|_| ())
}
