//! An order, as far as it needs no database and no neighbour: its states, its lines, its total.
//!
//! ```text
//!                  approved
//! payment_pending ----------> paid
//!    |    |                    ^
//!    |    | no answer          | approved
//!    |    v                    |
//!    |  payment_deferred ------+
//!    |    |
//!    |    | declined
//!    v    v
//!    declined
//! ```

use proto::{
    money::Money,
    order::{Card, OrderId, OrderItem, OrderState, Owner, Quantity},
};

use crate::fingerprint::Fingerprint;

/// What the bank said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Approved,
    /// With the reason, in words for the customer.
    Declined(String),
}

impl Decision {
    /// The state that an order comes into by it.
    pub(crate) const fn state(&self) -> OrderState {
        match self {
            Self::Approved => OrderState::Paid,
            Self::Declined(_) => OrderState::Declined,
        }
    }

    /// What there is to say about it.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Approved => None,
            Self::Declined(reason) => Some(reason),
        }
    }
}

/// The states from which an order may come into `to`. Every write of a state is bound to them, so
/// of two that settle the same order one finds that it is too late.
pub(crate) const fn sources(to: OrderState) -> &'static [OrderState] {
    match to {
        OrderState::PaymentPending => &[],
        OrderState::PaymentDeferred => &[OrderState::PaymentPending],
        OrderState::Paid | OrderState::Declined => &[OrderState::PaymentPending, OrderState::PaymentDeferred],
    }
}

/// An order that is to be placed, with its prices.
#[derive(Debug, Clone)]
pub(crate) struct NewOrder {
    pub(crate) id: OrderId,
    pub(crate) owner: Owner,
    pub(crate) fingerprint: Fingerprint,
    /// Each product once, sorted by product.
    pub(crate) items: Vec<OrderItem>,
    pub(crate) total: Money,
    pub(crate) buyer: Buyer,
    pub(crate) card: Card,
}

/// Who it is sent to. Shown to nobody.
#[derive(Clone)]
pub(crate) struct Buyer {
    pub(crate) name: String,
    pub(crate) email: String,
}

impl std::fmt::Debug for Buyer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buyer(..)")
    }
}

/// A product's name and price, as an order needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Priced {
    pub(crate) name: String,
    pub(crate) price: Money,
}

/// The lines of an order.
///
/// # Errors
/// The products that have no price.
pub(crate) fn lines<'p>(
    wanted: &[(String, Quantity)],
    price: impl Fn(&str) -> Option<&'p Priced>,
) -> Result<Vec<OrderItem>, Vec<String>> {
    let (mut lines, mut unknown) = (Vec::new(), Vec::new());
    for (product, quantity) in wanted {
        match price(product) {
            Some(Priced { name, price }) => lines.push(OrderItem {
                product_id: product.clone(),
                name: name.clone(),
                quantity: quantity.get(),
                unit_price: *price,
            }),
            None => unknown.push(product.clone()),
        }
    }
    if unknown.is_empty() { Ok(lines) } else { Err(unknown) }
}

/// What `lines` cost together; `None` when there are none, they differ in currency, or it does not
/// fit.
pub(crate) fn total(lines: &[OrderItem]) -> Option<Money> {
    let mut costs = lines.iter().map(|line| line.unit_price.times(line.quantity));
    let first = costs.next()??;
    costs.try_fold(first, |sum, cost| sum.plus(cost?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::money::Currency;

    use super::*;

    const STATES: [OrderState; 4] =
        [OrderState::PaymentPending, OrderState::PaymentDeferred, OrderState::Paid, OrderState::Declined];

    fn state() -> impl Strategy<Value = OrderState> {
        proptest::sample::select(STATES.as_slice())
    }

    fn line(minor: i64, quantity: u32, currency: Currency) -> OrderItem {
        let unit_price = Money::new(minor, currency);
        OrderItem { product_id: "rope".into(), name: "Rope".into(), quantity, unit_price }
    }

    proptest! {
        /// Whoever settles and defers, in whatever order: an order ends once, is never in a state
        /// twice, and its end stays.
        #[test]
        fn an_order_ends_once(attempts in proptest::collection::vec(state(), 0..20)) {
            let mut history = vec![OrderState::PaymentPending];
            for to in attempts {
                let now = history[history.len() - 1];
                if sources(to).contains(&now) {
                    prop_assert!(!now.is_final(), "{now:?} -> {to:?}");
                    prop_assert!(!history.contains(&to), "{to:?} a second time");
                    history.push(to);
                }
            }
            prop_assert!(history.len() <= 3);
            prop_assert!(history.iter().filter(|state| state.is_final()).count() <= 1);
        }

        #[test]
        fn a_decision_ends_every_open_order(from in state(), reason in proptest::option::of(".*")) {
            let decision = reason.map_or(Decision::Approved, Decision::Declined);
            prop_assert!(decision.state().is_final());
            prop_assert_eq!(sources(decision.state()).contains(&from), !from.is_final());
        }

        #[test]
        fn a_total_is_the_sum_of_its_lines_or_nothing(
            lines in proptest::collection::vec((1_i64..=i64::MAX, 1_u32..=99), 1..50),
        ) {
            let exact: i128 = lines.iter().map(|(minor, n)| i128::from(*minor) * i128::from(*n)).sum();
            let lines: Vec<_> = lines.iter().map(|(minor, n)| line(*minor, *n, Currency::Eur)).collect();
            let expected = i64::try_from(exact).ok().map(|minor| Money::new(minor, Currency::Eur));
            prop_assert_eq!(total(&lines), expected);
        }
    }

    #[test]
    fn currencies_are_not_mixed_and_nothing_costs_nothing() {
        assert_eq!(total(&[line(1, 1, Currency::Eur), line(1, 1, Currency::Usd)]), None);
        assert_eq!(total(&[]), None);
    }

    #[test]
    fn every_product_without_a_price_is_named() {
        let mug = Priced { name: "Enamel mug".into(), price: Money::new(1295, Currency::Eur) };
        let quantity = Quantity::new(2).expect("within bounds");
        let wanted = ["a", "mug", "z"].map(|id| (id.to_owned(), quantity));
        let price = |id: &str| (id == "mug").then_some(&mug);
        assert_eq!(lines(&wanted, price), Err(vec!["a".to_owned(), "z".to_owned()]));
        let found = lines(&wanted[1..2], price).expect("known");
        assert_eq!((found[0].name.as_str(), found[0].quantity), ("Enamel mug", 2));
    }
}
