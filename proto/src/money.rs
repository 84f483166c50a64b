//! Amounts: whole minor units, never floating point, always with their currency.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A currency the shop trades in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Currency {
    /// The euro: the base currency, in which prices are kept.
    Eur,
    /// The US dollar.
    Usd,
    /// The pound sterling.
    Gbp,
    /// The yen, which has no minor unit.
    Jpy,
}

impl Currency {
    /// Every currency, the base currency first.
    pub const ALL: [Self; 4] = [Self::Eur, Self::Usd, Self::Gbp, Self::Jpy];
    /// The currency that prices are kept in.
    pub const BASE: Self = Self::Eur;

    /// The ISO 4217 code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Eur => "EUR",
            Self::Usd => "USD",
            Self::Gbp => "GBP",
            Self::Jpy => "JPY",
        }
    }

    /// The sign that stands before an amount.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Eur => "€",
            Self::Usd => "$",
            Self::Gbp => "£",
            Self::Jpy => "¥",
        }
    }

    /// How many decimal digits the minor unit stands for: 2 for cents, 0 for the yen.
    pub const fn decimals(self) -> u32 {
        match self {
            Self::Jpy => 0,
            Self::Eur | Self::Usd | Self::Gbp => 2,
        }
    }
}

impl FromStr for Currency {
    type Err = UnknownCurrency;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|known| known.code() == code).ok_or(UnknownCurrency)
    }
}

impl TryFrom<String> for Currency {
    type Error = UnknownCurrency;

    fn try_from(code: String) -> Result<Self, Self::Error> {
        code.parse()
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.code().to_owned()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// The text is not the code of a currency that the shop trades in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of EUR, USD, GBP, JPY")]
pub struct UnknownCurrency;

/// An amount of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Whole minor units: 1999 is 19.99 euros, or 1999 yen.
    pub minor: i64,
    /// Which currency they are of.
    pub currency: Currency,
}

impl Money {
    /// `minor` units of `currency`.
    pub const fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// This amount `quantity` times; `None` when that does not fit.
    pub fn times(self, quantity: u32) -> Option<Self> {
        Some(Self { minor: self.minor.checked_mul(i64::from(quantity))?, ..self })
    }

    /// The sum; `None` when the currencies differ or it does not fit.
    pub fn plus(self, other: Self) -> Option<Self> {
        (self.currency == other.currency)
            .then(|| self.minor.checked_add(other.minor))?
            .map(|minor| Self { minor, ..self })
    }
}

impl fmt::Display for Money {
    /// `€19.99`, `-$0.05`, `¥1999`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u64.pow(self.currency.decimals());
        let (whole, part) = (self.minor.unsigned_abs() / unit, self.minor.unsigned_abs() % unit);
        let minus = if self.minor < 0 { "-" } else { "" };
        write!(f, "{minus}{}{whole}", self.currency.sign())?;
        match self.currency.decimals() as usize {
            0 => Ok(()),
            digits => write!(f, ".{part:0digits$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        for (minor, currency, text) in [
            (1999, Currency::Eur, "€19.99"),
            (5, Currency::Usd, "$0.05"),
            (-5, Currency::Gbp, "-£0.05"),
            (1999, Currency::Jpy, "¥1999"),
            (i64::MIN, Currency::Eur, "-€92233720368547758.08"),
        ] {
            assert_eq!(Money::new(minor, currency).to_string(), text);
        }
    }

    #[test]
    fn sums_refuse_to_mix_currencies_or_to_overflow() {
        let one = Money::new(1, Currency::Eur);
        assert_eq!(one.plus(Money::new(2, Currency::Eur)), Some(Money::new(3, Currency::Eur)));
        assert_eq!(one.plus(Money::new(2, Currency::Usd)), None);
        assert_eq!(Money::new(i64::MAX, Currency::Eur).plus(one), None);
        assert_eq!(Money::new(i64::MAX, Currency::Eur).times(2), None);
        assert_eq!(Money::new(250, Currency::Eur).times(3), Some(Money::new(750, Currency::Eur)));
    }
}
