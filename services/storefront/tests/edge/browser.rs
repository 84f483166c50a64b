//! A browser, as far as a shop without scripts needs one: it keeps cookies, sends forms with the
//! headers that browsers send, and goes where it is sent.

use std::collections::HashMap;

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::Client;
use url::form_urlencoded;

pub(crate) struct Browser {
    base: String,
    client: Client,
    pub(crate) cookies: HashMap<String, String>,
}

/// A page as it arrived.
#[derive(Debug)]
pub(crate) struct Page {
    /// The path it was got from, after redirects.
    pub(crate) path: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

impl Browser {
    pub(crate) fn new(base: String, client: Client) -> Self {
        Self { base, client, cookies: HashMap::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.go(Method::GET, path, &[]).await
    }

    /// Sends a form, and follows where that leads.
    pub(crate) async fn send(&mut self, path: &str, form: &[(&str, &str)]) -> Page {
        self.go(Method::POST, path, form).await
    }

    pub(crate) async fn add(&mut self, product: &str, quantity: &str) -> Page {
        let form = [("product_id", product), ("quantity", quantity)];
        self.send("/cart", &form).await
    }

    /// Fills in the checkout's form on `page` and sends it.
    pub(crate) async fn pay(&mut self, page: &Page, card: &str) -> Page {
        let hidden = |name| page.hidden(name).expect("the form has it");
        let form = [
            ("key", hidden("key")),
            ("currency", hidden("currency")),
            ("expected_total", hidden("expected_total")),
            ("name", "Ada"),
            ("email", "ada@example.com"),
            ("card", card),
        ];
        self.send("/checkout", &form).await
    }

    async fn go(&mut self, method: Method, path: &str, form: &[(&str, &str)]) -> Page {
        let (mut method, mut path) = (method, path.to_owned());
        for _ in 0..5 {
            let page = self.once(method, &path, form).await;
            if page.status != StatusCode::SEE_OTHER {
                return page;
            }
            let to = page.headers[header::LOCATION].to_str().expect("a path");
            (method, path) = (Method::GET, to.to_owned());
        }
        panic!("it is sent around in circles");
    }

    /// Sends one request and goes nowhere else.
    pub(crate) async fn once(&mut self, method: Method, path: &str, form: &[(&str, &str)]) -> Page {
        let url = format!("{}{path}", self.base);
        let mut request = self
            .client
            .request(method.clone(), url)
            .header(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("sec-fetch-site", "same-origin");
        if method == Method::POST {
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            request = request
                .header(header::ORIGIN, &self.base)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body);
        }
        if !self.cookies.is_empty() {
            let cookies: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        let response = request.send().await.expect("the shop always answers");
        let (status, headers) = (response.status(), response.headers().clone());
        for cookie in headers.get_all(header::SET_COOKIE) {
            self.keep(cookie.to_str().expect("plain text"));
        }
        let html = response.text().await.expect("a page");
        Page { path: path.to_owned(), status, headers, html }
    }

    fn keep(&mut self, set: &str) {
        let (cookie, rules) = set.split_once(';').expect("it says its rules");
        let (name, value) = cookie.split_once('=').expect("name and value");
        if rules.contains("Max-Age=0") {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

impl Page {
    /// The value of the hidden field `name`.
    pub(crate) fn hidden(&self, name: &str) -> Option<&str> {
        let begin = format!("<input type=\"hidden\" name=\"{name}\" value=\"");
        let (_, rest) = self.html.split_once(&begin)?;
        rest.split_once('"').map(|(value, _)| value)
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        self.html.contains(text)
    }

    /// The `Degraded` header, or nothing.
    pub(crate) fn degraded(&self) -> &str {
        let value = self.headers.get("degraded");
        value.map_or("", |value| value.to_str().expect("plain text"))
    }
}
