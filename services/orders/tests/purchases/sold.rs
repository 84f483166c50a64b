//! A good day: orders are paid or declined.

use proto::payments::ChargeRequest;
use serde_json::json;

use crate::shop::{Shop, draft, test, two_mugs};

#[test]
fn an_order_is_paid() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let before = shop.stock("enamel-mug").await?;
        let expected = json!({ "minor": 2590, "currency": "EUR" });
        let mut order = two_mugs();
        order["expected_total"] = expected.clone();
        let answer = shop.post("a-good-day-000001", &order, &[]).await?;

        assert_eq!((answer.status, &answer.json["state"]), (201, &json!("paid")), "{answer:?}");
        assert_eq!(answer.json["total"], expected);
        assert_eq!(answer.json["items"][0]["name"], "enamel mug");
        assert_eq!(answer.history(), ["payment_pending", "paid"]);
        assert_eq!(answer.header("location"), format!("/orders/{}", answer.id()));
        assert_eq!(answer.header("idempotency-replayed"), "");
        assert_eq!(shop.get(answer.id()).await?.json, answer.json, "asking gives the same");

        let charge = ChargeRequest {
            key: answer.id().to_owned(),
            amount_minor: 2590,
            currency: "EUR".into(),
            card: "tok_ok".into(),
        };
        assert_eq!(shop.payments.calls(), [charge]);
        assert_eq!(shop.stock("enamel-mug").await?, before - 2);
        assert_eq!(shop.rows().await?, "1 0 1", "an order, no intent, an event");

        let everything_said = answer.text + &shop.log()?;
        for secret in ["Lovelace", "ada@", "tok_ok"] {
            assert!(!everything_said.contains(secret), "{secret} was shown");
        }
        Ok(())
    })
}

#[test]
fn a_declined_order_gives_its_pieces_back() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let before = shop.stock("enamel-mug").await?;
        let order = draft("enamel-mug", 3, "tok_declined");
        let answer = shop.post("no-money-today-01", &order, &[]).await?;

        assert_eq!(answer.status, 402, "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.json["code"], "declined");
        assert_eq!(answer.json["state"], "declined");
        assert_eq!(answer.json["total"], json!({ "minor": 3885, "currency": "EUR" }));
        assert_eq!(answer.json["reason"], "The card was declined.");
        assert_eq!(shop.stock("enamel-mug").await?, before);
        assert_eq!(shop.rows().await?, "1 0 0", "an order, no intent, no event");

        let order_now = shop.get(answer.id()).await?;
        assert_eq!((order_now.status, order_now.history()), (200, vec!["payment_pending", "declined"]));
        let again = shop.post("no-money-today-01", &order, &[]).await?;
        assert_eq!((again.status, again.header("idempotency-replayed")), (402, "true"));
        assert_eq!(again.json, answer.json);
        assert_eq!(shop.payments.calls().len(), 1);
        Ok(())
    })
}

#[test]
fn owners_have_their_own_keys() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        let key = "everybodys-key-01";
        let ada = "user:6f6c1d0e-5f0b-4c58-9a51-0d4b7b0c7f11";
        let guest = shop.post(key, &two_mugs(), &[]).await?;
        let named = shop.post(key, &two_mugs(), &[("x-owner", "guest")]).await?;
        let user = shop.post(key, &two_mugs(), &[("x-owner", ada)]).await?;
        assert_eq!((guest.status, named.status, user.status), (201, 201, 201));
        assert_eq!(guest.id(), named.id(), "no owner is the guest");
        assert_ne!(guest.id(), user.id());
        Ok(())
    })
}
