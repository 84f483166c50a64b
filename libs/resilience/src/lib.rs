//! Patterns for a process whose neighbours fail: what they are, why they are so, and one object,
//! [`Policy`], that composes them for one neighbour in the one right order.
//!
//! The crate knows no HTTP, no gRPC, no SQL, no environment and no exporter. A call is any future.
//!
//! | file | pattern |
//! | --- | --- |
//! | [`deadline`] | a point in time after which nobody waits any more; it only ever gets earlier |
//! | [`context`] | what every call must be given: the deadline, who may retry, which attempt it is |
//! | [`timeouts`] | the three timeouts of one neighbour: connect, attempt, wait for a place |
//! | [`op`] | what is called, and whether doing it twice is the same as once |
//! | [`outcome`] | the three ways a remote call can fail, and what each is evidence of |
//! | [`retry`] | once more, where that can help and cannot harm; and eight reasons why not |
//! | [`retry_budget`] | how much all retries together may be |
//! | [`breaker`] | leaves a sick neighbour alone, and finds out gently when it is well again |
//! | [`bulkhead`] | so many places for one neighbour, and a queue that has an end |
//! | [`quality`] | how good an answer is: live, stale, default, deferred, missing |
//! | [`policy`] | the above around one neighbour |
//! | [`observe`], [`snapshot`] | what it tells, and what there is to see |
//! | [`clock`], [`jitter`] | where time and chance come from, so that tests can say |
//!
//! ```
//! use std::time::Duration;
//! use resilience::{CallContext, Class, Classify, Deadline, Op, Policy, Timeouts};
//!
//! #[derive(Debug)]
//! struct Refused;
//! impl Classify for Refused {
//!     fn class(&self) -> Class {
//!         Class::not_executed()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rates = Policy::builder("rates", Timeouts::attempt(Duration::from_millis(300))).build()?;
//! let cx = CallContext::owner("storefront", Deadline::after(Duration::from_secs(3)));
//! let rate = rates
//!     .call(&cx, Op::idempotent("latest"), async |attempt: CallContext| {
//!         assert!(attempt.deadline().remaining() <= Duration::from_millis(300));
//!         Ok::<_, Refused>(1.09)
//!     })
//!     .await
//!     .expect("the neighbour answered");
//! assert_eq!(rate, 1.09);
//! # Ok(()) }
//! ```

pub mod breaker;
pub mod bulkhead;
pub mod clock;
pub mod context;
pub mod deadline;
pub mod jitter;
pub mod observe;
pub mod op;
pub mod outcome;
pub mod policy;
pub mod quality;
pub mod retry;
pub mod retry_budget;
pub mod settings;
pub mod snapshot;
mod stripes;
pub mod timeouts;

pub use breaker::{Breaker, BreakerSettings, BreakerSnapshot};
pub use bulkhead::{Bulkhead, BulkheadSettings, BulkheadSnapshot};
pub use clock::Clock;
pub use context::{CallContext, RetryOwner};
pub use deadline::Deadline;
pub use jitter::Jitter;
pub use observe::Observe;
pub use op::Op;
pub use outcome::{CallError, Class, Classify, Limit, Outcome, Refusal, Verdict};
pub use policy::Policy;
pub use quality::{Answer, Quality};
pub use retry::{NoRetry, RetrySettings};
pub use retry_budget::RetryBudgetSettings;
pub use settings::{Fault, Faults};
pub use snapshot::{CallCounts, PolicySnapshot};
pub use timeouts::Timeouts;
