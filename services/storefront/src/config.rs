//! The settings of the storefront.

use std::time::Duration;

use chassis::settings::{Check, duration};
use clap::{ArgAction, Args};
use resilience::{Fault, Faults};
use url::Url;

/// What is kept of a request's time for the storefront's own answer: for putting the page together
/// and sending it, when a neighbour has used up everything else.
pub const OWN_ANSWER: Duration = Duration::from_millis(100);

/// Less than this is no time for an answer over the network, let alone for a second attempt.
const LEAST: Duration = Duration::from_millis(100);

/// The settings of the storefront.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Storefront")]
pub struct Config {
    /// The longest that a visitor is kept waiting; the time budget of a request begins here.
    #[arg(long, env = "EDGE_DEADLINE", default_value = "3000ms", value_parser = duration)]
    pub edge_deadline: Duration,

    /// Where the catalog service answers: `http://host:port`.
    #[arg(long, env = "CATALOG_URL")]
    pub catalog_url: Url,

    /// How long a page waits for the catalog, all attempts together, before it shows what is remembered.
    #[arg(long, env = "CATALOG_TIMEOUT", default_value = "800ms", value_parser = duration)]
    pub catalog_timeout: Duration,

    /// How long the list of products is taken for live before catalog is asked again. A change of a price is
    /// seen this much later; what is charged is agreed with orders in any case.
    #[arg(long, env = "CATALOG_FRESH", default_value = "1s", value_parser = duration)]
    pub catalog_fresh: Duration,

    /// Where the orders service answers: `http://host:port`.
    #[arg(long, env = "ORDERS_URL")]
    pub orders_url: Url,

    /// How long one attempt at orders may take. A second one is made if time is left. Longer than orders itself waits for payments.
    #[arg(long, env = "ORDERS_TIMEOUT", default_value = "2700ms", value_parser = duration)]
    pub orders_timeout: Duration,

    /// Whether the cart's cookie is sent over https only. `true` wherever the shop is not on a loopback
    /// address.
    #[arg(long, env = "COOKIE_SECURE", action = ArgAction::Set, default_value_t = false)]
    pub cookie_secure: bool,
}

impl Check for Config {
    fn longest_request(&self) -> Duration {
        self.edge_deadline
    }

    fn check(&self) -> Result<(), Faults> {
        let mut faults = Vec::new();
        for (name, url) in [("CATALOG_URL", &self.catalog_url), ("ORDERS_URL", &self.orders_url)] {
            if url.scheme() != "http" || !url.has_host() {
                faults.push(Fault::new(name, url.as_str(), "must be http://host:port"));
            }
        }
        let rule = format!(
            "must be at least 100 ms and end {} ms before EDGE_DEADLINE, {:?}",
            OWN_ANSWER.as_millis(),
            self.edge_deadline
        );
        for (name, timeout) in
            [("CATALOG_TIMEOUT", self.catalog_timeout), ("ORDERS_TIMEOUT", self.orders_timeout)]
        {
            if timeout < LEAST || timeout + OWN_ANSWER > self.edge_deadline {
                faults.push(Fault::new(name, timeout, rule.as_str()));
            }
        }
        if self.edge_deadline > Duration::from_secs(60) {
            let rule = "must be at most a minute: nobody waits longer for a page";
            faults.push(Fault::new("EDGE_DEADLINE", self.edge_deadline, rule));
        }
        Faults(faults).into_result()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Cli {
        #[command(flatten)]
        config: Config,
    }

    fn config(more: &[&str]) -> Config {
        let urls = ["storefront", "--catalog-url=http://127.0.0.1:1", "--orders-url=http://127.0.0.1:2"];
        Cli::try_parse_from(urls.iter().chain(more)).expect("well formed").config
    }

    #[test]
    fn the_defaults_fit_together() {
        let config = config(&[]);
        assert_eq!(config.check(), Ok(()));
        assert!(config.orders_timeout + OWN_ANSWER < config.edge_deadline, "time is left to show the page");
        assert!(!config.cookie_secure);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&["--orders-timeout=2901ms"], &["ORDERS_TIMEOUT"]),
            (&["--catalog-timeout=0ms"], &["CATALOG_TIMEOUT"]),
            (&["--edge-deadline=2s"], &["ORDERS_TIMEOUT"]),
            (&["--edge-deadline=2m"], &["EDGE_DEADLINE"]),
            (
                &["--catalog-url=https://catalog", "--orders-url=mailto:orders"],
                &["CATALOG_URL", "ORDERS_URL"],
            ),
        ];
        for (more, names) in cases {
            let faults = config(more).check().expect_err("refused");
            let named: Vec<_> = faults.0.iter().map(|fault| fault.name.as_str()).collect();
            assert_eq!(named, names, "{more:?}");
        }
    }
}
