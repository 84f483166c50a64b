//! One service, or two of them, with a Postgres of their own.

use std::time::Duration;

use anyhow::ensure;
use chassis::grpc::{GrpcError, channel, request};
use proto::payments::{ChargeReply, ChargeRequest, payments_client::PaymentsClient};
use resilience::{CallContext, Classify as _, Deadline, Outcome, Policy, Timeouts};
use tempfile::TempDir;
use testbed::{Part, Postgres, Ready, Spec, poll, ports, postgres::Options};
use tonic::{Code, Status, transport::Channel};
use uuid::Uuid;

/// Longer than anything here takes on a machine that has other work, too.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// More than enough for a charge whose bank is quick.
pub(crate) const AMPLE: Duration = Duration::from_secs(8);
/// Enough to claim a key, too short for a slow bank.
pub(crate) const SHORT: Duration = Duration::from_secs(1);
/// What the books say of an approved charge of [`charge_of`], claimed once.
pub(crate) const CHARGED: &str = "approved*1|t*1|customers:-1999EUR,shop:1999EUR";

pub(crate) struct World {
    pub(crate) postgres: Postgres,
    url: String,
    folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let postgres = Postgres::start(Options::default()).await?;
        let url = postgres.create_database("payments").await?.into();
        Ok(Self { postgres, url, folder: tempfile::tempdir()? })
    }

    /// A running service with these settings, which has found its database.
    pub(crate) async fn payments(&self, settings: &[(&str, &str)]) -> anyhow::Result<Payments> {
        let payments = self.payments_alone(settings).await?;
        payments.joined().await?;
        Ok(payments)
    }

    /// A running service with these settings, whether or not Postgres is there.
    pub(crate) async fn payments_alone(&self, settings: &[(&str, &str)]) -> anyhow::Result<Payments> {
        let (public, admin) = (ports::free_address()?, ports::free_address()?);
        let log = self.folder.path().join(format!("payments-{}.log", public.port()));
        let mut spec = Spec::new("payments", env!("CARGO_BIN_EXE_payments"), log)
            .env("LISTEN", public.to_string())
            .env("ADMIN_LISTEN", admin.to_string())
            .env("DATABASE_URL", &self.url)
            .env("RUST_LOG", "debug")
            // A machine with other work is slow, too; none of these tests is about that.
            .env("REQUEST_TIMEOUT", "9s")
            .env("DATABASE_ACQUIRE_TIMEOUT", "1s")
            .ready(Ready::Http { address: admin, path: "/ready".into() });
        for (name, value) in settings {
            spec = spec.env(*name, *value);
        }
        let part = Part::new(spec);
        part.start().await?;
        let policy = Policy::builder("payments", Timeouts::attempt(SOON)).build()?;
        let client = Client(PaymentsClient::new(channel(&format!("http://{public}"), &policy)?));
        Ok(Payments { part, client })
    }

    /// What a statement gives, rows separated by blanks.
    pub(crate) async fn sql(&self, statement: &str) -> anyhow::Result<String> {
        let rows = self.postgres.query("payments", statement).await?;
        Ok(rows.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Waits until a statement gives `expected`.
    pub(crate) async fn becomes(&self, expected: &str, statement: &str) -> anyhow::Result<()> {
        poll::until(&format!("{expected:?} from {statement}"), SOON, || async {
            let found = self.sql(statement).await?;
            ensure!(found == expected, "it is {found:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the charge is approved.
    pub(crate) async fn approved(&self, key: Uuid) -> anyhow::Result<()> {
        self.becomes("approved", &format!("SELECT state FROM charges WHERE key = '{key}'")).await
    }

    /// A charge as all three books have it: its state and how often it was claimed; what the bank
    /// said and how often it was asked; its ledger entries.
    pub(crate) async fn books(&self, key: Uuid) -> anyhow::Result<String> {
        self.sql(&format!(
            "SELECT (SELECT concat(state, '*', claims) FROM charges WHERE key = '{key}'),
                    (SELECT concat(approved, '*', asked) FROM bank.transfers WHERE key = '{key}'),
                    (SELECT string_agg(concat(account, ':', amount_minor, currency), ',' ORDER BY account)
                     FROM ledger_entries WHERE charge_key = '{key}')"
        ))
        .await
    }
}

/// A running service.
pub(crate) struct Payments {
    pub(crate) part: Part,
    client: Client,
}

/// A caller, which can be sent off into a task.
#[derive(Clone)]
pub(crate) struct Client(PaymentsClient<Channel>);

impl Client {
    pub(crate) async fn charge(
        mut self,
        message: ChargeRequest,
        budget: Duration,
    ) -> Result<ChargeReply, Status> {
        let cx = CallContext::from_caller(Deadline::after(budget), None, 1);
        Ok(self.0.charge(request(&cx, message)).await?.into_inner())
    }
}

impl Payments {
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) async fn charge(
        &self,
        message: ChargeRequest,
        budget: Duration,
    ) -> Result<ChargeReply, Status> {
        self.client().charge(message, budget).await
    }

    /// Waits until it can charge. What it charges for that moves no money.
    pub(crate) async fn joined(&self) -> anyhow::Result<()> {
        let (_, message) = charge_of("tok_declined");
        poll::until("payments to join its database", SOON, || async {
            Ok(self.charge(message.clone(), AMPLE).await?)
        })
        .await?;
        Ok(())
    }

    /// A charge whose caller has given up while the bank was thinking.
    pub(crate) async fn begun(&self) -> (Uuid, ChargeRequest) {
        let (key, message) = charge_of("tok_slow");
        let status = self.charge(message.clone(), SHORT).await.expect_err("the bank is slow");
        // On a busy machine the caller's own clock may come first; it means the same.
        assert_eq!(meaning(status).1, Outcome::Unknown);
        (key, message)
    }

    /// Everything it has logged.
    pub(crate) fn log(&self) -> std::io::Result<String> {
        std::fs::read_to_string(&self.part.spec().log)
    }
}

/// A charge of 19.99 euros with a new key.
pub(crate) fn charge_of(card: &str) -> (Uuid, ChargeRequest) {
    let key = Uuid::new_v4();
    let message =
        ChargeRequest { key: key.to_string(), amount_minor: 1999, currency: "EUR".into(), card: card.into() };
    (key, message)
}

/// What a status means to a caller such as orders.
pub(crate) fn meaning(status: Status) -> (Code, Outcome) {
    (status.code(), GrpcError(status).class().outcome)
}
