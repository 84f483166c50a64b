//! The checkout: the first try, the second look after a refused field, and the second try after
//! the order surely did not happen.

use askama::Template;
use proto::{
    FieldError,
    order::{Card, IdempotencyKey},
};

use super::{Basket, Frame, Here, words};

/// The checkout. The form's hidden key makes sending it twice the same as once; of what was typed,
/// only the name is ever shown back.
#[derive(Debug, Template)]
#[template(path = "checkout.html")]
pub struct CheckoutPage {
    frame: Frame,
    key: String,
    basket: Basket,
    name: String,
    faults: Faults,
    trouble: Option<Trouble>,
}

/// Why the last try did not become an order. In each case it surely was not placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Orders did not take it. The page carries the same key.
    Unavailable,
    /// The bank declined the card. The page carries a new key.
    Declined,
    /// A price is not what the customer was shown. The page carries a new key.
    PriceChanged,
    /// Somebody else was faster. The page carries a new key.
    OutOfStock,
    /// There is no usable rate for the currency. The page carries a new key.
    CurrencyUnavailable,
    /// The key belongs to another order already. The page carries a new key.
    KeyUsed,
}

/// What is wrong with the typed fields, in words for the person who typed them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    name: Option<&'static str>,
    email: Option<&'static str>,
    card: Option<&'static str>,
    others: Vec<String>,
}

impl CheckoutPage {
    /// The test cards, each with what it does.
    const CARDS: [(&'static str, &'static str); Card::TEST_CARDS.len()] = [
        ("tok_ok", "A good card"),
        ("tok_declined", "A card the bank declines"),
        ("tok_insufficient_funds", "A card without enough money"),
        ("tok_slow", "A card of a slow bank (answers after 5 seconds)"),
    ];

    /// The checkout of `basket` under `key`.
    pub fn new(frame: Frame, key: &IdempotencyKey, basket: Basket) -> Self {
        Self {
            frame: basket.tell(frame),
            key: key.as_str().to_owned(),
            basket,
            name: String::new(),
            faults: Faults::default(),
            trouble: None,
        }
    }

    /// With the name that was typed before.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// With what is wrong beside each field.
    #[must_use]
    pub fn faults(self, faults: &[FieldError]) -> Self {
        Self { faults: Faults::new(faults), ..self }
    }

    /// What the button does.
    fn verb(&self) -> &'static str {
        match self.trouble {
            Some(Trouble::Unavailable) => "Try again and pay",
            _ => "Pay",
        }
    }

    /// With the reason why the last try did not become an order.
    #[must_use]
    pub fn trouble(self, trouble: Trouble) -> Self {
        Self { trouble: Some(trouble), ..self }
    }
}

impl Trouble {
    fn headline(self) -> &'static str {
        match self {
            Self::Unavailable => "Ordering is unavailable for the moment",
            Self::Declined => "Your payment was declined",
            Self::PriceChanged => "A price has changed",
            Self::OutOfStock => "We do not have enough of that",
            Self::CurrencyUnavailable => "We cannot charge in that currency at the moment",
            Self::KeyUsed => "This form was used before",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Unavailable => "Your cart is kept, and nothing was charged. You can try again here.",
            Self::Declined => "Nothing was charged, and your cart is kept. You can try another card.",
            Self::PriceChanged => "Nothing was ordered or charged. This is what it costs now.",
            Self::OutOfStock => {
                "Nothing was ordered or charged. Please choose fewer in your cart, or try again later."
            }
            Self::CurrencyUnavailable => "Nothing was ordered or charged. You can pay in euros.",
            Self::KeyUsed => {
                "It belongs to an order with other contents. For a new order, please fill it in again."
            }
        }
    }
}

impl Faults {
    fn new(faults: &[FieldError]) -> Self {
        let mut told = Self::default();
        for fault in faults {
            match fault.field.as_str() {
                "name" => told.name = Some("Please enter a name, at most 100 characters long."),
                "email" => told.email = Some("Please enter an e-mail address, such as name@example.com."),
                "card" => told.card = Some("Please choose a card."),
                _ => told.others.push(words::sentence(&format!("{} {}.", fault.field, fault.message))),
            }
        }
        told
    }

    fn any(&self) -> bool {
        self.name.is_some() || self.email.is_some() || self.card.is_some() || !self.others.is_empty()
    }
}
