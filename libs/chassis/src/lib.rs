//! What every service of the shop shares: its start and its end, both servers, the way of a request
//! in and of a call out, the lease on a database connection, and the one table that says what a
//! status code or an SQLSTATE means.
//!
//! It knows nothing of products and orders. Nothing here decides what to do about a failure; that
//! is said in the use case of each service.

pub mod body;
pub mod database;
pub mod grpc;
pub mod http;
pub mod inbound;
pub mod outcome;
pub mod policies;
pub mod problem;
pub mod service;
pub mod settings;
pub mod wire;

mod admin;

pub use inbound::{Cx, Inbound};
pub use policies::policy;
pub use problem::Problem;
pub use service::{App, start};
