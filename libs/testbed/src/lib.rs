//! Starts and breaks real parts: Postgres, and programs of our own.
//!
//! A drill against a mock proves that the mock can be broken. So the demo, the system tests and the load
//! tests run the real servers, and kill, pause and restart the real processes. This crate is how they do it:
//!
//! - [`Part`]: a program that runs under a guard, and can be killed, paused, resumed, stopped and started
//!   again in the same place;
//! - [`Postgres`]: a private cluster on a free loopback port, one call to get it, gone when dropped;
//! - [`RabbitMq`]: the same with a broker;
//! - [`ports`], [`poll`], [`install`]: a port that stays ours, a wait that is bounded, a missing program.
//!
//! Nothing here is part of a service. It needs Linux: it reads `/proc`.

mod account;
pub mod database;
mod folder;
mod guard;
pub mod install;
mod log;
mod part;
pub mod poll;
pub mod ports;
pub mod postgres;
mod programs;
mod progress;
pub mod rabbitmq;
mod ready;
mod secret;
mod shared_memory;
mod spec;
pub mod tree;

pub use account::Account;
pub use log::tail;
pub use part::{Ended, Life, Part};
pub use postgres::Postgres;
pub use progress::Progress;
pub use rabbitmq::RabbitMq;
pub use ready::Ready;
pub use spec::{Spec, Stop};
pub use tree::State;
