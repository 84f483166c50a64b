//! A catalog with a few products, which can be absent.

use std::{net::SocketAddr, sync::Mutex};

use axum::{Json, Router, routing::get};
use proto::{
    catalog::{Product, Products},
    money::{Currency, Money},
};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::shop::server_runtime;

/// What it sells: ids of the stock's first products, with their prices.
const PRODUCTS: [(&str, i64); 4] =
    [("enamel-mug", 1295), ("ditty-bag", 2250), ("aneroid-barometer", 14900), ("unstocked-kite", 100)];

pub(crate) struct FakeCatalog {
    at: SocketAddr,
    running: Mutex<Option<Runtime>>,
}

impl FakeCatalog {
    pub(crate) fn absent(at: SocketAddr) -> Self {
        Self { at, running: Mutex::new(None) }
    }

    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        let runtime = server_runtime()?;
        let at = self.at;
        runtime
            .spawn(async move {
                let listener = TcpListener::bind(at).await?;
                let routes = Router::new().route("/products", get(async || Json(products())));
                tokio::spawn(async move { axum::serve(listener, routes).await });
                anyhow::Ok(())
            })
            .await??;
        *self.running.lock().expect("not poisoned") = Some(runtime);
        Ok(())
    }

    /// Ends it and every connection to it.
    pub(crate) fn stop(&self) {
        if let Some(runtime) = self.running.lock().expect("not poisoned").take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for FakeCatalog {
    fn drop(&mut self) {
        self.stop();
    }
}

fn products() -> Products {
    let product = |(id, minor): (&str, i64)| Product {
        id: id.into(),
        name: id.replace('-', " "),
        summary: String::new(),
        description: String::new(),
        art: "anchor".into(),
        price: Money::new(minor, Currency::Eur),
    };
    Products { products: PRODUCTS.into_iter().map(product).collect() }
}
