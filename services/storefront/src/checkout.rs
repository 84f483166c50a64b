//! Ordering what is in the cart: what a sent checkout form comes to, and what becomes of the cart.
//!
//! The rule behind every line: the key in the form names the purchase. As long as it is possible
//! that an order exists under it, the same key is sent again and never another; as soon as it has
//! had a final no, the next try gets a new one.

use chassis::problem::chain;
use proto::{
    FieldError,
    money::Money,
    order::{Draft, DraftItem, IdempotencyKey, OrderId, OrderState, Owner},
};
use resilience::{CallContext, Classify as _, Outcome, Quality};

use crate::{
    cart::Cart,
    forms::CheckoutForm,
    orders::{Orders, Placed},
    pages::Trouble,
};

/// What a sent form came to.
#[derive(Debug)]
pub(crate) enum Sent {
    /// There is an order; its page tells the rest. `payment` is deferred when it is made later.
    Order { id: OrderId, payment: Quality },
    /// Nothing was sent: what became of an earlier try has to be known first.
    Frozen(OrderId),
    /// Nothing is in the cart.
    Nothing,
    /// Some fields have to be filled in again.
    Refused(Vec<FieldError>),
    /// There is no order, for a reason to be told.
    NotPlaced(Trouble),
    /// Nobody knows whether there is an order.
    Unknown(OrderId),
}

/// Orders what is in `cart` as `form` says. The cart that comes back is the visitor's from now on.
pub(crate) async fn send(orders: &Orders, cx: &CallContext, cart: Cart, form: &CheckoutForm) -> (Cart, Sent) {
    if let Some(id) = cart.frozen() {
        return (cart, Sent::Frozen(id));
    }
    let key = IdempotencyKey::new(&form.key);
    if cart.is_empty() {
        return (cart, sent_before(orders, cx, key).await);
    }
    let (key, draft) = match parse(&cart, key, form) {
        Ok(good) => good,
        Err(faults) => return (cart, Sent::Refused(faults)),
    };
    let id = OrderId::derive(&Owner::Guest, &key);
    let said = match orders.place(cx, &Owner::Guest, &key, &draft).await {
        Ok(said) => said,
        Err(error) => {
            let outcome = error.class().outcome;
            tracing::warn!(%outcome, error = %chain(&error), "orders gave no answer to an order");
            return match outcome {
                Outcome::NotExecuted => (cart.keep(key), Sent::NotPlaced(Trouble::Unavailable)),
                Outcome::Unknown | Outcome::Rejected => (cart.freeze(key), Sent::Unknown(id)),
            };
        }
    };
    match said.placed {
        Placed::Accepted { order, .. } => {
            let payment = payment(order.state);
            (Cart::empty(), Sent::Order { id: order.id, payment })
        }
        Placed::Declined => (cart.renew(), Sent::NotPlaced(Trouble::Declined)),
        Placed::OutOfStock => (cart.renew(), Sent::NotPlaced(Trouble::OutOfStock)),
        Placed::PriceChanged => (cart.renew(), Sent::NotPlaced(Trouble::PriceChanged)),
        Placed::CurrencyUnavailable => (cart.renew(), Sent::NotPlaced(Trouble::CurrencyUnavailable)),
        Placed::KeyReused => (cart.renew(), Sent::NotPlaced(Trouble::KeyUsed)),
        Placed::Invalid(faults) => (cart.keep(key), Sent::Refused(faults)),
    }
}

/// What the state of an order says about its payment.
pub(crate) fn payment(state: OrderState) -> Quality {
    match state {
        OrderState::PaymentDeferred => Quality::Deferred,
        OrderState::PaymentPending | OrderState::Paid | OrderState::Declined => Quality::Live,
    }
}

/// The form of an order that was placed already, sent again from a page that was kept: the same
/// order.
async fn sent_before(orders: &Orders, cx: &CallContext, key: Option<IdempotencyKey>) -> Sent {
    let Some(key) = key else { return Sent::Nothing };
    let id = OrderId::derive(&Owner::Guest, &key);
    match orders.get(cx, id).await {
        Ok(Some(order)) => Sent::Order { id, payment: payment(order.state) },
        Ok(None) => Sent::Nothing,
        Err(error) => {
            tracing::warn!(error = %chain(&error), "orders gave no answer about an order");
            Sent::Unknown(id)
        }
    }
}

/// The order that the form makes of the cart, checked here too, so that bad fields are told also
/// when orders cannot tell anything.
fn parse(
    cart: &Cart,
    key: Option<IdempotencyKey>,
    form: &CheckoutForm,
) -> Result<(IdempotencyKey, Draft), Vec<FieldError>> {
    let item = |(product_id, quantity): (String, u32)| DraftItem { product_id, quantity: quantity.into() };
    let mut draft = Draft {
        items: cart.items().into_iter().map(item).collect(),
        name: form.name.clone(),
        email: form.email.clone(),
        card: form.card.clone(),
        currency: form.currency.clone(),
        expected_total: None,
    };
    let mut faults = draft.parse().err().unwrap_or_default();
    if !form.expected_total.is_empty() {
        match (form.expected_total.parse(), form.currency.trim().parse()) {
            (Ok(minor), Ok(currency)) => draft.expected_total = Some(Money::new(minor, currency)),
            (Err(_), _) => faults.push(FieldError::new("expected_total", "must be whole minor units")),
            // That the currency is none is among the faults already.
            (Ok(_), Err(_)) => {}
        }
    }
    match key {
        Some(key) if faults.is_empty() => Ok((key, draft)),
        Some(_) => Err(faults),
        None => {
            faults.push(FieldError::new("key", IdempotencyKey::RULE));
            Err(faults)
        }
    }
}
