//! `cargo run`: the shop from its first line to its last.
//!
//! The end has three ways, and none leaves a process behind. Ctrl-C, SIGTERM, a closed terminal and `down` end
//! the parts in order. A second signal kills them at once. And when this process is killed itself, the guard of
//! each part ends it (`testbed`); only files are left then, and the next start removes them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use futures_util::future::try_join_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cli::Up;
use crate::client;
use crate::control::{self, Door};
use crate::home::{Held, Home};
use crate::parts::{SERVERS, Setup, Wiring};
use crate::say::{Say, command, print, strong};
use crate::shop::Shop;

/// The exit code after a second signal, as a shell shows an end by SIGINT.
const KILLED: u8 = 130;

/// So soon nobody presses the keys a second time.
const ECHO: Duration = Duration::from_millis(300);

/// Starts the shop and keeps it until it is told to end.
pub(crate) fn run(home: Option<PathBuf>, options: Up) -> anyhow::Result<ExitCode> {
    // What the test bed warns of, such as a part that had to be killed.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(keep(home, options))
}

async fn keep(home: Option<PathBuf>, options: Up) -> anyhow::Result<ExitCode> {
    // Dropped last: callers of `down` see the end when everything else is gone.
    let door = Door::default();
    let home = Home::new(home)?;
    let Some(held) = home.clone().hold()? else {
        return Err(runs_already(&home));
    };
    let say = Say::new();
    let mut signals = Signals::new()?;

    if held.prepare().await? {
        say.line("removed what an earlier run had left");
    }
    let commands = tokio::spawn(control::serve(held.bind()?, door.clone()));
    let started = tokio::select! {
        started = start(&held, &options, say) => started,
        () = signals.first(&door) => {
            say.line("ending while it starts");
            commands.abort();
            held.clear()?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let (shop, booting) = match started {
        Ok(started) => started,
        Err(fault) => {
            let logs = held.logs();
            return Err(anyhow!("{fault:#}\nthe shop did not start; its logs stay in {}", logs.display()));
        }
    };
    // The door is made here and filled nowhere else.
    let _ = door.shop.set(Arc::clone(&shop));
    welcome(&shop, &held, say);

    tokio::select! {
        () = shop.watch() => {}
        () = signals.first(&door) => {}
    }
    booting.abort();
    let ended = end(&shop, &mut signals, say).await;
    commands.abort();
    held.clear()?;
    Ok(ended)
}

/// Everything that takes time, in order: servers, then services.
async fn start(held: &Held, options: &Up, say: Say) -> anyhow::Result<(Arc<Shop>, JoinHandle<()>)> {
    say.line("starting the shop");
    let mut wiring = Wiring::new(options.port)?;
    let setup =
        Setup { held, say, postgres_url: options.postgres_url.as_ref(), amqp_url: options.amqp_url.as_ref() };
    let starts = SERVERS.iter().map(|server| async {
        (server.start)(&setup).await.with_context(|| format!("{} could not be had", server.name))
    });
    let mut servers = Vec::new();
    for started in try_join_all(starts).await? {
        servers.extend(started.managed);
        wiring.take(started.gives);
    }
    let services = wiring.services(held)?;
    let shop = Arc::new(Shop::new(servers, services, wiring, say));
    let booting = tokio::spawn({
        let shop = Arc::clone(&shop);
        async move { shop.boot().await }
    });
    shop.open().await?;
    shop.joined().await;
    Ok((shop, booting))
}

async fn end(shop: &Shop, signals: &mut Signals, say: Say) -> ExitCode {
    say.line("closing the shop; once more Ctrl-C kills it at once");
    tokio::select! {
        () = shop.close() => {
            say.line("everything has ended");
            ExitCode::SUCCESS
        }
        () = signals.again() => {
            say.line("killing everything");
            shop.kill_all().await;
            ExitCode::from(KILLED)
        }
    }
}

fn welcome(shop: &Shop, held: &Held, say: Say) {
    let (open, cmd) = (strong(&shop.address()), command());
    print(&format!(
        "
The shop is open: {open}   (after {:.1} s)

Then try, in a second terminal:
  {cmd} status            how each part is
  {cmd} kill payments     go on buying: orders are taken, payment follows
  {cmd} start payments    it is back, on the same port and data
  {cmd} pause orders      hung, not dead; `resume orders` lets it go on
  {cmd} kill rabbitmq     or postgres: the servers below
  psql \"$({cmd} database orders)\"

Logs are in {}
Ctrl-C ends everything.
",
        say.seconds(),
        held.logs().display()
    ));
}

fn runs_already(home: &Home) -> anyhow::Error {
    let shown = home.path().display();
    match client::running(home) {
        Ok(Some(status)) => anyhow!(
            "a shop runs in {shown} already: {}\n\n{}\n\nEnd it with Ctrl-C in its terminal or `{} down`; \
             a second shop needs another WATERTIGHT_HOME.",
            status.storefront,
            status.table(),
            command()
        ),
        Ok(None) => anyhow!("a shop is just starting in {shown}"),
        Err(fault) => anyhow!("a shop runs in {shown} already, but does not tell how it is: {fault:#}"),
    }
}

/// What people and machines send to end a program.
struct Signals {
    all: [Signal; 3],
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self { all: [interrupt?, terminate?, hangup?] })
    }

    /// A signal, or `down`.
    async fn first(&mut self, door: &Door) {
        tokio::select! {
            () = self.next() => {}
            () = door.end.cancelled() => {}
        }
    }

    /// One more signal, not the echo of the first: a terminal, `timeout` and others send theirs twice, to the
    /// process and to its group.
    async fn again(&mut self) {
        let first = Instant::now();
        loop {
            self.next().await;
            if first.elapsed() > ECHO {
                return;
            }
        }
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
