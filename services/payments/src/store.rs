//! Everything that is asked of Postgres about charges and the ledger.
//!
//! Leases begin and end by Postgres's clock, which all replicas share. Whoever holds one also knows
//! its end by the clock of this process, counted from before the question was sent, so never later
//! than Postgres has it.

use std::time::Duration;

use chassis::database::{Database, DbError, End, Error};
use proto::{
    money::{Currency, Money},
    order::Card,
};
use resilience::{CallContext, Op};
use sqlx::{FromRow, migrate::Migrator};
use tokio::time::Instant;
use uuid::Uuid;

use crate::charge::{Charge, Decision, Key};

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!();

const CLAIM: Op = Op::idempotent("claim_charge");
const LOOK: Op = Op::idempotent("find_decision");
const RENEW: Op = Op::idempotent("renew_lease");
const SETTLE: Op = Op::idempotent("settle_charge");
const TAKE_OVER: Op = Op::idempotent("take_over_charges");

/// Charges and ledger as they are kept.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
    lease: Duration,
}

/// What a claim met.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing, or a forgotten charge: it is ours to drive.
    Ours(Claimed),
    /// Somebody else is driving it.
    Theirs,
    /// It was decided before.
    Decided(Decision),
    /// The key stands for another charge.
    OtherContent,
}

/// A charge that is ours to drive.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    pub(crate) charge: Charge,
    claim: Uuid,
    /// Until when nobody else drives it, at least.
    pub(crate) until: Instant,
}

/// What became of writing a decision.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It is written, and so is the ledger.
    Written,
    /// The claim was not ours any more; the decision that stands there, if there is one.
    Overtaken(Option<Decision>),
}

impl Store {
    /// A store whose claims hold for `lease` unless they are renewed.
    pub(crate) fn new(database: Database, lease: Duration) -> Self {
        Self { database, lease }
    }

    /// Claims a charge: transaction 1 of the protocol.
    pub(crate) async fn claim(&self, cx: &CallContext, charge: Charge) -> Result<Found, Error> {
        let (claim, seconds) = (Uuid::new_v4(), self.lease.as_secs_f64());
        let until = Instant::now() + self.lease;
        self.database
            .unit(cx, CLAIM, move |mut tx| {
                Box::pin(async move {
                    let new = sqlx::query(
                        "INSERT INTO charges (key, amount_minor, currency, card, claim, lease_until)
                         VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
                         ON CONFLICT (key) DO NOTHING",
                    )
                    .bind(charge.key.0)
                    .bind(charge.amount.minor)
                    .bind(charge.amount.currency.code())
                    .bind(charge.card.token())
                    .bind(claim)
                    .bind(seconds)
                    .execute(tx.conn()?)
                    .await?;
                    if new.rows_affected() == 1 {
                        return Ok(End::Commit(Found::Ours(Claimed { charge, claim, until })));
                    }
                    let there: There = sqlx::query_as(
                        "SELECT state, decline_reason, lease_until <= now() AS forgotten,
                                (amount_minor, currency, card) = ($2, $3, $4) AS same
                         FROM charges WHERE key = $1",
                    )
                    .bind(charge.key.0)
                    .bind(charge.amount.minor)
                    .bind(charge.amount.currency.code())
                    .bind(charge.card.token())
                    .fetch_one(tx.conn()?)
                    .await?;
                    if !there.same {
                        return Ok(End::Rollback(Found::OtherContent));
                    }
                    if let Some(decision) = there.state.decision()? {
                        return Ok(End::Rollback(Found::Decided(decision)));
                    }
                    if !there.forgotten {
                        return Ok(End::Rollback(Found::Theirs));
                    }
                    // Of two who find it forgotten, the second one waits here for the first, and
                    // then finds a lease that holds.
                    let taken = sqlx::query(
                        "UPDATE charges SET claim = $2, lease_until = now() + make_interval(secs => $3), claims = claims + 1
                         WHERE key = $1 AND state = 'pending' AND lease_until <= now()",
                    )
                    .bind(charge.key.0)
                    .bind(claim)
                    .bind(seconds)
                    .execute(tx.conn()?)
                    .await?;
                    Ok(match taken.rows_affected() {
                        1 => End::Commit(Found::Ours(Claimed { charge, claim, until })),
                        _ => End::Rollback(Found::Theirs),
                    })
                })
            })
            .await
    }

    /// The decision on `key`, if there is one.
    pub(crate) async fn decision(&self, cx: &CallContext, key: Key) -> Result<Option<Decision>, Error> {
        self.database
            .unit(cx, LOOK, move |mut tx| {
                Box::pin(async move { Ok(End::Rollback(state(&mut tx, key).await?.decision()?)) })
            })
            .await
    }

