//! A visit: what every page needs to know of the request it answers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use chassis::Cx;
use chrono::Utc;
use http::request::Parts;
use resilience::CallContext;

use crate::{cart::Cart, config::OWN_ANSWER, pages::Frame};

/// Who asks: their time and their cart.
#[derive(Debug)]
pub(crate) struct Visit {
    /// What the neighbours may use of the time.
    pub(crate) cx: CallContext,
    /// The cart as it came.
    pub(crate) cart: Cart,
}

impl Visit {
    /// The frame of a page that shows the cart as it came.
    pub(crate) fn frame(&self) -> Frame {
        frame(&self.cart)
    }
}

/// The frame of a page made now, with the count of `cart`.
pub(crate) fn frame(cart: &Cart) -> Frame {
    Frame::new(Utc::now(), cart.pieces())
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let Cx(cx) = Cx::from_request_parts(parts, state).await?;
        Ok(Self { cx: keep_own_answer(&cx), cart: Cart::of(&parts.headers) })
    }
}

/// The context of the neighbours: it ends [`OWN_ANSWER`] earlier, or a quarter of what is left for a
/// visitor in such a hurry.
pub(crate) fn keep_own_answer(cx: &CallContext) -> CallContext {
    cx.reserve(OWN_ANSWER.min(cx.deadline().remaining() / 4))
}
