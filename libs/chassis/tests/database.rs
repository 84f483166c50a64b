//! Units of work on a real Postgres, under the faults that were measured of the driver.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chassis::database::{Database, DbError, End, Error, Settings};
use resilience::{CallContext, CallError, Classify as _, Deadline, Op, Outcome};
use sqlx::migrate::Migrator;
use testbed::{Postgres, poll};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

static MIGRATIONS: Migrator = sqlx::migrate!("tests/migrations");

const WRITE: Op = Op::once("write");
const SOON: Duration = Duration::from_secs(10);

fn cx(budget: Duration) -> CallContext {
    CallContext::from_caller(Deadline::after(budget), None, 1)
}

fn settings(url: &str) -> Settings {
    Settings {
        database_url: url.parse().expect("an address"),
        database_timeout: Duration::from_millis(1500),
        database_acquire_timeout: Duration::from_millis(300),
        // One connection: whatever a unit leaves on it, the next one meets.
        database_connections: 1,
    }
}

async fn shop() -> (Postgres, Database) {
    let postgres = Postgres::start(testbed::postgres::Options::default()).await.expect("Postgres");
    let url = postgres.create_database("notes").await.expect("a database");
    (postgres, ready(&settings(url.as_str())).await)
}

async fn ready(settings: &Settings) -> Database {
    let database = Database::new("chassis-test", settings, &MIGRATIONS).expect("good settings");
    database.clone().migrate(CancellationToken::new()).await;
    database
}

async fn write(database: &Database, cx: &CallContext, text: &'static str) -> Result<(), Error> {
    database
        .unit(cx, WRITE, move |mut tx| {
            Box::pin(async move {
                sqlx::query("INSERT INTO notes VALUES ($1)").bind(text).execute(tx.conn()?).await?;
                Ok(End::Commit(()))
            })
        })
        .await
}

/// What others see, through a session of their own.
async fn notes(postgres: &Postgres) -> Vec<String> {
    let text = postgres.query("notes", "SELECT text FROM notes ORDER BY text").await.expect("an answer");
    text.lines().map(str::to_owned).collect()
}

