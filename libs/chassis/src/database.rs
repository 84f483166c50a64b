//! Postgres: units of work that are never torn, and connections that never come back dirty.
//!
//! The obvious `timeout(.., pool.begin())` in a handler has three holes, all measured. A `begin`
//! that is dropped midway gives a connection with an open transaction back to the pool, where the
//! next user's writes vanish into it (sqlx 0.9.0). A dropped statement runs on in Postgres, holding
//! its locks. And a handler is dropped whenever its client hangs up. So:
//!
//! - a unit of work runs in a task of its own, to its end, whether or not anybody still waits;
//! - what is left of the caller's deadline goes into Postgres as `statement_timeout`, in one round
//!   trip with BEGIN, and is checked again before each statement;
//! - a lease gives the connection back only when it is known to be clean, and otherwise closes the
//!   socket; [`GRACE`] after the deadline it does so in any case.

use std::{
    ops::DerefMut as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use clap::Args;
use futures_util::future::BoxFuture;
use resilience::{
    BreakerSettings, BulkheadSettings, CallContext, CallError, Class, Classify, Deadline, Fault, Faults,
    Jitter, Limit, Op, Policy, Timeouts, Verdict, breaker::Window,
};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool, Postgres,
    migrate::Migrator,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::outcome;

/// How long after its deadline a unit of work may still run: the time in which Postgres's own
/// `statement_timeout` ends it and leaves the connection clean.
pub const GRACE: Duration = Duration::from_millis(200);
/// A database that restarts is back within a second or two, so its breaker looks often.
const BREAKER: BreakerSettings = BreakerSettings {
    window: Window::Time(Duration::from_secs(10)),
    minimum_calls: 20,
    failure_percent: Some(50),
    slow: None,
    consecutive_failures: Some(5),
    open_for: Duration::from_millis(500),
    open_for_at_most: Duration::from_secs(2),
    jitter: Jitter::Random,
    probes: 2,
    probe_lease: Duration::from_secs(10),
};
/// The least `statement_timeout`. Zero would mean no limit.
const LEAST: Duration = Duration::from_millis(1);
/// Pauses between attempts to migrate a database that does not answer yet: from this one, doubling
/// up to [`MIGRATE_CAP`].
const MIGRATE_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const MIGRATE_CAP: Duration = Duration::from_secs(1);
/// How long one attempt to migrate may take.
const MIGRATE_TIMEOUT: Duration = Duration::from_secs(60);

/// How a service reaches its database.
#[derive(Debug, Clone, Args)]
#[group(skip)] // the structs of all libraries are called Settings
#[command(next_help_heading = "Database")]
pub struct Settings {
    /// Its address: `postgres://user:password@host:port/name`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: PgConnectOptions,

    /// How long one unit of work may take.
    #[arg(long, env = "DATABASE_TIMEOUT", default_value = "1500ms", value_parser = crate::settings::duration)]
    pub database_timeout: Duration,

    /// How long a unit of work waits for its place, and then for its connection. A server that does not
    /// answer costs each request this much.
    #[arg(long, env = "DATABASE_ACQUIRE_TIMEOUT", default_value = "300ms", value_parser = crate::settings::duration)]
    pub database_acquire_timeout: Duration,

    /// How many connections there are at most.
    #[arg(long, env = "DATABASE_CONNECTIONS", default_value_t = 20)]
    pub database_connections: u32,
}

impl Settings {
    /// Everything that is wrong with them.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !(1..=1000).contains(&self.database_connections) {
            faults.push(Fault::new("DATABASE_CONNECTIONS", self.database_connections, "must be 1 to 1000"));
        }
        if self.database_acquire_timeout.is_zero() || self.database_acquire_timeout >= self.database_timeout {
            let rule = "must be more than 0 and less than DATABASE_TIMEOUT";
            faults.push(Fault::new("DATABASE_ACQUIRE_TIMEOUT", self.database_acquire_timeout, rule));
        }
        faults
    }
}

