//! Drafts that are good and drafts that are not.

use super::*;

fn draft() -> Draft {
    Draft {
        items: vec![DraftItem { product_id: "brass-compass".into(), quantity: 2 }],
        name: "Ada".into(),
        email: "ada@example.com".into(),
        card: "tok_ok".into(),
        currency: "EUR".into(),
        expected_total: None,
    }
}

fn item(product_id: &str, quantity: i64) -> DraftItem {
    DraftItem { product_id: product_id.into(), quantity }
}

#[test]
fn a_good_draft_becomes_an_order() {
    let order = draft().parse().expect("well formed");
    assert_eq!(order.items, [("brass-compass".to_owned(), Quantity(2))]);
    assert_eq!(order.currency, Currency::Eur);
}

#[test]
fn lines_of_one_product_are_added_up() {
    let two = Draft { items: vec![item("rope", 60), item("bell", 1), item("rope", 39)], ..draft() };
    let order = two.parse().expect("well formed");
    assert_eq!(order.items, [("bell".to_owned(), Quantity(1)), ("rope".to_owned(), Quantity(99))]);
}

#[test]
fn each_refused_field_is_named() {
    type Spoil = fn(&mut Draft);
    let cases: [(&str, Spoil); 17] = [
        ("items", |d| d.items.clear()),
        ("items", |d| d.items = vec![item("rope", 1); MAX_LINES + 1]),
        ("items[0].product_id", |d| d.items[0].product_id.clear()),
        ("items[0].product_id", |d| d.items[0].product_id = "Robert'); DROP".into()),
        ("items[0].product_id", |d| d.items[0].product_id = "x".repeat(65)),
        ("items[0].quantity", |d| d.items[0].quantity = 0),
        ("items[0].quantity", |d| d.items[0].quantity = -1),
        ("items[0].quantity", |d| d.items[0].quantity = i64::MAX),
        ("items[1].quantity", |d| d.items.push(item("brass-compass", 98))),
        ("name", |d| d.name = "  ".into()),
        ("name", |d| d.name = "a".repeat(101)),
        ("name", |d| d.name = "a\0b".into()),
        ("email", |d| d.email = "nobody".into()),
        ("email", |d| d.email = "a@b@example.com".into()),
        ("email", |d| d.email = "a b@example.com".into()),
        ("card", |d| d.card = "4111111111111111".into()),
        ("currency", |d| d.currency = "eur".into()),
    ];
    for (field, spoil) in cases {
        let mut bad = draft();
        spoil(&mut bad);
        let faults = bad.parse().expect_err(field);
        assert_eq!(faults.iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), [field]);
    }
}

#[test]
fn all_refused_fields_are_named_at_once() {
    let faults = Draft::default().parse().expect_err("nothing is filled in");
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["items", "name", "email", "card", "currency"]);
}

#[test]
fn a_key_is_long_and_plain() {
    assert!(IdempotencyKey::new("0123456789abcdef").is_some());
    for bad in ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdeß", &"k".repeat(129)] {
        assert_eq!(IdempotencyKey::new(bad), None, "{bad}");
    }
}

#[test]
fn the_id_follows_from_owner_and_key() {
    let key = IdempotencyKey::new("0123456789abcdef").expect("good");
    let guest = OrderId::derive(&Owner::Guest, &key);
    assert_eq!(guest, OrderId::derive(&Owner::Guest, &key));
    assert_ne!(guest, OrderId::derive(&Owner::User(Uuid::nil()), &key));
    for owner in [Owner::Guest, Owner::User(Uuid::nil())] {
        assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
    }
    assert_eq!(Owner::parse("user:ada"), None);
    assert_eq!(Owner::parse(""), None);
}

#[test]
fn card_and_person_stay_out_of_debug_output() {
    let text = format!("{:?} {:?}", draft(), draft().parse().expect("well formed"));
    for secret in ["tok_ok", "ada@", "Ada"] {
        assert!(!text.contains(secret), "{text}");
    }
}
