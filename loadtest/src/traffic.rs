//! What is asked, and by whom: a mix of people who look, buy, and come back to look at their order.
//!
//! | of 20 | ask | is |
//! | --- | --- | --- |
//! | 8 | page | `GET /`, the page with all products |
//! | 5 | product | `GET /products/{id}` |
//! | 4 | purchase | `POST /api/v1/orders`, one to three pieces of one product, under a key of its own |
//! | 3 | lookup | `GET /api/v1/orders/{id}` of an order that was accepted before |
//!
//! The mix comes from a seed, so two runs of the same seed ask for the same things in the same order.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Client, RequestBuilder, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};

/// After this nobody waits any longer: the answer counts as none. It bounds how long the end of a run takes.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Loopback connects at once or not at all.
const CONNECT: Duration = Duration::from_secs(1);
/// What is bought: some products of which the shop has plenty, since running out is no fault of the shop.
const PLENTY: [&str; 6] =
    ["enamel-mug", "storm-lantern", "marine-rope-12", "book-of-knots", "bow-shackle", "tide-tables"];

/// What kind of request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The page with all products.
    Page,
    /// The page of one product.
    Product,
    /// A purchase.
    Purchase,
    /// A look at an order.
    Lookup,
}

impl Kind {
    /// Every kind, as they are shown.
    pub(crate) const ALL: [Self; 4] = [Self::Page, Self::Product, Self::Purchase, Self::Lookup];

    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Product => "product",
            Self::Purchase => "purchase",
            Self::Lookup => "lookup",
        }
    }
}

/// A sum in minor units.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Money {
    pub(crate) minor: i64,
    pub(crate) currency: String,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.minor, self.currency)
    }
}

/// A product.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Ware {
    pub(crate) id: String,
    pub(crate) price: Money,
}

/// One purchase.
#[derive(Clone, Debug)]
pub(crate) struct Purchase {
    /// Its idempotency key.
    pub(crate) key: String,
    /// What is bought.
    pub(crate) ware: String,
    /// How many pieces.
    pub(crate) quantity: i64,
    /// What it has to cost.
    pub(crate) total: Money,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// The page with all products.
    Home,
    /// The page of the product with this id.
    Product(String),
    /// A purchase.
    Buy(Purchase),
    /// The order with this id and total.
    Order(String, Money),
}

impl Ask {
    /// What kind it is.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Home => Kind::Page,
            Self::Product(_) => Kind::Product,
            Self::Buy(_) => Kind::Purchase,
            Self::Order(..) => Kind::Lookup,
        }
    }
}

/// An answer, whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The header `degraded`.
    pub(crate) degraded: Option<String>,
    /// The header `x-outcome`.
    pub(crate) outcome: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// The products, as the shop told them at the start.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    wares: Vec<Ware>,
}

/// Decides what is asked next.
#[derive(Debug)]
pub(crate) struct Mix {
    die: fastrand::Rng,
    /// Makes the keys of this run unlike those of any other.
    run: String,
}

/// The door of the shop.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    base: Url,
    client: Client,
}

impl Shelf {
    /// The ids of all products.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.wares.iter().map(|ware| ware.id.as_str())
    }

    fn read(body: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Products {
            products: Option<Vec<Ware>>,
        }
        let wares = serde_json::from_slice::<Products>(body)?.products.context("there are none now")?;
        if let Some(missing) = PLENTY.iter().find(|id| !wares.iter().any(|ware| ware.id == **id)) {
            bail!("{missing} is not among them: is this the shop?");
        }
        Ok(Self { wares })
    }

    #[cfg(test)]
    pub(crate) fn of(wares: Vec<Ware>) -> Self {
        Self { wares }
    }
}

impl Mix {
    /// The mix of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let run = format!("load-{:016x}", fastrand::u64(..));
        Self { die: fastrand::Rng::with_seed(seed), run }
    }

    /// What request `number` asks for. `known` is an order that was accepted before, if there is one.
    pub(crate) fn next(&mut self, number: u64, shelf: &Shelf, known: Option<(String, Money)>) -> Ask {
        // The die is cast as often for each request, so that what is known does not change the rest.
        let (share, pick, pieces) = (self.die.u8(..20), self.die.usize(..), self.die.i64(1..=3));
        match share {
            0..8 => Ask::Home,
            8..13 => Ask::Product(shelf.wares[pick % shelf.wares.len()].id.clone()),
            13..17 => self.purchase(number, shelf, PLENTY[pick % PLENTY.len()], pieces),
            _ => known.map_or(Ask::Home, |(id, total)| Ask::Order(id, total)),
        }
    }

    fn purchase(&self, number: u64, shelf: &Shelf, id: &str, quantity: i64) -> Ask {
        let ware = shelf.wares.iter().find(|ware| ware.id == id).expect("checked when the shelf was read");
        let total = Money { minor: ware.price.minor * quantity, ..ware.price.clone() };
        Ask::Buy(Purchase { key: format!("{}-{number}", self.run), ware: id.to_owned(), quantity, total })
    }
}

