//! The catalog service, and what is remembered of it.
//!
//! Every answer is kept. When catalog gives none, the last one is shown, with its age: an old price
//! that says so is worth more than a page that fails, and orders checks the price anyway. What is
//! kept is the answer's bytes; they are read again only when they are needed.

use std::time::Duration;

use axum::body::Bytes;
use chassis::{
    http::{Error, HttpNeighbour},
    problem::chain,
};
use http::StatusCode;
use moka::future::Cache;
use proto::catalog::{Product, Products};
use resilience::{
    Answer, BreakerSettings, BulkheadSettings, CallContext, CallError, Op, Policy, RetrySettings, Timeouts,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::config::Config;

const LIST_PRODUCTS: Op = Op::idempotent("list_products");
const GET_PRODUCT: Op = Op::idempotent("get_product");
/// How often a call is made, at most.
const ATTEMPTS: u32 = 2;
/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Failures in a row that open the breaker. What is remembered is as good as a late answer, so it
/// opens soon.
const FAILURES: u32 = 5;
/// Products that are remembered one by one, at most.
const REMEMBERED: u64 = 1000;

/// The catalog service.
#[derive(Debug, Clone)]
pub struct Catalog {
    http: HttpNeighbour,
    limit: Duration,
    fresh: Duration,
    list: Cache<(), Remembered>,
    single: Cache<String, Remembered>,
}

/// An answer, and when it came.
#[derive(Debug, Clone)]
struct Remembered {
    body: Bytes,
    at: Instant,
}

impl Catalog {
    /// How it is called.
    pub fn policy(&self) -> &Policy {
        self.http.policy()
    }

    /// The catalog service as `config` says.
    ///
    /// # Errors
    /// When its settings are refused or no client can be made.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let retry = RetrySettings { attempts: ATTEMPTS, base: PAUSE, ..RetrySettings::default() };
        let breaker = BreakerSettings { consecutive_failures: Some(FAILURES), ..BreakerSettings::default() };
        let policy = chassis::policy("catalog", Timeouts::attempt(attempt_timeout(config)))
            .retry(retry)
            .breaker(breaker)
            .bulkhead(BulkheadSettings::default())
            .build()?;
        Ok(Self {
            http: HttpNeighbour::new(config.catalog_url.clone(), policy)?,
            limit: config.catalog_timeout,
            fresh: config.catalog_fresh,
            list: Cache::new(1),
            single: Cache::new(REMEMBERED),
        })
    }

    /// All products.
    pub async fn products(&self, cx: &CallContext) -> Answer<Vec<Product>> {
        if let Some(list) = self.fresh_list().await {
            return Answer::Live(list.products);
        }
        match self.ask::<Products>(cx, LIST_PRODUCTS, &["products"]).await {
            Ok(Some((products, remembered))) => {
                self.list.insert((), remembered).await;
                Answer::Live(products.products)
            }
            Ok(None) => {
                tracing::warn!("catalog says that it has no list of products");
                self.remembered_products().await
            }
            Err(error) => {
                told(&error);
                self.remembered_products().await
            }
        }
    }

    /// The product `id`. A live answer without one means that there is none; `id` is formed like an
    /// id.
    pub async fn product(&self, cx: &CallContext, id: &str) -> Answer<Option<Product>> {
        // One that is not on it may be new: that it does not exist, only catalog can say.
        if let Some(list) = self.fresh_list().await
            && let Some(product) = list.products.into_iter().find(|product| product.id == id)
        {
            return Answer::Live(Some(product));
        }
        match self.ask::<Product>(cx, GET_PRODUCT, &["products", id]).await {
            Ok(Some((product, remembered))) => {
                self.single.insert(id.to_owned(), remembered).await;
                Answer::Live(Some(product))
            }
            Ok(None) => {
                self.single.invalidate(id).await;
                Answer::Live(None)
            }
            Err(error) => {
                told(&error);
                self.remembered_product(id).await
            }
        }
    }

    /// Asks for `path`; `None` when catalog says that there is no such thing.
    async fn ask<T: DeserializeOwned>(
        &self,
        cx: &CallContext,
        op: Op,
        path: &[&str],
    ) -> Result<Option<(T, Remembered)>, Error> {
        let reply = self.http.get(&cx.within(self.limit), op, path).await?;
        match reply.status {
            StatusCode::OK => {
                let value = self.http.read(&reply)?;
                let at = Instant::now();
                Ok(Some((value, Remembered { body: reply.body, at })))
            }
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.http.contract(&format!("status {status}"))),
        }
    }

    /// The list, when it is so new that asking again would only be load: a thousand visitors in one second see
    /// one answer of catalog.
    async fn fresh_list(&self) -> Option<Products> {
        let list = self.list.get(&()).await.filter(|list| list.at.elapsed() < self.fresh)?;
        serde_json::from_slice(&list.body).ok()
    }

    async fn remembered_products(&self) -> Answer<Vec<Product>> {
        let list = self.list.get(&()).await;
        list.and_then(|list| list.read::<Products>())
            .map_or(Answer::Missing, |list| list.map(|list| list.products))
    }

    /// The newer of what is remembered of the product itself and of the list. A product that is not
    /// on the remembered list may be new: that it does not exist, only catalog can say.
    async fn remembered_product(&self, id: &str) -> Answer<Option<Product>> {
        let (single, list) = (self.single.get(id).await, self.list.get(&()).await);
        let single_at = single.as_ref().map(|single| single.at);
        if let Some(list) = list.filter(|list| single_at.is_none_or(|at| at < list.at))
            && let Some(Answer::Stale { value, age }) = list.read::<Products>()
            && let Some(product) = value.products.into_iter().find(|product| product.id == id)
        {
            let value = Some(product);
            return Answer::Stale { value, age };
        }
        single.and_then(|single| single.read::<Product>()).map_or(Answer::Missing, |single| single.map(Some))
    }
}

impl Remembered {
    fn read<T: DeserializeOwned>(&self) -> Option<Answer<T>> {
        // It was read once already, so it can be read.
        let value = serde_json::from_slice(&self.body).ok()?;
        let age = self.at.elapsed();
        Some(Answer::Stale { value, age })
    }
}

/// All attempts and the pauses between them fit into the time that a page waits.
fn attempt_timeout(config: &Config) -> Duration {
    config.catalog_timeout.saturating_sub(PAUSE) / ATTEMPTS
}

fn told(error: &Error) {
    let error_chain = chain(error);
    if let CallError::Refused { .. } = error {
        // Why the breaker opened was told when it did; that it is open is not news for each page.
        tracing::debug!(error = error_chain, "catalog was not asked; what is remembered is shown");
    } else {
        tracing::warn!(error = error_chain, "catalog gave no answer; what is remembered is shown");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_fit_into_the_time_that_a_page_waits() {
        let url = || "http://127.0.0.1:1".parse().expect("an address");
        let config = Config {
            edge_deadline: Duration::from_secs(3),
            catalog_url: url(),
            catalog_timeout: Duration::from_millis(800),
            orders_url: url(),
            catalog_fresh: Duration::ZERO,
            orders_timeout: Duration::from_millis(2700),
            cookie_secure: false,
        };
        let catalog = Catalog::new(&config).expect("good settings");
        let retry = RetrySettings { attempts: ATTEMPTS, base: PAUSE, ..RetrySettings::default() };
        let attempt = catalog.http.policy().timeouts().attempt;
        assert_eq!(attempt, Duration::from_millis(375));
        assert!(retry.longest_call(attempt) <= config.catalog_timeout);
    }
}
