//! The settings that all services share, and how durations are written.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use resilience::{Fault, Faults};

/// Where a service listens, how much it takes on, and how it ends.
#[derive(Debug, Clone, Args)]
#[group(skip)] // the structs of all libraries are called Settings
#[command(next_help_heading = "Service")]
pub struct Settings {
    /// Where the service answers its neighbours or the public. Port 0 takes a free one.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Where it answers its keepers (`/live`, `/ready`, ..). Never published.
    #[arg(long, env = "ADMIN_LISTEN", default_value = "127.0.0.1:9090")]
    pub admin_listen: SocketAddr,

    /// How many requests are worked on at once; more wait, as long as their deadline lets them.
    #[arg(long, env = "MAX_IN_FLIGHT", default_value_t = 200)]
    pub max_in_flight: usize,

    /// How long a stop waits for what still runs. Longer than any request may take.
    #[arg(long, env = "DRAIN_TIMEOUT", default_value = "10s", value_parser = duration)]
    pub drain_timeout: Duration,

    /// Logs and traces.
    #[command(flatten)]
    pub telemetry: telemetry::Settings,
}

impl Settings {
    /// The faults of these settings for a service whose requests take up to `longest`.
    pub(crate) fn check(&self, longest: Duration) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !(1..=100_000).contains(&self.max_in_flight) {
            faults.push(Fault::new("MAX_IN_FLIGHT", self.max_in_flight, "must be 1 to 100000"));
        }
        if self.drain_timeout <= longest {
            let rule = format!("must be longer than the longest request, {longest:?}");
            faults.push(Fault::new("DRAIN_TIMEOUT", self.drain_timeout, rule));
        }
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            faults.push(Fault::new("ADMIN_LISTEN", self.admin_listen, "must differ from LISTEN"));
        }
        faults
    }
}

/// A service's own settings, checked together before anything starts.
pub trait Check {
    /// The longest that one request may take here: the deadline of a call that names none.
    fn longest_request(&self) -> Duration;

    /// Everything that is wrong with them.
    ///
    /// # Errors
    /// Every refused setting, by name.
    fn check(&self) -> Result<(), Faults>;
}

/// Reads a duration that says its unit, such as `250ms` or `2s`.
///
/// # Errors
/// For anything else; a bare number is refused, since nobody can tell what it means.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("say the unit, such as 250ms or 2s".into());
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_says_its_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        for bare in ["250", "0", "", "-1s", "2 parsecs"] {
            assert!(duration(bare).is_err(), "{bare}");
        }
    }
}
