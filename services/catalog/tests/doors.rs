//! The catalog from outside: a real process on a real Postgres, which is there, goes, and comes back.

use std::{collections::BTreeSet, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use proto::catalog::{Product, Products};
use testbed::{Part, Postgres, Ready, Spec, poll, ports, postgres::Options};

const SOON: Duration = Duration::from_secs(20);

struct Catalog {
    _part: Part,
    at: SocketAddr,
    client: reqwest::Client,
}

impl Catalog {
    async fn start(folder: &Path, database: &str) -> anyhow::Result<Self> {
        let (at, admin) = (ports::free_address()?, ports::free_address()?);
        let spec = Spec::new("catalog", env!("CARGO_BIN_EXE_catalog"), folder.join("catalog.log"))
            .env("LISTEN", at.to_string())
            .env("ADMIN_LISTEN", admin.to_string())
            .env("DATABASE_URL", database)
            .ready(Ready::Http { address: admin, path: "/ready".into() });
        let part = Part::new(spec);
        part.start().await?;
        let client = reqwest::Client::builder().no_proxy().timeout(SOON).build()?;
        Ok(Self { _part: part, at, client })
    }

    async fn get(&self, path: &str) -> anyhow::Result<reqwest::Response> {
        Ok(self.client.get(format!("http://{}{path}", self.at)).send().await?)
    }

    /// The list, as soon as there is one.
    async fn joined(&self) -> anyhow::Result<Vec<Product>> {
        poll::until("the list", SOON, || async {
            let answer = self.get("/products").await?.error_for_status()?;
            Ok(answer.json::<Products>().await?.products)
        })
        .await
    }
}

fn header<'a>(answer: &'a reqwest::Response, name: &str) -> &'a str {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("none")
}

#[tokio::test]
async fn products_are_listed_and_found_and_nothing_else_is() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let postgres = Postgres::start(Options::default()).await?;
    let catalog = Catalog::start(folder.path(), postgres.create_database("catalog").await?.as_str()).await?;

    let products = catalog.joined().await?;
    assert_eq!(products.len(), 30);
    assert_eq!(products.first().map(|product| product.id.as_str()), Some("brass-compass"));
    assert_eq!(products.iter().map(|product| &product.id).collect::<BTreeSet<_>>().len(), 30);
    for product in &products {
        let found: Product = catalog.get(&format!("/products/{}", product.id)).await?.json().await?;
        assert_eq!(found, *product);
    }

    let longest = format!("/products/{}", "x".repeat(65));
    let nowhere =
        ["/products/unheard-of", "/products/%00", "/products/%FF", "/products/A'--", "/", "/elsewhere"];
    for path in nowhere.into_iter().chain([longest.as_str()]) {
        let answer = catalog.get(path).await?;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(header(&answer, "content-type"), "application/problem+json", "{path}");
        assert_eq!(answer.json::<serde_json::Value>().await?["code"], "not_found", "{path}");
    }
    let written = catalog.client.post(format!("http://{}/products", catalog.at)).send().await?;
    assert_eq!(written.status(), 405);
    Ok(())
}

#[tokio::test]
async fn without_its_database_it_says_so_and_joins_by_itself() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let postgres = Postgres::start(Options::default()).await?;
    let url = postgres.create_database("catalog").await?;
    postgres.part().kill().await?;

    let catalog = Catalog::start(folder.path(), url.as_str()).await?;
    let refused = catalog.get("/products").await?;
    assert_eq!((refused.status().as_u16(), header(&refused, "x-outcome")), (503, "not-executed"));

    postgres.part().start().await?;
    catalog.joined().await?;

    postgres.part().kill().await?;
    poll::until("the outage to show", SOON, || async {
        let answer = catalog.get("/products/enamel-mug").await?;
        ensure!(answer.status() == 503, "{}", answer.status());
        ensure!(header(&answer, "x-outcome") == "not-executed", "{answer:?}");
        Ok(())
    })
    .await?;
    postgres.part().start().await.context("again")?;
    catalog.joined().await?;
    Ok(())
}
