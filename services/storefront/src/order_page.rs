//! The page of one order, which is also where a frozen cart finds out what became of it.

use std::sync::Arc;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse as _, Response},
};
use chassis::problem::chain;
use http::StatusCode;
use proto::order::{OrderId, OrderState};
use resilience::{Answer, Quality};

use crate::{
    cart::Cart,
    checkout::payment,
    degraded::Degraded,
    http::Shop,
    pages::{OrderPage, ProblemPage},
    reply::page,
    visit::{Visit, frame},
};

/// Where the order `id` is shown.
pub(crate) fn address(id: OrderId) -> String {
    format!("/orders/{id}")
}

/// `GET /orders/{id}`.
pub(crate) async fn show(
    State(shop): State<Arc<Shop>>,
    visit: Visit,
    id: Result<Path<OrderId>, PathRejection>,
) -> Response {
    let Ok(Path(id)) = id else {
        return page(StatusCode::NOT_FOUND, &ProblemPage::no_such_order(visit.frame()));
    };
    let carts_own = visit.cart.order() == id;
    let waiting = visit.cart.frozen() == Some(id);
    let (cart, degraded, shown) = match shop.orders.get(&visit.cx, id).await {
        Ok(Some(order)) => {
            let cart = match order.state {
                _ if !carts_own => visit.cart.clone(),
                OrderState::Declined => visit.cart.clone().renew(),
                OrderState::Paid | OrderState::PaymentPending | OrderState::PaymentDeferred => Cart::empty(),
            };
            let degraded = Degraded::of("payments", payment(order.state));
            let shown = OrderPage::new(frame(&cart), id, Answer::Live(order));
            (cart, degraded, page(StatusCode::OK, &shown))
        }
        Ok(None) if waiting => {
            // The key is kept: should the order arrive after all, the next try finds it.
            let cart = visit.cart.clone().keep(visit.cart.key().clone());
            let shown = ProblemPage::never_placed(frame(&cart));
            (cart, Degraded::default(), page(StatusCode::NOT_FOUND, &shown))
        }
        Ok(None) => {
            let shown = ProblemPage::no_such_order(visit.frame());
            (visit.cart.clone(), Degraded::default(), page(StatusCode::NOT_FOUND, &shown))
        }
        Err(error) => {
            tracing::warn!(error = %chain(&error), "orders gave no answer about an order");
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let shown = if waiting {
                page(status, &OrderPage::checking(visit.frame(), id))
            } else {
                page(status, &ProblemPage::order_unseen(visit.frame(), id))
            };
            (visit.cart.clone(), Degraded::of("orders", Quality::Missing), shown)
        }
    };
    (shop.set_cart(&visit.cart, &cart), degraded, shown).into_response()
}
