//! One command starts the shop, a few break it and mend it, and none of its ends leaves anything behind.

#[allow(dead_code, reason = "each test program takes what it needs")]
mod shop;

use std::time::Duration;

use nix::sys::signal::Signal;
use shop::{Shop, run};
use testbed::{Life, State, poll, tree};

const SOON: Duration = Duration::from_secs(30);

/// Every process of the shop: the keeper and all below it.
fn processes(shop: &Shop) -> Vec<i32> {
    let keeper = shop.keeper().pid().expect("it runs");
    let mut all = tree::below(keeper);
    all.push(keeper);
    all
}

/// Every process that holds one of the shop's logs, which the guards do even where they are nobody's children.
fn holders(shop: &Shop) -> Vec<i32> {
    let home = shop.home();
    let holds = |pid: &i32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.flat_map(|file| std::fs::read_link(file.path())).any(|target| target.starts_with(home))
    };
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(holds).collect()
}

async fn wait_until_gone(pids: &[i32]) {
    let left = || pids.iter().filter(|pid| tree::state(**pid) != State::Stopped).collect::<Vec<_>>();
    let gone = poll::until_true("all to be gone", SOON, || left().is_empty()).await;
    assert!(gone.is_ok(), "left: {:?} of {pids:?}", left());
}

#[tokio::test]
async fn parts_are_broken_and_mended_by_command() {
    let shop = Shop::up().await;
    let names: Vec<String> = shop.status().parts.into_iter().map(|part| part.name).collect();
    assert_eq!(names, ["postgres", "rabbitmq", "catalog", "payments", "orders", "storefront"]);
    for part in shop.status().parts {
        assert_eq!(part.state, "running", "{}", part.name);
        assert_eq!(
            part.admin.is_none(),
            ["postgres", "rabbitmq"].contains(&part.name.as_str()),
            "{}",
            part.name
        );
    }
    assert!(shop.cli(["status"]).contains(&shop.url("")));

    // A service: killed, and back on the same port.
    let before = shop.part("payments");
    shop.cli(["kill", "payments"]);
    let killed = shop.part("payments");
    assert_eq!((killed.state.as_str(), killed.pid), ("stopped", None));
    assert!(shop.cli(["kill", "payments"]).contains("stopped already"));
    assert_eq!(shop.try_cli(["pause", "payments"]).code, Some(1));
    shop.cli(["start", "payments"]);
    let after = shop.part("payments");
    assert_eq!((after.public, after.admin, after.state), (before.public, before.admin, "running".into()));
    assert_ne!(after.pid, before.pid);

    // A server with children: paused as a whole, and on again.
    let postgres = shop.part("postgres").pid.unwrap();
    shop.cli(["pause", "postgres"]);
    assert_eq!(shop.part("postgres").state, "paused");
    assert!(tree::below(postgres).into_iter().all(|pid| tree::state(pid) == State::Paused));
    assert_eq!(shop.try_cli(["start", "postgres"]).code, Some(1), "paused is not stopped");
    shop.cli(["resume", "postgres"]);
    assert_eq!(shop.part("postgres").state, "running");

    let unknown = shop.try_cli(["kill", "bank"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.text.contains("postgres, rabbitmq, catalog, payments, orders, storefront"),
        "{}",
        unknown.text
    );
    assert!(shop.database("orders").ends_with("/orders"));
    assert!(shop.try_cli(["database", "storefront"]).text.contains("catalog, payments, orders"));
}

#[tokio::test]
async fn a_part_that_dies_by_itself_is_told_and_stays_stopped_until_it_is_started() {
    let shop = Shop::up().await;
    let catalog = shop.part("catalog").pid.unwrap();
    tree::signal(catalog, Signal::SIGKILL).unwrap();
    poll::until_true("the news", SOON, || shop.log().contains("catalog has died by itself")).await.unwrap();
    assert_eq!(shop.part("catalog").state, "stopped");
    shop.cli(["start", "catalog"]);
    assert_eq!(shop.part("catalog").state, "running");
}

#[tokio::test]
async fn a_second_start_harms_nothing_and_a_signal_ends_everything_in_order() {
    let shop = Shop::up().await;
    let before = shop.status();
    let second = run(shop.home(), &["up", "--port", "0"]);
    assert_eq!(second.code, Some(1), "{}", second.text);
    assert!(second.text.contains(&shop.url("")), "{}", second.text);
    assert_eq!(shop.status(), before);

    // Also with a part that cannot hear.
    shop.cli(["pause", "catalog"]);
    let (all, holders) = (processes(&shop), holders(&shop));
    let mut life = shop.keeper().life();
    tree::signal(shop.keeper().pid().unwrap(), Signal::SIGTERM).unwrap();
    let ended = tokio::time::timeout(SOON, life.wait_for(|life| matches!(life, Life::Ended(_)))).await;
    let Life::Ended(ended) = ended.expect("it ends in time").unwrap().clone() else { panic!("not the end") };
    assert!(ended.success, "{}\n{}", ended.how, shop.log());
    wait_until_gone(&all).await;
    wait_until_gone(&holders).await;
    assert!(!shop.home().join("run").exists());
    assert!(!shop.home().join("control.sock").exists());
    assert!(shop.log().contains("everything has ended"), "{}", shop.log());

    let nobody = run(shop.home(), &["status"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.text.starts_with("no shop is running"), "{}", nobody.text);
}

#[tokio::test]
async fn a_killed_keeper_leaves_no_process_and_the_next_start_removes_its_files() {
    let mut shop = Shop::up().await;
    shop.cli(["pause", "payments"]);
    let mut all = processes(&shop);
    all.extend(holders(&shop));
    assert!(all.len() > 10, "too few to prove anything: {all:?}");
    let keeper = shop.keeper().pid().unwrap();
    tree::signal(keeper, Signal::SIGKILL).unwrap();
    wait_until_gone(&all).await;

    shop.up_again().await;
    assert!(shop.log().contains("removed what an earlier run had left"), "{}", shop.log());
    assert!(shop.status().parts.iter().all(|part| part.state == "running"));
}
