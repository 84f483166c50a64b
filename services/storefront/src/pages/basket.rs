//! The cart: what somebody chose, at the prices the catalogue tells.

use std::borrow::Cow;

use askama::Template;
use proto::{
    catalog::Product,
    money::Money,
    order::{OrderId, Quantity},
};
use resilience::{Answer, Quality};

use super::{Frame, Here, art, words};

/// What somebody chose, joined with what the catalogue tells about it.
#[derive(Debug, Clone)]
pub struct Basket {
    pub(super) lines: Vec<BasketLine>,
    /// The sum, when every line has a price and they add up.
    pub(super) total: Option<Money>,
    /// The catalogue (or memory) was asked and told: a line without a product is one that is not sold.
    pub(super) known: bool,
    pub(super) quality: Quality,
}

/// One product of a [`Basket`].
#[derive(Debug, Clone)]
pub struct BasketLine {
    pub(super) product_id: String,
    pub(super) quantity: u32,
    pub(super) product: Option<Product>,
}

impl Basket {
    /// `items` are product ids with quantities, as the cart keeps them; `catalogue` is what the
    /// catalogue answered, with any products beside those of the cart.
    pub fn new(items: &[(String, u32)], catalogue: Answer<Vec<Product>>) -> Self {
        let (products, quality) = catalogue.into_parts();
        let known = products.is_some();
        let products = products.unwrap_or_default();
        let lines: Vec<_> = items
            .iter()
            .map(|(id, quantity)| BasketLine {
                product_id: id.clone(),
                quantity: *quantity,
                product: products.iter().find(|product| product.id == *id).cloned(),
            })
            .collect();
        let total = lines.iter().map(BasketLine::sum).reduce(|total, sum| total?.plus(sum?)).flatten();
        Self { lines, total, known, quality }
    }

    /// Puts the basket's quality on a page; an empty one has nothing that could be old.
    pub(super) fn tell(&self, frame: Frame) -> Frame {
        let quality = if self.lines.is_empty() { Quality::Live } else { self.quality };
        frame.at(Here::Cart).tell_catalogue(quality, "These prices")
    }

    /// Some price is remembered rather than told, so orders may know another one.
    pub(super) fn may_differ(&self) -> bool {
        self.total.is_some() && self.quality.is_degraded()
    }

    /// What it costs; `None` when it is empty, when a price is not known or when the sum does not fit.
    pub fn total(&self) -> Option<Money> {
        self.total
    }
}

impl BasketLine {
    pub(super) fn name(&self) -> Cow<'_, str> {
        match &self.product {
            Some(product) => Cow::Borrowed(&product.name),
            None => Cow::Owned(words::readable_id(&self.product_id)),
        }
    }

    pub(super) fn art(&self) -> &str {
        self.product.as_ref().map_or("", |product| &product.art)
    }

    pub(super) fn sum(&self) -> Option<Money> {
        self.product.as_ref()?.price.times(self.quantity)
    }
}

/// The cart.
#[derive(Debug, Template)]
#[template(path = "cart.html")]
pub struct CartPage {
    frame: Frame,
    basket: Basket,
    frozen: Option<OrderId>,
}

impl CartPage {
    /// The cart, open for changes.
    pub fn new(frame: Frame, basket: Basket) -> Self {
        Self { frame: basket.tell(frame), basket, frozen: None }
    }

    /// The cart while it is not known whether its order `order` was placed: shown, but closed.
    pub fn frozen(frame: Frame, basket: Basket, order: OrderId) -> Self {
        Self { frozen: Some(order), ..Self::new(frame, basket) }
    }
}
