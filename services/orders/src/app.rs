//! How the parts of orders are put together.

use chassis::{App, Inbound, database::Database};

use crate::{
    catalog::Catalog,
    charge_queue::{AT_ONCE, ChargeQueue},
    config::Config,
    deferred_charges::DeferredCharges,
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
    let for_worker = payments.for_worker(AT_ONCE.into())?;
    let queue = ChargeQueue::new(config.amqp_url.as_str(), &config.charge_queue)?;
    let policies = [*catalog.policy(), *payments.policy(), *for_worker.policy(), *queue.broker().policy()];

    let broker = queue.broker().clone();
    let relay = Relay::new(store.clone(), queue.clone());
    let deferred = DeferredCharges::new(store.clone(), Cashier::new(store.clone(), for_worker), queue);
    let counter = Counter::new(store.clone(), catalog, Cashier::new(store, payments));

    let app = App::new(Inbound::service(config.request_timeout), http::routes(counter))
        .database(&database)
        .worker("rabbitmq", move |stop| {
            let broker = broker.clone();
            async move { broker.run(stop).await }
        })
        .worker("relay", move |stop| relay.clone().run(stop))
        .worker("deferred-charges", move |stop| deferred.clone().run(stop));
    Ok(policies.iter().fold(app, App::policy))
}
