//! What the catalog service answers: `GET /products` and `GET /products/{id}`.

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// One product as it is sold now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// A readable id that never changes, such as `brass-compass`.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// One line for the list.
    pub summary: String,
    /// A few sentences for its own page.
    pub description: String,
    /// Which picture of the shop's set shows it.
    pub art: String,
    /// The price of one piece, in the base currency.
    pub price: Money,
}

/// The answer to `GET /products`: all of them, in the order of the shop window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Products {
    /// The products.
    pub products: Vec<Product>,
}
