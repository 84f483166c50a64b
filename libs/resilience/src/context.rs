//! Call context: what a call to a neighbour must be given. Without one there is no call, and the
//! compiler sees to it.
//!
//! It is an argument and not a task-local on purpose: a task-local is lost at `spawn`, and copied
//! into work that is on nobody's behalf. An argument shows in every signature what hangs on the
//! caller's time, and what does not.

use std::{fmt, sync::Arc, time::Duration};

use crate::Deadline;

/// Whose work this is: until when it is wanted, who may repeat it, and which attempt it is.
#[derive(Debug, Clone)]
pub struct CallContext {
    deadline: Deadline,
    owner: RetryOwner,
    attempt: u32,
}

/// Who may repeat a failed call. There is exactly one level that does: three levels of three
/// attempts each are 27 calls at the bottom, on a neighbour that is ill already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOwner {
    /// This process, under this name; its policies retry.
    Here(&'static str),
    /// This process too, but this is already one of its attempts: nothing below it retries.
    Attempt(&'static str),
    /// Someone further up, who told its name; policies here do not retry.
    Caller(Arc<str>),
    /// Nobody said; policies here do not retry.
    Nobody,
}

impl CallContext {
    /// A context that starts here, for work that this process owns: the edge for what people ask,
    /// a worker for what it took from a queue. Its policies retry.
    pub fn owner(name: &'static str, deadline: Deadline) -> Self {
        Self { deadline, owner: RetryOwner::Here(name), attempt: 1 }
    }

    /// The context of a call that came in: `owner` as the caller named it, `attempt` counted from
    /// 1. Policies here do not retry.
    pub fn from_caller(deadline: Deadline, owner: Option<Arc<str>>, attempt: u32) -> Self {
        let owner = owner.map_or(RetryOwner::Nobody, RetryOwner::Caller);
        Self { deadline, owner, attempt: attempt.max(1) }
    }

    /// Until when the answer is wanted.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Who may repeat the call.
    pub const fn retry_owner(&self) -> &RetryOwner {
        &self.owner
    }

    /// Which attempt of its owner this is, counted from 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The same work with at most `limit` from now.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { deadline: self.deadline.within(limit), ..self.clone() }
    }

    /// The same work, ending `time` earlier: what the caller keeps for its own answer.
    #[must_use]
    pub fn reserve(&self, time: Duration) -> Self {
        Self { deadline: self.deadline.reserve(time), ..self.clone() }
    }

    /// The context of one attempt: it may not be retried any further down, not in this process
    /// either. It allocates nothing: every call goes through here.
    pub(crate) fn for_attempt(&self, attempt: u32, deadline: Deadline) -> Self {
        let owner = match &self.owner {
            RetryOwner::Here(name) => RetryOwner::Attempt(name),
            other => other.clone(),
        };
        Self { deadline, owner, attempt }
    }
}

impl RetryOwner {
    /// The owner's name; `None` when nobody said.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Here(name) | Self::Attempt(name) => Some(name),
            Self::Caller(name) => Some(name),
            Self::Nobody => None,
        }
    }

    /// Policies of this process may retry.
    pub const fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }
}

impl fmt::Display for RetryOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_level_owns_the_retries() {
        let edge = CallContext::owner("storefront", Deadline::after(Duration::from_secs(3)));
        assert!(edge.retry_owner().is_here());
        let attempt = edge.for_attempt(2, edge.deadline());
        assert!(!attempt.retry_owner().is_here(), "an attempt is not retried further down");
        assert_eq!((attempt.retry_owner().name(), attempt.attempt()), (Some("storefront"), 2));
        let unsaid = CallContext::from_caller(edge.deadline(), None, 0);
        assert_eq!((unsaid.retry_owner(), unsaid.attempt()), (&RetryOwner::Nobody, 1));
    }
}
