//! What a service tells its keepers, on a port of its own that is never published.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ::http::StatusCode;
use axum::{Json, Router, extract::State, routing::get};
use resilience::Policy;
use serde_json::Value;

use crate::{database::Database, policies};

/// Whether the service wants new requests. It says nothing of databases and neighbours: those who
/// send requests elsewhere because a *shared* database is down would find everyone unready at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub(crate) fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}

/// What the keepers may look at.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) service: &'static str,
    pub(crate) readiness: Readiness,
    pub(crate) policies: Arc<[Policy]>,
    pub(crate) databases: Arc<[Database]>,
}

pub(crate) fn routes(admin: Admin) -> Router {
    Router::new()
        .route("/live", get(async || "live"))
        .route("/ready", get(ready))
        .route("/joined", get(joined))
        .route("/resilience", get(resilience))
        .with_state(admin)
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.readiness.0.load(Ordering::Relaxed) {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    }
}

/// Whether the service has met its database since its start. For people and programs that start a
/// whole shop and want to know when it sells; nothing that routes requests should look at it.
async fn joined(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.databases.iter().all(Database::is_migrated) {
        (StatusCode::OK, "joined")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "waiting for the database")
    }
}

async fn resilience(State(admin): State<Admin>) -> Json<Value> {
    Json(policies::view(admin.service, &admin.policies))
}
