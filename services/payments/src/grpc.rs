//! The door: `payments.v1.Payments/Charge`.

use axum::Router;
use chassis::{
    grpc::{context, with_outcome},
    problem::chain,
};
use proto::{
    FieldError,
    payments::{
        ChargeReply, ChargeRequest, Decision as Wire,
        payments_server::{Payments, PaymentsServer},
    },
};
use resilience::{CallError, Classify as _, Limit, Outcome, Refusal, Verdict};
use tonic::{Request, Response, Status, service::Routes};

use crate::{
    charge::{Charge, Decision},
    charge_once::{Answer, Charges, Failure},
};

/// The largest request that is read, in bytes. A charge is a tenth of it.
const LARGEST: usize = 4 * 1024;

pub(crate) fn routes(charges: Charges) -> Router {
    let door = PaymentsServer::new(Door { charges }).max_decoding_message_size(LARGEST);
    Routes::new(door).prepare().into_axum_router()
}

struct Door {
    charges: Charges,
}

#[tonic::async_trait]
impl Payments for Door {
    async fn charge(&self, request: Request<ChargeRequest>) -> Result<Response<ChargeReply>, Status> {
        let cx = context(&request);
        let ChargeRequest { key, amount_minor, currency, card } = request.into_inner();
        let charge =
            Charge::parse(&key, amount_minor, &currency, &card).map_err(|faults| refused(&faults))?;
        let key = charge.key;
        match self.charges.charge_once(&cx, charge).await {
            Ok(answer) => Ok(Response::new(reply(answer))),
            Err(failure) => {
                let status = status(&failure);
                let (code, error) = (status.code(), chain(&failure));
                match failure {
                    Failure::NotClaimed(_) | Failure::Busy => {
                        tracing::warn!(%key, ?code, error, "no charge was made")
                    }
                    _ => tracing::debug!(%key, ?code, error, "there is no decision"),
                }
                Err(status)
            }
        }
    }
}

fn reply(answer: Answer) -> ChargeReply {
    let Answer { decision, replayed } = answer;
    let (decision, decline_reason) = match decision {
        Decision::Approved => (Wire::Approved, String::new()),
        Decision::Declined { reason } => (Wire::Declined, reason),
    };
    ChargeReply { decision: decision.into(), decline_reason, replayed }
}

/// Input that is not a charge.
fn refused(faults: &[FieldError]) -> Status {
    let told: Vec<_> = faults.iter().map(|fault| format!("{} {}", fault.field, fault.message)).collect();
    Status::invalid_argument(told.join("; "))
}

/// The one table from failures to statuses. What the log keeps is not what the caller reads.
fn status(failure: &Failure) -> Status {
    match failure {
        Failure::OtherContent => Status::invalid_argument(format!("key: {failure}")),
        Failure::Busy => with_outcome(Status::resource_exhausted(failure.to_string()), Outcome::NotExecuted),
        Failure::Undecided => with_outcome(Status::aborted(failure.to_string()), Outcome::Unknown),
        Failure::NotClaimed(error) => {
            let class = error.class();
            let status = match error {
                // Whose clock it was, the caller finds out by how much time it gave.
                CallError::TimedOut { limit: Limit::Caller, .. }
                | CallError::Refused { refusal: Refusal::NoTimeLeft, .. } => too_short(),
                _ if class.verdict == Verdict::TimedOut => too_short(),
                CallError::Refused { refusal: Refusal::BulkheadFull, .. } => {
                    Status::resource_exhausted("as many charges as possible are being claimed already")
                }
                _ if class.outcome == Outcome::Rejected => Status::internal("the service made a mistake"),
                _ => Status::unavailable("the database is away"),
            };
            match class.outcome {
                // A statement of ours was at fault, and its transaction was rolled back.
                Outcome::Rejected => with_outcome(status, Outcome::NotExecuted),
                outcome => with_outcome(status, outcome),
            }
        }
    }
}

fn too_short() -> Status {
    Status::deadline_exceeded("the time was too short to claim the key")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chassis::{database::DbError, grpc::GrpcError};
    use tonic::Code;

    use super::*;

    const NEIGHBOUR: &str = "postgres";

    #[test]
    fn each_failure_says_whether_it_happened() {
        let failed = |source| Failure::NotClaimed(CallError::Failed { neighbour: NEIGHBOUR, source });
        let timed_out = |limit| {
            Failure::NotClaimed(CallError::TimedOut { neighbour: NEIGHBOUR, after: Duration::ZERO, limit })
        };
        let refused = |refusal| Failure::NotClaimed(CallError::Refused { neighbour: NEIGHBOUR, refusal });
        for (failure, code, outcome) in [
            (Failure::OtherContent, Code::InvalidArgument, Outcome::Rejected),
            (Failure::Busy, Code::ResourceExhausted, Outcome::NotExecuted),
            (Failure::Undecided, Code::Aborted, Outcome::Unknown),
            (failed(DbError::NotMigrated), Code::Unavailable, Outcome::NotExecuted),
            (failed(DbError::Connect(sqlx::Error::PoolTimedOut)), Code::Unavailable, Outcome::NotExecuted),
            (failed(DbError::Commit(sqlx::Error::WorkerCrashed)), Code::Unavailable, Outcome::Unknown),
            (timed_out(Limit::Attempt), Code::Unavailable, Outcome::Unknown),
            (timed_out(Limit::Caller), Code::DeadlineExceeded, Outcome::Unknown),
            (refused(Refusal::NoTimeLeft), Code::DeadlineExceeded, Outcome::NotExecuted),
            (refused(Refusal::BulkheadFull), Code::ResourceExhausted, Outcome::NotExecuted),
            (failed(DbError::NoTimeLeft), Code::DeadlineExceeded, Outcome::NotExecuted),
            (
                failed(sqlx::Error::InvalidArgument(String::new()).into()),
                Code::Unavailable,
                Outcome::NotExecuted,
            ),
        ] {
            let status = status(&failure);
            assert_eq!(status.code(), code, "{failure:?}");
            // Read as the caller reads it.
            assert_eq!(GrpcError(status).class().outcome, outcome, "{failure:?}");
        }
    }

    #[test]
    fn a_decision_is_told_with_its_reason() {
        let declined = Decision::Declined { reason: "insufficient funds".into() };
        let told = reply(Answer { decision: declined, replayed: true });
        assert_eq!((told.decision(), told.decline_reason.as_str()), (Wire::Declined, "insufficient funds"));
        let told = reply(Answer { decision: Decision::Approved, replayed: false });
        assert_eq!(
            (told.decision(), told.decline_reason.as_str(), told.replayed),
            (Wire::Approved, "", false)
        );
    }
}
