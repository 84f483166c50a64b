//! Payments, over gRPC: one charge per order, however often it is asked for.

use std::time::Duration;

use anyhow::Context as _;
use chassis::grpc::{self, GrpcError};
use proto::{
    money::Money,
    order::{Card, OrderId},
    payments::{ChargeReply, ChargeRequest, Decision as Said, payments_client::PaymentsClient},
};
use resilience::{
    BreakerSettings, BulkheadSettings, CallContext, CallError, Jitter, Op, Policy, Timeouts, breaker::Window,
};
use tonic::{Status, transport::Channel};

use crate::order::Decision;

/// The order's id is the key of its charge, so asking twice charges once.
const CHARGE: Op = Op::idempotent("charge");

/// An order waits for payments at most once, so five failures in a row are enough; and customers wait for
/// their payment, so a neighbour that is back is noticed within four seconds.
const BREAKER: BreakerSettings = BreakerSettings {
    window: Window::Time(Duration::from_secs(10)),
    minimum_calls: 10,
    failure_percent: Some(50),
    slow: None,
    consecutive_failures: Some(5),
    open_for: Duration::from_secs(1),
    open_for_at_most: Duration::from_secs(4),
    jitter: Jitter::Random,
    probes: 2,
    probe_lease: Duration::from_secs(10),
};

/// The payments service.
#[derive(Debug, Clone)]
pub(crate) struct Payments {
    client: PaymentsClient<Channel>,
    policy: Policy,
}

impl Payments {
    /// Payments at `address`, given `attempt` for one charge.
    pub(crate) fn new(address: &str, attempt: Duration) -> anyhow::Result<Self> {
        let policy = chassis::policy("payments", Timeouts::attempt(attempt))
            .breaker(BREAKER)
            .bulkhead(BulkheadSettings::default())
            .build()?;
        let client = PaymentsClient::new(grpc::channel(address, &policy)?);
        Ok(Self { client, policy })
    }

    /// The same neighbour for the worker: the same opinion of it, and `places` of its own.
    pub(crate) fn for_worker(&self, places: u32) -> anyhow::Result<Self> {
        let breaker = self.policy.breaker().context("payments has a breaker")?;
        let policy = chassis::policy("payments-deferred", self.policy.timeouts())
            .shared_breaker(breaker)
            .bulkhead(BulkheadSettings { places, waiting: 0 })
            .build()?;
        Ok(Self { client: self.client.clone(), policy })
    }

    /// How it is called.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Has the bank take `total` for the order `id`, once.
    pub(crate) async fn charge(
        &self,
        cx: &CallContext,
        id: OrderId,
        total: Money,
        card: &Card,
    ) -> Result<Decision, CallError<GrpcError>> {
        let message = ChargeRequest {
            key: id.to_string(),
            amount_minor: total.minor,
            currency: total.currency.code().to_owned(),
            card: card.token().to_owned(),
        };
        self.policy
            .call(cx, CHARGE, |cx| {
                let request = grpc::request(&cx, message.clone());
                let mut client = self.client.clone();
                async move { Ok(decision(client.charge(request).await?.into_inner())?) }
            })
            .await
    }
}

fn decision(reply: ChargeReply) -> Result<Decision, Status> {
    match reply.decision() {
        Said::Approved => Ok(Decision::Approved),
        Said::Declined => Ok(Decision::Declined(reply.decline_reason)),
        // It answered, and yet nobody knows: the same as no answer.
        Said::Unspecified => Err(Status::internal("payments gave an answer without a decision")),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::{FileDescriptorSet, method_options::IdempotencyLevel};

    use super::*;

    /// Only an operation that the contract calls idempotent may be declared so here.
    #[test]
    fn the_contract_says_the_same_of_the_operation() {
        let contracts = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("generated");
        let file = contracts.file.iter().find(|file| file.package() == "payments.v1").expect("the contract");
        let service = file.service.iter().find(|service| service.name() == "Payments").expect("the service");
        let charge = service.method.iter().find(|method| method.name() == "Charge").expect("the method");
        let level = charge.options.as_ref().expect("it is declared").idempotency_level();
        assert_eq!(CHARGE.is_idempotent(), level == IdempotencyLevel::Idempotent);
        assert!(CHARGE.is_idempotent(), "the relay repeats it");
    }

    #[test]
    fn an_answer_without_a_decision_is_no_answer() {
        let reply = ChargeReply::default();
        let error = GrpcError::from(decision(reply).expect_err("no decision"));
        assert_eq!(resilience::Classify::class(&error).outcome, resilience::Outcome::Unknown);
    }
}
