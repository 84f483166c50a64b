//! Whoever starts parts may be killed with `kill -9`: nothing of his is left.
//!
//! The one that is killed is this test program, started once more for a single test of the second kind below.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testbed::{Part, Postgres, Spec, State, poll, postgres::Options, tree};

const SOON: Duration = Duration::from_secs(20);
/// The inner program says this, then the folder of its Postgres or `-`, then the numbers of its parts.
const STARTED: &str = "started:";

/// Starts this program again, to do only the test of this name, and waits until it has started its parts.
/// Returns it, every process that it has started, the guards' watchers among them, and the folder of its
/// Postgres.
fn start_again(test: &str) -> (Child, Vec<i32>, PathBuf) {
    let mut again = Command::new(std::env::current_exe().expect("the path of this test"))
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test once more");
    let lines = BufReader::new(again.stdout.take().expect("a pipe")).lines();
    let said = lines.map_while(Result::ok).find(|line| line.contains(STARTED)).expect("it ended too early");
    let mut said = said.split_once(STARTED).expect("its line").1.split_whitespace();
    let folder = PathBuf::from(said.next().expect("a folder"));
    let roots: Vec<i32> = said.map(|pid| pid.parse().expect("a number")).collect();
    let mut all = tree::below(i32::try_from(again.id()).expect("a number"));
    for root in roots {
        assert!(all.contains(&root), "{root} is not below the starter");
        let watchers: Vec<i32> = group_of(root).into_iter().filter(|pid| !all.contains(pid)).collect();
        assert_eq!(watchers.len(), 1, "the watcher of {root} is not there");
        all.extend(watchers);
    }
    (again, all, folder)
}

/// The processes that bear this group's number.
fn group_of(group: i32) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields =
                stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().nth(2).map(str::to_owned));
            fields.flatten().and_then(|text| text.parse().ok()) == Some(group)
        })
        .collect()
}

async fn killed_leaves_nothing(test: &str) {
    let (mut again, all, folder) = start_again(test);
    assert!(all.len() >= 4, "too few to prove anything: {all:?}");
    again.kill().expect("its kill");
    again.wait().expect("its end");
    let left = || all.iter().filter(|pid| tree::state(**pid) != State::Stopped).collect::<Vec<_>>();
    let gone = poll::until_true("all to be gone", SOON, || left().is_empty()).await;
    assert!(gone.is_ok(), "left: {:?} of {all:?}", left());
    // Files are what a killed starter does leave; whoever starts next in that place removes them.
    if folder.exists() {
        testbed::postgres::remove_leftover(&folder).expect("its data removed");
    }
}

#[tokio::test]
async fn a_killed_starter_leaves_no_process_that_left_its_group() {
    killed_leaves_nothing("starts_a_family_and_waits").await;
}

#[tokio::test]
async fn a_killed_starter_leaves_no_postgres() {
    killed_leaves_nothing("starts_postgres_and_waits").await;
}

#[tokio::test]
async fn a_killed_starter_leaves_no_paused_postgres_with_a_running_statement() {
    killed_leaves_nothing("pauses_postgres_and_waits").await;
}

// === what is started again and killed ===

fn tell(folder: &str, parts: &[&Part]) {
    let pids: Vec<String> = parts.iter().filter_map(|part| part.pid()).map(|pid| pid.to_string()).collect();
    println!("{STARTED} {folder} {}", pids.join(" "));
}

#[tokio::test]
#[ignore = "started and killed by a test above"]
async fn starts_a_family_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    // A grandchild in a session of its own, and one that does not hold the log.
    let script = "setsid sh -c 'sleep 600; :' & sleep 600 >/dev/null 2>&1 & wait";
    let part = Part::new(Spec::new("family", "/bin/sh", folder.path().join("log")).args(["-c", script]));
    part.start().await.unwrap();
    let root = part.pid().unwrap();
    poll::until_true("the family", SOON, || tree::below(root).len() == 3).await.unwrap();
    tell("-", &[&part]);
    std::future::pending::<()>().await;
}

async fn postgres_at_work() -> (Postgres, Part) {
    let postgres = Postgres::start(Options::default()).await.expect("a Postgres");
    let psql = testbed::postgres::psql(&testbed::Progress::stderr()).await.expect("psql");
    let client = Part::new(Spec::new("client", psql, postgres.folder().join("client.log")).args([
        postgres.url("postgres").expect("its address").as_str(),
        "-c",
        "SELECT pg_sleep(600)",
    ]));
    client.start().await.expect("a client");
    let asleep =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    poll::until("the statement to run", SOON, || async {
        let count = postgres.query("postgres", asleep).await?;
        anyhow::ensure!(count.trim() == "1", "{count} run");
        Ok(())
    })
    .await
    .expect("a running statement");
    (postgres, client)
}

#[tokio::test]
#[ignore = "started and killed by a test above"]
async fn starts_postgres_and_waits() {
    let (postgres, client) = postgres_at_work().await;
    tell(postgres.folder().to_str().unwrap(), &[postgres.part(), &client]);
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "started and killed by a test above"]
async fn pauses_postgres_and_waits() {
    let (postgres, client) = postgres_at_work().await;
    postgres.part().pause().await.unwrap();
    tell(postgres.folder().to_str().unwrap(), &[postgres.part(), &client]);
    std::future::pending::<()>().await;
}
