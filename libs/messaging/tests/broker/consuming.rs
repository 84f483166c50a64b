//! Consuming: what each word of a handler does, what poison does not, and when nothing is taken.

use std::{
    collections::BTreeSet,
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lapin::{
    BasicProperties, Channel,
    options::BasicPublishOptions,
    types::{AMQPValue, FieldTable},
};
use messaging::{Done, Received, Topology, TraceContext, WorkQueue};
use testbed::poll;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time::Instant,
};

use crate::stage::{self, KIND, PATIENCE, Stage, caller, consume, eventually, message, number, play};

/// Starts a consumer whose gate is always open.
fn start<F>(stage: &Stage, queue: &str, handler: F) -> JoinHandle<()>
where
    F: Fn(Received) -> Done + Send + Sync + 'static,
{
    let (broker, stop, consume) = (stage.broker.clone(), stage.stop.clone(), consume(queue).at_once(4));
    tokio::spawn(async move {
        let handler = move |received| ready(handler(received));
        let consumer = broker.consumer(consume, || ready(()), handler).expect("good settings");
        consumer.run(stop).await;
    })
}

#[test]
fn each_message_is_handled_and_forgotten() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("plain"))).await;
        let (seen, mut handled) = mpsc::unbounded_channel();
        start(&stage, "plain", move |received| {
            seen.send(received).unwrap();
            Done::Ack
        });
        for n in 0..50 {
            stage.publish("plain", n).await.unwrap();
        }
        let mut numbers = Vec::new();
        while numbers.len() < 50 {
            let received = handled.recv().await.unwrap();
            assert_eq!((received.attempt, received.redelivered), (1, false));
            assert_eq!(received.message.json::<serde_json::Value>().unwrap()["n"], number(&received.message));
            numbers.push(number(&received.message));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        poll::until("an empty queue", PATIENCE, || async {
            anyhow::ensure!(stage.look("plain").await? == (0, 1));
            Ok(())
        })
        .await
        .unwrap();
        assert!(handled.try_recv().is_err(), "one came twice");
    });
}

#[test]
fn later_means_growing_pauses_and_a_count_of_attempts() {
    const PAUSES: [Duration; 3] =
        [Duration::from_millis(150), Duration::from_millis(400), Duration::from_millis(900)];
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("later").pauses(PAUSES))).await;
        let (seen, mut handled) = mpsc::unbounded_channel();
        start(&stage, "later", move |received| {
            let done = if received.attempt < 5 { Done::Retry } else { Done::Ack };
            seen.send((Instant::now(), received)).unwrap();
            done
        });
        let trace = TraceContext {
            parent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            state: None,
        };
        let traced = message(9).in_trace(trace.clone());
        stage.broker.publish(&caller(), messaging::Route::Queue("later"), &traced).await.unwrap();
        let mut before: Option<Instant> = None;
        for attempt in 1..=5_u32 {
            let (at, received) = handled.recv().await.unwrap();
            assert_eq!(received.attempt, attempt);
            assert_eq!(received.message.trace, Some(trace.clone()), "it keeps its trace");
            if let Some(before) = before {
                let least = PAUSES[(attempt as usize - 2).min(2)];
                let pause = at - before;
                assert!(pause >= least, "attempt {attempt} after {pause:?}, not {least:?}");
            }
            before = Some(at);
        }
        poll::until("nothing to wait anywhere", PATIENCE, || async {
            for queue in
                ["later", "later.later.150ms", "later.later.400ms", "later.later.900ms", "later.dead"]
            {
                anyhow::ensure!(stage.look(queue).await?.0 == 0, "{queue} is not empty");
            }
            Ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn poison_goes_to_the_dead_letters_with_its_reason_and_the_next_is_handled() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("poisoned"))).await;
        let connection = stage.connect().await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let good = || {
            let mut headers = FieldTable::default();
            headers.insert("x-version".into(), AMQPValue::LongUInt(1));
            BasicProperties::default()
                .with_message_id(uuid::Uuid::nil().to_string().into())
                .with_type(KIND.into())
                .with_headers(headers)
        };
        let header = |name: &str, value| {
            let mut headers = FieldTable::default();
            headers.insert("x-version".into(), AMQPValue::LongUInt(1));
            headers.insert(name.into(), value);
            good().with_headers(headers)
        };
        let megabyte = vec![b'1'; 1024 * 1024];
        let poisons: [(&str, BasicProperties, &[u8]); 6] = [
            ("it has no headers", BasicProperties::default(), b"{}"),
            ("x-version is of the wrong type", header("x-version", AMQPValue::Boolean(true)), b"{}"),
            (
                "version 9 of charge.deferred is not known here",
                header("x-version", AMQPValue::LongInt(9)),
                b"{}",
            ),
            ("its body is not JSON", good(), b"\xff\xfe{"),
            ("its body has 1048576 bytes", good(), &megabyte),
            // Its expiration must not end it among the dead letters.
            (
                "its type \"other\" is not known here",
                good().with_type("other".into()).with_expiration("60000".into()),
                b"{}",
            ),
        ];
        for (_, properties, body) in &poisons {
            put(&channel, "poisoned", properties.clone(), body).await;
        }
        stage.publish("poisoned", 5).await.unwrap();

        let (seen, mut handled) = mpsc::unbounded_channel();
        start(&stage, "poisoned", move |received| {
            seen.send(number(&received.message)).unwrap();
            Done::Ack
        });
        assert_eq!(handled.recv().await, Some(5));
        let mut reasons = Vec::new();
        for _ in &poisons {
            let dead = stage.take("poisoned.dead").await;
            assert_eq!(dead.0.properties.expiration(), &None);
            assert_eq!(dead.header("x-first-queue"), Some(&text("poisoned")));
            let reason = dead.header("x-dead-reason").and_then(AMQPValue::as_long_string);
            let reason = reason.unwrap().to_string();
            let (.., body) = poisons.iter().find(|(why, ..)| reason.starts_with(why)).expect(&reason);
            assert_eq!(&dead.0.data, body, "kept as it came");
            reasons.push(reason);
        }
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), poisons.len(), "{reasons:?}");
        assert_eq!(stage.look("poisoned").await.unwrap().0, 0);
    });
}

