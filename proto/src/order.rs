//! What people order and what orders answers: the bodies of `POST /orders` and `GET /orders/{id}`.
//!
//! A [`Draft`] is what came in; [`Draft::parse`] turns it into a [`PlaceOrder`] or names every
//! refused field at once. The storefront's forms, its JSON door and the door of orders all use it.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    FieldError,
    money::{Currency, Money},
};

/// Products in one order, at most.
pub const MAX_LINES: usize = 50;

/// An order as somebody typed it: nothing is checked yet.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Draft {
    /// What to send.
    #[serde(default)]
    pub items: Vec<DraftItem>,
    /// To whom.
    #[serde(default)]
    pub name: String,
    /// Where the confirmation goes.
    #[serde(default)]
    pub email: String,
    /// The card's token.
    #[serde(default)]
    pub card: String,
    /// The currency to pay in.
    #[serde(default)]
    pub currency: String,
    /// What the customer was shown; a difference refuses the order instead of charging another sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_total: Option<Money>,
}

impl fmt::Debug for Draft {
    /// Leaves out who it is and what they pay with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("items", &self.items)
            .field("currency", &self.currency)
            .finish_non_exhaustive()
    }
}

/// One line of a [`Draft`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DraftItem {
    /// Which product.
    #[serde(default)]
    pub product_id: String,
    /// How many.
    #[serde(default)]
    pub quantity: i64,
}

/// An order that is well formed. Whether the products exist and are in stock, orders decides.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaceOrder {
    /// At least one line, each product once, sorted by product.
    pub items: Vec<(String, Quantity)>,
    /// To whom.
    pub name: String,
    /// Where the confirmation goes.
    pub email: String,
    /// The card's token.
    pub card: Card,
    /// The currency to pay in.
    pub currency: Currency,
    /// What the customer was shown.
    pub expected_total: Option<Money>,
}

impl fmt::Debug for PlaceOrder {
    /// Leaves out who it is and what they pay with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaceOrder")
            .field("items", &self.items)
            .field("currency", &self.currency)
            .finish_non_exhaustive()
    }
}

/// How many pieces of one product: 1 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Quantity(u8);

impl Quantity {
    /// The most pieces of one product in an order.
    pub const MAX: u8 = 99;

    /// `n`, when it is within 1 to [`Quantity::MAX`].
    pub fn new(n: i64) -> Option<Self> {
        u8::try_from(n).ok().filter(|n| (1..=Self::MAX).contains(n)).map(Self)
    }

    /// The number.
    pub fn get(self) -> u32 {
        u32::from(self.0)
    }
}

/// A card's token, as a payment page would hand it out. Its text is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Card(String);

impl Card {
    /// The tokens of the test cards: what the simulated bank knows.
    pub const TEST_CARDS: [&'static str; 4] =
        ["tok_ok", "tok_declined", "tok_insufficient_funds", "tok_slow"];

    /// `token`, when it is one of [`Card::TEST_CARDS`].
    pub fn new(token: &str) -> Option<Self> {
        Self::TEST_CARDS.contains(&token).then(|| Self(token.to_owned()))
    }

    /// The token, for the bank.
    pub fn token(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Card(..)")
    }
}

/// The name a client gives to one purchase, so that sending it twice buys once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// What a key has to look like, for error messages.
    pub const RULE: &'static str = "must be 16 to 128 letters, digits, '-' or '_'";

    /// `key`, when it keeps [`IdempotencyKey::RULE`]: long enough that nobody guesses another's.
    pub fn new(key: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        ((16..=128).contains(&key.len()) && key.bytes().all(plain)).then(|| Self(key.to_owned()))
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whose order it is: the scope of an idempotency key. Sent as the header `x-owner`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Anyone who is not signed in; they share one scope, so keys must be unguessable.
    Guest,
    /// A signed-in person.
    User(Uuid),
}

impl Owner {
    /// Reads the header's text; `None` when it is neither `guest` nor `user:<uuid>`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("user:") {
            Some(id) => id.parse().ok().map(Self::User),
            None => (text == "guest").then_some(Self::Guest),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guest => f.write_str("guest"),
            Self::User(id) => write!(f, "user:{id}"),
        }
    }
}

/// An order's id. It follows from whose order it is and its key ([`OrderId::derive`]), so everyone
/// on the way knows it before any answer, and it stays the same however often the order is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub Uuid);

impl OrderId {
    const NAMESPACE: Uuid = Uuid::from_u128(0x7761_7465_7274_5967_a874_6f72_6465_7273);