    /// Makes the lease of `claimed` last longer; `None` when it is not ours any more.
    pub(crate) async fn renew(&self, cx: &CallContext, claimed: &Claimed) -> Result<Option<Instant>, Error> {
        let (key, claim, seconds) = (claimed.charge.key, claimed.claim, self.lease.as_secs_f64());
        let until = Instant::now() + self.lease;
        self.database
            .unit(cx, RENEW, move |mut tx| {
                Box::pin(async move {
                    let renewed = sqlx::query(
                        "UPDATE charges SET lease_until = now() + make_interval(secs => $3)
                         WHERE key = $1 AND claim = $2 AND state = 'pending'",
                    )
                    .bind(key.0)
                    .bind(claim)
                    .bind(seconds)
                    .execute(tx.conn()?)
                    .await?;
                    Ok(End::Commit((renewed.rows_affected() == 1).then_some(until)))
                })
            })
            .await
    }

    /// Writes the decision and what it moves, if the claim is still ours: transaction 2.
    pub(crate) async fn settle(
        &self,
        cx: &CallContext,
        claimed: &Claimed,
        decision: Decision,
    ) -> Result<Settled, Error> {
        let (key, claim) = (claimed.charge.key, claimed.claim);
        self.database
            .unit(cx, SETTLE, move |mut tx| {
                Box::pin(async move {
                    let (name, reason) = decision.state();
                    let written = sqlx::query(
                        "UPDATE charges SET state = $3, decline_reason = $4, decided_at = now()
                         WHERE key = $1 AND claim = $2 AND state = 'pending'",
                    )
                    .bind(key.0)
                    .bind(claim)
                    .bind(name)
                    .bind(reason)
                    .execute(tx.conn()?)
                    .await?;
                    if written.rows_affected() == 0 {
                        let there = state(&mut tx, key).await?.decision()?;
                        return Ok(End::Rollback(Settled::Overtaken(there)));
                    }
                    if decision == Decision::Approved {
                        sqlx::query(
                            "INSERT INTO ledger_entries (charge_key, account, amount_minor, currency)
                             SELECT key, account, sign * amount_minor, currency
                             FROM charges, (VALUES ('customers', -1), ('shop', 1)) AS side (account, sign)
                             WHERE key = $1",
                        )
                        .bind(key.0)
                        .execute(tx.conn()?)
                        .await?;
                    }
                    Ok(End::Commit(Settled::Written))
                })
            })
            .await
    }

    /// Claims up to `most` charges that nobody drives any more, the longest forgotten first.
    pub(crate) async fn take_over(&self, cx: &CallContext, most: usize) -> Result<Vec<Claimed>, Error> {
        let (claim, seconds) = (Uuid::new_v4(), self.lease.as_secs_f64());
        let until = Instant::now() + self.lease;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let taken: Vec<Forgotten> = self
            .database
            .unit(cx, TAKE_OVER, move |mut tx| {
                Box::pin(async move {
                    let taken = sqlx::query_as(
                        "WITH forgotten AS MATERIALIZED (
                             SELECT key FROM charges
                             WHERE state = 'pending' AND lease_until <= now()
                             ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED
                         )
                         UPDATE charges SET claim = $1, lease_until = now() + make_interval(secs => $2), claims = claims + 1
                         FROM forgotten WHERE charges.key = forgotten.key
                         RETURNING charges.key, amount_minor, currency, card",
                    )
                    .bind(claim)
                    .bind(seconds)
                    .bind(most)
                    .fetch_all(tx.conn()?)
                    .await?;
                    Ok(End::Commit(taken))
                })
            })
            .await?;
        // One that this version cannot read must not keep the others from being driven.
        Ok(taken
            .into_iter()
            .filter_map(|row| match row.charge() {
                Ok(charge) => Some(Claimed { charge, claim, until }),
                Err(key) => {
                    tracing::error!(%key, "a pending charge cannot be read and is left alone");
                    None
                }
            })
            .collect())
    }
}

/// Where a charge stands. Both callers know that it is there: charges are never removed.
async fn state(tx: &mut chassis::database::Tx<'_>, key: Key) -> Result<State, DbError> {
    Ok(sqlx::query_as("SELECT state, decline_reason FROM charges WHERE key = $1")
        .bind(key.0)
        .fetch_one(tx.conn()?)
        .await?)
}

#[derive(FromRow)]
struct State {
    state: String,
    decline_reason: Option<String>,
}

impl State {
    fn decision(self) -> Result<Option<Decision>, sqlx::Error> {
        Decision::of_state(&self.state, self.decline_reason)
            .map_err(|unknown| sqlx::Error::Decode(unknown.into()))
    }
}

#[derive(FromRow)]
struct There {
    #[sqlx(flatten)]
    state: State,
    forgotten: bool,
    same: bool,
}

#[derive(FromRow)]
struct Forgotten {
    key: Uuid,
    amount_minor: i64,
    currency: String,
    card: String,
}

impl Forgotten {
    /// The charge, or its key when it cannot be read.
    fn charge(self) -> Result<Charge, Key> {
        let key = Key(self.key);
        match (self.currency.parse::<Currency>(), Card::new(&self.card)) {
            (Ok(currency), Some(card)) => {
                Ok(Charge { key, amount: Money::new(self.amount_minor, currency), card })
            }
            _ => Err(key),
        }
    }
}
