//! Writes a sample of every page to `target/pages/`, to be looked at. It serves nothing; point any
//! file server at that folder (it brings its own copy of `static/`).

use std::{fs, path::Path, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use proto::{
    FieldError,
    catalog::Product,
    money::{Currency, Money},
    order::{IdempotencyKey, Order, OrderEvent, OrderId, OrderItem, OrderState, Owner},
};
use resilience::Answer;
use storefront::pages::{
    Basket, CartPage, CheckoutPage, Frame, IndexPage, OrderPage, ProblemPage, ProductPage, Trouble,
};

/// Name, picture, one line, price in cents.
const GOODS: [(&str, &str, &str, i64); 12] = [
    ("Brass compass", "compass", "Bearings to two degrees, lid and lanyard ring.", 6450),
    ("Storm lantern", "lantern", "Burns twenty hours on a filling, in any wind.", 3995),
    ("Marine rope, 12 mm", "rope", "Three-strand polyester, 30 m in a coil.", 5490),
    ("Oilskin jacket", "jacket", "Welded seams and a collar that stands up.", 18900),
    ("Ship's bell", "bell", "Cast brass, 15 cm, with a plaited lanyard.", 11900),
    ("The Book of Knots", "book", "Ninety knots, each drawn in the order you tie it.", 2450),
    ("Enamel mug", "mug", "Takes half a litre and most falls.", 1295),
    ("Folding anchor, 5 kg", "anchor", "Galvanised, for boats up to six metres.", 7990),
    ("Passage chart", "chart", "Waterproof paper, corrected this spring.", 3150),
    ("Rigging knife", "knife", "One blade, one spike, one shackle key.", 4550),
    ("Duffel bag, 60 l", "bag", "Waxed canvas with a rope drawn through brass eyes.", 8900),
    ("Watch blanket", "blanket", "Wool, because wool is warm when it is wet.", 9950),
];

fn product((name, art, summary, cents): &(&str, &str, &str, i64)) -> Product {
    Product {
        id: name.to_lowercase().replace([' ', ','], "-").replace("--", "-").replace('\'', ""),
        name: (*name).to_owned(),
        summary: (*summary).to_owned(),
        description: format!(
            "{summary} Made to be used with cold, wet hands, and to be mended rather than replaced. \
             Spare parts are kept for ten years."
        ),
        art: (*art).to_owned(),
        price: Money::new(*cents, Currency::Eur),
    }
}

struct Samples {
    now: DateTime<Utc>,
    products: Vec<Product>,
    items: Vec<(String, u32)>,
    key: IdempotencyKey,
    id: OrderId,
}

impl Samples {
    fn frame(&self) -> Frame {
        Frame::new(self.now, self.items.iter().map(|(_, quantity)| quantity).sum())
    }

    fn basket(&self) -> Basket {
        Basket::new(&self.items, Answer::Live(self.products.clone()))
    }

    fn checkout(&self) -> CheckoutPage {
        CheckoutPage::new(self.frame(), &self.key, self.basket())
    }

    fn order(&self, states: &[(OrderState, Option<&str>)]) -> Order {
        let placed_at = self.now - TimeDelta::seconds(40);
        let history: Vec<_> = states
            .iter()
            .zip(0..)
            .map(|((state, reason), step)| OrderEvent {
                state: *state,
                at: placed_at + TimeDelta::milliseconds(step * 4200),
                reason: reason.map(str::to_owned),
            })
            .collect();
        Order {
            id: self.id,
            state: states.last().expect("at least one state").0,
            total: self.basket().total().expect("all prices are known"),
            items: self
                .items
                .iter()
                .filter_map(|(id, quantity)| {
                    let product = self.products.iter().find(|product| product.id == *id)?;
                    Some(OrderItem {
                        product_id: id.clone(),
                        name: product.name.clone(),
                        quantity: *quantity,
                        unit_price: product.price,
                    })
                })
                .collect(),
            placed_at,
            history,
        }
    }

    fn order_page(&self, states: &[(OrderState, Option<&str>)]) -> OrderPage {
        OrderPage::new(Frame::new(self.now, 0), self.id, Answer::Live(self.order(states)))
    }
}

fn main() -> anyhow::Result<()> {
    use OrderState::{Declined, Paid, PaymentDeferred, PaymentPending};

    let now = "2026-05-03T12:06:00Z".parse::<DateTime<Utc>>()?;
    let products: Vec<Product> = GOODS.iter().map(product).collect();
    let items = vec![(products[0].id.clone(), 1), (products[2].id.clone(), 2), (products[6].id.clone(), 4)];
    let key = IdempotencyKey::new("3f0c8a52b7e94d61").expect("a good key");
    let id = OrderId::derive(&Owner::Guest, &key);
    let s = Samples { now, products, items, key, id };
    let stale = |age: u64| Answer::Stale { value: s.products.clone(), age: Duration::from_secs(age) };
    let fault = |field: &str| FieldError::new(field, "is not right");

    let samples: [(&str, &dyn askama::DynTemplate); 31] = [
        ("index", &IndexPage::new(s.frame(), Answer::Live(s.products.clone()))),
        ("index-stale", &IndexPage::new(s.frame(), stale(185))),
        ("index-missing", &IndexPage::new(s.frame(), Answer::Missing)),
        (
            "index-banner",
            &IndexPage::new(
                Frame::new(s.now, 0)
                    .banner("Patterns are switched off: this shop is being broken on purpose."),
                Answer::Live(s.products.clone()),
            ),
        ),
        ("product", &ProductPage::new(s.frame(), Answer::Live(s.products[3].clone()))),
        (
            "product-stale",
            &ProductPage::new(
                s.frame(),
                Answer::Stale { value: s.products[1].clone(), age: Duration::from_secs(5400) },
            ),
        ),
        ("product-missing", &ProductPage::new(s.frame(), Answer::Missing)),
        ("cart", &CartPage::new(s.frame(), s.basket())),
        ("cart-empty", &CartPage::new(Frame::new(s.now, 0), Basket::new(&[], Answer::Live(Vec::new())))),
        ("cart-frozen", &CartPage::frozen(s.frame(), s.basket(), s.id)),
        ("cart-stale", &CartPage::new(s.frame(), Basket::new(&s.items, stale(185)))),
        ("cart-missing", &CartPage::new(s.frame(), Basket::new(&s.items, Answer::Missing))),
        (
            "cart-not-sold",
            &CartPage::new(s.frame(), Basket::new(&s.items, Answer::Live(s.products[..6].to_vec()))),
        ),
        ("checkout", &s.checkout()),
        (
            "checkout-faults",
            &s.checkout().name("Ada").faults(&[fault("email"), fault("card"), fault("currency")]),
        ),
        ("checkout-unavailable", &s.checkout().name("Ada").trouble(Trouble::Unavailable)),
        ("checkout-price-changed", &s.checkout().name("Ada").trouble(Trouble::PriceChanged)),
        ("checkout-stale", &CheckoutPage::new(s.frame(), &s.key, Basket::new(&s.items, stale(185)))),
        ("checkout-missing", &CheckoutPage::new(s.frame(), &s.key, Basket::new(&s.items, Answer::Missing))),
        ("order-paid", &s.order_page(&[(PaymentPending, None), (Paid, None)])),
        (
            "order-declined",
            &s.order_page(&[
                (PaymentPending, None),
                (Declined, Some("There is not enough money on the card.")),
            ]),
        ),
        ("order-pending", &s.order_page(&[(PaymentPending, None)])),
        ("order-deferred", &s.order_page(&[(PaymentPending, None), (PaymentDeferred, None)])),
        (
            "order-deferred-paid",
            &s.order_page(&[(PaymentPending, None), (PaymentDeferred, None), (Paid, None)]),
        ),
        ("order-checking", &OrderPage::checking(s.frame(), s.id)),
        ("problem-not-found", &ProblemPage::not_found(s.frame())),
        ("problem-never-placed", &ProblemPage::never_placed(s.frame())),
        ("problem-unavailable", &ProblemPage::unavailable(s.frame())),
        ("problem-unknown", &ProblemPage::unknown_outcome(s.frame(), s.id)),
        ("problem-timeout", &ProblemPage::timed_out(s.frame())),
        ("problem-generic", &ProblemPage::generic(s.frame())),
    ];

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = root.join("../../target/pages");
    fs::create_dir_all(out.join("static"))?;
    for entry in fs::read_dir(root.join("static"))? {
        let entry = entry?;
        fs::copy(entry.path(), out.join("static").join(entry.file_name()))?;
    }
    for (name, page) in samples {
        fs::write(out.join(name).with_extension("html"), page.dyn_render()?)?;
    }
    println!("{} pages in {}", samples.len(), out.display());
    Ok(())
}
