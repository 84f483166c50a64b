//! Waiting for a condition, with a bound.
//!
//! A fixed sleep measures the machine: too short on a busy one, wasted on a fast one. This asks until the
//! answer is yes, and when it never is, the error says what was waited for and what was seen last.

use std::future::Future;
use std::time::Duration;

use anyhow::anyhow;
use tokio::time::{Instant, sleep, timeout_at};

/// The first pause between two looks. It doubles up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(2);
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_millis(50);

/// Asks again and again until `look` returns `Ok`, at most for `within`.
///
/// The time bounds each look as well, so one that hangs does not hang the caller.
///
/// # Errors
/// Names `what`, the time, and the last error of `look`.
pub async fn until<T, F, Fut>(what: &str, within: Duration, mut look: F) -> anyhow::Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    let end = Instant::now() + within;
    let mut pause = SHORTEST;
    let mut last = anyhow!("no answer at all");
    loop {
        match timeout_at(end, look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(fault)) => last = fault,
            Err(_) => return Err(last.context(format!("waited {within:?} for {what}"))),
        }
        if Instant::now() + pause >= end {
            return Err(last.context(format!("waited {within:?} for {what}")));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Asks again and again until `look` says true, at most for `within`.
///
/// # Errors
/// Names `what` and the time.
pub async fn until_true(what: &str, within: Duration, mut look: impl FnMut() -> bool) -> anyhow::Result<()> {
    until(what, within, || {
        let seen = look();
        async move { if seen { Ok(()) } else { Err(anyhow!("not yet")) } }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_condition_that_comes_true_is_met_and_its_value_returned() {
        let mut looks = 0;
        let value = until("the third look", Duration::from_secs(5), || {
            looks += 1;
            let seen = looks;
            async move { if seen == 3 { Ok(seen) } else { Err(anyhow!("only {seen}")) } }
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn one_that_never_does_ends_with_what_was_seen_last() {
        let waited = until::<(), _, _>("a miracle", Duration::from_millis(20), || async {
            Err(anyhow!("nothing there"))
        });
        let text = format!("{:#}", waited.await.unwrap_err());
        assert_eq!(text, "waited 20ms for a miracle: nothing there");
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_cut() {
        let waited = until("a hung look", Duration::from_millis(20), || async {
            std::future::pending::<()>().await;
            Ok(())
        });
        assert!(format!("{:#}", waited.await.unwrap_err()).contains("no answer at all"));
    }
}
