//! The broker is killed, hangs, forgets, or has no room: what was confirmed is not lost, nobody waits longer than
//! they said, and everything goes on by itself.

use std::{
    collections::BTreeSet,
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use messaging::{Done, PublishError, Received, State, Topology, WorkQueue};
use resilience::{Classify as _, Outcome};
use testbed::{poll, rabbitmq::Options};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use crate::stage::{self, CONFIRM, PATIENCE, Stage, consume, eventually, number, play};

const QUEUE: &str = "charges";

fn topology() -> Topology {
    Topology::new().queue(WorkQueue::new(QUEUE))
}

/// Starts a consumer that remembers what it handled.
fn remember<F>(stage: &Stage, handler: F)
where
    F: Fn(Received) -> Done + Send + Sync + 'static,
{
    let (broker, stop) = (stage.broker.clone(), stage.stop.clone());
    tokio::spawn(async move {
        let handler = move |received| ready(handler(received));
        let consume = consume(QUEUE).at_once(4);
        let consumer = broker.consumer(consume, || ready(()), handler).expect("good settings");
        consumer.run(stop).await;
    });
}

#[test]
fn killed_and_started_again_it_has_what_it_confirmed() {
    play(async {
        let stage = Arc::new(stage::private(Options::default(), topology()).await);
        stage.connected().await;
        let handled = Arc::new(Mutex::new(BTreeSet::new()));
        remember(&stage, {
            let handled = Arc::clone(&handled);
            move |received| {
                let number = number(&received.message);
                // Some are in a pause when the broker dies.
                if number.is_multiple_of(5) && received.attempt == 1 {
                    return Done::Retry;
                }
                handled.lock().unwrap().insert(number);
                Done::Ack
            }
        });

        // Publishers that go on whatever happens, and remember what was confirmed to them.
        let confirmed = Arc::new(Mutex::new(BTreeSet::new()));
        let (numbers, enough) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let mut publishers = JoinSet::new();
        for _ in 0..6 {
            let (stage, confirmed) = (Arc::clone(&stage), Arc::clone(&confirmed));
            let (numbers, enough) = (Arc::clone(&numbers), Arc::clone(&enough));
            publishers.spawn(async move {
                while !enough.load(Ordering::SeqCst) {
                    let number = numbers.fetch_add(1, Ordering::SeqCst);
                    match stage.publish(QUEUE, number).await {
                        Ok(()) => {
                            confirmed.lock().unwrap().insert(number);
                        }
                        Err(error) if error.class().outcome == Outcome::NotExecuted => {
                            let mut state = stage.broker.watch();
                            let _ = tokio::time::timeout(CONFIRM, state.changed()).await;
                        }
                        Err(_) => {}
                    }
                }
            });
        }
        let published = || confirmed.lock().unwrap().len();
        eventually("the first 300", || published() >= 300).await;
        stage.rabbit().part().kill().await.unwrap();
        eventually("it to be noticed", || matches!(stage.broker.state(), State::Down { .. })).await;
        let before = published();
        stage.rabbit().part().start().await.unwrap();
        eventually("300 more", || published() >= before + 300).await;
        enough.store(true, Ordering::SeqCst);
        while let Some(publisher) = publishers.join_next().await {
            publisher.unwrap();
        }

        let confirmed = confirmed.lock().unwrap().clone();
        let lost = || {
            let handled = handled.lock().unwrap();
            confirmed.difference(&handled).copied().collect::<Vec<_>>()
        };
        let all = poll::until_true("all that was confirmed", PATIENCE, || lost().is_empty()).await;
        assert!(all.is_ok(), "of {} confirmed, lost: {:?}", confirmed.len(), lost());
    });
}

#[test]
fn hung_it_is_left_in_time_and_found_again() {
    play(async {
        let stage = stage::private(Options::default(), topology()).await;
        stage.connected().await;
        let (seen, mut handled) = mpsc::unbounded_channel();
        remember(&stage, move |received| {
            seen.send(number(&received.message)).unwrap();
            Done::Ack
        });
        stage.publish(QUEUE, 1).await.unwrap();
        assert_eq!(handled.recv().await, Some(1));

        stage.rabbit().part().pause().await.unwrap();
        let started = Instant::now();
        let unknown = stage.publish(QUEUE, 2).await.unwrap_err();
        assert_eq!(unknown.class().outcome, Outcome::Unknown, "{unknown:?}");
        assert!(
            (CONFIRM..CONFIRM + Duration::from_secs(1)).contains(&started.elapsed()),
            "after {:?}",
            started.elapsed()
        );
        // Sooner than the heartbeat, since a publisher noticed.
        eventually("it to be left", || matches!(stage.broker.state(), State::Down { .. })).await;
        assert!(started.elapsed() < CONFIRM + Duration::from_secs(6), "{:?}", started.elapsed());
        let started = Instant::now();
        let down = stage.publish(QUEUE, 3).await.unwrap_err();
        assert!(matches!(down.failure(), Some(PublishError::Down(_))), "{down:?}");
        assert!(started.elapsed() < Duration::from_millis(100));

        // Some connects in vain later there is still no more than one of them.
        eventually("three tries", || {
            matches!(stage.broker.state(), State::Down { since, .. } if since.elapsed() > Duration::from_secs(9))
        })
        .await;
        let sockets = sockets_to(stage.rabbit().address().port());
        assert!(sockets <= 2, "{sockets} sockets");

        stage.rabbit().part().resume().unwrap();
        stage.connected().await;
        stage.publish(QUEUE, 4).await.unwrap();
        // The second one may have arrived.
        while handled.recv().await != Some(4) {}
    });
}

#[test]
fn killed_while_its_queues_are_new_it_gets_them_anew() {
    play(async {
        let stage = stage::private(Options::default(), topology()).await;
        poll::until("the last queue", PATIENCE, || stage.look("charges.later.5000ms")).await.unwrap();
        assert!(!stage.broker.state().is_connected(), "nothing is confirmed to a new queue");
        stage.rabbit().part().kill().await.unwrap();
        stage.rabbit().part().start().await.unwrap();
        stage.connected().await;
        // The broker forgets the log of the one that was made last.
        for queue in
            ["charges.later.5000ms", "charges.later.2000ms", "charges.later.500ms", "charges.dead", QUEUE]
        {
            stage.publish(queue, 1).await.unwrap();
        }
        assert_eq!(stage.take(QUEUE).await.number(), 1);
    });
}

#[test]
fn without_room_it_says_so_and_is_not_blamed() {
    play(async {
        let settings = vec!["disk_free_limit.absolute = 100000GB".to_owned()];
        let options = Options { settings, ..Options::default() };
        let stage = stage::private(options, topology()).await;
        stage.connected().await;
        // The broker says so to whoever publishes; that first message may still get through.
        let first = stage.publish(QUEUE, 1).await.map_err(|error| error.class().outcome);
        assert!(matches!(first, Ok(()) | Err(Outcome::Unknown)), "{first:?}");
        let mut state = stage.broker.watch();
        let blocked = state.wait_for(|state| matches!(state, State::Blocked { .. }));
        let blocked = tokio::time::timeout(PATIENCE, blocked).await.unwrap().unwrap().clone();
        let State::Blocked { since, reason } = blocked else { unreachable!() };
        assert!(reason.contains("disk"), "{reason}");
        let started = Instant::now();
        let refused = stage.publish(QUEUE, 2).await.unwrap_err();
        assert!(matches!(refused.failure(), Some(PublishError::Blocked)), "{refused:?}");
        assert_eq!(refused.class().outcome, Outcome::NotExecuted);
        assert!(started.elapsed() < Duration::from_millis(100));
        // It stays the same session: nothing is torn down for that.
        eventually("four seconds of it", || since.elapsed() > Duration::from_secs(4)).await;
        assert!(matches!(stage.broker.state(), State::Blocked { since: still, .. } if still == since));
    });
}

/// How many sockets of this process are connected to a port.
fn sockets_to(port: u16) -> usize {
    let rows = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let port = format!(":{port:04X}");
    let open = |row: &&str| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        // A socket that nobody holds any more has no inode.
        columns.get(2).is_some_and(|remote| remote.ends_with(&port)) && columns.get(9) != Some(&"0")
    };
    rows.lines().skip(1).filter(open).count()
}
