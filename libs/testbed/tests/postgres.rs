//! A private Postgres keeps what was committed through a kill, and leaves nothing behind.

use std::time::Duration;

use testbed::{Postgres, State, poll, postgres::Options, tree};

#[tokio::test]
async fn what_was_committed_survives_a_kill_and_a_drop_leaves_nothing() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    let url = postgres.create_database("orders").await.unwrap();
    assert_eq!(url, postgres.create_database("orders").await.unwrap(), "the second time it is there");
    assert!(url.path() == "/orders" && url.password().is_some());
    postgres.query("orders", "CREATE TABLE kept (n int)").await.unwrap();
    postgres.query("orders", "INSERT INTO kept VALUES (7)").await.unwrap();
    for (setting, value) in [("fsync", "on"), ("synchronous_commit", "on"), ("max_connections", "200")] {
        assert_eq!(postgres.query("orders", &format!("SHOW {setting}")).await.unwrap().trim(), value);
    }

    let before = postgres.part().pid();
    postgres.part().kill().await.unwrap();
    assert!(postgres.query("orders", "SELECT 1").await.is_err(), "a killed server answered");
    postgres.part().start().await.unwrap();
    assert_ne!(postgres.part().pid(), before);
    assert_eq!(postgres.query("orders", "SELECT n FROM kept").await.unwrap().trim(), "7");

    let root = postgres.part().pid().unwrap();
    let mut all = tree::below(root);
    all.push(root);
    assert!(all.len() > 3, "a server of several processes: {all:?}");
    let folder = postgres.folder().to_path_buf();
    let segments = || std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let segment = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let segment = segment.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let kept = |id: &str| segments().lines().any(|row| row.split_whitespace().nth(1) == Some(id));
    assert!(kept(&segment));
    drop(postgres);
    assert!(all.iter().all(|pid| tree::state(*pid) == State::Stopped), "left: {all:?}");
    assert!(!folder.exists());
    assert!(!kept(&segment), "the segment {segment} is still there");
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    let psql = testbed::postgres::psql(&testbed::Progress::stderr()).await.unwrap();
    let mut url = postgres.url("postgres").unwrap();
    assert_eq!(testbed::database::run(&psql, &url, "SELECT 1").await.unwrap().trim(), "1");
    url.set_password(Some("wrong")).unwrap();
    let said = testbed::database::run(&psql, &url, "SELECT 1").await.unwrap_err().to_string();
    assert!(said.contains("password authentication failed"), "{said}");
    assert!(!said.contains("wrong"), "the password is shown: {said}");
}

#[tokio::test]
async fn a_paused_server_answers_nobody_until_it_is_resumed() {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    postgres.part().pause().await.unwrap();
    assert_eq!(postgres.part().state(), State::Paused);
    let asked = postgres.part().spec().ready.ask();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), asked).await.is_err(),
        "a paused server answered"
    );
    postgres.part().resume().unwrap();
    poll::until("an answer", Duration::from_secs(10), || postgres.query("postgres", "SELECT 1"))
        .await
        .unwrap();
}
