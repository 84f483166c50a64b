//! Settling: what a handler's word does to the message.
//!
//! The order is always the same: first make sure that the message is safe where it goes next, then have the
//! broker forget it here. What cannot be made safe is rejected, and takes the way that the queue itself has for
//! rejected messages: into the first pause. Nothing is ever acknowledged in the hope that it will be all right.

use lapin::{
    BasicProperties,
    message::Delivery,
    options::{BasicAckOptions, BasicNackOptions},
    types::{AMQPValue, ShortString},
};
use tokio::time::timeout;

use crate::{
    Done, PublishError, Route, WorkQueue,
    handling::Settled,
    headers,
    publish::confirmed,
    session::{STEP, Session},
};

/// Written to disk before it is confirmed.
const PERSISTENT: u8 = 2;
/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 500;

/// Tells the broker what became of a message, after its `attempt`.
pub(crate) async fn settle(
    session: &Session,
    queue: &WorkQueue,
    delivery: &Delivery,
    attempt: u32,
    done: Done,
) -> Settled {
    let safe = match done {
        Done::Ack => true,
        Done::Retry => {
            let next = AMQPValue::LongUInt(attempt.saturating_add(1));
            forward(session, &queue.later(attempt), delivery, [(headers::ATTEMPT, next)]).await
        }
        Done::Dead(reason) => {
            tracing::warn!(queue = queue.name(), reason, "a message goes to the dead letters");
            let reason: String = reason.chars().take(LONGEST_REASON).collect();
            let more = [
                (headers::DEAD_REASON, AMQPValue::LongString(reason.into())),
                (headers::FIRST_QUEUE, AMQPValue::LongString(queue.name().into())),
            ];
            forward(session, &queue.dead(), delivery, more).await
        }
    };
    let answer = async {
        if safe {
            delivery.acker.ack(BasicAckOptions::default()).await
        } else {
            let options = BasicNackOptions { requeue: false, multiple: false };
            delivery.acker.nack(options).await
        }
    };
    match timeout(STEP, answer).await {
        Ok(Ok(true)) => Settled::Answered,
        // The channel is gone, and the broker will deliver it again.
        Ok(_) | Err(_) => Settled::Unanswered,
    }
}

/// Publishes a copy to `target` and says whether it is there.
async fn forward<const N: usize>(
    session: &Session,
    target: &str,
    delivery: &Delivery,
    more: [(&'static str, AMQPValue); N],
) -> bool {
    let properties = properties(&delivery.properties, more);
    let publish = async {
        let lease = session.pool().lease().await;
        confirmed(lease, Route::Queue(target), properties, &delivery.data).await
    };
    match timeout(STEP, publish).await {
        Ok(Ok(())) => true,
        Ok(Err(fault)) => {
            if matches!(fault, PublishError::Unroutable { .. }) {
                session.end("a queue of ours is gone");
            }
            tracing::warn!(to = target, %fault, "a message could not be moved; it comes again");
            false
        }
        Err(_) => {
            tracing::warn!(to = target, "a message could not be moved in time; it comes again");
            false
        }
    }
}

/// The properties of the copy. Those that would do something are left behind: an expiration would end it in the
/// next queue, and a user that is not ours makes the broker refuse it.
fn properties<const N: usize>(
    from: &BasicProperties,
    more: [(&'static str, AMQPValue); N],
) -> BasicProperties {
    type With = fn(BasicProperties, ShortString) -> BasicProperties;
    let texts: [(&Option<ShortString>, With); 7] = [
        (from.content_type(), BasicProperties::with_content_type),
        (from.content_encoding(), BasicProperties::with_content_encoding),
        (from.correlation_id(), BasicProperties::with_correlation_id),
        (from.reply_to(), BasicProperties::with_reply_to),
        (from.message_id(), BasicProperties::with_message_id),
        (from.kind(), BasicProperties::with_type),
        (from.app_id(), BasicProperties::with_app_id),
    ];
    let mut copy = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers::for_another_journey(from.headers().as_ref(), more));
    if let Some(timestamp) = *from.timestamp() {
        copy = copy.with_timestamp(timestamp);
    }
    for (value, with) in texts {
        if let Some(value) = value {
            copy = with(copy, value.clone());
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_keeps_what_the_message_says_and_nothing_that_acts() {
        let from = BasicProperties::default()
            .with_message_id("m-1".into())
            .with_type("charge.deferred".into())
            .with_timestamp(7)
            .with_expiration("10".into())
            .with_user_id("somebody".into())
            .with_priority(9)
            .with_delivery_mode(1);
        let copy = properties(&from, [(headers::ATTEMPT, AMQPValue::LongUInt(2))]);
        assert_eq!(copy.message_id(), from.message_id());
        assert_eq!(copy.kind(), from.kind());
        assert_eq!(copy.timestamp(), &Some(7));
        assert_eq!(copy.delivery_mode(), &Some(PERSISTENT));
        assert_eq!((copy.expiration(), copy.user_id(), copy.priority()), (&None, &None, &None));
        assert!(copy.headers().as_ref().is_some_and(|table| table.contains_key(headers::ATTEMPT)));
    }
}
