//! Quality: how good an answer is, as a part of its type.
//!
//! A fallback that looks like the real thing is a lie that a page repeats. So what a page or a JSON
//! answer is built from is an [`Answer`], which cannot be opened without meeting its quality.

use std::{fmt, time::Duration};

/// How good an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// The neighbour gave it just now.
    Live,
    /// The neighbour gave it a while ago, and is not answering now.
    Stale {
        /// How long ago.
        age: Duration,
    },
    /// A stand-in that is good enough, such as popular products for recommended ones.
    Default,
    /// Taken on, and done later.
    Deferred,
    /// There is none.
    Missing,
}

impl Quality {
    /// The name in JSON answers, headers and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale { .. } => "stale",
            Self::Default => "default",
            Self::Deferred => "deferred",
            Self::Missing => "missing",
        }
    }

    /// Less than what people get on a good day.
    pub const fn is_degraded(self) -> bool {
        !matches!(self, Self::Live)
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value together with its [`Quality`], or the fact that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// The neighbour gave it just now.
    Live(T),
    /// The neighbour gave it `age` ago.
    Stale {
        /// What it gave.
        value: T,
        /// How long ago.
        age: Duration,
    },
    /// A stand-in.
    Default(T),
    /// Taken on, and done later.
    Deferred(T),
    /// There is none.
    Missing,
}

impl<T> Answer<T> {
    /// How good it is.
    pub fn quality(&self) -> Quality {
        match self {
            Self::Live(_) => Quality::Live,
            Self::Stale { age, .. } => Quality::Stale { age: *age },
            Self::Default(_) => Quality::Default,
            Self::Deferred(_) => Quality::Deferred,
            Self::Missing => Quality::Missing,
        }
    }

    /// The value and its quality.
    pub fn into_parts(self) -> (Option<T>, Quality) {
        let quality = self.quality();
        let value = match self {
            Self::Live(value) | Self::Stale { value, .. } | Self::Default(value) | Self::Deferred(value) => {
                Some(value)
            }
            Self::Missing => None,
        };
        (value, quality)
    }

    /// The same answer with its value turned into another.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Live(value) => Answer::Live(f(value)),
            Self::Stale { value, age } => Answer::Stale { value: f(value), age },
            Self::Default(value) => Answer::Default(f(value)),
            Self::Deferred(value) => Answer::Deferred(f(value)),
            Self::Missing => Answer::Missing,
        }
    }
}
