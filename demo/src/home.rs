//! The folder of a shop: one shop, one folder.
//!
//! ```text
//! lock             held by whoever keeps the shop; the kernel lets go of it when that process ends
//! control.sock     the door for commands, ours alone
//! run/             of the present run, removed at its end
//!     logs/        what each part says, ours alone
//!     watertight-postgres-*/   its data
//!     watertight-rabbitmq-*/   its data
//! ```
//!
//! A keeper that was killed leaves its files. Its lock is free then, and the next start removes them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::unistd::geteuid;
use testbed::poll;

/// A path to a socket has to fit into the kernel's address, with a zero at its end.
const LONGEST_SOCKET_PATH: usize = 107;
/// The guards of a killed run need some milliseconds to end its parts.
const LEFTOVERS_WITHIN: Duration = Duration::from_secs(10);
/// Files for ourselves, in folders that the servers' account may pass through but not list.
const PASS_THROUGH: u32 = 0o711;
const PRIVATE: u32 = 0o700;

/// The folder of a shop, whether one runs there or not.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    path: PathBuf,
}

/// The folder of a shop, with its lock.
#[derive(Debug)]
pub(crate) struct Held {
    home: Home,
    // Closing it is what gives the lock back.
    _lock: File,
}

impl Home {
    /// The folder that was named, else the usual one of this user.
    pub(crate) fn new(named: Option<PathBuf>) -> anyhow::Result<Self> {
        let usual = || std::env::temp_dir().join(format!("watertight-{}", geteuid()));
        let path = named.unwrap_or_else(usual);
        let path = std::path::absolute(&path).with_context(|| format!("{} is no folder", path.display()))?;
        let home = Self { path };
        if home.socket().as_os_str().len() > LONGEST_SOCKET_PATH {
            bail!("{} is too long for a socket: give a shorter WATERTIGHT_HOME", home.path.display());
        }
        Ok(home)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The door for commands.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// Takes the lock; `None` when a shop runs here.
    pub(crate) fn hold(self) -> anyhow::Result<Option<Held>> {
        match DirBuilder::new().mode(PASS_THROUGH).create(&self.path) {
            Ok(()) => {}
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => self.check_ours()?,
            Err(fault) => return Err(fault).with_context(|| format!("cannot make {}", self.path.display())),
        }
        let path = self.path.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Held { home: self, _lock: lock })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(fault)) => Err(fault).context("cannot take the lock"),
        }
    }

    /// The usual folder is in a place where everyone may make one of that name first.
    fn check_ours(&self) -> anyhow::Result<()> {
        let found = fs::symlink_metadata(&self.path)?;
        let shown = self.path.display();
        if !found.is_dir() {
            bail!("{shown} is no folder");
        }
        if found.uid() != geteuid().as_raw() {
            bail!("{shown} belongs to another user: give a WATERTIGHT_HOME of your own");
        }
        if found.mode() & 0o022 != 0 {
            bail!("others may write in {shown}: `chmod go-w` it, or give another WATERTIGHT_HOME");
        }
        Ok(())
    }
}

impl Held {
    /// Removes what a killed run has left, and makes the folders of this one.
    pub(crate) async fn prepare(&self) -> anyhow::Result<bool> {
        let found = self.run().exists();
        let removed = || {
            let removed = self.remove_run();
            async move { removed }
        };
        poll::until("the files of an earlier run to go", LEFTOVERS_WITHIN, removed).await?;
        DirBuilder::new().mode(PASS_THROUGH).create(self.run())?;
        DirBuilder::new().mode(PRIVATE).create(self.logs())?;
        Ok(found)
    }

    /// The folder of this run.
    pub(crate) fn run(&self) -> PathBuf {
        self.home.path.join("run")
    }

    /// Where the parts' logs are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.run().join("logs")
    }

    /// The log of a part.
    pub(crate) fn log(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    /// Notes data that had to go elsewhere, because the server's account cannot reach this folder.
    pub(crate) fn note_elsewhere(&self, data: &Path) -> anyhow::Result<()> {
        if data.starts_with(self.run()) {
            return Ok(());
        }
        let name = data.file_name().context("data without a name")?;
        symlink(data, self.run().join(name)).with_context(|| format!("cannot note {}", data.display()))
    }

    /// Binds the door for commands. It is made where only we can get, and moved to its place when it is ours
    /// alone.
    pub(crate) fn bind(&self) -> anyhow::Result<tokio::net::UnixListener> {
        let hidden = self.logs().join("control.sock");
        let bind = || -> std::io::Result<_> {
            let listener = tokio::net::UnixListener::bind(&hidden)?;
            fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
            fs::rename(&hidden, self.home.socket())?;
            Ok(listener)
        };
        bind().with_context(|| format!("cannot open the door for commands in {}", self.home.path.display()))
    }

    /// Removes the files of this run.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        self.remove_run()
    }

    fn remove_run(&self) -> anyhow::Result<()> {
        remove(&self.home.socket(), |path| fs::remove_file(path))?;
        let run = self.run();
        for entry in fs::read_dir(&run).into_iter().flatten().flatten() {
            // A link leads to data that lies elsewhere.
            let data = || fs::canonicalize(entry.path()).unwrap_or_else(|_| entry.path());
            match entry.file_name().to_string_lossy() {
                name if name.starts_with("watertight-postgres-") => {
                    remove(&data(), testbed::postgres::remove_leftover)?;
                }
                name if name.starts_with("watertight-rabbitmq-") => {
                    remove(&data(), |path| fs::remove_dir_all(path))?;
                }
                _ => {}
            }
        }
        remove(&run, |path| fs::remove_dir_all(path))
    }
}

fn remove(path: &Path, how: impl FnOnce(&Path) -> std::io::Result<()>) -> anyhow::Result<()> {
    match how(path) {
        Err(fault) if fault.kind() != ErrorKind::NotFound => {
            Err(fault).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shop_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(Some(folder.path().join("home"))).unwrap();
        let held = home.clone().hold().unwrap().unwrap();
        assert!(home.clone().hold().unwrap().is_none());
        drop(held);
        assert!(home.hold().unwrap().is_some());
    }

    #[test]
    fn a_folder_that_others_may_write_in_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let home = Home::new(Some(folder.path().into())).unwrap();
        assert!(home.hold().unwrap_err().to_string().contains("others may write"));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Home::new(Some(file)).unwrap().hold().unwrap_err().to_string().contains("no folder"));
        assert!(Home::new(Some(folder.path().join("x".repeat(100)))).is_err());
    }

    #[tokio::test]
    async fn what_a_killed_run_left_goes_also_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("watertight-postgres-x");
        let home = Home::new(Some(folder.path().join("home"))).unwrap();
        let held = home.clone().hold().unwrap().unwrap();
        assert!(!held.prepare().await.unwrap(), "there was nothing yet");
        fs::create_dir(&elsewhere).unwrap();
        held.note_elsewhere(&elsewhere).unwrap();
        fs::write(held.log("payments"), "said").unwrap();
        drop(held);

        let held = home.hold().unwrap().unwrap();
        assert!(held.prepare().await.unwrap());
        assert!(!elsewhere.exists());
        assert!(held.logs().exists() && !held.log("payments").exists());
        held.clear().unwrap();
        assert!(!held.run().exists());
    }
}
