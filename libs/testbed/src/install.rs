//! A server program that is missing.
//!
//! On Debian and its kin, as root, it is installed with apt: said aloud, asking nothing, and without starting
//! the service that the distribution would run beside ours. For that there is a rule file, `policy-rc.d`, which
//! `install.sh` puts there for the time of the installation only. A rule file that outlived us would quietly
//! keep the machine's services from ever being started again; so it takes itself out of force when the
//! installing process is gone, however it ended.
//!
//! The installation has a process group of its own and is not under the guard: a package manager that is
//! killed half-way leaves a machine that needs repair. If we are ended meanwhile, it finishes by itself.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use nix::unistd::geteuid;
use tokio::process::Command;
use tokio::time::timeout;

use crate::progress::Progress;
use crate::{log, poll, programs};

const SCRIPT: &str = include_str!("install.sh");
/// A large package over a slow line.
const INSTALL_WITHIN: Duration = Duration::from_secs(15 * 60);
/// Keeps two of us from installing at the same time. Only root writes in this folder.
const LOCK: &str = "/run/watertight-install.lock";

/// Finds something; if it is not there, installs the package and looks again.
///
/// # Errors
/// When it is not there and cannot be installed. The error is one line that says what to do.
pub async fn find_or_install<T>(
    what: &str,
    package: &str,
    progress: &Progress,
    find: impl Fn() -> Option<T>,
) -> anyhow::Result<T> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let with_apt = programs::in_path("apt-get").is_some() && Path::new("/etc/debian_version").exists();
    if !with_apt {
        bail!("{what} is missing: install it with your package manager, or use `docker compose up`");
    }
    if !geteuid().is_root() {
        bail!("{what} is missing: `sudo apt-get install {package}`, or use `docker compose up`");
    }
    let lock = take_lock(progress).await?;
    // Whoever held the lock before may have installed it.
    if find().is_none() {
        progress
            .say(format!("{what} is missing: installing {package} with apt (its service is not started)"));
        apt(package).await.with_context(|| format!("apt could not install {package}"))?;
        progress.say(format!("{package} is installed"));
    }
    drop(lock);
    find().with_context(|| format!("{package} is installed, but {what} is not where it is looked for"))
}

async fn take_lock(progress: &Progress) -> anyhow::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(LOCK);
    let file = file.with_context(|| format!("cannot open {LOCK}"))?;
    if file.try_lock().is_err() {
        progress.say("another installation is under way, waiting for it");
        let taken = || {
            let taken = file.try_lock();
            async move { taken.map_err(|fault| anyhow!("{fault}")) }
        };
        poll::until("another installation to end", INSTALL_WITHIN, taken).await?;
    }
    Ok(file)
}

async fn apt(package: &str) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("watertight-apt-").tempdir()?;
    let path: PathBuf = folder.path().join("apt.log");
    let output = File::create(&path)?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "install", package])
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .process_group(0)
        .spawn()
        .context("cannot run /bin/sh")?;
    match timeout(INSTALL_WITHIN, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => bail!("{status}; the end of its output:\n{}", log::tail(&path, 8)),
        Ok(Err(fault)) => Err(fault).context("cannot wait for apt"),
        Err(_) => bail!("still at it after {INSTALL_WITHIN:?}; it goes on by itself"),
    }
}
