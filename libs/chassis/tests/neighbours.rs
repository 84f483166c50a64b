//! What a caller concludes from each way a neighbour can fail, over real sockets.

use std::{net::SocketAddr, time::Duration};

use chassis::{
    grpc::{self, GrpcError},
    http::{HttpError, HttpNeighbour},
};
use proto::payments::{
    ChargeReply, ChargeRequest,
    payments_client::PaymentsClient,
    payments_server::{Payments, PaymentsServer},
};
use resilience::{
    CallContext, CallError, Classify as _, Deadline, Limit, Op, Outcome, Policy, Timeouts, Verdict,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::Instant,
};
use tonic::{Code, Request, Response, Status, service::Routes};

const MS: Duration = Duration::from_millis(1);
const CALL: Op = Op::idempotent("call");

fn cx() -> CallContext {
    CallContext::from_caller(Deadline::after(5000 * MS), None, 1)
}

fn policy() -> Policy {
    Policy::builder("peer", Timeouts::attempt(400 * MS)).build().expect("good settings")
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    testbed::ports::free_address().expect("a free port")
}

/// An address that accepts no connection: its queue is full.
async fn full() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let listener = socket.listen(0).expect("listening");
    let address = listener.local_addr().expect("an address");
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(100 * MS, TcpStream::connect(address)).await {
        waiting.push(stream);
        assert!(waiting.len() < 64, "the queue never fills");
    }
    (address, waiting, listener)
}