/// A database, through a pool of connections and a policy.
#[derive(Debug, Clone)]
pub struct Database {
    pool: PgPool,
    options: PgConnectOptions,
    policy: Policy,
    limit: Duration,
    migrations: &'static Migrator,
    migrated: Arc<AtomicBool>,
}

/// Why a unit of work has no result.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The tables are not there yet: the database has not answered since the start.
    #[error("the database has not been reached yet")]
    NotMigrated,
    /// No connection could be had.
    #[error("no connection to the database")]
    Connect(#[source] sqlx::Error),
    /// A statement failed; the transaction was rolled back.
    #[error("a statement failed")]
    Statement(#[from] sqlx::Error),
    /// The deadline passed between two statements; the transaction was rolled back.
    #[error("no time was left for the next statement")]
    NoTimeLeft,
    /// COMMIT did not answer, or failed.
    #[error("the commit failed")]
    Commit(#[source] sqlx::Error),
    /// The unit of work panicked; its connection was closed.
    #[error("the unit of work panicked")]
    Panicked,
}

impl Classify for DbError {
    fn class(&self) -> Class {
        match self {
            Self::NotMigrated | Self::Connect(_) => Class::not_executed(),
            Self::Statement(error) => outcome::of_sql(error),
            Self::NoTimeLeft => Class::not_executed().with_verdict(Verdict::TimedOut),
            Self::Commit(error) => outcome::of_commit(error),
            Self::Panicked => Class::not_executed().with_verdict(Verdict::Neutral).lasting(),
        }
    }
}

/// Why a call to a database has no result.
pub type Error = CallError<DbError>;

/// How a unit of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End<T> {
    /// What it wrote holds.
    Commit(T),
    /// What it wrote does not; that is a result like another.
    Rollback(T),
}

/// A running transaction.
#[derive(Debug)]
pub struct Tx<'t> {
    conn: &'t mut PgConnection,
    deadline: Deadline,
}

impl Tx<'_> {
    /// The connection, for the next statement. After a failed statement return the error: Postgres
    /// answers a COMMIT of a failed transaction with OK, and rolls it back.
    ///
    /// # Errors
    /// When no time is left.
    pub fn conn(&mut self) -> Result<&mut PgConnection, DbError> {
        if self.deadline.has_passed() { Err(DbError::NoTimeLeft) } else { Ok(self.conn) }
    }
}

impl Database {
    /// The database as `settings` say, for the service called `service`. Connects when it is first
    /// used, and never fails for want of a server.
    ///
    /// # Errors
    /// Every refused setting.
    pub fn new(
        service: &'static str,
        settings: &Settings,
        migrations: &'static Migrator,
    ) -> Result<Self, Faults> {
        let limit = settings.database_timeout;
        let wait = settings.database_acquire_timeout;
        let timeouts = Timeouts { connect: wait, attempt: limit + GRACE, place: wait };
        let policy = crate::policy("postgres", timeouts)
            .breaker(BREAKER)
            // As many places as connections: who is let in finds one, so that a wait for the pool
            // means trouble in the database, and counts as that.
            .bulkhead(BulkheadSettings {
                places: settings.database_connections,
                waiting: settings.database_connections.saturating_mul(5),
            })
            .build()?;
        let options = settings
            .database_url
            .clone()
            .application_name(service)
            // Work whose socket was closed ends within this time, instead of holding its locks.
            .options([("client_connection_check_interval", "100ms")]);
        let pool = PgPoolOptions::new()
            .max_connections(settings.database_connections)
            .acquire_timeout(settings.database_acquire_timeout)
            .connect_lazy_with(options.clone());
        Ok(Self { pool, options, policy, limit, migrations, migrated: Arc::default() })
    }

    /// The tables are there: the database has been reached since the start.
    pub fn is_migrated(&self) -> bool {
        self.migrated.load(Ordering::Acquire)
    }

