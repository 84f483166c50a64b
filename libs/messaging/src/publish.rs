//! Publishing one message: mandatory, persistent, and done when the broker says so.
//!
//! `basic.publish` has no answer. Without confirms a message is gone when the broker dies in the wrong
//! millisecond, and with confirms alone it is gone when nobody is bound to its route: the broker *acknowledges*
//! what it cannot deliver, after returning it. So every message is sent as mandatory, and a confirm counts only
//! if nothing was returned.

use std::time::Duration;

use lapin::{
    BasicProperties, Confirmation, ErrorKind, message::BasicReturnMessage, options::BasicPublishOptions,
    protocol::AMQPErrorKind,
};
use resilience::{Class, Classify, Verdict};

use crate::pool::Lease;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Into this queue.
    Queue(&'a str),
    /// To every queue that is bound to this exchange.
    Exchange(&'a str),
}

/// Why a message was not confirmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no connection, for so long by now. Nothing was sent.
    #[error("the broker is not connected for {} ms", .0.as_millis())]
    Down(Duration),
    /// The broker takes no messages for lack of memory or disk. Nothing was sent.
    #[error("the broker takes no messages for now")]
    Blocked,
    /// All channels carry other messages. Nothing was sent.
    #[error("all channels to the broker are taken")]
    Busy,
    /// The message is larger than a message may be, or its type's name longer. Nothing was sent.
    #[error("the message is too large")]
    TooLarge,
    /// No queue wanted it: the broker gave it back.
    #[error("no queue takes it: {code} {text}")]
    Unroutable {
        /// The broker's code.
        code: u16,
        /// Its text.
        text: String,
    },
    /// The broker refused it, and says why: there is no such exchange, or no permission.
    #[error("the broker refused it")]
    Refused(#[source] lapin::Error),
    /// The broker could not keep it. With several queues some may have it.
    #[error("the broker could not keep it")]
    NotKept,
    /// It was not sent.
    #[error("it could not be sent")]
    NotSent(#[source] lapin::Error),
    /// The connection broke before the confirm. The broker may have it.
    #[error("the connection broke before the confirm")]
    Lost(#[source] lapin::Error),
}

impl Classify for PublishError {
    fn class(&self) -> Class {
        match self {
            Self::Down(_) | Self::Blocked | Self::NotSent(_) => Class::not_executed(),
            // Our own limit, and no evidence.
            Self::Busy => Class::not_executed().with_verdict(Verdict::Neutral),
            Self::TooLarge => Class::rejected(),
            // It is well. The queues are declared again, see `session.rs`.
            Self::Unroutable { .. } => Class::not_executed().with_verdict(Verdict::Healthy),
            Self::Refused(_) => Class::rejected(),
            Self::NotKept | Self::Lost(_) => Class::unknown(),
        }
    }
}

impl<'a> Route<'a> {
    /// Exchange and routing key. The exchange without a name knows every queue by its name.
    fn parts(self) -> (&'a str, &'a str) {
        match self {
            Self::Queue(name) => ("", name),
            Self::Exchange(name) => (name, ""),
        }
    }
}

/// Sends a message and waits for its confirm, for as long as the caller lets it: dropped before, the outcome
/// is not known, and the channel is thrown away.
pub(crate) async fn confirmed(
    lease: Lease<'_>,
    route: Route<'_>,
    properties: BasicProperties,
    body: &[u8],
) -> Result<(), PublishError> {
    let (exchange, key) = route.parts();
    let options = BasicPublishOptions { mandatory: true, immediate: false };
    let Some(channel) = lease.channel() else {
        return Err(PublishError::Busy);
    };
    let sent = channel.basic_publish(exchange.into(), key.into(), options, body, properties);
    let confirm = sent.await.map_err(unsent)?;
    match confirm.await {
        Ok(Confirmation::Ack(None)) => {
            lease.give_back();
            Ok(())
        }
        Ok(Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) => {
            lease.give_back();
            Err(unroutable(&returned))
        }
        Ok(Confirmation::Nack(None)) => {
            lease.give_back();
            Err(PublishError::NotKept)
        }
        // Confirms are asked for when a channel is opened. One without is thrown away here.
        Ok(Confirmation::NotRequested) => Err(PublishError::NotKept),
        Err(error) => Err(unconfirmed(error)),
    }
}

fn unroutable(returned: &BasicReturnMessage) -> PublishError {
    PublishError::Unroutable { code: returned.reply_code, text: returned.reply_text.to_string() }
}

fn unsent(error: lapin::Error) -> PublishError {
    match error.kind() {
        // That is asked before anything is written.
        ErrorKind::InvalidChannelState(..) | ErrorKind::InvalidChannel(_) => PublishError::NotSent(error),
        _ => unconfirmed(error),
    }
}

fn unconfirmed(error: lapin::Error) -> PublishError {
    match error.kind() {
        // The channel carries this one message, so it is what the broker speaks of.
        ErrorKind::ProtocolError(said) if matches!(said.kind(), AMQPErrorKind::Soft(_)) => {
            PublishError::Refused(error)
        }
        _ => PublishError::Lost(error),
    }
}
