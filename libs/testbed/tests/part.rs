//! A part's life: started, broken, started again; and what is said when it does not start.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use testbed::{Life, Part, Ready, Spec, State, poll, ports, tree};

const SOON: Duration = Duration::from_secs(10);

/// A shell with a child that left its process group, as a Postgres backend does.
fn family(folder: &tempfile::TempDir) -> Part {
    let script = "setsid sleep 600 & sleep 600 & wait";
    Part::new(Spec::new("family", "/bin/sh", folder.path().join("family.log")).args(["-c", script]))
}

async fn with_children(part: &Part) -> Vec<i32> {
    let root = part.pid().expect("it runs");
    poll::until_true("the children", SOON, || tree::below(root).len() == 2).await.expect("two children");
    let mut all = tree::below(root);
    all.push(root);
    all
}

fn gone(pids: &[i32]) -> bool {
    pids.iter().all(|pid| tree::state(*pid) == State::Stopped)
}

#[tokio::test]
async fn a_kill_ends_children_that_left_the_group_and_a_start_brings_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let part = family(&folder);
    assert_eq!(part.state(), State::Stopped);
    part.start().await.unwrap();
    assert_eq!(part.state(), State::Running);
    let first = with_children(&part).await;

    assert!(part.kill().await.unwrap());
    assert!(gone(&first), "left after the kill: {first:?}");
    assert_eq!((part.state(), part.pid()), (State::Stopped, None));
    assert!(!part.kill().await.unwrap(), "the second kill found something");

    part.start().await.unwrap();
    let second = with_children(&part).await;
    assert!(part.start().await.unwrap_err().to_string().contains("running already"));
    drop(part);
    assert!(gone(&second), "left after the drop: {second:?}");
}

#[tokio::test]
async fn a_pause_stops_the_whole_family_and_a_paused_one_can_still_be_stopped_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let part = family(&folder);
    part.start().await.unwrap();
    let all = with_children(&part).await;

    part.pause().await.unwrap();
    assert_eq!(part.state(), State::Paused);
    assert!(all.iter().all(|pid| tree::state(*pid) == State::Paused));
    part.resume().unwrap();
    poll::until_true("all to go on", SOON, || all.iter().all(|pid| tree::state(*pid) == State::Running))
        .await
        .unwrap();

    part.pause().await.unwrap();
    assert!(part.stop().await.unwrap());
    // SIGTERM went to the shell alone; the guard ended its children.
    assert!(gone(&all), "left after the stop: {all:?}");
    assert!(part.pause().await.is_err());
    assert!(part.resume().is_err());
}

#[tokio::test]
async fn one_that_does_not_listen_to_the_signal_is_killed_when_its_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("deaf.log");
    let script = "trap '' TERM; echo its ears are shut; while :; do sleep 600; done";
    let mut spec = Spec::new("deaf", "/bin/sh", &log).args(["-c", script]);
    spec.stop.within = Duration::from_millis(50);
    let part = Part::new(spec);
    part.start().await.unwrap();
    poll::until_true("its trap", SOON, || testbed::tail(&log, 1).contains("shut")).await.unwrap();
    assert!(part.stop().await.unwrap());
    let Life::Ended(ended) = part.life().borrow().clone() else { panic!("it goes on") };
    assert!(ended.asked && !ended.success);
    assert!(ended.how.contains("SIGKILL"), "{}", ended.how);
}

#[tokio::test]
async fn a_death_of_its_own_is_told_apart_from_one_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let part = family(&folder);
    part.start().await.unwrap();
    let all = with_children(&part).await;
    let mut life = part.life();

    // A stopped child of a killed parent can only be found by the log that it holds.
    tree::signal(all[0], nix::sys::signal::Signal::SIGSTOP).unwrap();
    tree::signal(part.pid().unwrap(), nix::sys::signal::Signal::SIGKILL).unwrap();
    let ended = life.wait_for(|life| matches!(life, Life::Ended(_)));
    let Life::Ended(ended) = tokio::time::timeout(SOON, ended).await.unwrap().unwrap().clone() else {
        panic!("not the end")
    };
    assert!(!ended.asked);
    assert!(gone(&all), "left: {all:?}");
}

#[tokio::test]
async fn a_part_that_ends_at_its_start_shows_the_end_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let address: SocketAddr = ports::free_address().unwrap();
    let script = "echo first; echo the reason >&2; exit 3";
    let spec = Spec::new("broken", "/bin/sh", folder.path().join("broken.log"))
        .args(["-c", script])
        .ready(Ready::Http { address, path: "/ready".into() });
    let said = Part::new(spec).start().await.unwrap_err().to_string();
    assert!(said.starts_with("broken ended at its start (exit status: 3)"), "{said}");
    assert!(said.contains("  first\n  the reason"), "{said}");

    let missing = Part::new(
        Spec::new("missing", "/no/such/program", folder.path().join("missing.log"))
            .ready(Ready::Http { address, path: "/ready".into() }),
    );
    let said = missing.start().await.unwrap_err().to_string();
    assert!(said.contains("/no/such/program"), "{said}");
}

#[tokio::test]
async fn a_part_that_never_gets_ready_says_what_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    // Somebody listens there and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let mut spec = Spec::new("silent", "/bin/sleep", folder.path().join("silent.log"))
        .args(["600"])
        .ready(Ready::Http { address, path: "/ready".into() });
    spec.ready_within = Duration::from_millis(50);
    let part = Part::new(spec);
    let said = part.start().await.unwrap_err().to_string();
    assert!(said.starts_with("waited 50ms for silent to be ready"), "{said}");
    assert_eq!(part.state(), State::Running, "not ready is not dead");
}

#[tokio::test]
async fn a_retired_part_is_not_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let part = family(&folder);
    part.retire();
    assert!(part.start().await.unwrap_err().to_string().contains("closing"));
    assert_eq!(part.state(), State::Stopped);
}