    /// How it is called.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Runs `work` as one transaction, within `cx`'s deadline. It goes on to its end when the
    /// returned future is dropped.
    ///
    /// # Errors
    /// Before COMMIT every failure means that nothing was written; see [`CallError`].
    pub async fn unit<T, F>(&self, cx: &CallContext, op: Op, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(Tx<'t>) -> BoxFuture<'t, Result<End<T>, DbError>> + Send + 'static,
    {
        let neighbour = self.policy.name();
        let before = if !self.is_migrated() {
            Some(DbError::NotMigrated)
        } else if cx.deadline().has_passed() {
            Some(DbError::NoTimeLeft)
        } else {
            None
        };
        if let Some(source) = before {
            return Err(CallError::Failed { neighbour, source });
        }
        let limit = if cx.deadline().remaining() < self.limit { Limit::Caller } else { Limit::Attempt };
        let wanted = cx.deadline().within(self.limit);
        let after = wanted.remaining();
        // Nobody retries here, and the lease outlives the caller by its grace.
        let lease = CallContext::from_caller(Deadline::at(wanted.instant() + GRACE), None, cx.attempt());
        let this = self.clone();
        let mut work = Some(work);
        let unit = async move {
            if wanted.has_passed() {
                return Err(CallError::Failed { neighbour, source: DbError::NoTimeLeft });
            }
            let policy = this.policy;
            policy.call(&lease, op, |_| this.clone().attempt(wanted, work.take())).await
        };
        let task = tokio::spawn(unit.in_current_span());
        match timeout_at(wanted.instant(), task).await {
            Ok(Ok(result)) => result,
            Ok(Err(_panic)) => Err(CallError::Failed { neighbour, source: DbError::Panicked }),
            Err(_) => Err(CallError::TimedOut { neighbour, after, limit }),
        }
    }

    async fn attempt<T, F>(self, wanted: Deadline, work: Option<F>) -> Result<T, DbError>
    where
        F: for<'t> FnOnce(Tx<'t>) -> BoxFuture<'t, Result<End<T>, DbError>>,
    {
        let Some(work) = work else {
            return Err(DbError::Panicked);
        };
        let conn = self.pool.acquire().await.map_err(DbError::Connect)?;
        let mut lease = Lease { conn: Some(conn), clean: false };
        let Some(conn) = lease.conn.as_mut() else {
            return Err(DbError::Panicked);
        };
        let left = wanted.remaining().max(LEAST).as_millis().max(1);
        let begin = AssertSqlSafe(format!("BEGIN; SET LOCAL statement_timeout = '{left}ms'"));
        conn.execute(sqlx::raw_sql(begin)).await.map_err(DbError::Connect)?;
        let ended = work(Tx { conn: conn.deref_mut(), deadline: wanted }).await;
        if let Ok(End::Commit(value)) = ended {
            conn.execute("COMMIT").await.map_err(DbError::Commit)?;
            lease.clean = true;
            return Ok(value);
        }
        // When it fails, the lease closes the socket, and that rolls back as well.
        lease.clean = conn.execute("ROLLBACK").await.is_ok();
        ended.map(|(End::Commit(value) | End::Rollback(value))| value)
    }

    /// Brings the tables up to date as soon as the database answers, and again and again until it
    /// does. Replicas that start together take turns, by an advisory lock.
    pub async fn migrate(self, stop: CancellationToken) {
        let mut pause = MIGRATE_PAUSE;
        loop {
            let attempt = async {
                let mut conn = PgConnection::connect_with(&self.options).await?;
                self.migrations.run_direct(None, &mut conn, false).await?;
                anyhow::Ok(())
            };
            let done = tokio::select! {
                done = timeout(MIGRATE_TIMEOUT, attempt) => done,
                () = stop.cancelled() => return,
            };
            match done {
                Ok(Ok(())) => break,
                Ok(Err(error)) => {
                    tracing::debug!(error = format!("{error:#}"), "the database is not ready yet")
                }
                Err(_) => tracing::warn!("a migration took too long and is tried again"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            pause = (pause * 2).min(MIGRATE_CAP);
        }
        self.migrated.store(true, Ordering::Release);
        tracing::info!("the database is ready");
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Gives the connection back to the pool only when it is known to be clean; otherwise closes it.
struct Lease {
    conn: Option<PoolConnection<Postgres>>,
    clean: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take()
            && !self.clean
        {
            drop(conn.detach());
        }
    }
}
