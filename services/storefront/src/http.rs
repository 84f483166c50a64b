//! The pages' doors: which address shows what, and what a form does.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    middleware::{from_fn, map_response},
    response::{IntoResponse as _, Response},
    routing::get,
};
use chassis::Problem;
use http::StatusCode;
use proto::FieldError;
use resilience::{Answer, CallContext, Quality};

use crate::{
    api,
    cart::{Cart, Change, is_product_id},
    catalog::Catalog,
    checkout::{self, Sent},
    degraded::Degraded,
    forms::{CartForm, CheckoutForm, Form},
    headers, order_page,
    orders::Orders,
    origin,
    pages::{Basket, CartPage, CheckoutPage, IndexPage, OrderPage, ProblemPage, ProductPage, Trouble},
    refusal::Teller,
    reply::{SetCart, page, see},
    static_files,
    visit::{Visit, frame},
};

/// What the doors open to.
#[derive(Debug)]
pub(crate) struct Shop {
    /// The catalog service.
    pub(crate) catalog: Catalog,
    /// The orders service.
    pub(crate) orders: Orders,
    /// Browsers send the cart's cookie over https only.
    pub(crate) cookie_secure: bool,
}

/// All doors, and what stands before each of them.
pub(crate) fn routes(shop: Shop) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/products/{id}", get(product))
        .route("/cart", get(cart).post(change_cart))
        .route("/checkout", get(checkout_form).post(send_checkout))
        .route("/orders/{id}", get(order_page::show))
        .nest("/api/v1", api::routes())
        .with_state(Arc::new(shop))
        .merge(static_files::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(bad_method)
        // before any handler: nothing happens in the name of a visitor of another site
        .layer(from_fn(origin::check))
        // outermost: also a refusal says what browsers must not do with it
        .layer(map_response(headers::put))
}

impl Shop {
    /// The cookie that `cart` needs, when it is another than the one that came.
    pub(crate) fn set_cart(&self, came: &Cart, cart: &Cart) -> SetCart {
        SetCart((cart != came).then(|| cart.cookie(self.cookie_secure)))
    }

    /// `cart` with what the catalogue tells about it.
    async fn basket(&self, cx: &CallContext, cart: &Cart) -> (Basket, Degraded) {
        if cart.is_empty() {
            return (Basket::new(&[], Answer::Live(Vec::new())), Degraded::default());
        }
        let catalogue = self.catalog.products(cx).await;
        let degraded = Degraded::of("catalog", catalogue.quality());
        (Basket::new(&cart.items(), catalogue), degraded)
    }
}

async fn index(State(shop): State<Arc<Shop>>, visit: Visit) -> Response {
    let products = shop.catalog.products(&visit.cx).await;
    let degraded = Degraded::of("catalog", products.quality());
    (degraded, page(StatusCode::OK, &IndexPage::new(visit.frame(), products))).into_response()
}

async fn product(
    State(shop): State<Arc<Shop>>,
    visit: Visit,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let not_found = || page(StatusCode::NOT_FOUND, &ProblemPage::not_found(visit.frame()));
    let Ok(Path(id)) = id else { return not_found() };
    if !is_product_id(&id) {
        return not_found();
    }
    let product = match shop.catalog.product(&visit.cx, &id).await {
        Answer::Live(None) => return not_found(),
        other => match other.into_parts() {
            (Some(Some(product)), Quality::Stale { age }) => Answer::Stale { value: product, age },
            (Some(Some(product)), _) => Answer::Live(product),
            (Some(None) | None, _) => Answer::Missing,
        },
    };
    let degraded = Degraded::of("catalog", product.quality());
    (degraded, page(StatusCode::OK, &ProductPage::new(visit.frame(), product))).into_response()
}

async fn cart(State(shop): State<Arc<Shop>>, visit: Visit) -> Response {
    let (basket, degraded) = shop.basket(&visit.cx, &visit.cart).await;
    let shown = match visit.cart.frozen() {
        None => CartPage::new(visit.frame(), basket),
        Some(order) => CartPage::frozen(visit.frame(), basket, order),
    };
    (degraded, page(StatusCode::OK, &shown)).into_response()
}