async fn idle(postgres: &Postgres) {
    poll::until("no statement and no transaction of ours", SOON, || async {
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'chassis-test' \
                    AND state <> 'idle'";
        let count = postgres.query("notes", busy).await?;
        anyhow::ensure!(count.trim() == "0", "{count} are busy");
        Ok(())
    })
    .await
    .expect("idle");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_ends_as_its_work_says() {
    let (postgres, database) = shop().await;
    let cx = cx(SOON);
    write(&database, &cx, "kept").await.expect("written");
    let rolled_back = database
        .unit(&cx, WRITE, |mut tx| {
            Box::pin(async move {
                sqlx::query("INSERT INTO notes VALUES ('taken back')").execute(tx.conn()?).await?;
                Ok(End::Rollback("no"))
            })
        })
        .await;
    assert_eq!(rolled_back.expect("a result"), "no");
    assert_eq!(notes(&postgres).await, ["kept"]);

    // A failed statement: its own error is told, nothing holds, and the one connection stays good.
    let twice = write(&database, &cx, "kept").await.expect_err("it is there already");
    assert!(matches!(twice.failure(), Some(DbError::Statement(_))), "{twice:?}");
    assert_eq!(twice.class().outcome, Outcome::Rejected);

    // A panic closes its connection with whatever was open on it.
    let panicked = database
        .unit(&cx, WRITE, |mut tx| {
            Box::pin(async move {
                sqlx::query("INSERT INTO notes VALUES ('half done')").execute(tx.conn()?).await?;
                let broken = tx.conn().is_ok();
                assert!(!broken, "on purpose");
                Ok(End::Commit(()))
            })
        })
        .await
        .expect_err("it panicked");
    assert!(matches!(panicked.failure(), Some(DbError::Panicked)));
    write(&database, &cx, "next").await.expect("written");
    assert_eq!(notes(&postgres).await, ["kept", "next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_the_deadline_ends_the_statement_in_postgres() {
    let (postgres, database) = shop().await;
    let began = Instant::now();
    let error = database
        .unit(&cx(Duration::from_millis(300)), WRITE, |mut tx| {
            Box::pin(async move {
                sqlx::query("INSERT INTO notes VALUES ('too late')").execute(tx.conn()?).await?;
                sqlx::query("SELECT pg_sleep(30)").execute(tx.conn()?).await?;
                Ok(End::Commit(()))
            })
        })
        .await
        .expect_err("it takes too long");
    assert!(began.elapsed() < Duration::from_millis(1000), "{:?}", began.elapsed());
    assert_ne!(error.class().outcome, Outcome::Rejected);
    idle(&postgres).await;
    assert_eq!(notes(&postgres).await, Vec::<String>::new());
    write(&database, &cx(SOON), "next").await.expect("the connection is good");
    assert_eq!(notes(&postgres).await, ["next"]);

    // A second statement is not even sent when the first has used the time up.
    let late = database
        .unit(&cx(Duration::from_millis(100)), WRITE, |mut tx| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(110)).await;
                sqlx::query("INSERT INTO notes VALUES ('too late')").execute(tx.conn()?).await?;
                Ok(End::Commit(()))
            })
        })
        .await
        .expect_err("no time is left");
    assert_ne!(late.class().outcome, Outcome::Rejected);
    idle(&postgres).await;
    assert_eq!(notes(&postgres).await, ["next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_goes_on_when_its_caller_hangs_up() {
    let (postgres, database) = shop().await;
    let begun = Arc::new(Notify::new());
    let go_on = Arc::new(Notify::new());
    let (inside, wait) = (begun.clone(), go_on.clone());
    let caller = tokio::spawn(async move {
        database
            .unit(&cx(SOON), WRITE, move |mut tx| {
                Box::pin(async move {
                    sqlx::query("INSERT INTO notes VALUES ('whole')").execute(tx.conn()?).await?;
                    inside.notify_one();
                    wait.notified().await;
                    Ok(End::Commit(()))
                })
            })
            .await
    });
    begun.notified().await;
    caller.abort();
    assert!(caller.await.expect_err("aborted").is_cancelled());
    go_on.notify_one();
    poll::until("the commit", SOON, || async {
        anyhow::ensure!(notes(&postgres).await == ["whole"], "not there yet");
        Ok(())
    })
    .await
    .expect("committed");
    idle(&postgres).await;
}

/// The driver's fault (a `begin` dropped midway gives its open transaction to the next user) needs a
/// BEGIN that was received and whose answer is late.
#[tokio::test(flavor = "multi_thread")]
async fn a_begin_that_got_no_answer_does_not_come_back() {
    let (postgres, direct) = shop().await;
    drop(direct);
    let proxy = Proxy::before(postgres.address()).await;
    let mut through = postgres.url("notes").expect("an address");
    through.set_port(Some(proxy.address.port())).expect("a port");
    let database = ready(&settings(through.as_str())).await;
    write(&database, &cx(SOON), "before").await.expect("the connection stands");

    proxy.hold_begin.store(true, Ordering::SeqCst);
    let error = write(&database, &cx(Duration::from_millis(200)), "lost").await.expect_err("no answer");
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    assert_eq!(error.class().outcome, Outcome::Unknown);
    idle(&postgres).await;

    proxy.hold_begin.store(false, Ordering::SeqCst);
    write(&database, &cx(SOON), "after").await.expect("a connection of its own");
    assert_eq!(notes(&postgres).await, ["after", "before"], "others see it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_costs_a_bounded_wait_and_is_joined_later() {
    let postgres = Postgres::start(testbed::postgres::Options::default()).await.expect("Postgres");
    let url = postgres.create_database("notes").await.expect("a database");
    assert!(postgres.part().kill().await.expect("killed"));

    let database =
        Database::new("chassis-test", &settings(url.as_str()), &MIGRATIONS).expect("good settings");
    let error = write(&database, &cx(SOON), "early").await.expect_err("nobody is there");
    assert!(matches!(error.failure(), Some(DbError::NotMigrated)), "{error:?}");
    assert_eq!(error.class().outcome, Outcome::NotExecuted);

    let joins = tokio::spawn(database.clone().migrate(CancellationToken::new()));
    postgres.part().start().await.expect("back");
    tokio::time::timeout(SOON, joins).await.expect("in time").expect("migrated");
    write(&database, &cx(SOON), "joined").await.expect("written");

    assert!(postgres.part().kill().await.expect("killed"));
    let began = Instant::now();
    let error = write(&database, &cx(SOON), "away").await.expect_err("nobody is there");
    assert!(began.elapsed() < Duration::from_millis(1000), "{:?}", began.elapsed());
    assert_eq!(error.class().outcome, Outcome::NotExecuted, "{error:?}");
    postgres.part().start().await.expect("back");
    poll::until("the pool to recover", Duration::from_secs(5), || async {
        Ok(write(&database, &cx(SOON), "back").await?)
    })
    .await
    .expect("recovered");
    assert_eq!(notes(&postgres).await, ["back", "joined"]);
}

/// Stands before Postgres and, when told to, keeps the answer to BEGIN for itself.
struct Proxy {
    address: SocketAddr,
    hold_begin: Arc<AtomicBool>,
}

impl Proxy {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let hold_begin = Arc::new(AtomicBool::new(false));
        let hold = hold_begin.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.expect("Postgres");
                tokio::spawn(carry(client, server, hold.clone()));
            }
        });
        Self { address, hold_begin }
    }
}

async fn carry(client: TcpStream, server: TcpStream, hold: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let held = Arc::new(AtomicBool::new(false));
    let holding = held.clone();
    let up = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
            if hold.load(Ordering::SeqCst) && buffer[..n].windows(6).any(|word| word == b"BEGIN;") {
                holding.store(true, Ordering::SeqCst);
            }
            if to_server.write_all(&buffer[..n]).await.is_err() {
                break;
            }
        }
    };
    let down = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
            if !held.load(Ordering::SeqCst) && to_client.write_all(&buffer[..n]).await.is_err() {
                break;
            }
        }
    };
    // Either side's end is the end of both.
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
