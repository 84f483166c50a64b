//! The fingerprint of an order: whether a key came again with the same content or with another.

use proto::order::PlaceOrder;
use sha2::{Digest as _, Sha256};

/// SHA-256 over everything that makes an order this order. It tells nothing about the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) Vec<u8>);

impl Fingerprint {
    /// The fingerprint of `order`. Its `expected_total` is left out: that is a condition, and not
    /// what is bought, so a page that was reloaded with new prices still finds its order.
    pub(crate) fn of(order: &PlaceOrder) -> Self {
        let mut hash = Sha256::new();
        // Each text is preceded by its length, so that no two orders run together into one text.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        for text in [order.name.as_str(), &order.email, order.card.token(), order.currency.code()] {
            add(text);
        }
        for (product, quantity) in &order.items {
            add(product);
            add(&quantity.get().to_string());
        }
        Self(hash.finalize().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proto::{
        money::{Currency, Money},
        order::{Draft, DraftItem},
    };

    use super::*;

    fn item(product_id: &str, quantity: i64) -> DraftItem {
        DraftItem { product_id: product_id.into(), quantity }
    }

    fn draft() -> Draft {
        Draft {
            items: vec![item("enamel-mug", 2), item("ditty-bag", 1)],
            name: "Ada".into(),
            email: "ada@example.com".into(),
            card: "tok_ok".into(),
            currency: "EUR".into(),
            expected_total: None,
        }
    }

    fn of(draft: &Draft) -> Fingerprint {
        Fingerprint::of(&draft.parse().expect("well formed"))
    }

    #[test]
    fn the_same_content_is_the_same_however_it_is_written() {
        let mut other = draft();
        other.items = vec![item("ditty-bag", 1), item("enamel-mug", 1), item("enamel-mug", 1)];
        other.name = " Ada ".into();
        other.expected_total = Some(Money::new(1, Currency::Eur));
        assert_eq!(of(&draft()), of(&other));
    }

    #[test]
    fn each_part_of_the_content_counts() {
        type Change = fn(&mut Draft);
        let changes: [Change; 7] = [
            |d| d.items[0].quantity = 3,
            |d| d.items[0].product_id = "enamel-jug".into(),
            |d| d.items.truncate(1),
            |d| d.name = "Grace".into(),
            |d| d.email = "grace@example.com".into(),
            |d| d.card = "tok_declined".into(),
            |d| d.currency = "USD".into(),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut other = draft();
            change(&mut other);
            assert_ne!(of(&draft()), of(&other), "change {at}");
        }
        let shifted = Draft { name: "Adaa".into(), email: "da@example.com".into(), ..draft() };
        assert_ne!(of(&draft()), of(&shifted));
    }
}
