//! Refused settings: each by its name, with its value and the rule it breaks, all of them at once.

use std::fmt;

/// One refused setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The setting's name, such as `payments.attempt_timeout`.
    pub name: String,
    /// The refused value, as written.
    pub value: String,
    /// The rule that it breaks.
    pub rule: String,
}

impl Fault {
    /// `value` of `name` breaks `rule`.
    pub fn new(name: impl Into<String>, value: impl fmt::Debug, rule: impl Into<String>) -> Self {
        Self { name: name.into(), value: format!("{value:?}"), rule: rule.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: {}", self.name, self.value, self.rule)
    }
}

/// Every refused setting of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// `Ok` when there are none.
    ///
    /// # Errors
    /// The faults, when there are any.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A share that can be reached and is not always reached.
pub(crate) const fn percent(value: u8) -> bool {
    value >= 1 && value <= 100
}
