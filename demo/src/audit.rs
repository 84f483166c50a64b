//! `audit`: do orders, stock, charges, ledger and bank agree, to the cent?
//!
//! Each service's own books are compared inside its database, in one statement a question. What spans two
//! databases is merged here from two sorted streams, so a million orders take seconds and little memory.
//!
//! It may run while the shop sells. Orders are read before charges: an order that is settled by then has its
//! charge already, and one that is not settled yet is counted as that and not as a disagreement.

mod across;
mod within;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::cli::Audit;
use crate::client;
use crate::say::print;

/// Disagreements that are shown one by one; the rest is counted.
const SHOWN: usize = 100;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Orders that were looked at.
    orders: u64,
    /// Orders that still wait for their charge.
    unsettled: u64,
    /// Charges that were looked at.
    charges: u64,
    /// One line each, as far as they are shown.
    disagreements: Vec<String>,
    /// All of them.
    count: usize,
}

impl Findings {
    fn disagree(&mut self, line: String) {
        self.count += 1;
        if self.disagreements.len() < SHOWN {
            self.disagreements.push(line);
        }
    }
}

/// Compares the books, prints what disagrees, and ends with 1 if anything does.
pub(crate) fn run(home: &Option<PathBuf>, options: Audit) -> anyhow::Result<ExitCode> {
    let address = |given: Option<String>, name: &str| match given {
        Some(address) => Ok(address),
        None => client::database(home, name),
    };
    let orders = address(options.orders_database_url, "orders")?;
    let payments = address(options.payments_database_url, "payments")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut findings = runtime.block_on(compare(&orders, &payments))?;
    if options.settled && findings.unsettled > 0 {
        findings.disagree(format!("{} orders are not settled", findings.unsettled));
    }
    for line in &findings.disagreements {
        print(line);
    }
    if findings.count > findings.disagreements.len() {
        print(&format!(".. and {} more", findings.count - findings.disagreements.len()));
    }
    let Findings { orders, unsettled, charges, count, .. } = findings;
    print(&format!(
        "{orders} orders ({unsettled} not settled yet), {charges} charges, {count} disagreements"
    ));
    for (name, value) in [("orders", orders), ("unsettled", unsettled), ("charges", charges)] {
        print(&format!("RESULT audit.{name} {value} count"));
    }
    print(&format!("RESULT audit.disagreements {count} count"));
    Ok(if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compare(orders: &str, payments: &str) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut orders = open(orders).await.context("cannot read the database of orders")?;
    let mut payments_now = open(payments).await.context("cannot read the database of payments")?;
    // The snapshot of orders is the older one: it is taken by the first question, here.
    within::check(&mut orders, within::ORDERS, &mut findings).await?;
    within::check(&mut payments_now, within::PAYMENTS, &mut findings).await?;
    across::check(&mut orders, &mut payments_now, &mut findings).await?;
    Ok(findings)
}

/// One snapshot of one database, which nothing that is done later changes.
async fn open(address: &str) -> anyhow::Result<PgConnection> {
    let mut database = PgConnection::connect(address).await?;
    database.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    Ok(database)
}
