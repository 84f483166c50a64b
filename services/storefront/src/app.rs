//! What the storefront is made of.

use chassis::{App, Inbound};

use crate::{
    catalog::Catalog,
    config::Config,
    http::{self, Shop},
    orders::Orders,
    refusal,
};

/// The service.
///
/// # Errors
/// When a setting is refused.
pub fn build(config: Config) -> anyhow::Result<App> {
    let shop = shop(&config)?;
    let (catalog, orders) = (*shop.catalog.policy(), *shop.orders.policy());
    Ok(App::new(inbound(&config), http::routes(shop)).policy(&catalog).policy(&orders))
}

/// How requests come in: from outside, so their time begins here, and their retries are made here.
pub fn inbound(config: &Config) -> Inbound {
    Inbound::edge("storefront", config.edge_deadline).refuse_with(refusal::refuse)
}

/// The doors, with neighbours of their own.
///
/// # Errors
/// When a setting is refused.
pub fn routes(config: &Config) -> anyhow::Result<axum::Router> {
    Ok(http::routes(shop(config)?))
}

fn shop(config: &Config) -> anyhow::Result<Shop> {
    Ok(Shop {
        catalog: Catalog::new(config)?,
        orders: Orders::new(config)?,
        cookie_secure: config.cookie_secure,
    })
}
