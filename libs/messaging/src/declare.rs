//! Declaring the topology, again and again: what is there with the same arguments stays as it is.
//!
//! A queue that is new needs care. RabbitMQ (seen in 3.10) writes the place of a new quorum queue's log into a
//! table whose last entry it flushes only about a second later. Killed before that, it comes back with the queue
//! but without its log: what was confirmed is gone, and worse, the queue has no leader and never gets one;
//! publishing to it hangs, as does consuming from it. So a session with new queues does not count as connected until they are
//! [`SETTLED`]: nothing is confirmed to a queue that may yet be forgotten. And one that did not get that far and
//! does not answer at the next session is deleted and made anew; it holds nothing that anybody was told is safe.
//! One that answers stays: to delete a healthy queue just after a start is another thing the broker stumbles on.

use std::{collections::BTreeSet, time::Duration};

use lapin::{
    Channel, Connection, ErrorKind, ExchangeKind,
    options::{
        BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
    },
    types::FieldTable,
};

use crate::{
    session::{OpenError, step},
    topology::{Declaration, Topology},
};

/// How old a queue has to be before the broker may be killed. Measured: lost at 0.8 s, kept at 1.1 s.
pub(crate) const SETTLED: Duration = Duration::from_secs(2);
/// A new quorum queue elects its leader first, on a machine that may be busy.
const DECLARE_WITHIN: Duration = Duration::from_secs(5);
/// The broker gives a queue without a leader 5 s to answer before it deletes it by force.
const DELETE_WITHIN: Duration = Duration::from_secs(12);
/// How long a queue may take to have a leader after the broker's start. It takes some tenths of a second.
const LEADER_WITHIN: Duration = Duration::from_secs(4);
/// AMQP's code for what is not there.
const NOT_FOUND: u16 = 404;

/// The queues that were declared for the first time and are not settled yet.
pub(crate) type Unsettled = BTreeSet<String>;

/// Declares everything. What is new is added to `unsettled`, also when a later step fails.
pub(crate) async fn all(
    connection: &Connection,
    topology: &Topology,
    unsettled: &mut Unsettled,
) -> Result<(), OpenError> {
    let mut channel = channel(connection).await?;
    for declaration in topology.declarations() {
        channel = one(connection, channel, declaration, unsettled).await?;
    }
    for exchange in topology.exchanges() {
        let declare = channel.exchange_declare(
            exchange.into(),
            ExchangeKind::Fanout,
            ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() },
            FieldTable::default(),
        );
        step("declaring an exchange", DECLARE_WITHIN, declare).await?;
    }
    for queue in topology.queues() {
        for exchange in queue.exchange_names() {
            let bind = channel.queue_bind(
                queue.name().into(),
                exchange.as_str().into(),
                "".into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            step("binding a queue", DECLARE_WITHIN, bind).await?;
        }
    }
    Ok(())
}

/// Declares one queue and returns the channel to go on with: a question after a queue that is not there costs
/// the channel on which it was asked.
async fn one(
    connection: &Connection,
    mut on: Channel,
    Declaration { name, arguments }: Declaration,
    unsettled: &mut Unsettled,
) -> Result<Channel, OpenError> {
    let look = on.queue_declare(
        name.as_str().into(),
        QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() },
        FieldTable::default(),
    );
    match step("looking for a queue", DECLARE_WITHIN, look).await {
        Ok(_) if unsettled.contains(&name) && is_stuck(connection, &name).await? => {
            tracing::warn!(queue = name, "the broker died while this queue was new: it is made anew");
            let delete = on.queue_delete(name.as_str().into(), QueueDeleteOptions::default());
            step("deleting a queue", DELETE_WITHIN, delete).await?;
        }
        Ok(_) => {}
        Err(fault) if is_missing(&fault) => {
            unsettled.insert(name.clone());
            on = channel(connection).await?;
        }
        Err(fault) => return Err(fault),
    }
    let declare = on.queue_declare(name.into(), QueueDeclareOptions::durable(), arguments);
    step("declaring a queue", DECLARE_WITHIN, declare).await?;
    Ok(on)
}

/// Whether a queue has no leader and gets none: then it does not say what its next message is, not even that
/// there is none. A message that is taken for this goes back when the channel is dropped.
async fn is_stuck(connection: &Connection, name: &str) -> Result<bool, OpenError> {
    let channel = channel(connection).await?;
    let asked =
        step("asking a queue", LEADER_WITHIN, channel.basic_get(name.into(), BasicGetOptions::default()));
    match asked.await {
        Ok(_) => Ok(false),
        Err(OpenError::Slow { .. }) => Ok(true),
        Err(fault) => Err(fault),
    }
}

async fn channel(connection: &Connection) -> Result<Channel, OpenError> {
    step("opening a channel", DECLARE_WITHIN, connection.create_channel()).await
}

fn is_missing(fault: &OpenError) -> bool {
    matches!(
        fault,
        OpenError::Failed { source, .. }
            if matches!(source.kind(), ErrorKind::ProtocolError(said) if said.get_id() == NOT_FOUND)
    )
}
