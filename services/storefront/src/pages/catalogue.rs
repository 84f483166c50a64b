//! The shop window: all products, and one.

use askama::Template;
use proto::{catalog::Product, order::Quantity};
use resilience::Answer;

use super::{Frame, Here, art, words};

/// The home page: every product.
#[derive(Debug, Template)]
#[template(path = "index.html")]
pub struct IndexPage {
    frame: Frame,
    products: Option<Vec<Product>>,
}

impl IndexPage {
    /// The home page with what the catalogue answered.
    pub fn new(frame: Frame, products: Answer<Vec<Product>>) -> Self {
        let (products, quality) = products.into_parts();
        let frame = frame.at(Here::Products).tell_catalogue(quality, "These products and prices");
        Self { frame, products }
    }
}

/// One product.
#[derive(Debug, Template)]
#[template(path = "product.html")]
pub struct ProductPage {
    frame: Frame,
    product: Option<Product>,
}

impl ProductPage {
    /// The page of the product that the catalogue answered.
    /// That there is no such product is another page: [`ProblemPage::not_found`](super::ProblemPage::not_found).
    pub fn new(frame: Frame, product: Answer<Product>) -> Self {
        let (product, quality) = product.into_parts();
        let frame = frame.at(Here::Products).tell_catalogue(quality, "This product and its price");
        Self { frame, product }
    }
}
