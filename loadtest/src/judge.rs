//! Whether an answer is right, and how good it is. A status alone proves nothing: a page has to show what it
//! is for, and an order has to be the one that was placed.

use serde::Deserialize;

use crate::traffic::{Ask, Money, Purchase, Reply, Shelf};

/// How good an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// Whole and fresh.
    Live,
    /// Right, and says truthfully what is missing: a header `degraded`, or a payment that comes later.
    Degraded,
    /// The shop said that it did nothing, since it has too much to do: 429, or 503 with
    /// `x-outcome: not-executed`.
    Refused,
    /// Wrong, or none: why, in a few words.
    Failed(String),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How good the answer is.
    pub(crate) grade: Grade,
    /// The id of the order that was placed by it.
    pub(crate) placed: Option<String>,
}

/// An order as the shop tells it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) total: Money,
    pub(crate) history: Vec<Step>,
}

/// One step of its history.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Step {
    pub(crate) state: String,
    pub(crate) at: chrono::DateTime<chrono::Utc>,
}

impl Order {
    /// Reads it.
    ///
    /// # Errors
    /// When it is no order.
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|fault| format!("not an order: {fault}"))
    }
}

impl From<Grade> for Verdict {
    fn from(grade: Grade) -> Self {
        Self { grade, placed: None }
    }
}

/// Judges the answer to `ask`.
pub(crate) fn judge(ask: &Ask, reply: &Reply, shelf: &Shelf) -> Verdict {
    let right = match reply.status {
        429 => return Grade::Refused.into(),
        503 if reply.outcome.as_deref() == Some("not-executed") => return Grade::Refused.into(),
        200..300 => match ask {
            Ask::Home => home(reply, shelf),
            Ask::Product(id) => product(reply, id),
            Ask::Buy(purchase) => return bought(reply, purchase),
            Ask::Order(id, total) => order(reply, id, total),
        },
        status => Err(format!("status {status}{}", code(&reply.body))),
    };
    match right {
        Ok(()) if reply.degraded.is_some() => Grade::Degraded.into(),
        Ok(()) => Grade::Live.into(),
        Err(why) => Grade::Failed(why).into(),
    }
}

fn home(reply: &Reply, shelf: &Shelf) -> Result<(), String> {
    let html = page(reply)?;
    if !html.contains(r#"<ul class="grid">"#) {
        return Err("no product grid".into());
    }
    match shelf.ids().find(|id| !html.contains(&offer(id))) {
        Some(missing) => Err(format!("{missing} is missing in the grid")),
        None => Ok(()),
    }
}

fn product(reply: &Reply, id: &str) -> Result<(), String> {
    let html = page(reply)?;
    if html.contains(&offer(id)) && html.contains(r#"class="price big""#) {
        Ok(())
    } else {
        Err("no product with a price on its page".into())
    }
}

