//! A payments service that keeps the contract, can hang, and can be absent.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use proto::payments::{
    ChargeReply, ChargeRequest, Decision,
    payments_server::{Payments, PaymentsServer},
};
use tokio::{runtime::Runtime, sync::watch};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

use crate::shop::server_runtime;

/// What it does with a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Decides by the card.
    Well,
    /// Answers nobody until it is well.
    Hung,
    /// Finds every charge malformed.
    Picky,
}

/// The service. It keeps its books while it is absent.
pub(crate) struct FakePayments {
    at: SocketAddr,
    books: Books,
    running: Mutex<Option<Runtime>>,
}

#[derive(Clone)]
struct Books {
    mood: watch::Sender<Mood>,
    calls: Arc<Mutex<Vec<ChargeRequest>>>,
}

impl FakePayments {
    pub(crate) fn absent(at: SocketAddr) -> Self {
        let books = Books { mood: watch::Sender::new(Mood::Well), calls: Arc::default() };
        Self { at, books, running: Mutex::new(None) }
    }

    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        let runtime = server_runtime()?;
        let (at, books) = (self.at, self.books.clone());
        runtime
            .spawn(async move {
                let incoming = TcpIncoming::bind(at)?;
                let serving = Server::builder().add_service(PaymentsServer::new(books));
                tokio::spawn(serving.serve_with_incoming(incoming));
                anyhow::Ok(())
            })
            .await??;
        *self.running.lock().expect("not poisoned") = Some(runtime);
        Ok(())
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.books.mood.send_replace(mood);
    }

    /// Every charge that arrived, in order.
    pub(crate) fn calls(&self) -> Vec<ChargeRequest> {
        self.books.calls.lock().expect("not poisoned").clone()
    }

    /// How many charges arrived with this key.
    pub(crate) fn calls_for(&self, key: &str) -> usize {
        self.calls().iter().filter(|call| call.key == key).count()
    }
}

impl Drop for FakePayments {
    fn drop(&mut self) {
        if let Some(runtime) = self.running.get_mut().expect("not poisoned").take() {
            runtime.shutdown_background();
        }
    }
}

#[tonic::async_trait]
impl Payments for Books {
    async fn charge(&self, request: Request<ChargeRequest>) -> Result<Response<ChargeReply>, Status> {
        let charge = request.into_inner();
        let repeated = {
            let mut calls = self.calls.lock().expect("not poisoned");
            let repeated = calls.iter().any(|call| call.key == charge.key);
            calls.push(charge.clone());
            repeated
        };
        let mut mood = self.mood.subscribe();
        let mood = mood.wait_for(|mood| *mood != Mood::Hung).await.map(|mood| *mood);
        if mood.is_ok_and(|mood| mood == Mood::Picky) {
            return Err(Status::invalid_argument("amount_minor is odd"));
        }
        let (decision, reason) = match charge.card.as_str() {
            "tok_declined" => (Decision::Declined, "The card was declined."),
            _ => (Decision::Approved, ""),
        };
        Ok(Response::new(ChargeReply {
            decision: decision.into(),
            decline_reason: reason.to_owned(),
            replayed: repeated,
        }))
    }
}
