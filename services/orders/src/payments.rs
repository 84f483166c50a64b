//! Payments, over gRPC: one charge per order, however often it is asked for.

use std::time::Duration;

use chassis::grpc::{self, GrpcError};
use proto::{
    money::Money,
    order::{Card, OrderId},
    payments::{ChargeReply, ChargeRequest, Decision as Said, payments_client::PaymentsClient},
};
use resilience::{CallContext, CallError, Op, Policy, Timeouts};
use tonic::{Status, transport::Channel};

use crate::order::Decision;

/// The order's id is the key of its charge, so asking twice charges once.
const CHARGE: Op = Op::idempotent("charge");

/// The payments service.
#[derive(Debug, Clone)]
pub(crate) struct Payments {
    client: PaymentsClient<Channel>,
    policy: Policy,
}

impl Payments {
    /// Payments at `address`, given `attempt` for one charge.
    pub(crate) fn new(address: &str, attempt: Duration) -> anyhow::Result<Self> {
        let policy = Policy::builder("payments", Timeouts::attempt(attempt)).build()?;
        let client = PaymentsClient::new(grpc::channel(address, &policy)?);
        Ok(Self { client, policy })
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
