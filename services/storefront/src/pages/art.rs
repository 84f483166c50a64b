//! The pictures of the products: names into `static/art.svg`.

/// Every picture of a product in the sprite.
pub const SYMBOLS: [&str; 20] = [
    "anchor",
    "bag",
    "barometer",
    "bell",
    "blanket",
    "block",
    "book",
    "boots",
    "cap",
    "chart",
    "compass",
    "jacket",
    "knife",
    "knot",
    "lantern",
    "lifebuoy",
    "mug",
    "rope",
    "shackle",
    "telescope",
];

/// The picture called `name`; an anchor stands in for one that the sprite does not have.
pub fn symbol(name: &str) -> &'static str {
    SYMBOLS.into_iter().find(|known| *known == name).unwrap_or("anchor")
}
