//! A whole shop for one test: started by the real program in a folder of its own, ended when dropped.
//!
//! ```ignore
//! #[allow(dead_code, reason = "each test program takes what it needs")]
//! mod shop;
//! let shop = shop::Shop::up().await;
//! let answer = reqwest_client.get(shop.url("/api/v1/products")).send().await?;
//! shop.cli(["kill", "payments"]);
//! let orders = shop.database("orders");
//! ```

pub(crate) mod books;
pub(crate) mod customer;
pub(crate) mod hops;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;
use testbed::{Part, Spec, poll};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_watertight");
/// A start takes some seconds, on a busy machine several times that, and with an installation before it minutes.
const UP_WITHIN: Duration = Duration::from_secs(300);

/// A shop that runs.
#[derive(Debug)]
pub(crate) struct Shop {
    // The order is that of the end: the processes, then their folder.
    part: Part,
    home: TempDir,
    storefront: String,
}

/// What `status --json` says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    /// Where the pages are, such as `http://127.0.0.1:8080`.
    pub(crate) storefront: String,
    /// Where the console is.
    pub(crate) console: Option<String>,
    /// Every part.
    pub(crate) parts: Vec<PartStatus>,
}

/// One part in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartStatus {
    /// What the commands call it.
    pub(crate) name: String,
    /// Its process, unless it is stopped.
    pub(crate) pid: Option<i32>,
    /// `running`, `stopped` or `paused`.
    pub(crate) state: String,
    /// `host:port` where it serves.
    pub(crate) public: Option<String>,
    /// `host:port` where it tells how it is.
    pub(crate) admin: Option<String>,
}

/// What a command said and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// What it printed, standard error after standard output.
    pub(crate) text: String,
}

impl Shop {
    /// Starts a shop and waits until it is open.
    pub(crate) async fn up() -> Self {
        Self::up_with(&[]).await
    }

    /// The same, with variables for the program and so for its services, such as `("BANK_SLOW", "1s")`.
    pub(crate) async fn up_with(env: &[(&str, &str)]) -> Self {
        let home = home();
        let part = Part::new(spec(home.path(), env));
        part.start().await.expect("the program");
        let storefront = opened(&part, home.path()).await;
        let shop = Self { part, home, storefront };
        // The shop opens before RabbitMQ has booted; a drill wants all of it there first.
        poll::until_true("rabbitmq to be ready", UP_WITHIN, || shop.log().contains("rabbitmq is ready"))
            .await
            .unwrap_or_else(|fault| panic!("{fault:#}"));
        shop
    }

    /// An address of the shop, such as `shop.url("/cart")`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.storefront)
    }

    /// Runs a command in this shop, such as `shop.cli(["kill", "payments"])`, and wants it to go well.
    #[track_caller]
    pub(crate) fn cli<const N: usize>(&self, args: [&str; N]) -> String {
        let said = self.try_cli(args);
        assert_eq!(said.code, Some(0), "{args:?} failed: {}", said.text);
        said.text
    }

    /// Runs a command in this shop.
    pub(crate) fn try_cli<const N: usize>(&self, args: [&str; N]) -> Said {
        run(self.home.path(), &args)
    }

    /// How everything is.
    #[track_caller]
    pub(crate) fn status(&self) -> Status {
        serde_json::from_str(&self.cli(["status", "--json"])).expect("the fixed form of status --json")
    }

    /// How one part is.
    #[track_caller]
    pub(crate) fn part(&self, name: &str) -> PartStatus {
        let parts = self.status().parts;
        parts.into_iter().find(|part| part.name == name).unwrap_or_else(|| panic!("no part {name}"))
    }

    /// The address of a part's public port, `http://host:port`.
    #[track_caller]
    pub(crate) fn public(&self, name: &str) -> String {
        format!("http://{}", self.part(name).public.expect("a public address"))
    }

    /// An address on a part's admin port, such as `shop.admin("payments", "/ready")`.
    #[track_caller]
    pub(crate) fn admin(&self, name: &str, path: &str) -> String {
        format!("http://{}{path}", self.part(name).admin.expect("an admin address"))
    }

    /// The address of a service's database, with its password.
    #[track_caller]
    pub(crate) fn database(&self, name: &str) -> String {
        self.cli(["database", name]).trim().to_owned()
    }

    /// The process that keeps the shop.
    pub(crate) fn keeper(&self) -> &Part {
        &self.part
    }

    /// The folder of the shop.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts a shop again in the same folder, after its keeper has ended or was killed.
    pub(crate) async fn up_again(&mut self) {
        self.part.start().await.expect("the program once more");
        self.storefront = opened(&self.part, self.home.path()).await;
    }

    /// What the program has said so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.part.spec().log).expect("its log")
    }
}

impl Drop for Shop {
    /// In order, so that Postgres gives back all that it holds; the guard ends what is left after that.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the shop said:\n{}", testbed::tail(&self.part.spec().log, 60));
            // Gone with the folder in a moment.
            for log in std::fs::read_dir(self.home.path().join("run/logs")).into_iter().flatten().flatten() {
                eprintln!("{}:\n{}", log.path().display(), testbed::tail(&log.path(), 15));
            }
        }
        if self.part.pid().is_some() {
            let said = run(self.home.path(), &["down"]);
            if said.code != Some(0) {
                eprintln!("the shop did not end in order: {}", said.text);
            }
        }
    }
}

/// A folder that the server's account can pass through, so that the data lies in it and goes with it.
fn home() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let open = std::fs::Permissions::from_mode(0o711);
    tempfile::Builder::new().prefix("watertight-test-").permissions(open).tempdir().expect("a folder")
}

fn spec(home: &Path, env: &[(&str, &str)]) -> Spec {
    let mut spec = Spec::new("watertight", PROGRAM, home.join("up.log")).args(["up", "--port", "0"]);
    spec.env.push(("WATERTIGHT_HOME".into(), home.into()));
    for (name, value) in env {
        spec.env.push((OsString::from(name), OsString::from(value)));
    }
    spec
}

async fn opened(part: &Part, home: &Path) -> String {
    let opened = poll::until("the shop to open", UP_WITHIN, || async {
        anyhow::ensure!(part.pid().is_some(), "it has ended");
        let said = run(home, &["status", "--json"]);
        anyhow::ensure!(said.code == Some(0), "{}", said.text);
        Ok(serde_json::from_str::<Status>(&said.text)?.storefront)
    });
    tokio::select! {
        opened = opened => opened,
        () = ended(part) => Err(anyhow::anyhow!("it has ended")),
    }
    .unwrap_or_else(|fault| panic!("{fault:#}; it said:\n{}", testbed::tail(&part.spec().log, 40)))
}

async fn ended(part: &Part) {
    let mut life = part.life();
    // The sender lives as long as the part.
    let _ = life.wait_for(|life| matches!(life, testbed::Life::Ended(_))).await;
}

/// Runs the program once, for the shop in this folder.
pub(crate) fn run(home: &Path, args: &[&str]) -> Said {
    let output = Command::new(PROGRAM).args(args).env("WATERTIGHT_HOME", home).output().expect("the program");
    let text = [output.stdout, output.stderr].concat();
    Said { code: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() }
}
