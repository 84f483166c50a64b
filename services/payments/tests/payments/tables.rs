//! What the tables refuse by themselves, whatever the program does.

use crate::running::World;

/// A transaction's statements, and the words it is refused with; none when it holds.
type Case = (&'static str, &'static str);

/// Three charges to begin with: `..1` pending, `..2` approved, `..3` declined.
const BEGINNING: &str = "
    INSERT INTO charges (key, amount_minor, currency, card, claim, lease_until)
        SELECT lpad(n::text, 32, '0')::uuid, 100, 'EUR', 'tok_ok', gen_random_uuid(), now() + interval '1 hour'
        FROM generate_series(1, 3) AS n;
    UPDATE charges SET state = 'approved', decided_at = now() WHERE key = lpad('2', 32, '0')::uuid;
    INSERT INTO ledger_entries (charge_key, account, amount_minor, currency)
        VALUES (lpad('2', 32, '0')::uuid, 'customers', -100, 'EUR'), (lpad('2', 32, '0')::uuid, 'shop', 100, 'EUR');
    UPDATE charges SET state = 'declined', decline_reason = 'no', decided_at = now()
        WHERE key = lpad('3', 32, '0')::uuid;";

const APPROVE: &str = "UPDATE charges SET state = 'approved', decided_at = now() WHERE key = KEY1;";

const REFUSED: [Case; 18] = [
    ("APPROVE ENTRY(KEY1, 'customers', -100, 'EUR'); ENTRY(KEY1, 'shop', 99, 'EUR');", "do not sum to zero"),
    ("APPROVE ENTRY(KEY1, 'customers', -100, 'USD'); ENTRY(KEY1, 'shop', 100, 'EUR');", "do not sum to zero"),
    ("APPROVE ENTRY(KEY1, 'shop', 100, 'EUR');", "do not sum to zero"),
    (
        "APPROVE ENTRY(KEY1, 'customers', -99, 'EUR'); ENTRY(KEY1, 'shop', 99, 'EUR');",
        "the ledger has 99 of charge",
    ),
    ("APPROVE", "the ledger has 0 of charge"),
    ("ENTRY(KEY1, 'customers', -100, 'EUR'); ENTRY(KEY1, 'shop', 100, 'EUR');", "is not approved"),
    ("ENTRY(KEY3, 'customers', -100, 'EUR'); ENTRY(KEY3, 'shop', 100, 'EUR');", "is not approved"),
    ("ENTRY(KEY2, 'shop', 100, 'EUR');", "duplicate key"),
    ("ENTRY(KEY9, 'shop', 100, 'EUR');", "foreign key"),
    ("ENTRY(KEY1, 'somebody', 100, 'EUR');", "check constraint"),
    ("UPDATE ledger_entries SET amount_minor = 2 * amount_minor;", "only added to"),
    ("DELETE FROM ledger_entries;", "only added to"),
    ("TRUNCATE ledger_entries;", "only added to"),
    ("UPDATE charges SET state = 'pending', decided_at = NULL WHERE key = KEY2;", "never changes"),
    ("UPDATE charges SET amount_minor = 1 WHERE key = KEY1;", "never changes"),
    ("DELETE FROM charges WHERE key = KEY1;", "never forgotten"),
    ("UPDATE charges SET state = 'refunded' WHERE key = KEY1;", "check constraint"),
    (
        "UPDATE charges SET state = 'declined', decided_at = now() WHERE key = KEY1;",
        "a_decline_has_its_reason",
    ),
];

#[tokio::test]
async fn charges_and_ledger_cannot_be_parted() -> anyhow::Result<()> {
    let world = World::new().await?;
    let _payments = world.payments(&[]).await?;
    world.sql(&format!("BEGIN; {BEGINNING} COMMIT;")).await?;
    let all = "SELECT c.*, e.account, e.amount_minor FROM charges c LEFT JOIN ledger_entries e ON c.key = e.charge_key ORDER BY c.key, e.account";
    let before = world.sql(all).await?;
    for (statements, told) in REFUSED {
        let refused = world.sql(&in_full(statements)).await.expect_err(statements);
        assert!(format!("{refused:#}").contains(told), "{statements}: {refused:#}");
    }
    assert_eq!(world.sql(all).await?, before, "something that was refused is there");

    let good = "APPROVE ENTRY(KEY1, 'customers', -100, 'EUR'); ENTRY(KEY1, 'shop', 100, 'EUR');";
    world.sql(&in_full(good)).await?;
    let sums = "SELECT account, amount_minor FROM balances ORDER BY account";
    assert_eq!(world.sql(sums).await?, "customers|-200 shop|200");
    Ok(())
}

/// One transaction, with its abbreviations written out.
fn in_full(statements: &str) -> String {
    let insert = "INSERT INTO ledger_entries (charge_key, account, amount_minor, currency) VALUES (";
    let mut text = statements.replace("APPROVE", APPROVE).replace("ENTRY(", insert);
    for n in ["1", "2", "3", "9"] {
        text = text.replace(&format!("KEY{n}"), &format!("lpad('{n}', 32, '0')::uuid"));
    }
    format!("BEGIN; {text} COMMIT;")
}
