//! Placing an order: one purchase from the form to the charge.
//!
//! Up to the commit, a failure means that nothing was ordered. From the commit on the order stands,
//! and every answer says so: it is paid, declined, or its payment will be taken.

use std::time::Duration;

use chassis::{database, http, problem::chain};
use proto::{
    money::{Currency, Money},
    order::{IdempotencyKey, Order, OrderEvent, OrderId, OrderState, Owner, PlaceOrder},
};
use resilience::{CallContext, Quality};
use telemetry::propagation::traceparent;
use tokio::time::{Instant, sleep};

use crate::{
    catalog::{Catalog, Prices},
    fingerprint::Fingerprint,
    order::{self, Buyer, NewOrder},
    settle::{Cashier, Charged},
    store::{Due, Kept, Placing, Store},
};

/// The first pause between two looks at an order that another request is charging; it doubles up to
/// [`LONGEST_LOOK`].
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// The longest such pause: the answer comes at most this much late.
const LONGEST_LOOK: Duration = Duration::from_millis(160);
/// What is kept of the time for looking at an order that another request is charging.
const FOR_LOOKING: Duration = Duration::from_millis(100);

/// Where orders are placed.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    store: Store,
    catalog: Catalog,
    cashier: Cashier,
}

/// An order that stands.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) order: Order,
    /// It was placed by an earlier request with the same key.
    pub(crate) replayed: bool,
}

/// Why there is no order.
#[derive(Debug)]
pub(crate) enum NotPlaced {
    /// The key belongs to an order with other content.
    KeyReused,
    /// The order cannot be paid in this currency.
    CurrencyUnavailable(Currency),
    /// There are no such products.
    UnknownProducts(Vec<String>),
    /// The order costs this much, which is not what the customer was shown.
    PriceChanged(Money),
    /// The order costs more than can be counted.
    TooMuch,
    /// There are too few pieces of these products.
    OutOfStock(Vec<String>),
    /// The catalog gives no prices, and none are remembered.
    NoPrices(http::Error),
    /// The database could not be read; nothing was done.
    NotRead(database::Error),
    /// The database could not be written; the error says whether it may have been.
    NotWritten(database::Error),
}

impl Counter {
    pub(crate) fn new(store: Store, catalog: Catalog, cashier: Cashier) -> Self {
        Self { store, catalog, cashier }
    }

    /// Places `wanted` for `owner` under `key`, once, and charges it.
    pub(crate) async fn place(
        &self,
        cx: &CallContext,
        owner: Owner,
        key: &IdempotencyKey,
        wanted: PlaceOrder,
    ) -> Result<Placed, NotPlaced> {
        let id = OrderId::derive(&owner, key);
        let fingerprint = Fingerprint::of(&wanted);
        if let Some(first) = self.store.find(cx, id).await.map_err(NotPlaced::NotRead)? {
            return self.replay(cx, first, &fingerprint).await;
        }

        let order = self.price(cx, id, owner, fingerprint, wanted).await?;
        let (due, fingerprint) = (due(&order), order.fingerprint.clone());
        let items = order.items.clone();
        let placing = self.store.place(cx, order, due.traceparent.clone()).await;
        let placed_at = match placing.map_err(NotPlaced::NotWritten)? {
            Placing::Placed(at) => at,
            Placing::Exists(first) => return self.replay(cx, *first, &fingerprint).await,
            Placing::OutOfStock(products) => return Err(NotPlaced::OutOfStock(products)),
        };

        let (state, total) = (OrderState::PaymentPending, due.total);
        let history = vec![OrderEvent { state, at: placed_at, reason: None }];
        let order = Order { id, state, total, items, placed_at, history };
        Ok(Placed { order: self.charge(cx, order, &due).await, replayed: false })
    }

    /// The order called `id`, as it stands.
    pub(crate) async fn find(&self, cx: &CallContext, id: OrderId) -> Result<Option<Order>, database::Error> {
        Ok(self.store.find(cx, id).await?.map(|kept| kept.order))
    }

