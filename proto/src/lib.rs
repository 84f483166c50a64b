//! The contracts between the services, and nothing else: the gRPC messages (generated from
//! `proto/`) and the JSON bodies that HTTP neighbours exchange. Both ends of a call compile
//! against the same types, so they cannot drift apart.
//!
//! The types parse at the door: a [`Quantity`](order::Quantity) that exists is within its bounds,
//! and nothing further in checks it again. A refused value is a [`FieldError`] that names its field.

pub mod catalog;
pub mod field;
pub mod money;
pub mod order;

pub use field::FieldError;

/// The charge contract, `payments.v1`.
pub mod payments {
    #![allow(missing_docs, unreachable_pub, missing_debug_implementations)] // generated code
    tonic::include_proto!("payments.v1");
}

/// Every gRPC contract as an encoded `FileDescriptorSet`, for reflection and for the test that
/// compares `idempotency_level` with what the clients declare.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