/// What puts a product into the cart.
fn offer(id: &str) -> String {
    format!(r#"name="product_id" value="{id}""#)
}

fn page(reply: &Reply) -> Result<&str, String> {
    let html = std::str::from_utf8(&reply.body).map_err(|_| "a page that is not UTF-8")?;
    match reply.status {
        200 if html.trim_end().ends_with("</html>") => Ok(html),
        200 => Err("a page without an end".into()),
        status => Err(format!("status {status}")),
    }
}

fn bought(reply: &Reply, purchase: &Purchase) -> Verdict {
    let order = match Order::read(&reply.body) {
        Ok(order) => order,
        Err(why) => return Grade::Failed(why).into(),
    };
    let (state, degraded) = (order.state.as_str(), reply.degraded.as_deref());
    let grade = match (reply.status, state, degraded) {
        _ if order.total != purchase.total => Grade::Failed("a total that was not agreed".into()),
        (201, "paid", None) => Grade::Live,
        (202, "payment_deferred", Some("payments;deferred")) | (202, "payment_pending", None) => {
            Grade::Degraded
        }
        (status, ..) => Grade::Failed(format!("status {status} with {state}, degraded: {degraded:?}")),
    };
    // An order that stands has to be paid once, whatever was wrong about the answer.
    Verdict { grade, placed: Some(order.id) }
}

fn order(reply: &Reply, id: &str, total: &Money) -> Result<(), String> {
    if reply.status != 200 {
        return Err(format!("status {}", reply.status));
    }
    let order = Order::read(&reply.body)?;
    if order.id != id || order.total != *total {
        return Err("another order than was asked for".into());
    }
    match order.state.as_str() {
        "payment_pending" | "payment_deferred" | "paid" => Ok(()),
        state => Err(format!("an order that is {state}")),
    }
}

/// The name that a problem gives itself.
fn code(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
    }
    serde_json::from_slice::<Problem>(body)
        .map_or_else(|_| String::new(), |problem| format!(" {}", problem.code))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::traffic::Ware;

    fn euros(minor: i64) -> Money {
        Money { minor, currency: "EUR".into() }
    }

    fn shelf() -> Shelf {
        let ware = |id: &str| Ware { id: id.into(), price: euros(1295) };
        Shelf::of(vec![ware("mug"), ware("bell")])
    }

    fn reply(status: u16, headers: (Option<&str>, Option<&str>), body: impl ToString) -> Reply {
        let (degraded, outcome) = (headers.0.map(str::to_owned), headers.1.map(str::to_owned));
        Reply { status, degraded, outcome, body: body.to_string().into_bytes() }
    }

    fn grid(ids: &[&str]) -> String {
        let wares: String = ids.iter().map(|id| format!("<li><input {}></li>", offer(id))).collect();
        format!("<html><ul class=\"grid\">{wares}</ul></html>\n")
    }

    fn an_order(id: &str, state: &str, minor: i64) -> serde_json::Value {
        json!({"id": id, "state": state, "total": {"minor": minor, "currency": "EUR"}, "items": [], "history": []})
    }

    fn kind(verdict: &Verdict) -> &'static str {
        match verdict.grade {
            Grade::Live => "live",
            Grade::Degraded => "degraded",
            Grade::Refused => "refused",
            Grade::Failed(_) => "failed",
        }
    }

    #[test]
    fn a_page_shows_what_it_is_for() {
        let sheet = |id| format!("<html><p class=\"price big\">1</p><input {}></html>", offer(id));
        let stale = Some("catalog;stale=12");
        let cases = [
            ("live", Ask::Home, reply(200, (None, None), grid(&["mug", "bell"]))),
            ("degraded", Ask::Home, reply(200, (stale, None), grid(&["mug", "bell"]))),
            ("failed", Ask::Home, reply(200, (None, None), grid(&["mug"]))),
            ("failed", Ask::Home, reply(200, (None, None), "<html>nothing in sight</html>")),
            ("failed", Ask::Home, reply(200, (None, None), grid(&["mug", "bell"]).replace("</html>", ""))),
            ("failed", Ask::Home, reply(303, (None, None), "")),
            ("failed", Ask::Home, reply(500, (None, None), "")),
            ("failed", Ask::Home, reply(504, (None, Some("unknown")), "")),
            ("refused", Ask::Home, reply(429, (None, None), "")),
            ("refused", Ask::Home, reply(503, (None, Some("not-executed")), "")),
            ("failed", Ask::Home, reply(503, (None, None), "")),
            ("live", Ask::Product("mug".into()), reply(200, (None, None), sheet("mug"))),
            ("failed", Ask::Product("mug".into()), reply(200, (None, None), sheet("bell"))),
            ("failed", Ask::Product("mug".into()), reply(404, (None, None), sheet("mug"))),
        ];
        for (expected, ask, reply) in cases {
            let verdict = judge(&ask, &reply, &shelf());
            assert_eq!(kind(&verdict), expected, "{ask:?} {} {verdict:?}", reply.status);
        }
    }

    #[test]
    fn a_purchase_is_paid_or_deferred_and_costs_what_was_agreed() {
        let purchase = Purchase { key: "k".into(), ware: "mug".into(), quantity: 2, total: euros(2590) };
        let deferred = Some("payments;deferred");
        let cases = [
            ("live", 201, "paid", 2590, None),
            ("degraded", 202, "payment_deferred", 2590, deferred),
            ("degraded", 202, "payment_pending", 2590, None),
            ("failed", 201, "paid", 1295, None),
            ("failed", 201, "payment_deferred", 2590, None),
            ("failed", 201, "paid", 2590, deferred),
            ("failed", 202, "payment_deferred", 2590, None),
            ("failed", 202, "paid", 2590, None),
        ];
        for (expected, status, state, minor, degraded) in cases {
            let reply = reply(status, (degraded, None), an_order("x", state, minor));
            let verdict = judge(&Ask::Buy(purchase.clone()), &reply, &shelf());
            assert_eq!(kind(&verdict), expected, "{status} {state} {minor} {degraded:?}");
            assert_eq!(verdict.placed.as_deref(), Some("x"), "what stands is followed up");
        }
        for (expected, status, outcome, body) in [
            ("refused", 503, Some("not-executed"), json!({"code": "unavailable"})),
            ("failed", 504, Some("unknown"), json!({"code": "DEADLINE_EXCEEDED", "id": "x"})),
            ("failed", 402, None, json!({"code": "declined"})),
            ("failed", 409, None, json!({"code": "out_of_stock"})),
            ("failed", 201, None, json!({"state": "paid"})),
        ] {
            let verdict = judge(&Ask::Buy(purchase.clone()), &reply(status, (None, outcome), body), &shelf());
            assert_eq!((kind(&verdict), verdict.placed), (expected, None), "{status}");
        }
    }

    #[test]
    fn an_order_is_the_one_that_was_asked_for() {
        let ask = Ask::Order("x".into(), euros(1295));
        for (expected, body) in [
            ("live", an_order("x", "paid", 1295)),
            ("live", an_order("x", "payment_pending", 1295)),
            ("failed", an_order("y", "paid", 1295)),
            ("failed", an_order("x", "paid", 1296)),
            ("failed", an_order("x", "declined", 1295)),
            ("failed", json!({})),
        ] {
            let verdict = judge(&ask, &reply(200, (None, None), &body), &shelf());
            assert_eq!(kind(&verdict), expected, "{body}");
        }
        let deferred = reply(200, (Some("payments;deferred"), None), an_order("x", "payment_deferred", 1295));
        assert_eq!(kind(&judge(&ask, &deferred, &shelf())), "degraded");
    }

    #[test]
    fn a_failure_names_the_status_and_the_problem() {
        let verdict = judge(&Ask::Home, &reply(500, (None, None), json!({"code": "internal"})), &shelf());
        assert_eq!(verdict.grade, Grade::Failed("status 500 internal".into()));
    }
}
