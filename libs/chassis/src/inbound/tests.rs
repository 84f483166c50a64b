//! Requests through a real server and a real client.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::get;
use tokio::{net::TcpListener, sync::Notify};

use super::*;

/// Serves `routes` behind the stack and tells where.
async fn serve(inbound: Inbound, places: usize, routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(axum::serve(listener, inbound.routes(routes, places)).into_future());
    format!("http://{address}/")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().expect("a client")
}

/// Counts who is in, and lets them out when told to.
#[derive(Clone, Default)]
struct Room {
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    entered: Arc<AtomicUsize>,
    left_early: Arc<AtomicUsize>,
    open: Arc<Notify>,
}

struct Visit(Room, bool);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.left_early.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Room {
    async fn visit(self) -> &'static str {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        let mut visit = Visit(self.clone(), false);
        self.open.notified().await;
        visit.1 = true;
        "done"
    }

    fn routes(&self) -> Router {
        let room = self.clone();
        Router::new().route("/", get(move || room.clone().visit()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twelve_at_once_two_are_in_and_all_are_served() {
    let room = Room::default();
    let url = serve(Inbound::service(Duration::from_secs(8)), 2, room.routes()).await;
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let request = client().get(&url);
            tokio::spawn(async move { request.send().await.expect("an answer").status() })
        })
        .collect();
    for served in 1..=12 {
        testbed::poll::until_true("somebody to enter", Duration::from_secs(5), || {
            room.entered.load(Ordering::SeqCst) >= served
        })
        .await
        .expect("entered");
        room.open.notify_one();
    }
    for call in calls {
        assert_eq!(call.await.expect("no panic"), 200);
    }
    assert_eq!(room.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_place_until_the_deadline_was_not_served() {
    let room = Room::default();
    let url = serve(Inbound::service(Duration::from_secs(8)), 1, room.routes()).await;
    let first = tokio::spawn(client().get(&url).send());
    let entered = || room.entered.load(Ordering::SeqCst) == 1;
    testbed::poll::until_true("the first to enter", Duration::from_secs(5), entered).await.expect("entered");
    let second = client().get(&url).header(wire::TIMEOUT_MS, "50").send().await.expect("an answer");
    assert_eq!(
        (second.status().as_u16(), &second.headers()["x-outcome"]),
        (504, &"not-executed".parse().expect("text"))
    );
    assert_eq!(room.entered.load(Ordering::SeqCst), 1);
    room.open.notify_one();
    assert_eq!(first.await.expect("no panic").expect("an answer").status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_request_is_answered_at_once_and_reaches_nobody() {
    let room = Room::default();
    let url = serve(Inbound::service(Duration::from_secs(8)), 1, room.routes()).await;
    let answer = client().get(&url).header(wire::TIMEOUT_MS, "0").send().await.expect("an answer");
    assert_eq!(answer.status(), 504);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let body: serde_json::Value = answer.json().await.expect("JSON");
    assert_eq!((&body["code"], &body["outcome"]), (&"DEADLINE_EXCEEDED".into(), &"not-executed".into()));
    assert_eq!(room.entered.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_too_long_is_dropped_and_its_outcome_is_unknown() {
    let room = Room::default();
    let url = serve(Inbound::service(Duration::from_millis(100)), 1, room.routes()).await;
    let answer = client().get(&url).send().await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-outcome"]),
        (504, &"unknown".parse().expect("text"))
    );
    let left = || room.left_early.load(Ordering::SeqCst) == 1;
    testbed::poll::until_true("the handler to be dropped", Duration::from_secs(5), left)
        .await
        .expect("dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_answer_and_gives_its_place_back() {
    async fn broken() -> &'static str {
        panic!("on purpose")
    }
    let url = serve(Inbound::service(Duration::from_secs(8)), 1, Router::new().route("/", get(broken))).await;
    for _ in 0..3 {
        let answer = client().get(&url).send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["x-outcome"]),
            (500, &"unknown".parse().expect("text"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_caller_reads_a_grpc_status() {
    let url = serve(Inbound::service(Duration::from_secs(8)), 1, Room::default().routes()).await;
    let answer = client()
        .get(&url)
        .header("content-type", "application/grpc")
        .header(wire::GRPC_TIMEOUT, "0m")
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["grpc-status"], "4");
    assert_eq!(answer.headers()["x-outcome"], "not-executed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_edge_owns_the_retries_whatever_the_request_says() {
    async fn owner(Cx(cx): Cx) -> String {
        format!("{} {} {}", cx.retry_owner(), cx.retry_owner().is_here(), cx.attempt())
    }
    let routes = || Router::new().route("/", get(owner));
    let ask = async |url: String| {
        let request = client().get(url).header(wire::RETRY_OWNER, "somebody").header(wire::ATTEMPT, "2");
        request.send().await.expect("an answer").text().await.expect("a body")
    };
    let edge = serve(Inbound::edge("storefront", Duration::from_secs(3)), 1, routes()).await;
    assert_eq!(ask(edge).await, "storefront true 1");
    let inner = serve(Inbound::service(Duration::from_secs(3)), 1, routes()).await;
    assert_eq!(ask(inner).await, "somebody false 2");
}
