//! What each service's `/resilience` says: how often each neighbour was called, by whom, and what the
//! breakers did.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use testbed::poll;

use super::Shop;

/// The services that people's requests pass.
const HOPS: [&str; 4] = ["storefront", "orders", "payments", "catalog"];

/// The policies of one service as they were at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Resilience {
    service: String,
    body: Value,
}

/// What `service` says now; it has to be alive.
pub(crate) async fn resilience(shop: &Shop, service: &str) -> Resilience {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.get(shop.admin(service, "/resilience")).send().await.expect("an answer");
    let body = answer.bytes().await.expect("a body");
    Resilience { service: service.to_owned(), body: serde_json::from_slice(&body).expect("JSON") }
}

impl Resilience {
    /// The policy for one neighbour.
    #[track_caller]
    pub(crate) fn policy(&self, name: &str) -> &Value {
        let policies = self.body["policies"].as_array().expect("policies");
        let policy = policies.iter().find(|policy| policy["name"] == name);
        policy.unwrap_or_else(|| panic!("{} has no policy {name}: {}", self.service, self.body))
    }

    /// A number in it, such as `count("payments", "/calls/attempts")`.
    #[track_caller]
    pub(crate) fn count(&self, policy: &str, at: &str) -> u64 {
        let number = self.policy(policy).pointer(at).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no number {at} in {}", self.policy(policy)))
    }

    /// The state of a neighbour's breaker.
    #[track_caller]
    pub(crate) fn breaker(&self, policy: &str) -> &str {
        self.policy(policy)["breaker"]["state"].as_str().expect("a breaker")
    }

    /// Every state that a breaker went to, oldest first.
    pub(crate) fn changes(&self, breaker: &str) -> Vec<&str> {
        let changes = self.body["changes"].as_array().expect("changes");
        let mine = changes.iter().filter(|change| change["breaker"] == breaker);
        mine.map(|change| change["to"].as_str().expect("a state")).collect()
    }
}

/// Only the storefront may have repeated anything, and nobody more than once a call: whatever the fault was, a
/// click is at most two attempts at each hop, and not two to the number of hops.
pub(crate) async fn assert_one_level_retries(shop: &Shop) {
    for service in HOPS {
        // The counters of a service at work are read one after another: look until they are of one moment.
        poll::until("attempts to be counted once a call", Duration::from_secs(5), || async {
            check_attempts(service, &resilience(shop, service).await)
        })
        .await
        .unwrap_or_else(|fault| panic!("{fault:#}"));
    }
}

fn check_attempts(service: &str, seen: &Resilience) -> anyhow::Result<()> {
    for policy in seen.body["policies"].as_array().context("policies")? {
        let calls = |at: &str| {
            policy.pointer(at).and_then(Value::as_u64).with_context(|| format!("{at} of {policy}"))
        };
        let (attempts, retries) = (calls("/calls/attempts")?, calls("/calls/retries")?);
        let mut answered = 0;
        for outcome in ["ok", "rejected", "not_executed", "unknown"] {
            answered += calls(&format!("/calls/{outcome}"))?;
        }
        if service == "storefront" {
            let mut ended = answered;
            for refusal in ["no_time_left", "breaker_open", "bulkhead_full"] {
                ended += calls(&format!("/calls/refused/{refusal}"))?;
            }
            anyhow::ensure!(policy["retry"]["attempts"] == 2, "it owns the retries: {policy}");
            anyhow::ensure!(
                retries <= ended && attempts <= ended + retries,
                "more than two a call: {policy}"
            );
        } else {
            anyhow::ensure!(policy["retry"].is_null() && retries == 0, "{service} retries: {policy}");
            anyhow::ensure!(attempts == answered, "{service} does not try once a call: {policy}");
        }
    }
    Ok(())
}
