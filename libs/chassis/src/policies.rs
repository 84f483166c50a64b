//! What `/resilience` tells: every policy of the service as it is now, and what its breakers did.

use std::time::{Duration, SystemTime};

use resilience::{Policy, PolicySnapshot, Timeouts, breaker::State, policy::Builder};
use serde_json::{Value, json};
use telemetry::journal::JOURNAL;

/// Begins the policy for the neighbour called `name`, observed by this process's journal.
pub fn policy(name: &'static str, timeouts: Timeouts) -> Builder {
    Policy::builder(name, timeouts).observer(&JOURNAL)
}

/// The policies as JSON. States are in capitals, as people say them.
pub(crate) fn view(service: &str, policies: &[Policy]) -> Value {
    let changes = JOURNAL.changes().into_iter().map(|(at, change)| {
        json!({
            "at": rfc3339(at),
            "breaker": change.breaker,
            "from": state(change.from),
            "to": state(change.to),
            "cause": change.cause.to_string(),
        })
    });
    json!({
        "service": service,
        "policies": policies.iter().map(|policy| one(policy, &policy.snapshot())).collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
    })
}

fn one(handle: &Policy, policy: &PolicySnapshot) -> Value {
    let calls = &policy.calls;
    json!({
        "name": policy.name,
        "attempt_timeout_ms": millis(policy.attempt_timeout),
        "retry": handle.retry().map(|retry| json!({ "attempts": retry.attempts })),
        "calls": {
            "ok": calls.ok,
            "rejected": calls.rejected,
            "not_executed": calls.not_executed,
            "unknown": calls.unknown,
            "refused": {
                "no_time_left": calls.no_time_left,
                "breaker_open": calls.breaker_open,
                "bulkhead_full": calls.bulkhead_full,
            },
            "attempts": calls.attempts,
            "timed_out": calls.timed_out,
            "retries": calls.retries,
        },
        "breaker": policy.breaker.as_ref().map(|breaker| json!({
            "name": breaker.name,
            "state": state(breaker.state),
            "in_state_for_ms": millis(breaker.in_state_for),
            "retry_after_ms": breaker.retry_after.map(millis),
            "probes": breaker.probes.map(|(out, succeeded)| json!({ "out": out, "succeeded": succeeded })),
            "window": { "calls": breaker.calls, "failures": breaker.failures, "slow": breaker.slow },
            "failures_in_a_row": breaker.failures_in_a_row,
            "openings": breaker.openings,
            "refused": breaker.refused,
        })),
        "bulkhead": policy.bulkhead.as_ref().map(|bulkhead| json!({
            "places": bulkhead.places,
            "in_use": bulkhead.in_use,
            "waiting": bulkhead.waiting,
            "refused": bulkhead.refused,
        })),
        "retry_budget": policy.retry_budget.as_ref().map(|budget| json!({
            "available": budget.available,
            "cap": budget.cap,
        })),
    })
}

fn state(state: State) -> &'static str {
    match state {
        State::Closed => "CLOSED",
        State::Open => "OPEN",
        State::HalfOpen => "HALF_OPEN",
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}
