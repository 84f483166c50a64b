//! The settings of the catalog.

use std::time::Duration;

use chassis::{database, settings};
use clap::Args;
use resilience::{Fault, Faults};

/// The catalog: what the shop sells, and for how much.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Catalog")]
pub struct Config {
    /// The longest that one request may take. Callers that have something else to show wait no
    /// longer than 800 ms.
    #[arg(long, env = "REQUEST_TIMEOUT", default_value = "800ms", value_parser = settings::duration)]
    pub request_timeout: Duration,

    /// The database of the products.
    #[command(flatten)]
    pub database: database::Settings,
}

impl settings::Check for Config {
    fn longest_request(&self) -> Duration {
        self.request_timeout
    }

    fn check(&self) -> Result<(), Faults> {
        let mut faults = self.database.check();
        if self.request_timeout <= self.database.database_acquire_timeout {
            let rule = "must be more than DATABASE_ACQUIRE_TIMEOUT, or no statement ever runs";
            faults.push(Fault::new("REQUEST_TIMEOUT", self.request_timeout, rule));
        }
        Faults(faults).into_result()
    }
}
