//! The cart: what somebody chose, the key under which it will be ordered, and whether it is closed
//! because nobody knows yet what became of its order.
//!
//! It lives in a cookie, so it needs no store that could be gone, and it survives everything that
//! happens on this side. A cookie comes from outside: whatever is not well formed is an empty cart.
//!
//! ```text
//! open.<key>.<product>:<quantity>.<product>:<quantity>
//! ```

use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue, header::COOKIE};
use proto::{
    FieldError,
    order::{IdempotencyKey, MAX_LINES, OrderId, Owner, Quantity},
};
use uuid::Uuid;

/// The cookie's name.
const NAME: &str = "cart";
/// How long a browser keeps it: 30 days.
const KEPT_SECONDS: u32 = 30 * 24 * 3600;
const OPEN: &str = "open";
const FROZEN: &str = "frozen";

/// A visitor's cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cart {
    lines: Vec<(String, Quantity)>,
    key: IdempotencyKey,
    frozen: bool,
}

/// How a quantity changes what is in the cart already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// So many more.
    Add,
    /// So many, whatever was there; 0 takes the product out.
    Set,
}

impl Cart {
    /// An empty cart, with a key that nobody guesses.
    pub fn empty() -> Self {
        Self { lines: Vec::new(), key: new_key(), frozen: false }
    }

    /// The cart that came with a request.
    pub fn of(headers: &HeaderMap) -> Self {
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find(|(name, _)| *name == NAME)
            .and_then(|(_, value)| Self::parse(value))
            .unwrap_or_else(Self::empty)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let frozen = match parts.next()? {
            OPEN => false,
            FROZEN => true,
            _ => return None,
        };
        let key = IdempotencyKey::new(parts.next()?)?;
        let mut cart = Self { lines: Vec::new(), key, frozen };
        for line in parts {
            let (id, quantity) = line.split_once(':')?;
            let quantity = quantity.parse().ok()?;
            cart.change(id, Change::Add, quantity).ok()?;
        }
        Some(cart)
    }

