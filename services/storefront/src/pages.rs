//! What people see: the pages, as types.
//!
//! A page is built by its constructor from what the neighbours answered, and rendered by its
//! template in `templates/`. Whatever came from a neighbour comes in as an
//! [`Answer`](resilience::Answer), so its quality is known where the page is built, and the
//! constructor itself writes the note that tells people about it. Every page shows the notes of its
//! [`Frame`] at the top of its content; a template has no say in that, so it cannot show an old
//! price as a fresh one. Templates escape all text.
//!
//! | page | type | template |
//! | --- | --- | --- |
//! | home | [`IndexPage`] | `index.html` |
//! | one product | [`ProductPage`] | `product.html` |
//! | cart, also while it is frozen | [`CartPage`] | `cart.html` |
//! | checkout, also the second try | [`CheckoutPage`] | `checkout.html` |
//! | an order | [`OrderPage`] | `order.html` |
//! | everything that went wrong | [`ProblemPage`] | `problem.html` |
//!
//! `cargo run -p storefront --example pages` writes one of each kind to `target/pages/`.

pub mod art;
pub mod basket;
pub mod catalogue;
pub mod checkout;
pub mod frame;
pub mod order;
pub mod problem;
pub mod words;

pub use basket::{Basket, BasketLine, CartPage};
pub use catalogue::{IndexPage, ProductPage};
pub use checkout::{CheckoutPage, Faults, Trouble};
pub use frame::{Frame, Here};
pub use order::{OrderPage, Stand};
pub use problem::{Action, ProblemPage};

#[cfg(test)]
mod tests;