/// Answers every connection with `bytes` after having read something; an empty answer is a
/// connection that breaks.
async fn answers(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            if stream.read(&mut buffer).await.is_ok() && stream.write_all(bytes).await.is_ok() {
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}

/// Takes HTTP/2 connections, and breaks each as soon as a request has come.
async fn breaks_on_request() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut preface = [0; 24];
            if stream.read_exact(&mut preface).await.is_err() {
                continue;
            }
            // A frame: three bytes of length, one of type (1 is HEADERS), five that do not matter here.
            let mut head = [0; 9];
            while stream.read_exact(&mut head).await.is_ok() && head[3] != 1 {
                let mut frame = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
                if stream.read_exact(&mut frame).await.is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// Takes connections and never says anything.
async fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    address
}

async fn over_http(address: SocketAddr) -> (CallError<HttpError>, Duration) {
    let base = format!("http://{address}").parse().expect("an address");
    let peer = HttpNeighbour::new(base, policy()).expect("a client");
    let began = Instant::now();
    let error = peer.get(&cx(), CALL, &["things", "one"]).await.expect_err("no answer");
    (error, began.elapsed())
}

async fn over_grpc(address: SocketAddr) -> (CallError<GrpcError>, Duration) {
    let (policy, address) = (policy(), format!("http://{address}"));
    let client = PaymentsClient::new(grpc::channel(&address, &policy).expect("an address"));
    let began = Instant::now();
    let error = policy
        .call(&cx(), CALL, |cx| {
            let mut client = client.clone();
            let request = grpc::request(&cx, ChargeRequest::default());
            async move { Ok(client.charge(request).await?) }
        })
        .await
        .expect_err("no answer");
    (error, began.elapsed())
}

fn concluded<E: resilience::Classify>(error: &CallError<E>) -> (Outcome, Verdict, bool) {
    let class = error.class();
    (class.outcome, class.verdict, class.transient)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_surely_not_executed() {
    let expected = (Outcome::NotExecuted, Verdict::Failure, true);
    assert_eq!(concluded(&over_http(nobody()).await.0), expected);
    assert_eq!(concluded(&over_grpc(nobody()).await.0), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_does_not_stand_in_time_is_surely_not_executed() {
    let (address, _waiting, _listener) = full().await;
    let expected = (Outcome::NotExecuted, Verdict::Failure, true);
    let (error, took) = over_http(address).await;
    assert_eq!(concluded(&error), expected, "{error:?}");
    assert!(took < 390 * MS, "the connect timeout ended it: {took:?}");
    let (error, took) = over_grpc(address).await;
    assert_eq!(concluded(&error), expected, "{error:?}");
    assert!(took < 390 * MS, "the connect timeout ended it: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_neighbour_may_have_done_it() {
    let (error, took) = over_http(silent().await).await;
    assert!(matches!(error, CallError::TimedOut { limit: Limit::Attempt, .. }), "{error:?}");
    assert!((400 * MS..1000 * MS).contains(&took), "{took:?}");
    let (error, took) = over_grpc(silent().await).await;
    assert_eq!((error.class().outcome, took >= 390 * MS), (Outcome::Unknown, true), "{error:?} {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_midway_may_have_done_it() {
    let expected = (Outcome::Unknown, Verdict::Failure, true);
    assert_eq!(concluded(&over_http(answers(b"").await).await.0), expected);
    assert_eq!(
        concluded(&over_http(answers(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await).await.0),
        expected
    );
    assert_eq!(concluded(&over_grpc(breaks_on_request().await).await.0), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_http_neighbour_says_of_its_failure_is_believed() {
    for (answer, expected) in [
        (
            &b"HTTP/1.1 503 X\r\nx-outcome: not-executed\r\ncontent-length: 0\r\n\r\n"[..],
            (Outcome::NotExecuted, Verdict::Failure, true),
        ),
        (b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n", (Outcome::Unknown, Verdict::Failure, true)),
        (b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n", (Outcome::Unknown, Verdict::Failure, true)),
        (b"HTTP/1.1 501 X\r\ncontent-length: 0\r\n\r\n", (Outcome::Unknown, Verdict::Failure, false)),
        (
            b"HTTP/1.1 504 X\r\nx-outcome: unknown\r\ncontent-length: 0\r\n\r\n",
            (Outcome::Unknown, Verdict::TimedOut, true),
        ),
        (
            b"HTTP/1.1 429 X\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n",
            (Outcome::NotExecuted, Verdict::Neutral, true),
        ),
    ] {
        let (error, _) = over_http(answers(answer).await).await;
        let text = String::from_utf8_lossy(answer);
        assert_eq!(concluded(&error), expected, "{text}");
        assert_eq!(error.class().retry_after, text.contains("retry-after").then_some(2000 * MS));
    }
    // What tells the caller about its own request is an answer, and no failure of the neighbour.
    let address = answers(b"HTTP/1.1 404 X\r\ncontent-length: 2\r\n\r\nno").await;
    let base = format!("http://{address}").parse().expect("an address");
    let peer = HttpNeighbour::new(base, policy()).expect("a client");
    let reply = peer.get(&cx(), CALL, &["things", "../one"]).await.expect("an answer");
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (404, &b"no"[..]));
}

/// Fails as its first argument says, with its second as `x-outcome`.
struct Failing(Code, Option<Outcome>);

#[tonic::async_trait]
impl Payments for Failing {
    async fn charge(&self, request: Request<ChargeRequest>) -> Result<Response<ChargeReply>, Status> {
        let cx = grpc::context(&request);
        assert!(
            cx.deadline().remaining() <= 400 * MS,
            "the deadline came along: {:?}",
            cx.deadline().remaining()
        );
        let status = Status::new(self.0, "on purpose");
        Err(match self.1 {
            Some(outcome) => grpc::with_outcome(status, outcome),
            None => status,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_grpc_neighbour_says_of_its_failure_is_believed() {
    use Outcome::{NotExecuted, Rejected, Unknown};
    for (code, said, expected) in [
        (Code::InvalidArgument, None, (Rejected, Verdict::Healthy, false)),
        (Code::NotFound, None, (Rejected, Verdict::Healthy, false)),
        // No is no, whatever else it says.
        (Code::PermissionDenied, Some(NotExecuted), (Rejected, Verdict::Healthy, false)),
        (Code::Aborted, Some(Unknown), (Unknown, Verdict::Healthy, true)),
        (Code::Unavailable, Some(NotExecuted), (NotExecuted, Verdict::Failure, true)),
        (Code::Unavailable, None, (Unknown, Verdict::Failure, true)),
        (Code::Internal, None, (Unknown, Verdict::Failure, true)),
        (Code::DeadlineExceeded, Some(Unknown), (Unknown, Verdict::TimedOut, true)),
        (Code::Cancelled, None, (Unknown, Verdict::Failure, true)),
        (Code::ResourceExhausted, None, (NotExecuted, Verdict::Neutral, true)),
    ] {
        let routes = Routes::new(PaymentsServer::new(Failing(code, said))).into_axum_router();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (settings, inbound) = (chassis::Inbound::service(2000 * MS), 10);
        tokio::spawn(async move { axum::serve(listener, settings.routes(routes, inbound)).await });
        let (error, _) = over_grpc(address).await;
        assert_eq!(concluded(&error), expected, "{code:?}: {error:?}");
    }
}
