//! The settings of payments.

use std::time::Duration;

use chassis::{database, settings};
use clap::Args;
use resilience::{Fault, Faults};

/// The longest lease: so long a charge lies still whose driver was killed.
const LONGEST_LEASE: Duration = Duration::from_secs(60);
/// The longest that a bank may be waited for.
const LONGEST_BANK: Duration = Duration::from_secs(300);

/// What payments can be told from outside.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Payments")]
pub struct Config {
    /// The longest that one request may take, and the deadline of a call that names none. A charge
    /// that is not decided by then goes on without its caller.
    #[arg(long, env = "REQUEST_TIMEOUT", default_value = "2s", value_parser = settings::duration)]
    pub request_timeout: Duration,

    /// How long the bank is waited for. Then the charge stays pending, and is driven again when its
    /// lease has expired.
    #[arg(long, env = "BANK_TIMEOUT", default_value = "10s", value_parser = settings::duration)]
    pub bank_timeout: Duration,

    /// How long the simulated bank takes for the card tok_slow.
    #[arg(long, env = "BANK_SLOW", default_value = "5s", value_parser = settings::duration)]
    pub bank_slow: Duration,

    /// How long a claim on a charge holds when it is not renewed. A driver renews it while it waits
    /// for the bank; after a crash the charge lies still for this long.
    #[arg(long, env = "CHARGE_LEASE", default_value = "3s", value_parser = settings::duration)]
    pub charge_lease: Duration,

    /// How many charges are driven at once for callers; more are refused.
    #[arg(long, env = "CHARGES_AT_ONCE", default_value_t = 200)]
    pub charges_at_once: usize,

    /// The database of the charges, the ledger, and the simulated bank.
    #[command(flatten)]
    pub database: database::Settings,
}

impl settings::Check for Config {
    fn longest_request(&self) -> Duration {
        self.request_timeout
    }

    fn check(&self) -> Result<(), Faults> {
        let mut faults = self.database.check();
        let mut rule = |holds: bool, name: &str, value: &dyn std::fmt::Debug, rule: &str| {
            if !holds {
                faults.push(Fault::new(name, value, rule));
            }
        };
        let unit = self.database.database_timeout;
        rule(
            self.request_timeout > unit,
            "REQUEST_TIMEOUT",
            &self.request_timeout,
            "must be more than DATABASE_TIMEOUT, or a hung database is never told from a hurried caller",
        );
        rule(
            !self.bank_timeout.is_zero() && self.bank_timeout <= LONGEST_BANK,
            "BANK_TIMEOUT",
            &self.bank_timeout,
            "must be more than 0 and at most 5 minutes",
        );
        rule(
            self.bank_slow < self.bank_timeout,
            "BANK_SLOW",
            &self.bank_slow,
            "must be less than BANK_TIMEOUT, or slow charges never end",
        );
        // It is renewed every third: a renewal, and the decision after it, have to fit in what is left.
        rule(
            self.charge_lease >= 2 * unit && self.charge_lease <= LONGEST_LEASE,
            "CHARGE_LEASE",
            &self.charge_lease,
            "must be at least twice DATABASE_TIMEOUT and at most 1 minute",
        );
        rule(
            (1..=10_000).contains(&self.charges_at_once),
            "CHARGES_AT_ONCE",
            &self.charges_at_once,
            "must be 1 to 10000",
        );
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

    fn config(args: &[&str]) -> Config {
        let all = ["payments", "--database-url", "postgres://localhost/payments"];
        Cli::try_parse_from(all.iter().chain(args)).expect("well formed").config
    }

    #[test]
    fn the_defaults_hold_together() {
        assert_eq!(config(&[]).check(), Ok(()));
    }

    #[test]
    fn each_refused_setting_is_named() {
        for (args, name) in [
            (["--request-timeout", "1500ms"], "REQUEST_TIMEOUT"),
            (["--bank-timeout", "301s"], "BANK_TIMEOUT"),
            (["--bank-timeout", "5s"], "BANK_SLOW"),
            (["--bank-slow", "10s"], "BANK_SLOW"),
            (["--charge-lease", "2999ms"], "CHARGE_LEASE"),
            (["--charge-lease", "61s"], "CHARGE_LEASE"),
            (["--charges-at-once", "0"], "CHARGES_AT_ONCE"),
            (["--database-acquire-timeout", "2s"], "DATABASE_ACQUIRE_TIMEOUT"),
        ] {
            let faults = config(&args).check().expect_err(name);
            assert_eq!(
                faults.0.iter().map(|fault| fault.name.as_str()).collect::<Vec<_>>(),
                [name],
                "{args:?}"
            );
        }
    }
}
