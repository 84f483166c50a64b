//! Payments from outside: a real process on a real Postgres, called over a real socket.

mod asking;
mod crashing;
mod running;
mod tables;
