//! Consuming: what a consumer wants, what its handler gets, and what the handler may say.

use std::time::Duration;

use resilience::Fault;

use crate::{Accepts, Message};

/// A handler that is not done by then is taken for hung. The broker itself gives up after 30 minutes.
const HANDLE_WITHIN: Duration = Duration::from_secs(30);
/// How long the end of a process may wait for handlers that run.
const FINISH_WITHIN: Duration = Duration::from_secs(8);

/// What one consumer takes, and how.
#[derive(Clone, Debug)]
pub struct Consume {
    pub(crate) queue: String,
    pub(crate) accepts: Vec<Accepts>,
    pub(crate) at_once: u16,
    pub(crate) handle_within: Duration,
    pub(crate) finish_within: Duration,
}

/// A message that came, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// Which attempt at it this is, counted from 1: one more after each [`Done::Retry`].
    pub attempt: u32,
    /// Somebody had it before and did not say what became of it. They may have done it.
    pub redelivered: bool,
}

/// What a handler says about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It is done, and what was done is committed: the broker may forget it.
    Ack,
    /// Not now. It comes again after a pause that grows with the attempts; there is no last one.
    Retry,
    /// Never: it goes to the dead letters with this reason.
    Dead(String),
}

impl Consume {
    /// Messages of these types from `queue`, one after the other.
    pub fn new(queue: impl Into<String>, accepts: impl Into<Vec<Accepts>>) -> Self {
        Self {
            queue: queue.into(),
            accepts: accepts.into(),
            at_once: 1,
            handle_within: HANDLE_WITHIN,
            finish_within: FINISH_WITHIN,
        }
    }

    /// How many messages are taken and handled at once. No more are taken than are handled: what waits in a
    /// process is out of reach of all others. Default: 1.
    #[must_use]
    pub fn at_once(mut self, messages: u16) -> Self {
        self.at_once = messages;
        self
    }

    /// How long a handler may take; then it is dropped, and the message comes again. Default: 30 s.
    #[must_use]
    pub fn handle_within(mut self, limit: Duration) -> Self {
        self.handle_within = limit;
        self
    }

    /// How long handlers may take that still run at the end. Default: 8 s.
    #[must_use]
    pub fn finish_within(mut self, limit: Duration) -> Self {
        self.finish_within = limit;
        self
    }

    pub(crate) fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.at_once == 0 || self.at_once > 1000 {
            let rule = "must be at least 1 and at most 1000";
            faults.push(Fault::new(format!("{}.at_once", self.queue), self.at_once, rule));
        }
        if self.accepts.is_empty() {
            let rule = "must name a type of message";
            faults.push(Fault::new(format!("{}.accepts", self.queue), &self.accepts, rule));
        }
        if self.handle_within.is_zero() || self.handle_within > Duration::from_secs(600) {
            let rule = "must be more than 0 and at most 10 minutes";
            faults.push(Fault::new(format!("{}.handle_within", self.queue), self.handle_within, rule));
        }
        if self.finish_within > Duration::from_secs(45) {
            let rule = "must be at most 45 s: the end of a process does not wait longer";
            faults.push(Fault::new(format!("{}.finish_within", self.queue), self.finish_within, rule));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_refused_by_name() {
        let accepts = [Accepts { kind: "charge.deferred", versions: 1..=1 }];
        assert_eq!(Consume::new("q", accepts).check(), []);
        let bad = Consume::new("q", [])
            .at_once(0)
            .handle_within(Duration::ZERO)
            .finish_within(Duration::from_secs(46));
        let names: Vec<String> = bad.check().into_iter().map(|fault| fault.name).collect();
        assert_eq!(names, ["q.at_once", "q.accepts", "q.handle_within", "q.finish_within"]);
    }
}
