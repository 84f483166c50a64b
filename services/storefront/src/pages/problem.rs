//! The pages for what went wrong: what happened, what did not, and where to go.

use std::borrow::Cow;

use askama::Template;
use proto::{FieldError, order::OrderId};

use super::{Frame, Here, words};

/// A page that says what went wrong, what that means for the visitor, and where to go from here.
#[derive(Debug, Template)]
#[template(path = "problem.html")]
pub struct ProblemPage {
    frame: Frame,
    picture: &'static str,
    headline: &'static str,
    text: Vec<Cow<'static, str>>,
    actions: Vec<Action>,
}

/// A way on from a [`ProblemPage`].
#[derive(Debug, Clone)]
pub struct Action {
    href: Cow<'static, str>,
    label: &'static str,
}

impl Action {
    /// A link to `href` that reads `label`.
    pub fn new(href: impl Into<Cow<'static, str>>, label: &'static str) -> Self {
        Self { href: href.into(), label }
    }

    fn products() -> Self {
        Self::new("/", "See the products")
    }

    fn cart() -> Self {
        Self::new("/cart", "Go to the cart")
    }
}

impl ProblemPage {
    /// A page of its own words; [`ProblemPage::text`] and [`ProblemPage::action`] fill it.
    /// `picture` is one of [`art::SYMBOLS`](super::art::SYMBOLS).
    pub fn new(frame: Frame, picture: &'static str, headline: &'static str) -> Self {
        Self { frame: frame.at(Here::Elsewhere), picture, headline, text: Vec::new(), actions: Vec::new() }
    }

    /// With one more paragraph.
    #[must_use]
    pub fn text(mut self, paragraph: impl Into<Cow<'static, str>>) -> Self {
        self.text.push(paragraph.into());
        self
    }

    /// With one more way on; the first is the main one.
    #[must_use]
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// 404: no such page or product.
    pub fn not_found(frame: Frame) -> Self {
        Self::new(frame, "chart", "This is not on our chart")
            .text(
                "There is no page at this address. It may have been moved, or we no longer sell the product.",
            )
            .action(Action::products())
    }

    /// 404: no such order.
    pub fn no_such_order(frame: Frame) -> Self {
        Self::new(frame, "book", "We have no such order")
            .text("Please check the address: an order opens only by its full number.")
            .action(Action::products())
    }

    /// 503: an order cannot be looked up now. Whether it exists is not known here.
    pub fn order_unseen(frame: Frame, order: OrderId) -> Self {
        Self::new(frame, "telescope", "We cannot look up your order at the moment")
            .text("What was ordered stays ordered, and is charged once. Please look again in a moment.")
            .action(Action::new(format!("/orders/{order}"), "Look again"))
            .action(Action::products())
    }

    /// The order of a frozen cart was looked up, and orders surely does not have it.
    pub fn never_placed(frame: Frame) -> Self {
        Self::new(frame, "lifebuoy", "Your order was not placed")
            .text("It did not reach us. Nothing was charged, and your cart is kept. You can order again now.")
            .action(Action::new("/checkout", "Try again"))
            .action(Action::cart())
    }

    /// 503: an order was not taken, where the checkout itself cannot be shown again.
    /// With the form at hand, it is [`Trouble::Unavailable`](super::Trouble::Unavailable).
    pub fn unavailable(frame: Frame) -> Self {
        Self::new(frame, "lifebuoy", "Ordering is unavailable for the moment")
            .text("Your cart is kept, and nothing was charged.")
            .action(Action::new("/checkout", "Try again"))
            .action(Action::cart())
    }

    /// 504: an order went out and no answer came. Like [`OrderPage::checking`](super::OrderPage::checking),
    /// for where a page that asks again by itself is not wanted.
    pub fn unknown_outcome(frame: Frame, order: OrderId) -> Self {
        Self::new(frame, "telescope", "We are checking your order. Please do not order again.")
            .text(
                "Your order went out, and no answer has come back yet. If it was placed, it is charged once.",
            )
            .action(Action::new(format!("/orders/{order}"), "See how it stands"))
    }

    /// 504: a page could not be put together in time.
    pub fn timed_out(frame: Frame) -> Self {
        Self::new(frame, "barometer", "This took too long")
            .text("We stopped rather than keep you waiting. Your cart is kept.")
            .action(Action::new("", "Try again"))
            .action(Action::products())
    }

    /// 413: a form or an address was too large.
    pub fn too_large(frame: Frame) -> Self {
        Self::new(frame, "blanket", "That was too much at once")
            .text("What was sent is larger than anything this shop asks for, so we did not take it.")
            .action(Action::products())
    }

    /// 400 or 422: a form was sent with fields that no form of ours would have.
    pub fn refused(frame: Frame, faults: &[FieldError]) -> Self {
        let page = Self::new(frame, "knot", "We could not make sense of that").text("Nothing was changed.");
        faults
            .iter()
            .fold(page, |page, fault| {
                page.text(words::sentence(&format!("{} {}.", fault.field, fault.message)))
            })
            .action(Action::cart())
            .action(Action::products())
    }

    /// 500: a fault of ours.
    pub fn generic(frame: Frame) -> Self {
        Self::new(frame, "block", "Something is stuck on our side")
            .text("It is our fault, not yours, and it is logged. Your cart is kept.")
            .action(Action::new("", "Try again"))
            .action(Action::products())
    }
}
