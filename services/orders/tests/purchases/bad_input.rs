//! Input that is refused: each names its field, and nothing is done.

use serde_json::{Value, json};

use crate::shop::{Shop, draft, test, two_mugs};

const KEY: &str = "a-well-formed-key";

type Headers<'a> = &'a [(&'a str, &'a str)];

#[test]
fn each_refused_field_is_named() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let with = |field: &str, value: Value| {
            let mut order = two_mugs();
            order[field] = value;
            order
        };
        let item = |id: &str, quantity: Value| json!([{ "product_id": id, "quantity": quantity }]);
        let mug = json!({ "product_id": "enamel-mug", "quantity": 1 });
        let kite = json!({ "product_id": "no-such-kite", "quantity": 1 });
        let cases = [
            ("items", with("items", json!([]))),
            ("items", with("items", Value::Array(vec![mug.clone(); 51]))),
            ("items", with("items", json!("all of it"))),
            ("items[0].product_id", with("items", item("", json!(1)))),
            ("items[0].product_id", with("items", item("Robert'); DROP TABLE orders", json!(1)))),
            ("items[0].product_id", with("items", item("a\u{0}b", json!(1)))),
            ("items[1].product_id", with("items", json!([mug, kite]))),
            ("items[0].quantity", with("items", item("enamel-mug", json!(0)))),
            ("items[0].quantity", with("items", item("enamel-mug", json!(-1)))),
            ("items[0].quantity", with("items", item("enamel-mug", json!(100)))),
            ("items[0].quantity", with("items", item("enamel-mug", json!(1.5)))),
            ("items[0].quantity", with("items", item("enamel-mug", json!(1e30)))),
            ("name", with("name", json!(""))),
            ("name", with("name", json!("a\u{0}b"))),
            ("name", with("name", json!("a".repeat(101)))),
            ("email", with("email", json!("nobody"))),
            ("email", with("email", json!(null))),
            ("card", with("card", json!("4111111111111111"))),
            ("currency", with("currency", json!("XXX"))),
            ("expected_total.currency", with("expected_total", json!({ "minor": 1, "currency": "XXX" }))),
            ("expected_total.minor", with("expected_total", json!({ "minor": "1", "currency": "EUR" }))),
        ];
        for (field, order) in cases {
            let answer = shop.post(KEY, &order, &[]).await?;
            assert_eq!(answer.status, 422, "{field}: {answer:?}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
            assert_eq!(answer.json["errors"][0]["field"], field, "{answer:?}");
            assert_eq!(answer.json["errors"].as_array().map(Vec::len), Some(1), "{answer:?}");
        }
        assert_eq!(shop.rows().await?, "0 0 0");
        assert_eq!(shop.payments.calls(), []);
        Ok(())
    })
}

#[test]
fn each_refused_header_and_body_is_told() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let good = two_mugs().to_string();
        let long = "k".repeat(129);
        let huge = format!("{{\"name\":\"{}\"}}", "a".repeat(70_000));
        let cases: [(u16, &str, Headers, &str); 12] = [
            (400, "idempotency-key", &[], &good),
            (400, "idempotency-key", &[("idempotency-key", "")], &good),
            (400, "idempotency-key", &[("idempotency-key", "short")], &good),
            (400, "idempotency-key", &[("idempotency-key", "with spaces in it all")], &good),
            (400, "idempotency-key", &[("idempotency-key", &long)], &good),
            (400, "x-owner", &[("idempotency-key", KEY), ("x-owner", "")], &good),
            (400, "x-owner", &[("idempotency-key", KEY), ("x-owner", "user:ada")], &good),
            (400, "x-owner", &[("idempotency-key", KEY), ("x-owner", "admin")], &good),
            (400, "bad_json", &[("idempotency-key", KEY)], "{\"items\":"),
            (400, "bad_json", &[("idempotency-key", KEY)], ""),
            (413, "too_large", &[("idempotency-key", KEY)], &huge),
            (415, "not_json", &[("idempotency-key", KEY), ("content-type", "text/plain")], &good),
        ];
        for (status, what, headers, body) in cases {
            let answer = shop.post_with(headers, body.to_owned()).await?;
            assert_eq!(answer.status, status, "{what}: {answer:?}");
            let named = [&answer.json["code"], &answer.json["errors"][0]["field"]];
            assert!(named.iter().any(|name| *name == what), "{what}: {answer:?}");
        }
        for id in ["nonsense", "%00", "00000000-0000-0000-0000-000000000001"] {
            let answer = shop.get(id).await?;
            assert_eq!((answer.status, answer.json["code"].as_str()), (404, Some("not_found")), "{id}");
        }
        assert_eq!(shop.rows().await?, "0 0 0");
        Ok(())
    })
}

#[test]
fn prices_and_currencies_are_agreed_before_anything_is_sold() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let mut cheap = two_mugs();
        cheap["expected_total"] = json!({ "minor": 2, "currency": "EUR" });
        let answer = shop.post(KEY, &cheap, &[]).await?;
        assert_eq!((answer.status, answer.json["code"].as_str()), (409, Some("price_changed")));
        assert_eq!(answer.json["total"], json!({ "minor": 2590, "currency": "EUR" }));

        let mut foreign = two_mugs();
        foreign["currency"] = json!("USD");
        let answer = shop.post(KEY, &foreign, &[]).await?;
        assert_eq!((answer.status, answer.json["code"].as_str()), (409, Some("currency_unavailable")));

        let answer = shop.post(KEY, &draft("unstocked-kite", 1, "tok_ok"), &[]).await?;
        assert_eq!((answer.status, answer.json["code"].as_str()), (409, Some("out_of_stock")));
        assert_eq!(answer.json["products"], json!(["unstocked-kite"]));
        assert_eq!(shop.rows().await?, "0 0 0");
        assert_eq!(shop.payments.calls(), []);
        Ok(())
    })
}
