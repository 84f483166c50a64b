//! The promises of `messaging`, kept on a real RabbitMQ.
//!
//! What breaks nothing shares one broker, each test with queues of its own. What kills or pauses a broker has
//! one for itself.

mod consuming;
mod faults;
mod publishing;
mod stage;
