//! A charge: what is taken, from which card, under which key; and how it can end.

use std::fmt;

use proto::{
    FieldError,
    money::{Currency, Money},
    order::Card,
};
use uuid::Uuid;

/// The name of one charge, chosen by the caller: the order's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(crate) Uuid);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to charge. The amount is more than zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) key: Key,
    pub(crate) amount: Money,
    pub(crate) card: Card,
}

/// How a charge ended. It is made once and never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The money has moved.
    Approved,
    /// The bank said no.
    Declined {
        /// Why, in words for the customer.
        reason: String,
    },
}

impl Charge {
    /// The charge, well formed, or every field that is not.
    pub(crate) fn parse(
        key: &str,
        amount_minor: i64,
        currency: &str,
        card: &str,
    ) -> Result<Self, Vec<FieldError>> {
        let mut faults = Vec::new();
        let key = key.parse().map(Key);
        if key.is_err() {
            faults.push(FieldError::new("key", "must be a UUID"));
        }
        if amount_minor <= 0 {
            faults.push(FieldError::new("amount_minor", "must be more than 0"));
        }
        let currency = currency.parse::<Currency>();
        if let Err(unknown) = &currency {
            faults.push(FieldError::new("currency", unknown.to_string()));
        }
        let card = Card::new(card);
        if card.is_none() {
            faults.push(FieldError::new("card", format!("must be one of {}", Card::TEST_CARDS.join(", "))));
        }
        match (key, currency, card) {
            (Ok(key), Ok(currency), Some(card)) if faults.is_empty() => {
                Ok(Self { key, amount: Money::new(amount_minor, currency), card })
            }
            _ => Err(faults),
        }
    }
}

impl Decision {
    /// The name of a charge's state before there is a decision.
    pub(crate) const PENDING: &str = "pending";
    const APPROVED: &str = "approved";
    const DECLINED: &str = "declined";

    /// The state of a charge that ended so, and why.
    pub(crate) fn state(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Approved => (Self::APPROVED, None),
            Self::Declined { reason } => (Self::DECLINED, Some(reason)),
        }
    }

    /// Reads [`Decision::state`] back; `None` while there is no decision.
    ///
    /// # Errors
    /// When there is no such state.
    pub(crate) fn of_state(state: &str, reason: Option<String>) -> Result<Option<Self>, UnknownState> {
        match (state, reason) {
            (Self::PENDING, None) => Ok(None),
            (Self::APPROVED, None) => Ok(Some(Self::Approved)),
            (Self::DECLINED, Some(reason)) => Ok(Some(Self::Declined { reason })),
            _ => Err(UnknownState),
        }
    }
}

/// A charge is in a state that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("the charge's state is not known here")]
pub(crate) struct UnknownState;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "6a7cf3b0-0000-5000-8000-000000000001";

    #[test]
    fn a_good_charge_is_taken_as_it_is() {
        let charge = Charge::parse(KEY, 1999, "EUR", "tok_ok").expect("well formed");
        assert_eq!(charge.key.to_string(), KEY);
        assert_eq!(charge.amount, Money::new(1999, Currency::Eur));
        assert_eq!(charge.card.token(), "tok_ok");
        assert!(Charge::parse(KEY, i64::MAX, "JPY", "tok_slow").is_ok());
    }

    #[test]
    fn each_refused_field_is_named() {
        for (key, amount, currency, card, fields) in [
            ("", 1, "EUR", "tok_ok", &["key"][..]),
            ("order-1", 1, "EUR", "tok_ok", &["key"]),
            (KEY, 0, "EUR", "tok_ok", &["amount_minor"]),
            (KEY, i64::MIN, "EUR", "tok_ok", &["amount_minor"]),
            (KEY, 1, "eur", "tok_ok", &["currency"]),
            (KEY, 1, "XXX", "tok_ok", &["currency"]),
            (KEY, 1, "EUR", "4111111111111111", &["card"]),
            ("\0", -1, "", "", &["key", "amount_minor", "currency", "card"]),
        ] {
            let faults = Charge::parse(key, amount, currency, card).expect_err("not well formed");
            assert_eq!(faults.iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), fields);
            let told = faults.iter().any(|fault| fault.message.contains("4111"));
            assert!(!told, "what was sent as a card is repeated: {faults:?}");
        }
    }

    #[test]
    fn a_decision_is_read_back_as_it_was_written() {
        for decision in [Decision::Approved, Decision::Declined { reason: "insufficient funds".into() }] {
            let (state, reason) = decision.state();
            let read = Decision::of_state(state, reason.map(str::to_owned)).expect("a state");
            assert_eq!(read, Some(decision));
        }
        assert_eq!(Decision::of_state(Decision::PENDING, None).expect("a state"), None);
        for (state, reason) in [("declined", None), ("refunded", None), ("approved", Some("why".into()))] {
            assert!(Decision::of_state(state, reason).is_err(), "{state}");
        }
    }

    #[test]
    fn the_card_is_not_shown() {
        let charge = Charge::parse(KEY, 1999, "EUR", "tok_insufficient_funds").expect("well formed");
        assert!(!format!("{charge:?}").contains("tok_"), "{charge:?}");
    }
}