impl Door {
    /// The door at `base`.
    ///
    /// # Errors
    /// When no client can be made.
    pub(crate) fn new(base: Url) -> anyhow::Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(GIVE_UP)
            .connect_timeout(CONNECT)
            .build()?;
        Ok(Self { base, client })
    }

    /// The products.
    ///
    /// # Errors
    /// When the shop does not tell them, or has not what is bought here.
    pub(crate) async fn shelf(&self) -> anyhow::Result<Shelf> {
        let asked = async {
            let reply = whole(self.get("/api/v1/products")).await?;
            if reply.status != 200 {
                bail!("status {}", reply.status);
            }
            Shelf::read(&reply.body)
        };
        asked.await.with_context(|| format!("{} does not tell its products", self.base))
    }

    /// Asks, and waits for the last byte of the answer.
    ///
    /// # Errors
    /// When no answer came.
    pub(crate) async fn ask(&self, ask: &Ask) -> reqwest::Result<Reply> {
        let request = match ask {
            Ask::Home => self.get("/").header("accept", "text/html"),
            Ask::Product(id) => self.get(&format!("/products/{id}")).header("accept", "text/html"),
            Ask::Order(id, _) => self.get(&format!("/api/v1/orders/{id}")),
            Ask::Buy(purchase) => {
                let request = self.client.post(self.url("/api/v1/orders"));
                request.header("idempotency-key", &purchase.key).json(&draft(purchase))
            }
        };
        whole(request).await
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        url
    }
}

async fn whole(request: RequestBuilder) -> reqwest::Result<Reply> {
    let response = request.send().await?;
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (status, degraded, outcome) = (response.status().as_u16(), text("degraded"), text("x-outcome"));
    Ok(Reply { status, degraded, outcome, body: response.bytes().await?.into() })
}

fn draft(purchase: &Purchase) -> Value {
    json!({
        "items": [{ "product_id": purchase.ware, "quantity": purchase.quantity }],
        "name": "Ada",
        "email": "ada@example.com",
        "card": "tok_ok",
        "currency": purchase.total.currency,
        "expected_total": { "minor": purchase.total.minor, "currency": purchase.total.currency },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn shelf() -> Shelf {
        let price = || Money { minor: 1295, currency: "EUR".into() };
        Shelf::of(PLENTY.iter().map(|id| Ware { id: (*id).to_owned(), price: price() }).collect())
    }

    fn known() -> Option<(String, Money)> {
        Some(("an-id".into(), Money { minor: 1, currency: "EUR".into() }))
    }

    #[test]
    fn the_mix_is_as_the_table_says_and_comes_from_the_seed() {
        let (shelf, mut one, mut two) = (shelf(), Mix::new(7), Mix::new(7));
        let mut shares = BTreeMap::<Kind, u64>::new();
        for number in 0..20_000 {
            let ask = one.next(number, &shelf, known());
            let again = two.next(number, &shelf, known());
            *shares.entry(ask.kind()).or_default() += 1;
            match (ask, again) {
                (Ask::Buy(one), Ask::Buy(two)) => {
                    assert_eq!((&one.ware, one.quantity), (&two.ware, two.quantity));
                    assert_ne!(one.key, two.key, "another run is other purchases");
                    assert_eq!(one.total.minor, 1295 * one.quantity);
                }
                (one, two) => assert_eq!(format!("{one:?}"), format!("{two:?}")),
            }
        }
        for (kind, share) in [(Kind::Page, 8), (Kind::Product, 5), (Kind::Purchase, 4), (Kind::Lookup, 3)] {
            let of_20 = shares[&kind].div_ceil(1000);
            assert!(of_20.abs_diff(share) <= 1, "{kind:?}: {of_20} of 20");
        }
    }

    #[test]
    fn without_an_order_nobody_looks_at_one() {
        let (shelf, mut mix) = (shelf(), Mix::new(1));
        assert!((0..1000).all(|number| mix.next(number, &shelf, None).kind() != Kind::Lookup));
    }

    #[test]
    fn a_shelf_without_what_is_bought_is_refused() {
        let body = json!({"products": [{"id": "enamel-mug", "price": {"minor": 1, "currency": "EUR"}}]});
        let refused = Shelf::read(body.to_string().as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("storm-lantern"), "{refused}");
        assert!(Shelf::read(br#"{"products": null}"#).is_err());
    }
}
