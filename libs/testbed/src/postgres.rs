//! A private Postgres: its own data, its own free loopback port, its own password, gone when dropped.
//!
//! Nothing is loosened for speed that a promise of the shop stands on: `fsync` and `synchronous_commit` are on,
//! so what was committed is there after a `kill -9`. Only `initdb` does not sync: it can be repeated.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use tempfile::TempDir;
use url::Url;

use crate::account::Account;
use crate::part::Part;
use crate::progress::Progress;
use crate::ready::Ready;
use crate::secret::{random_password, write_private};
use crate::spec::{Spec, Stop};
use crate::{database, folder, install, ports, programs, shared_memory};

/// The superuser of the private cluster.
const USER: &str = "postgres";
/// A first start takes 0.1 s, a recovery some tenths; a machine under load several times that.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// `initdb` takes half a second on a quiet machine.
const INITDB_WITHIN: Duration = Duration::from_secs(60);
/// The server programs, which have to be of one version.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// How to start a private Postgres. The default suits a test.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder to keep the data in, if the server's account can reach it; else the temporary folder.
    pub under: Option<PathBuf>,
    /// Where its log goes; `None`: beside the data.
    pub log: Option<PathBuf>,
    /// Where it tells what takes long. Standard error by default.
    pub progress: Progress,
}

/// A running private cluster. Dropping it ends the server and removes the data.
#[derive(Debug)]
pub struct Postgres {
    // The order is that of the end: the processes, then their files.
    part: Part,
    cluster: Cluster,
}

/// What is left of a cluster without its process: where it is, and how to get in.
#[derive(Debug)]
struct Cluster {
    folder: TempDir,
    address: SocketAddr,
    server: Url,
    psql: PathBuf,
}

impl Postgres {
    /// Makes a cluster, starts it and waits until it takes sessions.
    ///
    /// Installs Postgres first if it is missing, where that is possible (see [`install`]).
    ///
    /// # Errors
    /// When it cannot be had or does not start, with the end of its log.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let bin = programs_folder(&options.progress).await?;
        let account = Account::for_server(&["postgres"])?;
        let folder = folder::make("postgres", options.under.as_deref(), account.as_ref())?;
        let data = folder.path().join("data");
        let log = options.log.unwrap_or_else(|| folder.path().join("postgres.log"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));

        let password = random_password()?;
        init(&bin, &data, &folder, account.as_ref(), &password, &log).await?;

        let mut spec =
            server_account(Spec::new("postgres", bin.join("postgres"), log), account.as_ref(), &folder)
                .args([OsString::from("-D"), data.into()])
                .args(settings(address.port()))
                .ready(Ready::Postgres { address, user: USER.into() });
        spec.ready_within = READY_WITHIN;
        // SIGINT is its fast shutdown: sessions are ended, what is committed is written. SIGTERM would wait for
        // every client to leave.
        spec.stop = Stop { signal: Signal::SIGINT, within: Duration::from_secs(10) };
        let part = Part::new(spec);
        part.start().await?;

        let server = Url::parse(&format!("postgres://{USER}:{password}@{address}/"))?;
        let psql = psql_beside(&bin).context("Postgres is here, but its client psql is not")?;
        Ok(Self { part, cluster: Cluster { folder, address, server, psql } })
    }

    /// The server's process: to kill, pause, resume, and start again on the same port and data.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.cluster.address
    }

    /// Its address as the superuser, without a database.
    pub fn server(&self) -> &Url {
        &self.cluster.server
    }

    /// Where its data lies.
    pub fn folder(&self) -> &Path {
        self.cluster.folder.path()
    }

    /// The address of a database, whether it exists or not.
    ///
    /// # Errors
    /// When the name is not lower-case letters, digits and `_`.
    pub fn url(&self, name: &str) -> anyhow::Result<Url> {
        database::url_of(&self.cluster.server, name)
    }

    /// Creates a database, if it is not there, and returns its address.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub async fn create_database(&self, name: &str) -> anyhow::Result<Url> {
        database::create(&self.cluster.psql, &self.cluster.server, name).await
    }

    /// Runs one statement in a database and returns what it gave, a line for each row.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub async fn query(&self, database: &str, statement: &str) -> anyhow::Result<String> {
        database::run(&self.cluster.psql, &self.url(database)?, statement).await
    }
}

