//! A folder for a server's data, where the server's account can reach it.
//!
//! Root's own temporary folder may be closed to others (`TMPDIR=/root/tmp`, a folder made with mode 0700):
//! a server that runs as another user then cannot even enter its own data.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use crate::account::Account;

/// Makes an empty folder of mode 0700 that belongs to the account, and goes when the value is dropped.
///
/// It lies in `under` if the account can get there, else in the machine's temporary folder.
pub(crate) fn make(name: &str, under: Option<&Path>, account: Option<&Account>) -> anyhow::Result<TempDir> {
    let usual = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let candidates = under.map(Path::to_path_buf).into_iter().chain(usual);
    for parent in candidates {
        if !reachable(&parent, account) {
            continue;
        }
        let folder = tempfile::Builder::new()
            .prefix(&format!("watertight-{name}-"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        if let Some(account) = account {
            chown(folder.path(), Some(account.uid), Some(account.gid))
                .with_context(|| format!("cannot give {} to {}", folder.path().display(), account.name))?;
        }
        return Ok(folder);
    }
    bail!("found no folder that {name} can reach; tried the temporary folder, /tmp and /var/tmp")
}

/// Whether the account may pass through this folder and all above it. As ourselves: it has to exist.
fn reachable(folder: &Path, account: Option<&Account>) -> bool {
    let Ok(real) = fs::canonicalize(folder) else {
        return false;
    };
    let Some(account) = account else { return true };
    real.ancestors().all(|step| match fs::metadata(step) {
        Err(_) => false,
        Ok(found) => {
            let mode = found.mode();
            let by_owner = found.uid() == account.uid && mode & 0o100 != 0;
            let by_group = found.gid() == account.gid && mode & 0o010 != 0;
            by_owner || by_group || mode & 0o001 != 0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_folder_is_passed_by() {
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = Account { name: "nobody".into(), uid: 65_534, gid: 65_534 };
        assert!(!reachable(closed.path(), Some(&stranger)));
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(reachable(closed.path(), Some(&stranger)));
        assert!(!reachable(&closed.path().join("absent"), None));
    }

    #[test]
    fn the_folder_is_private_and_goes_with_its_value() {
        let under = tempfile::tempdir().unwrap();
        let folder = make("test", Some(under.path()), None).unwrap();
        let path = folder.path().to_path_buf();
        assert!(path.starts_with(under.path()));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }
}