async fn change_cart(State(shop): State<Arc<Shop>>, visit: Visit, Form(form): Form<CartForm>) -> Response {
    if visit.cart.frozen().is_some() {
        return see("/cart");
    }
    let mut cart = visit.cart.clone();
    let changed = match form.quantity.trim().parse() {
        Ok(quantity) => {
            let change = if form.add.is_some() { Change::Add } else { Change::Set };
            cart.change(form.product_id.trim(), change, quantity)
        }
        Err(_) => Err(FieldError::new("quantity", "must be a whole number")),
    };
    let known = match changed {
        Ok(()) if cart.pieces() > visit.cart.pieces() => {
            // That a product does not exist is worth saying now; that nobody can tell is not.
            let product = shop.catalog.product(&visit.cx, form.product_id.trim()).await;
            match product {
                Answer::Live(None) => Err(FieldError::new("product_id", "is not a product of this shop")),
                _ => Ok(()),
            }
        }
        other => other,
    };
    match known {
        Ok(()) => (shop.set_cart(&visit.cart, &cart), see("/cart")).into_response(),
        Err(fault) => {
            let shown = ProblemPage::refused(visit.frame(), &[fault]);
            page(StatusCode::UNPROCESSABLE_ENTITY, &shown)
        }
    }
}

async fn checkout_form(State(shop): State<Arc<Shop>>, visit: Visit) -> Response {
    if let Some(order) = visit.cart.frozen() {
        return see(&order_page::address(order));
    }
    if visit.cart.is_empty() {
        return see("/cart");
    }
    let (basket, degraded) = shop.basket(&visit.cx, &visit.cart).await;
    let shown = CheckoutPage::new(visit.frame(), visit.cart.key(), basket);
    (degraded, page(StatusCode::OK, &shown)).into_response()
}

async fn send_checkout(
    State(shop): State<Arc<Shop>>,
    visit: Visit,
    Form(form): Form<CheckoutForm>,
) -> Response {
    let (cart, sent) = checkout::send(&shop.orders, &visit.cx, visit.cart.clone(), &form).await;
    let set_cart = shop.set_cart(&visit.cart, &cart);
    let (status, faults, trouble) = match sent {
        Sent::Order { id, payment } => {
            let degraded = Degraded::of("payments", payment);
            return (set_cart, degraded, see(&order_page::address(id))).into_response();
        }
        Sent::Frozen(id) => return see(&order_page::address(id)),
        Sent::Nothing => return see("/cart"),
        Sent::Unknown(id) => {
            let shown = OrderPage::checking(frame(&cart), id);
            let degraded = Degraded::of("orders", Quality::Missing);
            return (set_cart, degraded, page(StatusCode::GATEWAY_TIMEOUT, &shown)).into_response();
        }
        Sent::Refused(faults) => (StatusCode::UNPROCESSABLE_ENTITY, faults, None),
        Sent::NotPlaced(trouble) => (status(trouble), Vec::new(), Some(trouble)),
    };
    let (basket, mut degraded) = shop.basket(&visit.cx, &cart).await;
    if trouble == Some(Trouble::Unavailable) {
        degraded = degraded.and("orders", Quality::Missing);
    }
    let name: String = form.name.chars().take(100).collect();
    let shown = CheckoutPage::new(frame(&cart), cart.key(), basket).name(name).faults(&faults);
    let shown = match trouble {
        Some(trouble) => shown.trouble(trouble),
        None => shown,
    };
    (set_cart, degraded, page(status, &shown)).into_response()
}

fn status(trouble: Trouble) -> StatusCode {
    match trouble {
        Trouble::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Trouble::Declined => StatusCode::PAYMENT_REQUIRED,
        Trouble::KeyUsed => StatusCode::UNPROCESSABLE_ENTITY,
        Trouble::OutOfStock | Trouble::PriceChanged | Trouble::CurrencyUnavailable => StatusCode::CONFLICT,
    }
}

async fn unknown(request: Request) -> Response {
    Teller::of(&request).tell(Problem::not_found("there is nothing at this address"))
}

async fn bad_method(request: Request) -> Response {
    let detail = format!("{} is not for this address", request.method());
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad_method", detail);
    Teller::of(&request).tell(problem)
}
