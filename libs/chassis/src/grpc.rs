//! Calling a neighbour over gRPC: the channel, the call context on every request, and what its
//! statuses mean.

use resilience::{CallContext, Class, Classify, Outcome, Policy};
use tonic::{
    Request, Status,
    metadata::{MetadataMap, MetadataValue},
    transport::{Channel, Endpoint},
};

use crate::{outcome, wire};

/// Why a gRPC call has no result.
#[derive(Debug, thiserror::Error)]
#[error("it answered {:?}: {}", .0.code(), .0.message())]
pub struct GrpcError(pub Status);

impl From<Status> for GrpcError {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl Classify for GrpcError {
    fn class(&self) -> Class {
        outcome::of_grpc(&self.0)
    }
}

/// A channel to the neighbour at `address`, connected when it is first used and again whenever it
/// has to be. Nothing is sent before a connection stands, and that takes no longer than the
/// policy's connect timeout.
///
/// # Errors
/// When the address is none.
pub fn channel(address: &str, policy: &Policy) -> Result<Channel, tonic::transport::Error> {
    Ok(Endpoint::from_shared(address.to_owned())?
        .connect_timeout(policy.timeouts().connect)
        .tcp_nodelay(true)
        .connect_lazy())
}

/// `message` as a request that carries `cx`: its deadline as `grpc-timeout`, the owner of the
/// retries, the attempt, and the trace context.
pub fn request<T>(cx: &CallContext, message: T) -> Request<T> {
    let mut headers = ::http::HeaderMap::new();
    wire::into_both(cx, &mut headers);
    let mut request =
        Request::from_parts(MetadataMap::from_headers(headers), ::http::Extensions::new(), message);
    request.set_timeout(cx.deadline().remaining());
    request
}

/// The context that came in with a gRPC request.
pub fn context<T>(request: &Request<T>) -> CallContext {
    crate::inbound::context(request.extensions())
}

/// `status`, saying whether the call was carried out.
pub fn with_outcome(mut status: Status, outcome: Outcome) -> Status {
    status.metadata_mut().insert(wire::OUTCOME_NAME, MetadataValue::from_static(outcome.as_str()));
    status
}
