//! How a refused input is told: by its field, in words for the person who sent it.

use serde::{Deserialize, Serialize};

/// One refused field of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The path of the field as it was sent, such as `items[0].quantity`.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl FieldError {
    /// `message` about `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
