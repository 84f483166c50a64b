//! The forms that pages send. Everything is text here; what it has to be is said where it is used.

use std::fmt;

use axum::{
    extract::{FromRequest, Request, rejection::FormRejection},
    response::Response,
};
use chassis::Problem;
use http::StatusCode;
use serde::{Deserialize, de::DeserializeOwned};

use crate::refusal::Teller;

/// A form; one that cannot be read is answered by a page that says so.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

/// What `POST /cart` carries.
#[derive(Debug, Deserialize)]
pub(crate) struct CartForm {
    /// Which product.
    #[serde(default)]
    pub(crate) product_id: String,
    /// How many.
    #[serde(default)]
    pub(crate) quantity: String,
    /// There at all: so many more. Otherwise: so many, whatever was in the cart.
    #[serde(default)]
    pub(crate) add: Option<String>,
}

/// What `POST /checkout` carries.
#[derive(Deserialize)]
pub(crate) struct CheckoutForm {
    /// The name of this purchase.
    #[serde(default)]
    pub(crate) key: String,
    /// To whom.
    #[serde(default)]
    pub(crate) name: String,
    /// Where the confirmation goes.
    #[serde(default)]
    pub(crate) email: String,
    /// The card's token.
    #[serde(default)]
    pub(crate) card: String,
    /// The currency to pay in.
    #[serde(default)]
    pub(crate) currency: String,
    /// The total that was shown, in minor units of the currency. Empty: none was.
    #[serde(default)]
    pub(crate) expected_total: String,
}

impl fmt::Debug for CheckoutForm {
    /// Leaves out who it is and what they pay with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckoutForm").finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Form<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let teller = Teller::of(&request);
        match axum::Form::from_request(request, state).await {
            Ok(axum::Form(form)) => Ok(Self(form)),
            Err(rejection) => Err(teller.tell(problem(rejection))),
        }
    }
}

fn problem(rejection: FormRejection) -> Problem {
    let (status, code, detail) = match rejection {
        FormRejection::InvalidFormContentType(_) => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_a_form",
            "a form must be sent as application/x-www-form-urlencoded",
        ),
        FormRejection::FailedToDeserializeForm(_) | FormRejection::FailedToDeserializeFormBody(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "bad_form", "the form is not well formed")
        }
        other if other.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the form is larger than this shop takes")
        }
        _ => (StatusCode::BAD_REQUEST, "bad_body", "the form broke off"),
    };
    Problem::new(status, code, detail)
}