#[test]
fn a_handler_that_panics_or_hangs_has_said_nothing() {
    play(async {
        let pauses = [Duration::from_millis(50)];
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("sick").pauses(pauses))).await;
        let (seen, mut handled) = mpsc::unbounded_channel();
        let (broker, stop) = (stage.broker.clone(), stage.stop.clone());
        let consume = consume("sick").handle_within(Duration::from_millis(100));
        tokio::spawn(async move {
            let handler = move |received: Received| {
                let seen = seen.clone();
                async move {
                    seen.send(received.attempt).unwrap();
                    match received.attempt {
                        1 => panic!("a bug"),
                        2 => std::future::pending().await,
                        _ => Done::Dead("declared dead".into()),
                    }
                }
            };
            broker.consumer(consume, || ready(()), handler).unwrap().run(stop).await;
        });
        stage.publish("sick", 1).await.unwrap();
        for attempt in 1..=3 {
            assert_eq!(handled.recv().await, Some(attempt));
        }
        let dead = stage.take("sick.dead").await;
        assert_eq!(dead.header("x-dead-reason"), Some(&text("declared dead")));
        assert_eq!(dead.header("x-attempt"), Some(&AMQPValue::LongUInt(3)));
    });
}

#[test]
fn nothing_is_taken_while_the_gate_is_closed() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("gated"))).await;
        let (gate, asked) = watch::channel(false);
        let handled = Arc::new(AtomicUsize::new(0));
        let (broker, stop, count) = (stage.broker.clone(), stage.stop.clone(), Arc::clone(&handled));
        tokio::spawn(async move {
            let open = move || {
                let mut asked = asked.clone();
                async move {
                    asked.wait_for(|open| *open).await.unwrap();
                }
            };
            let handler = move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                ready(Done::Ack)
            };
            broker.consumer(consume("gated").at_once(2), open, handler).unwrap().run(stop).await;
        });
        for n in 0..5 {
            stage.publish("gated", n).await.unwrap();
        }
        assert_eq!(stage.look("gated").await.unwrap(), (5, 0), "all wait, nobody is subscribed");

        gate.send_replace(true);
        eventually("all to be handled", || handled.load(Ordering::SeqCst) == 5).await;
        gate.send_replace(false);
        // The next one finds the gate closed: it goes back, and the subscription ends.
        stage.publish("gated", 5).await.unwrap();
        poll::until("the subscription to end", PATIENCE, || async {
            anyhow::ensure!(stage.look("gated").await? == (1, 0));
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(handled.load(Ordering::SeqCst), 5);
        gate.send_replace(true);
        eventually("the last to be handled", || handled.load(Ordering::SeqCst) == 6).await;
    });
}

#[test]
fn a_stop_lets_finish_what_runs_and_gives_back_the_rest() {
    play(async {
        let mut stage = stage::shared(Topology::new().queue(WorkQueue::new("stopped"))).await;
        for n in 0..6 {
            stage.publish("stopped", n).await.unwrap();
        }
        let begun = Arc::new(Mutex::new(Vec::new()));
        let go_on = Arc::new(Notify::new());
        let (broker, stop) = (stage.broker.clone(), stage.stop.clone());
        let consumer = tokio::spawn({
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                let handler = move |received: Received| {
                    begun.lock().unwrap().push(number(&received.message));
                    let go_on = Arc::clone(&go_on);
                    async move {
                        // The first finishes when it is told to, the second never does.
                        if number(&received.message) == 1 {
                            std::future::pending::<()>().await;
                        }
                        go_on.notified().await;
                        Done::Ack
                    }
                };
                let consume = consume("stopped").at_once(2).finish_within(Duration::from_millis(500));
                broker.consumer(consume, || ready(()), handler).unwrap().run(stop).await;
            }
        });
        eventually("two to begin", || begun.lock().unwrap().len() == 2).await;
        stage.stop.cancel();
        go_on.notify_one();
        stage.end().await;
        consumer.await.unwrap();
        let begun: BTreeSet<u32> = begun.lock().unwrap().iter().copied().collect();
        assert_eq!(begun, BTreeSet::from([0, 1]), "no more were begun");
        poll::until("five to be back", PATIENCE, || async {
            anyhow::ensure!(stage.look("stopped").await? == (5, 0));
            Ok(())
        })
        .await
        .unwrap();
    });
}

/// Puts anything into a queue.
async fn put(channel: &Channel, queue: &str, properties: BasicProperties, body: &[u8]) {
    let options = BasicPublishOptions::default();
    let put = channel.basic_publish("".into(), queue.into(), options, body, properties);
    put.await.expect("a channel that works");
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
