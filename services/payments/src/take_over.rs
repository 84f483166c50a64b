//! The worker that drives forgotten charges: those whose driver was killed, or gave up. Without it
//! a charge whose caller never asks again would stay pending for ever.

use std::{sync::Arc, time::Duration};

use chassis::{database::DbError, problem::chain};
use resilience::{CallContext, Deadline};
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{drive::Driver, store::Store};

/// How many forgotten charges are driven at once. Few, so that they leave room for living callers.
const AT_ONCE: usize = 20;
/// The pause between two looks when there is nothing to do.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until `stop`, then waits for all charges that are being driven. How long that may take is
/// the business of whoever stops us; what is cut off is driven again by the next one.
pub(crate) async fn take_over(store: Store, driver: Driver, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut away = false;
    loop {
        let Some(more) = stop.run_until_cancelled(drive_some(&store, &driver, &places, &mut away)).await
        else {
            break;
        };
        let pause = async {
            if more {
                // A closed semaphore cannot be: nobody closes it.
                drop(places.acquire().await);
            } else {
                sleep(PAUSE).await;
            }
        };
        if stop.run_until_cancelled(pause).await.is_none() {
            break;
        }
    }
    driver.tasks().close();
    driver.tasks().wait().await;
}

/// Drives as many forgotten charges as there are places; true when there may be more of them.
async fn drive_some(store: &Store, driver: &Driver, places: &Arc<Semaphore>, away: &mut bool) -> bool {
    let mut free = Vec::new();
    while let Ok(place) = Arc::clone(places).try_acquire_owned() {
        free.push(place);
    }
    let most = free.len();
    let cx = CallContext::owner("take-over", Deadline::after(LOOK));
    let taken = match store.take_over(&cx, most).await {
        Ok(taken) => taken,
        Err(error) => {
            // Before the first meeting there is nothing to look for; after it, once for an outage, not once a second.
            let met = !matches!(error.failure(), Some(DbError::NotMigrated));
            if met && !std::mem::replace(away, true) {
                tracing::warn!(error = chain(&error), "forgotten charges cannot be looked for");
            }
            return false;
        }
    };
    *away = false;
    let full = taken.len() == most;
    for (claimed, place) in taken.into_iter().zip(free) {
        tracing::info!(key = %claimed.charge.key, "driving a forgotten charge");
        driver.start(claimed, place);
    }
    full
}
