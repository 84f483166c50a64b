//! Whom a server runs as.
//!
//! Postgres refuses to run as root, rightly: whoever breaks the server would have the machine. On a bare
//! machine or in a container we often are root, so there servers run as an unprivileged account.

use anyhow::Context as _;
use nix::unistd::{User, geteuid};

/// A user of this machine that a program is started as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

impl Account {
    /// The account for a server: `None` (as ourselves) unless we are root; then the first of these that
    /// exists, else `nobody`.
    ///
    /// # Errors
    /// When the list of users cannot be read, or holds none of them.
    pub fn for_server(preferred: &[&str]) -> anyhow::Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        for name in preferred.iter().chain(["nobody"].iter()) {
            if let Some(user) = User::from_name(name).context("cannot read the users of this machine")? {
                let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
                return Ok(Some(Self { name: user.name, uid, gid }));
            }
        }
        anyhow::bail!(
            "a server does not run as root, and this machine has none of the users {preferred:?}, nobody"
        )
    }
}
