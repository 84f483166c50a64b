//! The breaker's state word: state, generation and what that state counts, in one atomic number.
//!
//! Everything that must change together is one compare-and-swap on it, so there is no moment at
//! which the state says one thing and the probes another, and no lock that a stopped thread holds.
//!
//! ```text
//! | state 2 | generation 22 | payload 40                                 |
//!   closed                    failures in a row (32)
//!   open                      until when, in ms of the breaker's timeline (34 years)
//!   half-open                 probes succeeded (16) | probes let out (16)
//! ```
//!
//! The generation goes up with every change of state. It wraps after four million of them: a permit
//! would have to be held for exactly that many to be taken for a present one.

use super::State;

const PAYLOAD_BITS: u32 = 40;
const PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;
const GENERATION_BITS: u32 = 22;
const GENERATION: u64 = (1 << GENERATION_BITS) - 1;
const FIELD: u64 = 0xFFFF;

/// One value of the state word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    /// The first word: closed, nothing counted.
    pub(super) const FIRST: Self = Self(0);

    fn next(self, state: State, payload: u64) -> Self {
        let generation = (self.generation() + 1) & GENERATION;
        let state = match state {
            State::Closed => 0,
            State::Open => 1,
            State::HalfOpen => 2,
        };
        Self(state << (PAYLOAD_BITS + GENERATION_BITS) | generation << PAYLOAD_BITS | payload.min(PAYLOAD))
    }

    /// Closed, in the next generation.
    pub(super) fn to_closed(self) -> Self {
        self.next(State::Closed, 0)
    }

    /// Open until `until_ms`, in the next generation.
    pub(super) fn to_open(self, until_ms: u64) -> Self {
        self.next(State::Open, until_ms)
    }

    /// Half-open with the first probe let out, in the next generation.
    pub(super) fn to_half_open(self) -> Self {
        self.next(State::HalfOpen, 1)
    }

    pub(super) const fn state(self) -> State {
        match self.0 >> (PAYLOAD_BITS + GENERATION_BITS) {
            0 => State::Closed,
            1 => State::Open,
            _ => State::HalfOpen,
        }
    }

    pub(super) const fn generation(self) -> u64 {
        (self.0 >> PAYLOAD_BITS) & GENERATION
    }

    /// State and generation alike.
    pub(super) const fn same_generation(self, other: Self) -> bool {
        (self.0 ^ other.0) & !PAYLOAD == 0
    }

    /// Closed: failures in a row.
    pub(super) const fn failures_in_a_row(self) -> u64 {
        self.0 & PAYLOAD
    }

    /// Closed: one more failure in a row. It stops below the next field.
    pub(super) const fn one_more_failure(self) -> Self {
        if self.0 & PAYLOAD == PAYLOAD { self } else { Self(self.0 + 1) }
    }

    /// Closed: a success came in between.
    pub(super) const fn no_failures(self) -> Self {
        Self(self.0 & !PAYLOAD)
    }

    /// Open: until when.
    pub(super) const fn until_ms(self) -> u64 {
        self.0 & PAYLOAD
    }

    /// Half-open: probes let out, those that came back with a success included.
    pub(super) const fn probes_out(self) -> u64 {
        self.0 & FIELD
    }

    /// Half-open: probes that succeeded.
    pub(super) const fn probes_succeeded(self) -> u64 {
        (self.0 >> 16) & FIELD
    }

    /// Half-open: one more probe is let out.
    pub(super) const fn probe_out(self) -> Self {
        Self(self.0 + 1)
    }

    /// Half-open: a probe came back with no verdict; its place is free again.
    pub(super) const fn probe_given_back(self) -> Self {
        Self(self.0 - 1)
    }

    /// Half-open: a probe succeeded; its place stays taken.
    pub(super) const fn probe_succeeded(self) -> Self {
        Self(self.0 + (1 << 16))
    }
}