impl Drop for Cluster {
    /// Runs after the part's own drop: the processes are gone.
    fn drop(&mut self) {
        shared_memory::forget(&self.folder.path().join("data"));
    }
}

/// Removes what the cluster of an earlier, killed run has left in this folder and outside of it.
///
/// # Errors
/// When the folder cannot be removed.
pub fn remove_leftover(folder: &Path) -> std::io::Result<()> {
    shared_memory::forget(&folder.join("data"));
    std::fs::remove_dir_all(folder)
}

/// The program `psql`, installed first if it is missing and that is possible.
///
/// # Errors
/// When there is none to be had; says what to install.
pub async fn psql(progress: &Progress) -> anyhow::Result<PathBuf> {
    let find = || {
        programs::in_path("psql").or_else(|| {
            programs::folder_of(&["psql"], &programs::debian_postgres()).map(|bin| bin.join("psql"))
        })
    };
    install::find_or_install("psql", "postgresql-client", progress, find).await
}

async fn programs_folder(progress: &Progress) -> anyhow::Result<PathBuf> {
    let find = || programs::folder_of(&PROGRAMS, &programs::debian_postgres());
    install::find_or_install("Postgres", "postgresql", progress, find).await
}

fn psql_beside(bin: &Path) -> Option<PathBuf> {
    let beside = bin.join("psql");
    if beside.exists() { Some(beside) } else { programs::in_path("psql") }
}

/// What differs from the server's defaults. On the command line, so the files stay as `initdb` made them.
fn settings(port: u16) -> Vec<String> {
    [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        // No socket file: it would need a folder of its own, and nobody asks there.
        "unix_socket_directories=".to_owned(),
        // Four services with a pool each, a rolling restart, and room to look in.
        "max_connections=200".to_owned(),
        "fsync=on".to_owned(),
        "synchronous_commit=on".to_owned(),
        // In files, which go with the data; segments in /dev/shm would outlive a kill.
        "dynamic_shared_memory_type=mmap".to_owned(),
    ]
    .into_iter()
    .flat_map(|setting| ["-c".to_owned(), setting])
    .collect()
}

/// A server gets no variable of ours: `PGPORT`, `PGDATA` and their like would change what it does.
fn server_account(mut spec: Spec, account: Option<&Account>, folder: &TempDir) -> Spec {
    spec.own_environment = true;
    spec.dir = Some(folder.path().to_path_buf());
    spec.account = account.cloned();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    spec.env("PATH", path).env("HOME", folder.path()).env("LC_ALL", "C.UTF-8")
}

async fn init(
    bin: &Path,
    data: &Path,
    folder: &TempDir,
    account: Option<&Account>,
    password: &str,
    log: &Path,
) -> anyhow::Result<()> {
    let password_file = folder.path().join("password");
    write_private(&password_file, password, account)?;
    let spec = server_account(Spec::new("initdb", bin.join("initdb"), log), account, folder)
        .args([OsString::from("--pgdata"), data.into(), "--pwfile".into(), password_file.clone().into()])
        .args(["--username", USER, "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"])
        // The password crosses the loopback in the clear, which only root could listen to. SCRAM would cost
        // each new connection of a debug build tens of milliseconds of CPU, and drills are full of those.
        .args(["--auth-local", "scram-sha-256", "--auth-host", "password"]);
    let made = Part::run(spec, INITDB_WITHIN).await;
    std::fs::remove_file(&password_file).context("cannot remove the password file")?;
    made
}
