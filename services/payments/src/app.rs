//! How the parts of payments are put together.

use std::sync::Arc;

use chassis::{App, Inbound, database::Database};
use tokio::sync::Semaphore;

use crate::{
    bank::Bank,
    charge_once::Charges,
    config::Config,
    drive::Driver,
    grpc,
    store::{MIGRATIONS, Store},
    take_over::take_over,
};

pub(crate) fn build(config: Config) -> anyhow::Result<App> {
    let database = Database::new("payments", &config.database, &MIGRATIONS)?;
    let bank = Bank::new(database.clone(), config.bank_timeout, config.bank_slow)?;
    let bank_policy = *bank.policy();
    let store = Store::new(database.clone(), config.charge_lease);
    let driver = Driver::new(store.clone(), bank, config.charge_lease);
    let places = Arc::new(Semaphore::new(config.charges_at_once));
    let charges = Charges::new(store.clone(), driver.clone(), places);
    Ok(App::new(Inbound::service(config.request_timeout), grpc::routes(charges))
        .worker("take-over", move |stop| take_over(store.clone(), driver.clone(), stop))
        .database(&database)
        .policy(&bank_policy))
}
