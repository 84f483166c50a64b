//! When all is well, a call through a whole policy allocates nothing. In a process of its own, since
//! it replaces the allocator.

use std::{future::Future, pin::pin, time::Duration};

use allocation_counter::measure;
use resilience::{
    BreakerSettings, BulkheadSettings, CallContext, Class, Classify, Deadline, Op, Policy, RetrySettings,
    Timeouts, breaker::SlowCalls,
};

#[derive(Debug)]
struct Down;

impl Classify for Down {
    fn class(&self) -> Class {
        Class::not_executed()
    }
}

#[tokio::test]
async fn a_good_call_through_everything_allocates_nothing() {
    let policy = Policy::builder("payments", Timeouts::attempt(Duration::from_secs(1)))
        .retry(RetrySettings::default())
        .breaker(BreakerSettings {
            consecutive_failures: Some(5),
            slow: Some(SlowCalls { longer_than: Duration::from_millis(500), percent: 50 }),
            ..BreakerSettings::default()
        })
        .bulkhead(BulkheadSettings::default())
        .build()
        .expect("good settings");
    let own = CallContext::owner("storefront", Deadline::after(Duration::from_secs(60)));
    let callers = CallContext::from_caller(own.deadline(), Some("storefront".into()), 1);
    for cx in [own, callers] {
        let mut calls = pin!(async {
            for _ in 0..100 {
                policy
                    .call(&cx, Op::idempotent("whoami"), async |_| Ok::<_, Down>(1))
                    .await
                    .expect("answered");
            }
        });
        let mut ended = false;
        let seen = measure(|| {
            let mut task = std::task::Context::from_waker(std::task::Waker::noop());
            ended = calls.as_mut().poll(&mut task).is_ready();
        });
        assert!(ended);
        assert_eq!(seen.count_total, 0, "{seen:?}");
    }
    assert_eq!(policy.snapshot().calls.ok, 200);
}
