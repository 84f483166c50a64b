//! The default settings of all services, read as the services read them: does the arithmetic of every chain hold?
//!
//! A callee that is given longer than its caller waits works for nobody; attempts and pauses that do not fit into
//! the budget are promises that cannot be kept.

use std::time::Duration;

use chassis::settings::Check;
use clap::{Args, Parser};
use storefront::{catalog::Catalog, orders::Orders};

#[derive(Parser)]
struct Cli<C: Args> {
    #[command(flatten)]
    shared: chassis::settings::Settings,
    #[command(flatten)]
    own: C,
}

/// The defaults of one service; `needed` are the settings that have none.
fn defaults<C: Args + Check>(needed: &[&str]) -> Cli<C> {
    let cli = Cli::<C>::try_parse_from([&["service"], needed].concat()).expect("the defaults are read");
    assert_eq!(cli.own.check(), Ok(()), "they fit together by themselves");
    assert!(cli.shared.drain_timeout > cli.own.longest_request(), "a stop waits for every request");
    cli
}

const DATABASE: &str = "--database-url=postgres://localhost/x";
const CATALOG: &str = "--catalog-url=http://localhost:1";

/// Each time limit is shorter than the one around it.
#[track_caller]
fn assert_shrinks(chain: &[(&str, Duration)]) {
    for pair in chain.windows(2) {
        let [(outer, around), (inner, within)] = pair else { unreachable!("windows of two") };
        assert!(within < around, "{inner} ({within:?}) is not within {outer} ({around:?})");
    }
}

#[tokio::test]
async fn time_limits_shrink_on_the_way_down() {
    let storefront =
        defaults::<storefront::config::Config>(&[CATALOG, "--orders-url=http://localhost:2"]).own;
    let orders = defaults::<orders::Config>(&[
        DATABASE,
        CATALOG,
        "--payments-url=http://localhost:3",
        "--amqp-url=amqp://localhost:4/%2f",
    ])
    .own;
    let payments = defaults::<payments::Config>(&[DATABASE]).own;
    let catalog = defaults::<catalog::Config>(&[DATABASE]).own;

    assert_shrinks(&[
        ("the edge", storefront.edge_deadline),
        ("storefront -> orders", storefront.orders_timeout),
        ("orders -> payments", orders.payments_timeout),
        ("payments -> Postgres", payments.database.database_timeout),
        ("the wait for a connection", payments.database.database_acquire_timeout),
    ]);
    assert_shrinks(&[
        ("storefront -> orders", storefront.orders_timeout),
        ("orders -> Postgres", orders.database.database_timeout),
        ("orders -> catalog", orders.catalog_timeout),
    ]);
    // What a service takes on by itself is not longer than its callers wait for it.
    assert!(orders.request_timeout <= storefront.orders_timeout);
    assert!(payments.request_timeout <= orders.payments_timeout);
    assert!(catalog.request_timeout <= storefront.catalog_timeout);
    // An order that asks for prices first still leaves payments its whole time, and the outcome its writing.
    let before_and_after = orders.catalog_timeout + Duration::from_millis(150);
    assert!(orders.payments_timeout + before_and_after < orders.request_timeout);
    // The relay begins when no request can be charging any more.
    assert!(orders.charge_due_after > orders.request_timeout);
    // A charge is driven again only when its driver has had the time to renew its claim.
    assert!(payments.charge_lease > payments.database.database_timeout);

    // Attempts and the pauses between them fit into what a page waits, wherever somebody repeats.
    let shop =
        (Catalog::new(&storefront).expect("good settings"), Orders::new(&storefront).expect("good settings"));
    let repeated = shop.0.policy();
    let longest = repeated.retry().expect("the edge repeats").longest_call(repeated.timeouts().attempt);
    assert!(longest <= storefront.catalog_timeout, "{longest:?}");
    // One attempt at orders and the wait for its place fit into the edge's time; a second one is made only
    // when the first one failed early.
    let one = shop.1.policy().timeouts();
    assert!(one.attempt + one.place < storefront.edge_deadline, "{one:?}");
    for policy in [shop.0.policy(), shop.1.policy()] {
        assert!(policy.timeouts().connect < policy.timeouts().attempt);
    }
}