    /// Puts today's prices to what is wanted.
    async fn price(
        &self,
        cx: &CallContext,
        id: OrderId,
        owner: Owner,
        fingerprint: Fingerprint,
        wanted: PlaceOrder,
    ) -> Result<NewOrder, NotPlaced> {
        // Prices are kept in the base currency, and no rates are known here yet.
        if wanted.currency != Currency::BASE {
            return Err(NotPlaced::CurrencyUnavailable(wanted.currency));
        }
        let prices = self.prices(cx).await?;
        let items =
            order::lines(&wanted.items, |product| prices.get(product)).map_err(NotPlaced::UnknownProducts)?;
        let total = order::total(&items).ok_or(NotPlaced::TooMuch)?;
        if wanted.expected_total.is_some_and(|expected| expected != total) {
            return Err(NotPlaced::PriceChanged(total));
        }
        let buyer = Buyer { name: wanted.name, email: wanted.email };
        Ok(NewOrder { id, owner, fingerprint, items, total, buyer, card: wanted.card })
    }

    /// The prices, remembered ones if it must be: a price of some minutes ago is the shop's word,
    /// too, and half of the time is kept for the rest of the order.
    async fn prices(&self, cx: &CallContext) -> Result<Prices, NotPlaced> {
        let asking = cx.reserve(cx.deadline().remaining() / 2);
        let (prices, quality) = self.catalog.prices(&asking).await.map_err(NotPlaced::NoPrices)?;
        if let Quality::Stale { age } = quality {
            tracing::info!(age_s = age.as_secs(), "remembered prices are used");
        }
        Ok(prices)
    }

    /// Charges `order` in the time that is left. Whatever fails from here on, the order stands.
    async fn charge(&self, cx: &CallContext, mut order: Order, due: &Due) -> Order {
        let step = match self.cashier.charge(cx, due).await {
            Ok(Charged::Settled(Some(step))) => Ok(Some(step)),
            // The worker was quicker.
            Ok(Charged::Settled(None)) => return self.look_again(cx, order).await,
            Ok(Charged::NoAnswer | Charged::NotAsked) => self.store.defer(cx, due.id).await,
            Err(error) => Err(error),
        };
        match step {
            Ok(Some(step)) => {
                order.state = step.state;
                order.history.push(step);
                order
            }
            Ok(None) => self.look_again(cx, order).await,
            // The intent is due by itself.
            Err(error) => {
                tracing::warn!(error = %chain(&error), "what came of a charge is not written yet");
                order
            }
        }
    }

    /// Answers a repeat of `first` with how it stands now. While its own request is charging it, the
    /// repeat waits for the outcome as long as it can.
    async fn replay(
        &self,
        cx: &CallContext,
        first: Kept,
        fingerprint: &Fingerprint,
    ) -> Result<Placed, NotPlaced> {
        if first.fingerprint != *fingerprint {
            return Err(NotPlaced::KeyReused);
        }
        let Kept { mut order, fresh, .. } = first;
        let until = cx.deadline().reserve(FOR_LOOKING).instant();
        let mut pause = FIRST_LOOK;
        while fresh && order.state == OrderState::PaymentPending && Instant::now() + pause < until {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_LOOK);
            order = self.look_again(cx, order).await;
        }
        Ok(Placed { order, replayed: true })
    }

    /// `order` as it stands now, or as it stood when it cannot be read.
    async fn look_again(&self, cx: &CallContext, order: Order) -> Order {
        match self.store.find(cx, order.id).await {
            Ok(Some(kept)) => kept.order,
            Ok(None) => order,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "an order cannot be read again");
                order
            }
        }
    }
}

/// The charge that goes with `order`.
fn due(order: &NewOrder) -> Due {
    Due {
        id: order.id,
        total: order.total,
        card: order.card.clone(),
        attempts: 0,
        traceparent: traceparent(),
    }
}
