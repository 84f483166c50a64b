//! Where the broker is, and how this process connects to it.

use std::fmt;

use lapin::uri::{AMQPScheme, AMQPUri};
use resilience::{Fault, Faults};

/// In seconds. A broker that is silent for twice this long is taken for gone: when it hangs its
/// connections stay open, and nothing else would ever tell.
const HEARTBEAT: u16 = 4;
/// Each carries one message at a time, in some 0.5 to 6 ms: this is a thousand messages a second and more.
const CHANNELS: usize = 8;

/// How one process connects to the broker.
#[derive(Clone)]
pub struct Settings {
    /// The address, with user and password.
    pub(crate) uri: AMQPUri,
    /// What the broker lists the connection as.
    pub(crate) name: &'static str,
    /// How many messages can be on their way to the broker at once.
    pub(crate) channels: usize,
}

impl Settings {
    /// The broker at `url`, such as `amqp://user:password@host:5672/%2f`, for the process called `name`.
    ///
    /// # Errors
    /// When the address is none, or asks for TLS, which this crate is built without. The password is not shown.
    pub fn new(name: &'static str, url: &str) -> Result<Self, Faults> {
        let refuse = |what: &str, rule: &str| Faults(vec![Fault::new("broker.url", what, rule)]);
        let mut uri: AMQPUri = url
            .parse()
            .map_err(|_| refuse("(not shown)", "must look like amqp://user:password@host:5672/%2f"))?;
        if uri.scheme != AMQPScheme::AMQP {
            return Err(refuse("amqps", "must be amqp: there is no TLS here"));
        }
        uri.query.heartbeat = Some(HEARTBEAT);
        Ok(Self { uri, name, channels: CHANNELS })
    }

    /// How many messages can be on their way to the broker at once. Default: 8.
    ///
    /// # Errors
    /// When that is 0, or more than a broker lets one connection have.
    pub fn channels(mut self, channels: usize) -> Result<Self, Faults> {
        if channels == 0 || channels > 256 {
            let rule = "must be at least 1 and at most 256";
            return Err(Faults(vec![Fault::new("broker.channels", channels, rule)]));
        }
        self.channels = channels;
        Ok(self)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without user and password.
        f.debug_struct("Settings")
            .field("host", &self.uri.authority.host)
            .field("port", &self.uri.authority.port)
            .field("name", &self.name)
            .field("channels", &self.channels)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_with_a_heartbeat_and_never_shown_with_its_password() {
        let settings = Settings::new("orders", "amqp://shop:secret@127.0.0.1:5999/%2f").unwrap();
        assert_eq!(settings.uri.query.heartbeat, Some(HEARTBEAT));
        assert_eq!(settings.uri.vhost, "/");
        let shown = format!("{settings:?}");
        assert!(shown.contains("5999") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_it() {
        for bad in ["", "rabbit", "http://shop:secret@host/", "amqps://shop:secret@host/"] {
            let said = Settings::new("orders", bad).unwrap_err().to_string();
            assert!(said.contains("broker.url") && !said.contains("secret"), "{said}");
        }
        let settings = Settings::new("orders", "amqp://localhost").unwrap();
        assert!(settings.clone().channels(0).is_err() && settings.channels(257).is_err());
    }
}
