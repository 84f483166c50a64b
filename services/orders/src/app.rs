//! How the parts of orders are put together.

use chassis::{App, Inbound, database::Database};

use crate::{
    catalog::Catalog,
    config::Config,
    http,
    payments::Payments,
    place_order::Counter,
    relay::Relay,
    settle::Cashier,
    store::{MIGRATIONS, Store},
};

pub(crate) fn build(config: Config) -> anyhow::Result<App> {
    let database = Database::new("orders", &config.database, &MIGRATIONS)?;
    let store = Store::new(database.clone(), config.charge_due_after);
    let catalog = Catalog::new(config.catalog_url, config.catalog_timeout, config.prices_kept)?;
    let payments = Payments::new(config.payments_url.as_str(), config.payments_timeout)?;
    let cashier = Cashier::new(store.clone(), payments);
    let relay = Relay::new(store.clone(), cashier.clone());
    let counter = Counter::new(store, catalog, cashier);
    Ok(App::new(Inbound::service(config.request_timeout), http::routes(counter))
        .database(&database)
        .worker("relay", move |stop| relay.clone().run(stop)))
}
