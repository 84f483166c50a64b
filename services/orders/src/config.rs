//! The settings of orders.

use std::time::Duration;

use chassis::{database, settings};
use clap::Args;
use resilience::{Fault, Faults};
use url::Url;

/// Orders: takes what people order, owns the stock, and sees every intent to charge through.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Orders")]
pub struct Config {
    /// The longest that one request may take. The storefront has 3 s, and needs some for itself.
    #[arg(long, env = "REQUEST_TIMEOUT", default_value = "2700ms", value_parser = settings::duration)]
    pub request_timeout: Duration,

    /// Where the catalog is, such as `http://catalog:8080`.
    #[arg(long, env = "CATALOG_URL")]
    pub catalog_url: Url,

    /// How long the catalog is given for the prices. Remembered ones are used after that.
    #[arg(long, env = "CATALOG_TIMEOUT", default_value = "400ms", value_parser = settings::duration)]
    pub catalog_timeout: Duration,

    /// How old remembered prices may be.
    #[arg(long, env = "PRICES_KEPT", default_value = "15m", value_parser = settings::duration)]
    pub prices_kept: Duration,

    /// Where payments is, such as `http://payments:8080`.
    #[arg(long, env = "PAYMENTS_URL")]
    pub payments_url: Url,

    /// How long payments is given for one charge. The order is deferred after that.
    #[arg(long, env = "PAYMENTS_TIMEOUT", default_value = "2000ms", value_parser = settings::duration)]
    pub payments_timeout: Duration,

    /// Where RabbitMQ is: `amqp://user:password@host:5672/%2f`. It may be away, also at the start.
    #[arg(long, env = "AMQP_URL", hide_env_values = true)]
    pub amqp_url: Url,

    /// The queue of deferred charges. Another one for each shop on the same broker.
    #[arg(long, env = "CHARGE_QUEUE", default_value = "charges.deferred")]
    pub charge_queue: String,

    /// When a charge is due to the relay, counted from the order. Longer than any request: until
    /// then the request itself is charging.
    #[arg(long, env = "CHARGE_DUE_AFTER", default_value = "4s", value_parser = settings::duration)]
    pub charge_due_after: Duration,

    /// The database of orders and stock.
    #[command(flatten)]
    pub database: database::Settings,
}

impl settings::Check for Config {
    fn longest_request(&self) -> Duration {
        self.request_timeout
    }

    fn check(&self) -> Result<(), Faults> {
        let mut faults = self.database.check();
        let inside = "must be less than REQUEST_TIMEOUT, or the caller is gone before";
        for (name, value) in [
            ("CATALOG_TIMEOUT", self.catalog_timeout),
            ("PAYMENTS_TIMEOUT", self.payments_timeout),
            ("DATABASE_TIMEOUT", self.database.database_timeout),
        ] {
            if value >= self.request_timeout {
                faults.push(Fault::new(name, value, inside));
            }
        }
        if self.charge_due_after <= self.request_timeout {
            let rule = "must be more than REQUEST_TIMEOUT, or relay and request charge at the same time";
            faults.push(Fault::new("CHARGE_DUE_AFTER", self.charge_due_after, rule));
        }
        Faults(faults).into_result()
    }
}

#[cfg(test)]
mod tests {
    use chassis::settings::Check as _;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        config: Config,
    }

    fn config(more: &[&str]) -> Config {
        let needed = [
            "orders",
            "--database-url=postgres://localhost/orders",
            "--catalog-url=http://localhost:1",
            "--payments-url=http://localhost:2",
            "--amqp-url=amqp://localhost:3/%2f",
        ];
        Cli::try_parse_from(needed.iter().chain(more)).expect("it is read").config
    }

    #[test]
    fn the_defaults_fit_together() {
        assert_eq!(config(&[]).check(), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_named_all_at_once() {
        let odd = config(&["--request-timeout=5s", "--payments-timeout=6s", "--catalog-timeout=5s"]);
        let faults = odd.check().expect_err("it does not fit");
        let names: Vec<_> = faults.0.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(names, ["CATALOG_TIMEOUT", "PAYMENTS_TIMEOUT", "CHARGE_DUE_AFTER"]);
    }
}
