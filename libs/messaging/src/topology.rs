//! Topology: which queues and exchanges there are, and how a message is done later, or given up.
//!
//! ```text
//!                 publish                         handled: ack
//!    exchange --------------> charges.deferred ------------------->
//!                                 |   ^   ^
//!            later: publish, ack  |   |   |  after its pause, by the broker
//!                                 v   |   |
//!               charges.deferred.later.500ms   (and .2s, .5s)
//!
//!            poison: publish, ack         charges.deferred.dead
//! ```
//!
//! All queues are durable quorum queues: a confirm says that the message is on the disks of a majority. All
//! hops that the broker makes by itself are *at least once* (`x-dead-letter-strategy`), which needs
//! `x-overflow=reject-publish`; its default is to drop a message whose target is gone.
//!
//! **Later.** The obvious way is one delay queue behind the work queue: `nack` without requeue, the broker moves
//! the message, one step, nothing can be lost or doubled. But a queue has exactly one dead-letter target, so the
//! pause is always the same: too long for the first try, or too short for the tenth, when a thousand messages
//! knock on a neighbour that is just getting up. Growing pauses need somebody to choose, so a consumer publishes
//! the message to the queue of its next step, waits for the confirm, and only then acknowledges the first. A
//! crash between the two doubles the message, which at-least-once delivery allows anyway; it loses none. As a
//! bonus the attempts are counted in a header of ours. When that publish fails the message is `nack`ed all the
//! same, and takes the broker's own way into the first step: that is what the dead-letter target is still for,
//! and it catches what other programs reject and what exceeds a delivery limit (RabbitMQ 4 has one of its own).
//!
//! The pause stands in the name of its queue, since a queue cannot be declared again with other arguments:
//! another ladder is another set of queues, and what lies in the old ones still comes back. Only the first step
//! is part of the work queue itself and cannot change without a new name.

use std::time::Duration;

use lapin::types::{AMQPValue, FieldTable};
use resilience::{Fault, Faults};

/// The pauses before the second, third and every further attempt, unless said otherwise.
pub const PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// No pause is longer: what waits must be done within seconds once its cause is gone.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The broker's limit is 255 bytes, and the names of the other queues are longer.
const LONGEST_NAME: usize = 200;

/// All that a process needs to be there before it publishes or consumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    queues: Vec<WorkQueue>,
    exchanges: Vec<String>,
}

/// A queue of work, with what belongs to it: a queue for each pause, and one for the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    name: String,
    pauses: Vec<Duration>,
    exchanges: Vec<String>,
}

/// One queue to be declared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) arguments: FieldTable,
}

// === impl Topology ===

impl Topology {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a queue of work.
    #[must_use]
    pub fn queue(mut self, queue: WorkQueue) -> Self {
        self.queues.push(queue);
        self
    }

    /// Adds an exchange that gives a copy of each message to every queue that is bound to it: for events.
    #[must_use]
    pub fn exchange(mut self, name: impl Into<String>) -> Self {
        self.exchanges.push(name.into());
        self
    }

    /// The queue of this name.
    pub fn find(&self, name: &str) -> Option<&WorkQueue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// The queues of work.
    pub fn queues(&self) -> &[WorkQueue] {
        &self.queues
    }

    /// The exchanges, those included that a queue is bound to.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = &str> {
        let bound = self.queues.iter().flat_map(|queue| &queue.exchanges);
        let mut all: Vec<&str> = self.exchanges.iter().chain(bound).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// Every queue, in the order of declaration: a target before those that point to it.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Declaration> {
        self.queues.iter().flat_map(WorkQueue::declarations)
    }

    /// What breaks a rule, all of it.
    pub(crate) fn check(&self) -> Result<(), Faults> {
        let mut faults = Vec::new();
        let mut names: Vec<&str> = self.queues.iter().map(WorkQueue::name).collect();
        names.extend(self.exchanges());
        for name in &names {
            if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with("amq.") {
                let rule = "must be 1 to 200 bytes and not begin with amq., which is the broker's own";
                faults.push(Fault::new("topology.name", name, rule));
            }
        }
        names.sort_unstable();
        for pair in names.windows(2) {
            if let [first, second] = pair
                && first == second
            {
                faults.push(Fault::new("topology.name", first, "must be there once"));
            }
        }
        faults.extend(self.queues.iter().flat_map(WorkQueue::check));
        Faults(faults).into_result()
    }
}

// === impl WorkQueue ===

