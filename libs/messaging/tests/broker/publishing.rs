//! Publishing: a confirm means that a queue has it.

use std::{sync::Arc, time::Duration};

use messaging::{Message, PublishError, Route, State, Topology, WorkQueue};
use resilience::{CallContext, CallError, Classify as _, Deadline, Outcome};
use testbed::poll;
use tokio::{task::JoinSet, time::timeout};
use uuid::Uuid;

use crate::stage::{self, KIND, PATIENCE, caller, message, play};

#[test]
fn what_no_queue_takes_is_a_failure_and_harms_nothing_else() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("routes"))).await;
        let lost = stage.publish("no.such.queue", 1).await.unwrap_err();
        assert!(matches!(lost.failure(), Some(PublishError::Unroutable { code: 312, .. })), "{lost:?}");
        assert_eq!(lost.class().outcome, Outcome::NotExecuted);

        let exchange = Route::Exchange("no.such.exchange");
        let refused = stage.broker.publish(&caller(), exchange, &message(2)).await.unwrap_err();
        assert!(matches!(refused.failure(), Some(PublishError::Refused(_))), "{refused:?}");

        // Both at once with good ones: each publisher hears of its own message.
        let stage = Arc::new(stage);
        let mut publishers = JoinSet::new();
        for n in 0..60 {
            let stage = Arc::clone(&stage);
            publishers.spawn(async move {
                let good = n % 3 != 0;
                let queue = if good { "routes" } else { "no.such.queue" };
                (good, stage.publish(queue, n).await)
            });
        }
        while let Some(published) = publishers.join_next().await {
            let (good, result) = published.unwrap();
            assert_eq!(good, result.is_ok(), "{result:?}");
        }
        assert_eq!(stage.look("routes").await.unwrap().0, 40);
        assert!(stage.broker.state().is_connected());
    });
}

#[test]
fn a_queue_of_ours_that_somebody_deleted_comes_back() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("deleted"))).await;
        stage.publish("deleted", 1).await.unwrap();
        let connection = stage.connect().await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.queue_delete("deleted".into(), lapin::options::QueueDeleteOptions::default()).await.unwrap();

        let lost = stage.publish("deleted", 2).await.unwrap_err();
        assert!(matches!(lost.failure(), Some(PublishError::Unroutable { .. })), "{lost:?}");
        poll::until("the queue", PATIENCE, || async { Ok(stage.publish("deleted", 3).await?) })
            .await
            .unwrap();
        assert_eq!(stage.take("deleted").await.number(), 3);
    });
}

#[test]
fn an_event_reaches_each_of_its_queues() {
    play(async {
        let topology = Topology::new()
            .queue(WorkQueue::new("loyalty.paid").bound_to("paid"))
            .queue(WorkQueue::new("mails.paid").bound_to("paid"));
        let stage = stage::shared(topology).await;
        stage.broker.publish(&caller(), Route::Exchange("paid"), &message(7)).await.unwrap();
        for queue in ["loyalty.paid", "mails.paid"] {
            assert_eq!(stage.take(queue).await.number(), 7);
        }
    });
}

#[test]
fn publishers_that_go_away_leave_nothing_behind() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("abandoned"))).await;
        for n in 0..100 {
            // Dropped at some point between being sent and being confirmed.
            let in_vain = timeout(Duration::from_micros(u64::from(n) * 20), stage.publish("abandoned", n));
            let _ = in_vain.await;
        }
        poll::until("a free channel", PATIENCE, || async { Ok(stage.publish("abandoned", 100).await?) })
            .await
            .unwrap();
        // All eight places work, not just one.
        let stage = Arc::new(stage);
        let mut publishers = JoinSet::new();
        for n in 0..200 {
            let stage = Arc::clone(&stage);
            publishers.spawn(async move { stage.publish("abandoned", 200 + n).await });
        }
        while let Some(published) = publishers.join_next().await {
            published.unwrap().unwrap();
        }
        assert!(stage.look("abandoned").await.unwrap().0 >= 201);
    });
}

#[test]
fn without_a_broker_nothing_is_sent_and_nobody_waits() {
    play(async {
        let mut stage = stage::shared(Topology::new().queue(WorkQueue::new("away"))).await;
        stage.end().await;
        assert!(matches!(stage.broker.state(), State::Down { .. }));
        let started = tokio::time::Instant::now();
        let down = stage.publish("away", 1).await.unwrap_err();
        assert!(matches!(down.failure(), Some(PublishError::Down(_))), "{down:?}");
        assert_eq!(down.class().outcome, Outcome::NotExecuted);
        assert!(started.elapsed() < Duration::from_millis(100));

        let late = CallContext::owner("test", Deadline::after(Duration::ZERO));
        let refused = stage.broker.publish(&late, Route::Queue("away"), &message(1)).await;
        assert!(matches!(refused, Err(CallError::Refused { .. })), "{refused:?}");
    });
}

#[test]
fn a_message_that_is_too_large_is_not_sent() {
    play(async {
        let stage = stage::shared(Topology::new().queue(WorkQueue::new("large"))).await;
        let large = Message::new(Uuid::nil(), KIND, 1, &"x".repeat(messaging::MAX_BODY)).unwrap();
        let refused = stage.broker.publish(&caller(), Route::Queue("large"), &large).await.unwrap_err();
        assert_eq!(refused.class().outcome, Outcome::Rejected);
        let long = Message::new(Uuid::nil(), "k".repeat(256), 1, &1).unwrap();
        let refused = stage.broker.publish(&caller(), Route::Queue("large"), &long).await;
        assert!(matches!(refused.unwrap_err().failure(), Some(PublishError::TooLarge)));
    });
}
