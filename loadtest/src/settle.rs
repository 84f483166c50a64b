//! Whether each order that the shop accepted was paid in the end, once. The shop is asked for every one.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, sleep};

use crate::judge::Order;
use crate::traffic::{Ask, Door, Money};

/// An order is paid so soon after it was accepted, or after the fault was healed.
pub(crate) const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(250);
/// Orders that are asked for at once.
const AT_ONCE: usize = 8;

/// The orders that were accepted.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    orders: Vec<(String, Placed)>,
    ids: BTreeSet<String>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// What it has to cost.
    pub(crate) total: Money,
    /// When its answer came.
    pub(crate) at: DateTime<Utc>,
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Orders that were accepted.
    pub(crate) accepted: usize,
    /// Those that were paid once and in time.
    pub(crate) paid: usize,
    /// The others: the id, and why.
    pub(crate) wrong: Vec<(String, String)>,
    /// How long after the healing the last order was paid that had been accepted before it.
    pub(crate) slowest: Option<Duration>,
}

/// How an order stands.
#[derive(Debug, PartialEq)]
enum Stand {
    Paid(DateTime<Utc>),
    Waiting(String),
    Wrong(String),
}

impl Accepted {
    /// Takes note of an order. False when it is known: two purchases are never one order.
    pub(crate) fn add(&mut self, id: String, placed: Placed) -> bool {
        let new = self.ids.insert(id.clone());
        if new {
            self.orders.push((id, placed));
        }
        new
    }

    /// Any one of them.
    pub(crate) fn any(&self) -> Option<(String, Money)> {
        let (id, placed) = self.orders.get(fastrand::usize(..self.orders.len().max(1)))?;
        Some((id.clone(), placed.total.clone()))
    }
}

/// Asks for every order until it is paid, or can no longer be paid in time.
pub(crate) async fn settle(door: &Door, accepted: Accepted, healed: Option<DateTime<Utc>>) -> Settled {
    let end = Instant::now() + SETTLED_WITHIN;
    let mut settled = Settled { accepted: accepted.orders.len(), ..Settled::default() };
    let mut open = accepted.orders;
    loop {
        let last_round = Instant::now() >= end;
        let asked = stream::iter(open.drain(..)).map(|(id, placed)| async move {
            let stand = look(door, &id, &placed.total).await;
            (id, placed, stand)
        });
        let answers: Vec<_> = asked.buffer_unordered(AT_ONCE).collect().await;
        for (id, placed, stand) in answers {
            match stand {
                Stand::Paid(at) => settled.note_paid(id, &placed, at, healed),
                Stand::Waiting(why) if last_round => settled.wrong.push((id, why)),
                Stand::Waiting(_) => open.push((id, placed)),
                Stand::Wrong(why) => settled.wrong.push((id, why)),
            }
        }
        if open.is_empty() {
            return settled;
        }
        sleep(PAUSE).await;
    }
}

async fn look(door: &Door, id: &str, total: &Money) -> Stand {
    let reply = match door.ask(&Ask::Order(id.to_owned(), total.clone())).await {
        Ok(reply) if reply.status == 200 => reply,
        Ok(reply) => return Stand::Waiting(format!("status {}", reply.status)),
        Err(fault) => return Stand::Waiting(format!("no answer: {fault}")),
    };
    match Order::read(&reply.body) {
        Ok(order) => stand(&order, id, total),
        Err(why) => Stand::Wrong(why),
    }
}

fn stand(order: &Order, id: &str, total: &Money) -> Stand {
    if order.id != id || order.total != *total {
        return Stand::Wrong(format!("another order: {} of {}", order.id, order.total));
    }
    let mut paid = order.history.iter().filter(|step| step.state == "paid");
    match (order.state.as_str(), paid.next(), paid.next()) {
        ("paid", Some(step), None) => Stand::Paid(step.at),
        (state @ ("payment_pending" | "payment_deferred"), None, None) => Stand::Waiting(state.into()),
        (state, ..) => {
            let history: Vec<_> = order.history.iter().map(|step| step.state.as_str()).collect();
            Stand::Wrong(format!("{state} after {history:?}"))
        }
    }
}

impl Settled {
    fn note_paid(&mut self, id: String, placed: &Placed, paid: DateTime<Utc>, healed: Option<DateTime<Utc>>) {
        let from = healed.map_or(placed.at, |healed| healed.max(placed.at));
        let took = (paid - from).max(TimeDelta::zero()).to_std().unwrap_or_default();
        if healed.is_some_and(|healed| placed.at <= healed) {
            self.slowest = self.slowest.max(Some(took));
        }
        if took <= SETTLED_WITHIN {
            self.paid += 1;
        } else {
            self.wrong.push((id, format!("paid only after {:.1} s", took.as_secs_f64())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Step;

    fn euros(minor: i64) -> Money {
        Money { minor, currency: "EUR".into() }
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn order(state: &str, history: &[&str]) -> Order {
        let history = history.iter().map(|state| Step { state: (*state).into(), at: at(9) }).collect();
        Order { id: "x".into(), state: state.into(), total: euros(5), history }
    }

    #[test]
    fn paid_once_or_it_is_wrong() {
        for (paid, order) in [
            (true, order("paid", &["payment_pending", "paid"])),
            (true, order("paid", &["payment_pending", "payment_deferred", "paid"])),
            (false, order("paid", &["payment_pending", "paid", "paid"])),
            (false, order("paid", &["payment_pending"])),
            (false, order("declined", &["payment_pending", "declined"])),
            (false, order("payment_deferred", &["paid", "payment_deferred"])),
        ] {
            let found = stand(&order, "x", &euros(5));
            assert_eq!(found == Stand::Paid(at(9)), paid, "{order:?} {found:?}");
            assert!(!matches!(found, Stand::Waiting(_)), "{order:?} {found:?}");
        }
        let waiting = order("payment_deferred", &["payment_pending", "payment_deferred"]);
        assert_eq!(stand(&waiting, "x", &euros(5)), Stand::Waiting("payment_deferred".into()));
        assert!(matches!(stand(&waiting, "y", &euros(5)), Stand::Wrong(_)));
        assert!(matches!(stand(&waiting, "x", &euros(6)), Stand::Wrong(_)));
    }

    #[test]
    fn the_time_counts_from_the_healing_or_from_the_order() {
        let mut settled = Settled::default();
        let placed = |second| Placed { total: euros(5), at: at(second) };
        settled.note_paid("before".into(), &placed(0), at(124), Some(at(100)));
        assert_eq!(settled.slowest, Some(Duration::from_secs(24)));
        settled.note_paid("after".into(), &placed(110), at(139), Some(at(100)));
        settled.note_paid("at once".into(), &placed(0), at(0), Some(at(100)));
        assert_eq!((settled.paid, settled.slowest), (3, Some(Duration::from_secs(24))));
        settled.note_paid("late".into(), &placed(0), at(131), Some(at(100)));
        assert_eq!((settled.paid, settled.wrong[0].0.as_str()), (3, "late"));
    }

    #[test]
    fn two_purchases_are_never_one_order() {
        let mut accepted = Accepted::default();
        assert_eq!(accepted.any(), None);
        let placed = Placed { total: euros(5), at: at(0) };
        assert!(accepted.add("x".into(), placed.clone()));
        assert!(!accepted.add("x".into(), placed));
        assert_eq!(accepted.any(), Some(("x".into(), euros(5))));
    }
}
