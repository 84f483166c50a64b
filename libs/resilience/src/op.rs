//! Operation: the name of what is called, and whether doing it twice is the same as doing it once.
//!
//! Only the one who wrote the operation knows that, so it is said where the call is written, and
//! whatever is not declared idempotent is never repeated after an answer that did not come.

/// One kind of call to a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    name: &'static str,
    idempotent: bool,
}

impl Op {
    /// Doing it twice is the same as doing it once: reads, and writes under an idempotency key.
    pub const fn idempotent(name: &'static str) -> Self {
        Self { name, idempotent: true }
    }

    /// Doing it twice does it twice. It is repeated only when it surely did not happen.
    pub const fn once(name: &'static str) -> Self {
        Self { name, idempotent: false }
    }

    /// The name, for spans and metrics.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether it was declared idempotent.
    pub const fn is_idempotent(self) -> bool {
        self.idempotent
    }
}
