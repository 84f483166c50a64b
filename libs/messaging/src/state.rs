//! How the broker is, as this process sees it.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

/// The state of the connection, to be watched.
#[derive(Clone, Debug)]
pub enum State {
    /// It stands: queues are declared, messages can be published.
    Connected,
    /// It stands, and the broker refuses messages for lack of memory or disk. Consumers go on.
    Blocked {
        /// Since when.
        since: Instant,
        /// What the broker says.
        reason: Arc<str>,
    },
    /// There is none. Another one is tried for every second.
    Down {
        /// Since when.
        since: Instant,
        /// What ended it, or why the last try failed.
        cause: Arc<str>,
    },
}

impl State {
    /// Messages can be published.
    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected"),
            Self::Blocked { since, reason } => {
                write!(f, "blocked for {} s ({reason})", since.elapsed().as_secs())
            }
            Self::Down { since, cause } => write!(f, "down for {} s ({cause})", since.elapsed().as_secs()),
        }
    }
}
