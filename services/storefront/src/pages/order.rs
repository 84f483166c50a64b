//! An order: where it stands, what is in it, and how it came there.

use askama::Template;
use proto::order::{Order, OrderId, OrderState};
use resilience::{Answer, Quality};

use super::{Frame, Here, frame::Refresh, words};

/// How often a page of an order that is still moving asks again.
const REFRESH_SECONDS: u32 = 3;

/// An order. While it can still change, the page looks again by itself.
#[derive(Debug, Template)]
#[template(path = "order.html")]
pub struct OrderPage {
    frame: Frame,
    id: OrderId,
    stand: Stand,
    order: Option<Order>,
    reason: Option<String>,
}

/// Where an order stands, as people are told. It knows one more than
/// [`OrderState`]: that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// Charged.
    Paid,
    /// The bank said no.
    Declined,
    /// The charge is being made.
    Pending,
    /// The charge is made later.
    Deferred,
    /// Orders did not tell; it may or may not have been placed.
    Checking,
}

impl OrderPage {
    /// The order `id` as orders told it. [`Answer::Missing`] is not "no such order"
    /// ([`ProblemPage::no_such_order`](super::ProblemPage::no_such_order)): it is an order that
    /// nobody can tell about now, and the page asks people not to order again.
    pub fn new(frame: Frame, id: OrderId, order: Answer<Order>) -> Self {
        let (order, quality) = order.into_parts();
        let frame = match quality {
            Quality::Stale { age } => {
                let when = words::as_of(frame.now, age);
                frame.note(format!(
                    "This is how the order stood at {when}; we cannot look it up at the moment."
                ))
            }
            Quality::Live | Quality::Default | Quality::Deferred | Quality::Missing => frame,
        };
        let stand = order.as_ref().map_or(Stand::Checking, |order| order.state.into());
        let reason = order
            .as_ref()
            .filter(|order| order.state == OrderState::Declined)
            .and_then(|order| order.history.iter().rev().find_map(|event| event.reason.clone()));
        // The address is spelled out because the page also answers a post to the checkout.
        let again = (!matches!(stand, Stand::Paid | Stand::Declined))
            .then(|| Refresh { seconds: REFRESH_SECONDS, address: format!("/orders/{id}") });
        Self { frame: frame.at(Here::Elsewhere).refresh(again), id, stand, order, reason }
    }

    /// The order `id` after a try without an answer.
    pub fn checking(frame: Frame, id: OrderId) -> Self {
        Self::new(frame, id, Answer::Missing)
    }
}

impl From<OrderState> for Stand {
    fn from(state: OrderState) -> Self {
        match state {
            OrderState::Paid => Self::Paid,
            OrderState::Declined => Self::Declined,
            OrderState::PaymentPending => Self::Pending,
            OrderState::PaymentDeferred => Self::Deferred,
        }
    }
}

impl Stand {
    fn title(self) -> &'static str {
        match self {
            Self::Paid => "Order paid",
            Self::Declined => "Payment declined",
            Self::Pending => "Payment being made",
            Self::Deferred => "Order accepted",
            Self::Checking => "Checking your order",
        }
    }

    fn headline(self) -> &'static str {
        match self {
            Self::Paid => "Paid. Thank you.",
            Self::Declined => "Your payment was declined",
            Self::Pending => "Your payment is being made",
            Self::Deferred => "Your order is accepted",
            Self::Checking => "We are checking your order. Please do not order again.",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Paid => "Your order is complete. There is nothing more for you to do.",
            Self::Declined => "Nothing was charged, and the things are back on the shelf.",
            Self::Pending => "We have your order and are waiting for the bank.",
            Self::Deferred => {
                "Payment will be taken when the bank answers, and only once. There is nothing more for you to do."
            }
            Self::Checking => {
                "Your order went out, and we cannot see yet whether it was placed. If it was, it is charged once."
            }
        }
    }

    /// The class that colours the box.
    fn style(self) -> &'static str {
        match self {
            Self::Paid => "paid",
            Self::Declined => "declined",
            Self::Pending | Self::Deferred => "waiting",
            Self::Checking => "checking",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Paid => "sign-done",
            Self::Declined => "sign-no",
            Self::Pending | Self::Deferred => "sign-wait",
            Self::Checking => "sign-check",
        }
    }

    /// One step of the history.
    fn step(state: &OrderState) -> &'static str {
        match state {
            OrderState::PaymentPending => "Order placed",
            OrderState::PaymentDeferred => "The bank did not answer in time; the payment is taken later",
            OrderState::Paid => "Paid",
            OrderState::Declined => "The bank declined the payment",
        }
    }
}
