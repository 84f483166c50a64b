//! Orders from outside: the real program on a real Postgres, with a payments service and a catalog
//! of the test's own behind real sockets, which can be made to hang, to fail and to be gone.

mod away;
mod bad_input;
mod catalog;
mod deferred;
mod once;
mod payments;
mod shop;
mod sold;
mod stock;
