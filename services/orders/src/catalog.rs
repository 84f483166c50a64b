//! The catalog, over HTTP: what products cost now, or what they cost a while ago.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chassis::http::{Error, HttpNeighbour};
use moka::future::Cache;
use proto::{
    catalog::{Product, Products},
    money::Currency,
};
use resilience::{BreakerSettings, BulkheadSettings, CallContext, Op, Policy, Quality, Timeouts};
use tokio::time::Instant;
use url::Url;

use crate::order::Priced;

const LIST: Op = Op::idempotent("list_products");

/// Every product's name and price, by its id.
pub(crate) type Prices = Arc<HashMap<String, Priced>>;

/// The catalog service, and what it said last.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    neighbour: HttpNeighbour,
    /// One entry, the whole list: a product that was taken off it must not live on by itself.
    remembered: Cache<(), (Prices, Instant)>,
}

impl Catalog {
    /// How it is called.
    pub(crate) fn policy(&self) -> &Policy {
        self.neighbour.policy()
    }

    /// The catalog at `base`, given `attempt` for an answer; what it said is remembered for `kept`.
    pub(crate) fn new(base: Url, attempt: Duration, kept: Duration) -> anyhow::Result<Self> {
        let policy = chassis::policy("catalog", Timeouts::attempt(attempt))
            .breaker(BreakerSettings { consecutive_failures: Some(5), ..BreakerSettings::default() })
            .bulkhead(BulkheadSettings::default())
            .build()?;
        Ok(Self {
            neighbour: HttpNeighbour::new(base, policy)?,
            remembered: Cache::builder().max_capacity(1).time_to_live(kept).build(),
        })
    }

    /// The prices: live when the catalog answers, else the last ones, while they are not too old.
    pub(crate) async fn prices(&self, cx: &CallContext) -> Result<(Prices, Quality), Error> {
        match self.ask(cx).await {
            Ok(prices) => {
                self.remembered.insert((), (Arc::clone(&prices), Instant::now())).await;
                Ok((prices, Quality::Live))
            }
            Err(error) => match self.remembered.get(&()).await {
                Some((prices, at)) => Ok((prices, Quality::Stale { age: at.elapsed() })),
                None => Err(error),
            },
        }
    }

    async fn ask(&self, cx: &CallContext) -> Result<Prices, Error> {
        let reply = self.neighbour.get(cx, LIST, &["products"]).await?;
        if !reply.status.is_success() {
            return Err(self.neighbour.contract(&format!("it answered {}", reply.status)));
        }
        let Products { products } = self.neighbour.read(&reply)?;
        let bad = |product: &Product| product.price.minor <= 0 || product.price.currency != Currency::BASE;
        if let Some(Product { id, price, .. }) = products.iter().find(|product| bad(product)) {
            return Err(self.neighbour.contract(&format!("{id} is said to cost {price}")));
        }
        let priced = |product: Product| {
            let Product { id, name, price, .. } = product;
            (id, Priced { name, price })
        };
        Ok(Arc::new(products.into_iter().map(priced).collect()))
    }
}