    /// The id of `owner`'s order with `key`.
    pub fn derive(owner: &Owner, key: &IdempotencyKey) -> Self {
        Self(Uuid::new_v5(&Self::NAMESPACE, format!("{owner}/{}", key.as_str()).as_bytes()))
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// The charge is being made.
    PaymentPending,
    /// The charge did not answer in time; it will be made, once.
    PaymentDeferred,
    /// Charged. An end.
    Paid,
    /// The bank said no; the stock is back. An end.
    Declined,
}

impl OrderState {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentPending => "payment_pending",
            Self::PaymentDeferred => "payment_deferred",
            Self::Paid => "paid",
            Self::Declined => "declined",
        }
    }

    /// Reads [`OrderState::as_str`] back.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::PaymentPending, Self::PaymentDeferred, Self::Paid, Self::Declined]
            .into_iter()
            .find(|state| state.as_str() == name)
    }

    /// Nothing changes it any more.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Paid | Self::Declined)
    }
}

/// An order as it stands now: the answer to placing and to asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// Where it stands.
    pub state: OrderState,
    /// What it costs.
    pub total: Money,
    /// Its lines.
    pub items: Vec<OrderItem>,
    /// When it was placed.
    pub placed_at: DateTime<Utc>,
    /// Every state it was in, oldest first.
    pub history: Vec<OrderEvent>,
}

/// One line of an [`Order`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderItem {
    /// Which product.
    pub product_id: String,
    /// What it was called when it was bought.
    pub name: String,
    /// How many.
    pub quantity: u32,
    /// The price of one piece when it was bought.
    pub unit_price: Money,
}

/// One step of an order's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderEvent {
    /// The state it came into.
    pub state: OrderState,
    /// When.
    pub at: DateTime<Utc>,
    /// Why, in words for the customer, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Draft {
    /// The order, well formed; lines of the same product are added up.
    ///
    /// # Errors
    /// Every refused field, not just the first.
    pub fn parse(&self) -> Result<PlaceOrder, Vec<FieldError>> {
        let mut faults = Vec::new();
        let items = self.parse_items(&mut faults);
        let name = self.name.trim();
        if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
            faults.push(FieldError::new("name", "must be 1 to 100 characters"));
        }
        let email = self.email.trim();
        if !looks_like_an_address(email) {
            faults.push(FieldError::new("email", "must be an e-mail address, such as name@example.com"));
        }
        let card = Card::new(self.card.trim());
        if card.is_none() {
            let known = Card::TEST_CARDS.join(", ");
            faults.push(FieldError::new("card", format!("must be one of the test cards {known}")));
        }
        let currency = self.currency.trim().parse::<Currency>();
        if let Err(unknown) = &currency {
            faults.push(FieldError::new("currency", unknown.to_string()));
        }
        match (card, currency) {
            (Some(card), Ok(currency)) if faults.is_empty() => Ok(PlaceOrder {
                items,
                name: name.to_owned(),
                email: email.to_owned(),
                card,
                currency,
                expected_total: self.expected_total,
            }),
            _ => Err(faults),
        }
    }

    fn parse_items(&self, faults: &mut Vec<FieldError>) -> Vec<(String, Quantity)> {
        if self.items.is_empty() || self.items.len() > MAX_LINES {
            faults.push(FieldError::new("items", format!("must hold 1 to {MAX_LINES} lines")));
            return Vec::new();
        }
        let rule = format!("must be 1 to {} pieces of one product", Quantity::MAX);
        let mut sums = BTreeMap::<&str, Quantity>::new();
        for (at, item) in self.items.iter().enumerate() {
            let id = item.product_id.as_str();
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
                faults.push(FieldError::new(format!("items[{at}].product_id"), "is not a product's id"));
                continue;
            }
            let before = sums.get(id).map_or(0, |quantity| i64::from(quantity.get()));
            match Quantity::new(item.quantity).and_then(|new| Quantity::new(before + i64::from(new.get()))) {
                Some(sum) => {
                    sums.insert(id, sum);
                }
                None => faults.push(FieldError::new(format!("items[{at}].quantity"), rule.as_str())),
            }
        }
        sums.into_iter().map(|(id, quantity)| (id.to_owned(), quantity)).collect()
    }
}

/// One `@` with something before it and a dotted name behind it. Whether mail arrives there, only
/// sending one tells.
fn looks_like_an_address(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>,;\"".contains(c);
    text.len() <= 254
        && !text.contains(odd)
        && text.split_once('@').is_some_and(|(who, host)| {
            !who.is_empty()
                && !host.contains('@')
                && host.split('.').count() >= 2
                && host.split('.').all(|label| !label.is_empty())
        })
}

#[cfg(test)]
mod tests;
