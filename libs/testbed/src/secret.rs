//! Passwords and the files that hold them. Other users of the machine can reach our loopback ports.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::Path;

use anyhow::anyhow;

use crate::account::Account;

/// 32 hexadecimal digits from the kernel.
pub(crate) fn random_password() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|fault| anyhow!("no random bytes: {fault}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A new file of one line that only the server's account can read.
pub(crate) fn write_private(path: &Path, text: &str, account: Option<&Account>) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")?;
    if let Some(account) = account {
        chown(path, Some(account.uid), Some(account.gid))?;
    }
    Ok(())
}
