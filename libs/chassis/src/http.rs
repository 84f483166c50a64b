//! Calling a neighbour over HTTP: its address and its policy in one object, the call context on
//! every request, the whole answer within the attempt's time.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use bytes::{Bytes, BytesMut};
use reqwest::{Client, Url};
use resilience::{CallContext, CallError, Class, Classify, Op, Policy};
use serde::{Serialize, de::DeserializeOwned};

use crate::{outcome, wire};

/// The largest answer that is read; a neighbour gone mad must not fill this process's memory.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// A neighbour that speaks HTTP.
#[derive(Debug, Clone)]
pub struct HttpNeighbour {
    client: Client,
    base: Url,
    policy: Policy,
}

/// The neighbour's whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status: anything but what [`outcome::of_http`] lists as a failure.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No connection, or it broke.
    #[error("the connection failed")]
    Transport(#[source] reqwest::Error),
    /// The neighbour answered that it failed.
    #[error("it answered {status}")]
    Status {
        /// With this status.
        status: StatusCode,
        /// Which means this.
        class: Class,
    },
    /// The answer is not what the contract says.
    #[error("its answer is not what was agreed: {0}")]
    Contract(String),
}

impl Classify for HttpError {
    fn class(&self) -> Class {
        match self {
            Self::Transport(error) if error.is_connect() => Class::not_executed(),
            Self::Transport(error) if error.is_builder() => Class::rejected(),
            Self::Transport(_) => Class::unknown(),
            Self::Status { class, .. } => *class,
            Self::Contract(_) => Class::unknown().lasting(),
        }
    }
}

/// Why a call to an HTTP neighbour has no answer.
pub type Error = CallError<HttpError>;

impl HttpNeighbour {
    /// The neighbour at `base`, called as `policy` says.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn new(base: Url, policy: Policy) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .connect_timeout(policy.timeouts().connect)
            // The policy's timer covers the attempt whole; this one only guards against a mistake.
            .timeout(policy.timeouts().attempt * 2)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { client, base, policy })
    }

    /// How it is called.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Asks for `path`, each segment by itself, so that none can step out of its place.
    ///
    /// # Errors
    /// When there is no answer; see [`CallError`].
    pub async fn get(&self, cx: &CallContext, op: Op, path: &[&str]) -> Result<Reply, Error> {
        self.send(cx, op, Method::GET, path, &[], None).await
    }

    /// Sends `body` as JSON to `path`.
    ///
    /// # Errors
    /// When there is no answer; see [`CallError`].
    pub async fn post(
        &self,
        cx: &CallContext,
        op: Op,
        path: &[&str],
        headers: &[(HeaderName, HeaderValue)],
        body: &impl Serialize,
    ) -> Result<Reply, Error> {
        let body = serde_json::to_vec(body).map_err(|error| self.contract(&error))?;
        self.send(cx, op, Method::POST, path, headers, Some(body.into())).await
    }

    /// Reads the answer's body as `T`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, Error> {
        serde_json::from_slice(&reply.body).map_err(|error| self.contract(&error))
    }

    /// An answer that the contract does not know.
    pub fn contract(&self, what: &impl ToString) -> Error {
        CallError::Failed { neighbour: self.policy.name(), source: HttpError::Contract(what.to_string()) }
    }

    async fn send(
        &self,
        cx: &CallContext,
        op: Op,
        method: Method,
        path: &[&str],
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<Reply, Error> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.policy
            .call(cx, op, |cx| {
                let mut request = self.client.request(method.clone(), url.clone());
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                if let Some(body) = body.clone() {
                    request = request.header(::http::header::CONTENT_TYPE, "application/json").body(body);
                }
                let mut context = HeaderMap::new();
                wire::into_http(&cx, &mut context);
                attempt(request.headers(context))
            })
            .await
    }
}

async fn attempt(request: reqwest::RequestBuilder) -> Result<Reply, HttpError> {
    let mut response = request.send().await.map_err(HttpError::Transport)?;
    let mut body = BytesMut::new();
    // The body is read also of a failure: a connection whose answer was not read is thrown away.
    while let Some(chunk) = response.chunk().await.map_err(HttpError::Transport)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(HttpError::Contract(format!("it is larger than {MAX_ANSWER} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    let status = response.status();
    match outcome::of_http(status, response.headers()) {
        Some(class) => Err(HttpError::Status { status, class }),
        None => Ok(Reply { status, headers: std::mem::take(response.headers_mut()), body: body.freeze() }),
    }
}