impl WorkQueue {
    /// The queue called `name`, with the usual [`PAUSES`].
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), pauses: PAUSES.to_vec(), exchanges: Vec::new() }
    }

    /// Other pauses, growing, at most [`LONGEST_PAUSE`]; the last one is that of all further attempts.
    #[must_use]
    pub fn pauses(mut self, pauses: impl Into<Vec<Duration>>) -> Self {
        self.pauses = pauses.into();
        self
    }

    /// It gets a copy of each message that goes to this exchange.
    #[must_use]
    pub fn bound_to(mut self, exchange: impl Into<String>) -> Self {
        self.exchanges.push(exchange.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the queue of its dead letters.
    pub fn dead(&self) -> String {
        format!("{}.dead", self.name)
    }

    /// The name of the queue in which a message waits after its `attempt`, counted from 1.
    pub fn later(&self, attempt: u32) -> String {
        self.waiting(self.pause(attempt))
    }

    /// How long a message waits after its `attempt`, counted from 1.
    pub fn pause(&self, attempt: u32) -> Duration {
        let step = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let last = self.pauses.len().saturating_sub(1);
        self.pauses.get(step.min(last)).copied().unwrap_or(LONGEST_PAUSE)
    }

    pub(crate) fn exchange_names(&self) -> &[String] {
        &self.exchanges
    }

    fn waiting(&self, pause: Duration) -> String {
        format!("{}.later.{}ms", self.name, pause.as_millis())
    }

    fn declarations(&self) -> Vec<Declaration> {
        let waiting = self.pauses.iter().map(|pause| {
            let mut arguments = going_to(&self.name);
            let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(pause));
            (self.waiting(Duration::from_millis(pause.unsigned_abs())), arguments)
        });
        std::iter::once((self.dead(), quorum()))
            .chain(std::iter::once((self.name.clone(), going_to(&self.later(1)))))
            .chain(waiting)
            .map(|(name, arguments)| Declaration { name, arguments })
            .collect()
    }

    fn check(&self) -> Vec<Fault> {
        let grow = self.pauses.windows(2).all(|pair| match pair {
            [first, second] => first < second,
            _ => true,
        });
        let bounded = |pause: &Duration| *pause >= Duration::from_millis(1) && *pause <= LONGEST_PAUSE;
        if self.pauses.is_empty() || !grow || !self.pauses.iter().all(bounded) {
            let rule = "must be one or more, growing, each from 1 ms to 5 s";
            return vec![Fault::new(format!("{}.pauses", self.name), &self.pauses, rule)];
        }
        Vec::new()
    }
}

/// The arguments of every queue.
fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

/// The arguments of a queue whose rejected and expired messages go to `target`, none of them lost on the way.
fn going_to(target: &str) -> FieldTable {
    let mut arguments = quorum();
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(target));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arguments(topology: &Topology, queue: &str) -> FieldTable {
        let found = topology.declarations().find(|declared| declared.name == queue);
        found.map(|declared| declared.arguments).expect("it is declared")
    }

    fn target(arguments: &FieldTable) -> Option<String> {
        arguments
            .inner()
            .get("x-dead-letter-routing-key")
            .and_then(AMQPValue::as_long_string)
            .map(ToString::to_string)
    }

    #[test]
    fn every_way_leads_back_to_the_work_queue_and_none_out_of_the_dead_letters() {
        let topology = Topology::new().queue(WorkQueue::new("charges.deferred"));
        topology.check().unwrap();
        let work = arguments(&topology, "charges.deferred");
        assert_eq!(target(&work).as_deref(), Some("charges.deferred.later.500ms"));
        for pause in ["500ms", "2000ms", "5000ms"] {
            let waiting = arguments(&topology, &format!("charges.deferred.later.{pause}"));
            assert_eq!(target(&waiting).as_deref(), Some("charges.deferred"));
            assert_eq!(
                waiting.inner().get("x-overflow").and_then(AMQPValue::as_long_string),
                Some(&"reject-publish".into()),
                "without it the broker ignores at-least-once"
            );
        }
        assert_eq!(target(&arguments(&topology, "charges.deferred.dead")), None);
    }

    #[test]
    fn an_event_has_a_queue_for_each_who_wants_it() {
        let topology = Topology::new()
            .queue(WorkQueue::new("loyalty.order-paid").bound_to("order.paid"))
            .queue(WorkQueue::new("notifications.order-paid").bound_to("order.paid"));
        topology.check().unwrap();
        assert_eq!(topology.exchanges().collect::<Vec<_>>(), ["order.paid"]);
        assert_eq!(topology.declarations().count(), 10);
    }

    #[test]
    fn a_bad_topology_is_refused_with_all_its_faults() {
        let topology = Topology::new()
            .queue(WorkQueue::new("amq.mine").pauses([]))
            .queue(WorkQueue::new("twice"))
            .queue(WorkQueue::new("twice").pauses([LONGEST_PAUSE, Duration::from_secs(1)]))
            .queue(WorkQueue::new("long").pauses([LONGEST_PAUSE + Duration::from_millis(1)]));
        let Faults(faults) = topology.check().unwrap_err();
        assert_eq!(faults.len(), 5, "{faults:?}");
    }

    proptest! {
        #[test]
        fn pauses_never_shrink_and_have_a_bound(attempt in any::<u32>()) {
            let queue = WorkQueue::new("q");
            let pause = queue.pause(attempt);
            prop_assert!(pause <= queue.pause(attempt.saturating_add(1)));
            prop_assert!((PAUSES[0]..=LONGEST_PAUSE).contains(&pause));
            let name = queue.later(attempt);
            prop_assert!(queue.declarations().iter().any(|declared| declared.name == name));
        }
    }
}
