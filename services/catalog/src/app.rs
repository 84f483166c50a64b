//! How the parts of the catalog are put together.

use chassis::{App, Inbound, database::Database};

use crate::{
    config::Config,
    http,
    store::{MIGRATIONS, Store},
};

pub(crate) fn build(config: Config) -> anyhow::Result<App> {
    let database = Database::new("catalog", &config.database, &MIGRATIONS)?;
    let routes = http::routes(Store::new(database.clone()));
    Ok(App::new(Inbound::service(config.request_timeout), routes).database(&database))
}
