//! A private RabbitMQ keeps what it confirmed through a kill, listens on loopback alone, and leaves nothing
//! behind.

use std::time::Duration;

use lapin::options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use testbed::{RabbitMq, State, poll, rabbitmq::Options, tree};

const QUEUE: &str = "kept";
const WITHIN: Duration = Duration::from_secs(20);

/// A channel with the queue declared. The connection has to be kept.
async fn open(url: &str) -> anyhow::Result<(Connection, Channel)> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(QUEUE.into(), options, arguments).await?;
    Ok((connection, channel))
}

/// What the broker calls itself.
fn node(broker: &RabbitMq) -> String {
    format!("shop{}@localhost", broker.address().port())
}

/// The addresses, as the kernel writes them, on which these processes listen.
fn listening(pids: &[i32]) -> Vec<String> {
    let mut sockets = Vec::new();
    for pid in pids {
        for file in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Ok(target) = std::fs::read_link(file.path()) else {
                continue;
            };
            if let Some(inode) =
                target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'))
            {
                sockets.push(inode.to_owned());
            }
        }
    }
    let mut found = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for row in std::fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let columns: Vec<&str> = row.split_whitespace().collect();
            // 0A is LISTEN.
            if columns[3] == "0A" && sockets.iter().any(|inode| inode == columns[9]) {
                found.push(columns[1].to_owned());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_survives_a_kill_and_a_drop_leaves_nothing() {
    let broker = RabbitMq::start(Options::default()).await.unwrap();
    let (_connection, channel) = open(broker.url().as_str()).await.unwrap();
    let confirmed = channel
        .basic_publish(
            "".into(),
            QUEUE.into(),
            BasicPublishOptions::default(),
            b"seven",
            BasicProperties::default().with_delivery_mode(2),
        )
        .await
        .unwrap()
        .await
        .unwrap();
    assert!(confirmed.is_ack());
    // RabbitMQ writes down where the log of a new queue is about a second later than it could; a kill before that
    // would lose the queue with all that it confirmed.
    let names = format!("data/{}/quorum", node(&broker));
    let names = broker.folder().join(names).join(node(&broker)).join("names.dets");
    poll::until_true("the new queue to be on disk", WITHIN, || {
        let written = std::fs::read(&names).unwrap_or_default();
        written.windows(QUEUE.len()).any(|part| part == QUEUE.as_bytes())
    })
    .await
    .unwrap();

    let before = broker.part().pid().unwrap();
    let program = std::fs::read_link(format!("/proc/{before}/exe")).unwrap();
    assert!(program.ends_with("beam.smp"), "the part is {}, not the virtual machine", program.display());
    broker.part().kill().await.unwrap();
    broker.part().start().await.unwrap();
    assert_ne!(broker.part().pid(), Some(before));
    // A quorum queue whose leader is not elected yet can leave a question unanswered for ever: ask anew.
    let message = poll::until("the message", WITHIN, || async {
        let (_connection, channel) = open(broker.url().as_str()).await?;
        let get = channel.basic_get(QUEUE.into(), BasicGetOptions { no_ack: true });
        let got = tokio::time::timeout(Duration::from_secs(1), get).await??;
        got.ok_or_else(|| anyhow::anyhow!("the queue is empty"))
    })
    .await
    .unwrap();
    assert_eq!(message.data, b"seven");

    let mut all = Vec::new();
    for part in [broker.part(), broker.epmd()] {
        let root = part.pid().unwrap();
        all.extend(tree::below(root));
        all.push(root);
    }
    let doors = listening(&all);
    // 127.0.0.1 and ::1, as the kernel writes them.
    let on_loopback = |door: &String| {
        door.starts_with("0100007F:") || door.starts_with("00000000000000000000000001000000:")
    };
    assert!(
        doors.len() >= 3 && doors.iter().all(on_loopback),
        "epmd, distribution and AMQP, on loopback alone: {doors:?}"
    );
    assert!(
        !doors.iter().any(|door| door.ends_with(":1111") || door.ends_with(":1628")),
        "the ports 4369 and 5672 belong to the machine's own broker: {doors:?}"
    );
    let folder = broker.folder().to_path_buf();
    drop(broker);
    assert!(all.iter().all(|pid| tree::state(*pid) == State::Stopped), "left: {all:?}");
    assert!(!folder.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_paused_resumed_and_stopped_in_order() {
    let broker = RabbitMq::start(Options::default()).await.unwrap();
    let mut strange = broker.url().clone();
    strange.set_password(Some("wrong")).unwrap();
    assert!(open(strange.as_str()).await.is_err(), "a wrong password was let in");

    broker.part().pause().await.unwrap();
    let asked = broker.part().spec().ready.ask();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), asked).await.is_err(),
        "a paused broker answered"
    );
    broker.part().resume().unwrap();
    poll::until("an answer", WITHIN, || broker.part().spec().ready.ask()).await.unwrap();

    let epmd = broker.epmd().pid();
    assert!(broker.part().stop().await.unwrap());
    assert_eq!(broker.part().state(), State::Stopped);
    assert_eq!(broker.epmd().pid(), epmd, "the port mapper stays for the next start");
    broker.part().start().await.unwrap();
    open(broker.url().as_str()).await.unwrap();
}
