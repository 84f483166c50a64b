//! The life of a service: settings, telemetry, listening, ready, and on SIGTERM the way back.
//!
//! The end has an order, and each step a bound: not ready, stop accepting, finish what runs, then
//! the workers, then the pools, and the telemetry last, since the others still have things to tell.

use std::{ffi::OsString, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{Router, serve::ListenerExt as _};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use futures_util::future::BoxFuture;
use resilience::Policy;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Inbound,
    admin::{self, Admin, Readiness},
    database::Database,
    settings::{Check, Settings},
};

/// A worker that panicked is started again after this pause.
const WORKER_PAUSE: Duration = Duration::from_secs(1);
/// How long the health check waits for an answer.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Parser)]
struct Cli<S: Args> {
    #[command(flatten)]
    shared: Settings,
    #[command(flatten)]
    own: S,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Asks a running service of this kind whether it is ready; exit code 0 when it is.
    Healthcheck,
}

/// What a service is made of.
#[derive(Debug)]
pub struct App {
    inbound: Inbound,
    routes: Router,
    workers: Vec<Worker>,
    databases: Vec<Database>,
    policies: Vec<Policy>,
}

struct Worker {
    name: &'static str,
    run: Arc<dyn Fn(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

impl App {
    /// A service that answers `routes`, taken in by `inbound`.
    pub fn new(inbound: Inbound, routes: Router) -> Self {
        Self { inbound, routes, workers: Vec::new(), databases: Vec::new(), policies: Vec::new() }
    }

    /// Adds something that runs beside the requests until its token is cancelled. It is started
    /// again when it panics.
    #[must_use]
    pub fn worker<F, Fut>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(CancellationToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.workers.push(Worker { name, run: Arc::new(move |stop| Box::pin(run(stop))) });
        self
    }

    /// Adds the policy for a neighbour, to be seen at `/resilience`.
    #[must_use]
    pub fn policy(mut self, policy: &Policy) -> Self {
        self.policies.push(*policy);
        self
    }

    /// Adds a database and its policy: it is migrated in the background as soon as it answers, and
    /// closed at the end.
    #[must_use]
    pub fn database(mut self, database: &Database) -> Self {
        self.policies.push(*database.policy());
        self.databases.push(database.clone());
        self
    }
}

/// Runs the service called `name` until SIGTERM or SIGINT: reads its settings from `args` and the
/// environment, has `build` make the service, and serves it. What is not there yet, such as a
/// database, is waited for in the background.
///
/// The exit code is 0 after an orderly end, 2 when settings are refused, 1 for everything else.
pub fn start<S, F>(name: &'static str, args: impl IntoIterator<Item = OsString>, build: F) -> ExitCode
where
    S: Args + Check,
    F: FnOnce(S) -> anyhow::Result<App>,
{
    let command = Cli::<S>::command().name(name).bin_name(name);
    let cli =
        match command.try_get_matches_from(args).and_then(|matches| Cli::<S>::from_arg_matches(&matches)) {
            Ok(cli) => cli,
            Err(error) => {
                // It prints help and version to standard output, faults to standard error.
                let _ = error.print();
                return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
            }
        };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(name, &anyhow::Error::new(error).context("no runtime")),
    };
    if matches!(cli.command, Some(Command::Healthcheck)) {
        return match runtime.block_on(healthcheck(cli.shared.admin_listen)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(name, &error),
        };
    }
    let mut faults = cli.shared.check(cli.own.longest_request());
    if let Err(more) = cli.own.check() {
        faults.extend(more.0);
    }
    if !faults.is_empty() {
        eprintln!("{name}: these settings are refused:");
        faults.iter().for_each(|fault| eprintln!("  {fault}"));
        return ExitCode::from(2);
    }
    match runtime.block_on(run(name, cli.shared, || build(cli.own))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(name, &error),
    }
}

fn failed(name: &str, error: &anyhow::Error) -> ExitCode {
    eprintln!("{name}: {error:#}");
    ExitCode::FAILURE
}

async fn run(
    name: &'static str,
    settings: Settings,
    build: impl FnOnce() -> anyhow::Result<App>,
) -> anyhow::Result<()> {
    let telemetry = telemetry::start(name, &settings.telemetry)?;
    let app = build()?;
    let public = listen(settings.listen).await?;
    let admin = listen(settings.admin_listen).await?;
    let (public_at, admin_at) = (public.local_addr()?, admin.local_addr()?);

    let (ready, drain, stop) = (Readiness::default(), CancellationToken::new(), CancellationToken::new());
    let keepers = Admin {
        service: name,
        readiness: ready.clone(),
        policies: app.policies.into(),
        databases: app.databases.clone().into(),
    };
    let admin = tokio::spawn(serve(admin, admin::routes(keepers), stop.clone()));
    let routes = app.inbound.routes(app.routes, settings.max_in_flight);
    let public = tokio::spawn(serve(public, routes, drain.clone()));
    let beside = TaskTracker::new();
    for database in &app.databases {
        beside.spawn(database.clone().migrate(stop.clone()));
    }
    for worker in app.workers {
        beside.spawn(keep_running(worker, stop.clone()));
    }
    ready.set(true);
    tracing::info!(service = name, public = %public_at, admin = %admin_at, "listening");

    stopped().await?;
    ready.set(false);
    let end = Instant::now() + settings.drain_timeout;
    tracing::info!(service = name, limit = ?settings.drain_timeout, "draining");
    drain.cancel();
    if timeout_at(end, public).await.is_err() {
        tracing::warn!("some requests did not end in time and are given up");
    }
    stop.cancel();
    beside.close();
    if timeout_at(end, beside.wait()).await.is_err() {
        tracing::warn!("some workers did not end in time and are given up");
    }
    for database in &app.databases {
        if timeout(Duration::from_secs(1), database.close()).await.is_err() {
            tracing::warn!("some connections did not close in time and are given up");
        }
    }
    admin.abort();
    tracing::info!(service = name, "ended");
    telemetry.shutdown().await;
    Ok(())
}

async fn listen(at: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(at).await.with_context(|| format!("cannot listen on {at}"))
}

async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) -> std::io::Result<()> {
    // Answers are small: waiting to fill a packet only makes them late.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn keep_running(worker: Worker, stop: CancellationToken) {
    loop {
        let run = tokio::spawn((worker.run)(stop.clone()));
        match run.await {
            Ok(()) if stop.is_cancelled() => return,
            Ok(()) => {
                tracing::error!(worker = worker.name, "the worker ended by itself and is started again")
            }
            Err(error) => tracing::error!(worker = worker.name, %error, "the worker is started again"),
        }
        if timeout(WORKER_PAUSE, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn stopped() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

async fn healthcheck(admin: SocketAddr) -> anyhow::Result<()> {
    let host = if admin.ip().is_unspecified() { "127.0.0.1".to_owned() } else { admin.ip().to_string() };
    let client = reqwest::Client::builder().timeout(HEALTH_TIMEOUT).no_proxy().build()?;
    let url = format!("http://{host}:{}/ready", admin.port());
    client.get(url).send().await?.error_for_status()?;
    Ok(())
}