    /// The `Set-Cookie` that keeps this cart; `secure` is whether browsers send it over https only.
    pub fn cookie(&self, secure: bool) -> HeaderValue {
        let mut text = format!("{NAME}=");
        let seconds = if self.lines.is_empty() {
            0
        } else {
            text.push_str(if self.frozen { FROZEN } else { OPEN });
            // Writing to a string cannot fail.
            let _ = write!(text, ".{}", self.key.as_str());
            for (id, quantity) in &self.lines {
                let _ = write!(text, ".{id}:{}", quantity.get());
            }
            KEPT_SECONDS
        };
        let secure = if secure { "; Secure" } else { "" };
        let _ = write!(text, "; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&text).expect("ids, keys and numbers are plain text")
    }

    /// What is in it.
    pub fn lines(&self) -> &[(String, Quantity)] {
        &self.lines
    }

    /// What is in it, as pages show it.
    pub fn items(&self) -> Vec<(String, u32)> {
        let item = |(id, quantity): &(String, Quantity)| (id.clone(), quantity.get());
        self.lines.iter().map(item).collect()
    }

    /// How many pieces.
    pub fn pieces(&self) -> u32 {
        self.lines.iter().map(|(_, quantity)| quantity.get()).sum()
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The key under which it is ordered.
    pub fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    /// The order that it becomes, or became.
    pub fn order(&self) -> OrderId {
        OrderId::derive(&Owner::Guest, &self.key)
    }

    /// Its order, when nobody knows whether that was placed. Until somebody does, it is closed.
    pub fn frozen(&self) -> Option<OrderId> {
        self.frozen.then(|| self.order())
    }

    /// Changes how many pieces of `product` are in it.
    ///
    /// # Errors
    /// The field that is not acceptable; then nothing has changed.
    pub fn change(&mut self, product: &str, change: Change, quantity: i64) -> Result<(), FieldError> {
        if !is_product_id(product) {
            return Err(FieldError::new("product_id", "is not a product's id"));
        }
        let at = self.lines.iter().position(|(id, _)| id == product);
        if let (0, Change::Set) = (quantity, change) {
            if let Some(at) = at {
                self.lines.remove(at);
            }
            return Ok(());
        }
        let before = match (change, at) {
            (Change::Add, Some(at)) => i64::from(self.lines[at].1.get()),
            (Change::Add, None) | (Change::Set, _) => 0,
        };
        let sum = Quantity::new(quantity).and_then(|more| Quantity::new(before + i64::from(more.get())));
        let rule = || format!("must be 1 to {} pieces of one product", Quantity::MAX);
        let sum = sum.ok_or_else(|| FieldError::new("quantity", rule()))?;
        match at {
            Some(at) => self.lines[at].1 = sum,
            None if self.lines.len() < MAX_LINES => self.lines.push((product.to_owned(), sum)),
            None => {
                let rule = format!("is one too many: a cart holds {MAX_LINES} different products");
                return Err(FieldError::new("product_id", rule));
            }
        }
        Ok(())
    }

    /// Closed, under the key that went out.
    #[must_use]
    pub fn freeze(self, key: IdempotencyKey) -> Self {
        Self { key, frozen: true, ..self }
    }

    /// Open again with the key `key`: nothing has been ordered under it.
    #[must_use]
    pub fn keep(self, key: IdempotencyKey) -> Self {
        Self { key, frozen: false, ..self }
    }

    /// Open, with a new key: the old one has had its answer.
    #[must_use]
    pub fn renew(self) -> Self {
        self.keep(new_key())
    }
}

/// Whether `text` is formed like a product's id; no other is asked for, or kept.
pub fn is_product_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

fn new_key() -> IdempotencyKey {
    IdempotencyKey::new(&Uuid::new_v4().simple().to_string()).expect("32 hex digits are a good key")
}

#[cfg(test)]
mod tests {
    use proto::order::{Draft, DraftItem};

    use super::*;

    const KEY: &str = "0123456789abcdef";

    fn sent(cookie: &str) -> Cart {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_str(cookie).expect("a header value"));
        Cart::of(&headers)
    }

    fn full() -> Cart {
        let mut cart = sent(&format!("cart=open.{KEY}"));
        for n in 0..MAX_LINES {
            let id = format!("{n:0>64}");
            cart.change(&id, Change::Set, 99).expect("there is room");
        }
        cart
    }

    #[test]
    fn a_cart_survives_its_cookie() {
        let mut cart = Cart::empty();
        cart.change("brass-compass", Change::Add, 2).expect("good");
        cart.change("rope", Change::Add, 1).expect("good");
        let key = IdempotencyKey::new(KEY).expect("good");
        for cart in [cart.clone(), cart.clone().freeze(key), cart.renew(), full()] {
            let set = cart.cookie(false);
            let set = set.to_str().expect("plain text");
            let (cookie, rules) = set.split_once("; ").expect("rules follow");
            assert_eq!(rules, "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax");
            assert!(set.len() <= 4096, "a browser keeps it: {}", set.len());
            assert_eq!(sent(&format!("session=x; {cookie}")), cart);
        }
    }

    #[test]
    fn an_empty_cart_takes_its_cookie_back() {
        let set = Cart::empty().cookie(true);
        assert_eq!(set, "cart=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure");
    }

    #[test]
    fn garbage_is_an_empty_cart() {
        for value in [
            "",
            "open",
            "open.short",
            "shut.0123456789abcdef.rope:1",
            "open.0123456789abcdef.rope",
            "open.0123456789abcdef.rope:0",
            "open.0123456789abcdef.rope:-1",
            "open.0123456789abcdef.rope:100",
            "open.0123456789abcdef.rope:99.rope:1",
            "open.0123456789abcdef.rope:99999999999999999999",
            "open.0123456789abcdef.Rope:1",
            "open.0123456789abcdef.:1",
            "open.0123456789abcdef.rope:1.",
            "open.0123456789abcdef.<script>:1",
        ] {
            let cart = sent(&format!("cart={value}"));
            assert!(cart.is_empty() && cart.frozen().is_none() && cart.key().as_str() != KEY, "{value}");
        }
        let lines: String = (0..=MAX_LINES).map(|n| format!(".p{n}:1")).collect();
        assert!(sent(&format!("cart=open.{KEY}{lines}")).is_empty());
    }

    #[test]
    fn adding_adds_up_and_setting_sets() {
        let mut cart = Cart::empty();
        cart.change("rope", Change::Add, 60).expect("good");
        cart.change("rope", Change::Add, 39).expect("good");
        assert_eq!(cart.pieces(), 99);
        let error = cart.change("rope", Change::Add, 1).expect_err("too many");
        assert_eq!((error.field.as_str(), cart.pieces()), ("quantity", 99));
        cart.change("rope", Change::Set, 2).expect("good");
        assert_eq!(cart.items(), [("rope".to_owned(), 2)]);
        cart.change("bell", Change::Set, 0).expect("not there already");
        cart.change("rope", Change::Set, 0).expect("good");
        assert!(cart.is_empty());
    }

    #[test]
    fn a_refused_change_names_its_field_and_changes_nothing() {
        let mut cart = full();
        let before = cart.clone();
        for (id, change, quantity, field) in [
            ("", Change::Set, 1, "product_id"),
            ("A", Change::Set, 1, "product_id"),
            ("one-more", Change::Set, 1, "product_id"),
            ("one-more", Change::Add, 0, "quantity"),
            ("one-more", Change::Set, -1, "quantity"),
            ("one-more", Change::Set, i64::MAX, "quantity"),
        ] {
            let error = cart.change(id, change, quantity).expect_err("refused");
            assert_eq!(error.field, field, "{id} {quantity}");
        }
        assert_eq!(cart, before);
    }

    #[test]
    fn ids_are_what_an_order_takes() {
        for id in ["", "rope", "r-2", "Rope", "rope.", "röpe", &"r".repeat(64), &"r".repeat(65)] {
            let item = DraftItem { product_id: id.to_owned(), quantity: 1 };
            let draft = Draft { items: vec![item], ..Draft::default() };
            let faults = draft.parse().expect_err("the rest is empty");
            let refused = faults.iter().any(|fault| fault.field == "items[0].product_id");
            assert_eq!(is_product_id(id), !refused, "{id}");
        }
    }
}
