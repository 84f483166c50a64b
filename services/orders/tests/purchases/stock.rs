//! The last pieces.

use serde_json::json;
use testbed::poll;

use crate::shop::{SOON, Shop, draft, test};

#[test]
fn a_hundred_buyers_of_five_pieces_get_five() -> anyhow::Result<()> {
    test(async {
        let shop = Shop::open().await?;
        assert_eq!(shop.stock("aneroid-barometer").await?, 5);
        let order = draft("aneroid-barometer", 1, "tok_ok");
        let keys: Vec<_> = (0..100).map(|buyer| format!("the-last-pieces-{buyer:03}")).collect();
        let buyers = keys.iter().map(|key| shop.insist(key, &order));
        let answers = futures_util::future::try_join_all(buyers).await?;

        let sold = answers.iter().filter(|answer| answer.status < 300).count();
        let refused = answers.iter().filter(|answer| answer.status == 409).collect::<Vec<_>>();
        assert_eq!((sold, refused.len()), (5, 95));
        for answer in refused {
            assert_eq!(answer.json["code"], "out_of_stock");
            assert_eq!(answer.json["products"], json!(["aneroid-barometer"]));
        }
        assert_eq!(shop.stock("aneroid-barometer").await?, 0);
        poll::until("five orders and nothing else", SOON, || async {
            let rows = shop.rows().await?;
            anyhow::ensure!(rows == "5 0 5", "{rows}");
            Ok(())
        })
        .await
    })
}
