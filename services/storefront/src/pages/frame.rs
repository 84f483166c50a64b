//! What every page has around its content.

use chrono::{DateTime, Utc};
use resilience::Quality;

use super::words;

/// What every page has around its content: the header with the cart's count, and the notes that say
/// what is not as it should be.
#[derive(Debug, Clone)]
pub struct Frame {
    pub(super) now: DateTime<Utc>,
    pub(super) cart_count: u32,
    pub(super) banner: Option<String>,
    pub(super) notes: Vec<String>,
    pub(super) refresh: Option<Refresh>,
    pub(super) here: Here,
}

/// After how many seconds a page is to be replaced by which address.
#[derive(Debug, Clone)]
pub(super) struct Refresh {
    pub(super) seconds: u32,
    pub(super) address: String,
}

/// Which entry of the navigation the page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Here {
    /// The product pages.
    Products,
    /// The cart and what follows it.
    Cart,
    /// None of them.
    #[default]
    Elsewhere,
}

impl Frame {
    /// The frame of a page made at `now` for somebody with `cart_count` pieces in the cart.
    pub fn new(now: DateTime<Utc>, cart_count: u32) -> Self {
        Self { now, cart_count, banner: None, notes: Vec::new(), refresh: None, here: Here::default() }
    }

    /// With a word above the header that concerns every page.
    #[must_use]
    pub fn banner(self, text: impl Into<String>) -> Self {
        Self { banner: Some(text.into()), ..self }
    }

    /// With a calm note at the top of the content.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Says what the catalogue's answer is worth, unless it is fresh.
    #[must_use]
    pub(super) fn tell_catalogue(self, quality: Quality, subject: &str) -> Self {
        let text = match quality {
            Quality::Live => return self,
            Quality::Stale { age } => format!(
                "{subject} are from {}; the catalogue is not answering at the moment.",
                words::as_of(self.now, age)
            ),
            Quality::Default | Quality::Deferred => {
                "The catalogue is not answering; what you see is our usual selection, and it may differ."
                    .to_owned()
            }
            Quality::Missing => {
                "The catalogue is not answering and we have nothing remembered. Your cart is kept.".to_owned()
            }
        };
        self.note(text)
    }

    pub(super) fn at(self, here: Here) -> Self {
        Self { here, ..self }
    }

    pub(super) fn refresh(self, refresh: Option<Refresh>) -> Self {
        Self { refresh, ..self }
    }
}
