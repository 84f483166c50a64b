//! A private RabbitMQ: its own data, its own free loopback ports, its own user, gone when dropped.
//!
//! RabbitMQ is more than its server. Left to itself it starts a port mapper, `epmd`, as a daemon that belongs
//! to nobody and stays for ever; it listens on every address of the machine on two ports; and it reads the
//! settings of the machine's own broker. So here:
//!
//! - `epmd` is a part of its own: in the foreground, on loopback and a port of its own, and ended after the
//!   broker. Every program of the broker is told not to start another one (`-start_epmd false`).
//! - The broker's part is the virtual machine itself and not the start script, so that a signal reaches what
//!   it is meant for. The script replaces itself by the machine when it believes that systemd runs it; else it
//!   would stay and answer signals in its place.
//! - It gets no variable of ours, and all of its files are in its own folder.
//!
//! Nothing is loosened that a promise of the shop stands on: what a quorum queue has confirmed is in its log
//! on disk, and is there after a `kill -9`.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
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
use crate::{folder, install, ports, programs};

/// The one user of the private broker.
const USER: &str = "shop";
/// It starts in 4 to 6 s on a quiet machine, and drills run several of them at once.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// The server's start script, and the one that it reads: a wrapper of the same name stands alone.
const PROGRAMS: [&str; 2] = ["rabbitmq-server", "rabbitmq-env"];
/// Where Debian keeps them.
const DEBIAN: &str = "/usr/lib/rabbitmq/bin";

/// How to start a private RabbitMQ. The default suits a test.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder to keep the data in, if the server's account can reach it; else the temporary folder.
    pub under: Option<PathBuf>,
    /// Where its log goes; `None`: beside the data.
    pub log: Option<PathBuf>,
    /// Where it tells what takes long. Standard error by default.
    pub progress: Progress,
    /// More settings, a line each as `rabbitmq.conf` has them, such as `disk_free_limit.absolute = 10GB`.
    pub settings: Vec<String>,
}

/// A running private broker. Dropping it ends the broker and `epmd`, and removes the data.
#[derive(Debug)]
pub struct RabbitMq {
    // The order is that of the end: the processes, then their files.
    part: Part,
    epmd: Part,
    url: Url,
    address: SocketAddr,
    folder: TempDir,
}

impl RabbitMq {
    /// Makes a broker, starts it and waits until it takes connections.
    ///
    /// # Errors
    /// When it cannot be had or does not start, with the end of its log.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let rabbitmq = Self::prepare(options).await?;
        rabbitmq.part.start().await?;
        Ok(rabbitmq)
    }

    /// Makes a broker that is still to be started, by its [part](Self::part): its boot takes seconds, in which
    /// those who can live without it have better things to do than to wait.
    ///
    /// Installs RabbitMQ first if it is missing, where that is possible (see [`install`]).
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn prepare(options: Options) -> anyhow::Result<Self> {
        let (bin, epmd) = programs_of(&options.progress).await?;
        let account = Account::for_server(&["rabbitmq"])?;
        let folder = folder::make("rabbitmq", options.under.as_deref(), account.as_ref())?;
        let place = Place { folder: folder.path(), account: account.as_ref(), epmd_port: ports::free()? };
        let address = ports::free_address()?;
        let password = random_password()?;
        place.write_files(&password, &options.settings)?;
        let log = options.log.unwrap_or_else(|| folder.path().join("rabbitmq.log"));

        let epmd = Part::new(place.epmd(epmd));
        epmd.start().await?;
        let part = Part::new(place.broker(bin.join(PROGRAMS[0]), log, address)?);

        let url = Url::parse(&format!("amqp://{USER}:{password}@{address}/%2f"))?;
        Ok(Self { part, epmd, url, address, folder })
    }

    /// The broker's process: to kill, pause, resume, and start again on the same port and data.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The port mapper's process. Without it the broker runs on, but does not start again.
    pub fn epmd(&self) -> &Part {
        &self.epmd
    }

    /// Its address with user, password and virtual host: `amqp://user:password@127.0.0.1:port/%2f`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its data lies.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

async fn programs_of(progress: &Progress) -> anyhow::Result<(PathBuf, PathBuf)> {
    let find = || {
        let bin = programs::folder_of(&PROGRAMS, &[PathBuf::from(DEBIAN)])?;
        Some((bin, programs::in_path("epmd")?))
    };
    install::find_or_install("RabbitMQ", "rabbitmq-server", progress, find).await
}

/// Where a broker is made, and for whom.
#[derive(Clone, Copy)]
struct Place<'a> {
    folder: &'a Path,
    account: Option<&'a Account>,
    epmd_port: u16,
}

impl Place<'_> {
    /// The settings, the cookie and the empty files that keep the machine's own settings out.
    fn write_files(self, password: &str, more: &[String]) -> anyhow::Result<()> {
        let settings = format!(
            "default_user = {USER}\n\
             default_pass = {password}\n\
             log.console = true\n\
             log.console.level = info\n\
             log.file = false\n\
             {}",
            more.join("\n")
        );
        for (name, text) in [
            ("rabbitmq.conf", settings.as_str()),
            ("rabbitmq-env.conf", ""),
            ("enabled_plugins", "[]."),
            // Whoever knows it and reaches the distribution port can run anything in the broker.
            (".erlang.cookie", &random_password()?),
        ] {
            write_private(&self.folder.join(name), text, self.account)
                .with_context(|| format!("cannot write {name}"))?;
        }
        for name in ["data", "logs"] {
            let path = self.folder.join(name);
            fs::create_dir(&path)?;
            if let Some(account) = self.account {
                chown(&path, Some(account.uid), Some(account.gid))?;
            }
        }
        Ok(())
    }

    /// What both programs are run with.
    fn program(self, name: &str, program: PathBuf, log: PathBuf) -> Spec {
        let mut spec = Spec::new(name, program, log);
        spec.own_environment = true;
        spec.dir = Some(self.folder.to_path_buf());
        spec.account = self.account.cloned();
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        spec.env("PATH", path)
            .env("HOME", self.folder)
            .env("LC_ALL", "C.UTF-8")
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
    }

    fn epmd(self, program: PathBuf) -> Spec {
        let address = SocketAddr::from(([127, 0, 0, 1], self.epmd_port));
        self.program("epmd", program, self.folder.join("epmd.log")).ready(Ready::Epmd { address })
    }

    fn broker(self, program: PathBuf, log: PathBuf, address: SocketAddr) -> anyhow::Result<Spec> {
        let at = |name: &str| -> OsString { self.folder.join(name).into() };
        let mut spec = self
            .program("rabbitmq", program, log)
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("ERL_FLAGS", "-start_epmd false")
            // By its port, so that people can tell two of them apart in a list of processes.
            .env("RABBITMQ_NODENAME", format!("shop{}@localhost", address.port()))
            .env("RABBITMQ_NODE_IP_ADDRESS", address.ip().to_string())
            .env("RABBITMQ_NODE_PORT", address.port().to_string())
            .env("RABBITMQ_DIST_PORT", ports::free()?.to_string())
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("RABBITMQ_CONF_ENV_FILE", at("rabbitmq-env.conf"))
            .env("RABBITMQ_CONFIG_FILE", at("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", at("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", at("data"))
            .env("RABBITMQ_LOG_BASE", at("logs"))
            .env("RABBITMQ_LOGS", "-")
            .ready(Ready::Amqp { address });
        spec.ready_within = READY_WITHIN;
        spec.stop = Stop { signal: Signal::SIGTERM, within: Duration::from_secs(15) };
        Ok(spec)
    }
}
