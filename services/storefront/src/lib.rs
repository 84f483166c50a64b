//! The edge of the shop: pages for people and JSON for programs.
//!
//! The time budget of a request starts here, and whatever is tried again is tried again here and
//! nowhere below. What a neighbour does not tell is shown from memory, with its age, or named as
//! missing; a page fails only when what it is for cannot be done at all.
//!
//! | file | what it is for |
//! | --- | --- |
//! | [`app`] | what the service is made of |
//! | `http`, `order_page`, `api` | the doors: pages, the page of an order, JSON |
//! | `checkout` | the use case: what a sent checkout form comes to |
//! | [`cart`] | the cart, which lives in a cookie |
//! | [`catalog`], [`orders`] | the neighbours |
//! | [`degraded`] | the header that says what an answer lacks |
//! | [`pages`] | what people see |
//! | `origin`, `headers` | what another site's page may not do here |
//! | `refusal`, `reply` | how somebody is told no, and how a page is sent |

use std::{ffi::OsString, process::ExitCode};

pub mod app;
pub mod cart;
pub mod catalog;
pub mod config;
pub mod degraded;
pub mod orders;
pub mod pages;

mod api;
mod checkout;
mod forms;
mod headers;
mod http;
mod key;
mod order_page;
mod origin;
mod refusal;
mod reply;
mod static_files;
mod visit;

/// Runs the storefront with `args` until it is told to stop.
pub fn start(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    chassis::start("storefront", args, app::build)
}
