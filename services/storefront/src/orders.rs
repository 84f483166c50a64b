//! The orders service.
//!
//! Placing an order carries an idempotency key, so it may be repeated, and this service, the edge,
//! is the one that does. What orders says is a [`Placed`]; that it said nothing is an error whose
//! [`class`](resilience::Classify::class) tells whether the order can have been placed.

use std::time::Duration;

use chassis::http::{Error, HttpNeighbour, Reply};
use http::{HeaderName, HeaderValue, StatusCode};
use proto::{
    FieldError,
    order::{Draft, IdempotencyKey, Order, OrderId, Owner},
};
use resilience::{BreakerSettings, BulkheadSettings, CallContext, Op, Policy, RetrySettings, Timeouts};
use serde::Deserialize;

use crate::config::Config;

const PLACE_ORDER: Op = Op::idempotent("place_order");
const GET_ORDER: Op = Op::idempotent("get_order");

/// How often a call is made, at most. The second attempt finds the order that the first one placed,
/// so it can also turn an answer that was lost into a known one.
const ATTEMPTS: u32 = 2;
/// Failures in a row that open the breaker.
const FAILURES: u32 = 5;
/// A restart of orders takes a second or so: the breaker looks soon, and after that now and then.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// The longest that it stays open before it looks again.
const OPEN_FOR_AT_MOST: Duration = Duration::from_secs(5);
/// A burst of buyers waits for a place as long as a purchase takes on a bad day.
const PLACE_TIMEOUT: Duration = Duration::from_millis(200);

/// The name of one purchase.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that the answer tells of an order that was placed before, under the same key.
pub const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Whose order it is.
const OWNER: HeaderName = HeaderName::from_static("x-owner");

/// The orders service.
#[derive(Debug, Clone)]
pub struct Orders {
    http: HttpNeighbour,
}

/// What orders said to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// It is placed. Its state tells whether it is paid.
    Accepted {
        /// As it stands now.
        order: Box<Order>,
        /// It was placed before, under the same key.
        replayed: bool,
    },
    /// The bank declined the card; nothing is kept.
    Declined,
    /// There are not enough pieces of something.
    OutOfStock,
    /// It costs something else than the customer was shown.
    PriceChanged,
    /// There is no usable rate for the currency.
    CurrencyUnavailable,
    /// Some fields are not acceptable.
    Invalid(Vec<FieldError>),
    /// The key belongs to an order with other contents.
    KeyReused,
}

/// What orders said, in this program's terms and word for word.
#[derive(Debug, Clone)]
pub struct Said {
    /// What it means.
    pub placed: Placed,
    /// The answer as it came, for those who pass it on.
    pub reply: Reply,
}

/// The members of a problem that are looked at.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    code: String,
    #[serde(default)]
    errors: Vec<FieldError>,
}

impl Orders {
    /// How it is called.
    pub fn policy(&self) -> &Policy {
        self.http.policy()
    }

    /// The orders service as `config` says.
    ///
    /// # Errors
    /// When its settings are refused or no client can be made.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let retry = RetrySettings { attempts: ATTEMPTS, ..RetrySettings::default() };
        let breaker = BreakerSettings {
            consecutive_failures: Some(FAILURES),
            open_for: OPEN_FOR,
            open_for_at_most: OPEN_FOR_AT_MOST,
            probes: 2,
            ..BreakerSettings::default()
        };
        // Selling is what the shop is for, so orders gets more than a neighbour's usual share.
        let timeouts = Timeouts { place: PLACE_TIMEOUT, ..Timeouts::attempt(config.orders_timeout) };
        let policy = chassis::policy("orders", timeouts)
            .retry(retry)
            .breaker(breaker)
            .bulkhead(BulkheadSettings { places: 50, waiting: 100 })
            .build()?;
        let http = HttpNeighbour::new(config.orders_url.clone(), policy)?;
        Ok(Self { http })
    }

    /// Places `draft` for `owner` under `key`. The same again is the same order.
    ///
    /// # Errors
    /// When orders gave no answer, or none that was agreed. Its outcome is never assumed: an answer
    /// that cannot be read leaves it unknown.
    pub async fn place(
        &self,
        cx: &CallContext,
        owner: &Owner,
        key: &IdempotencyKey,
        draft: &Draft,
    ) -> Result<Said, Error> {
        let value = |text: &str| HeaderValue::from_str(text).expect("keys and owners are plain text");
        let headers = [(IDEMPOTENCY_KEY, value(key.as_str())), (OWNER, value(&owner.to_string()))];
        let reply = self.http.post(cx, PLACE_ORDER, &["orders"], &headers, draft).await?;
        let placed = self.placed(&reply)?;
        Ok(Said { placed, reply })
    }

    /// The order `id`; `None` when there surely is none.
    ///
    /// # Errors
    /// When orders gave no answer, or none that was agreed.
    pub async fn get(&self, cx: &CallContext, id: OrderId) -> Result<Option<Order>, Error> {
        let reply = self.http.get(cx, GET_ORDER, &["orders", &id.to_string()]).await?;
        match reply.status {
            StatusCode::OK => self.http.read(&reply).map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.http.contract(&format!("status {status}"))),
        }
    }

    fn placed(&self, reply: &Reply) -> Result<Placed, Error> {
        let refusal = || serde_json::from_slice::<Refusal>(&reply.body).unwrap_or_default();
        match reply.status {
            StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED => Ok(Placed::Accepted {
                order: Box::new(self.http.read(reply)?),
                replayed: reply.headers.contains_key(IDEMPOTENCY_REPLAYED),
            }),
            StatusCode::PAYMENT_REQUIRED => Ok(Placed::Declined),
            StatusCode::UNPROCESSABLE_ENTITY => Ok(match refusal() {
                Refusal { errors, .. } if !errors.is_empty() => Placed::Invalid(errors),
                _ => Placed::KeyReused,
            }),
            StatusCode::CONFLICT => match refusal().code.as_str() {
                "out_of_stock" => Ok(Placed::OutOfStock),
                "price_changed" => Ok(Placed::PriceChanged),
                "currency_unavailable" => Ok(Placed::CurrencyUnavailable),
                code => Err(self.http.contract(&format!("a conflict called {code:?}"))),
            },
            status => Err(self.http.contract(&format!("status {status}"))),
        }
    }
}
