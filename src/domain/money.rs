//! Money: exact decimals of US dollars, never floats.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// An amount of US dollars, zero or more, with at most six decimals.
///
/// Six decimals so that an amount is a whole number of micro-dollars in the ledger, which any SQL store can add up.
/// Shown with at least two decimals: `3.60`, `0.905`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "US dollars as an exact decimal.", extend("pattern" = "^[0-9]+\\.[0-9]{2,6}$"))]
pub struct Usd(Decimal);

/// The reason why a string is not an amount of USD.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` must be an amount in USD, such as 40 or 12.50, from 0 to 1000000000, with at most six decimals")]
pub struct InvalidUsd(String);

const DECIMALS: u32 = 6;
/// A billion dollars: beyond any budget, and 9,223 of them fit a signed 64-bit count of micro-dollars.
const MAX: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

impl Usd {
    /// Zero.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Makes an amount of a whole number of micro-dollars, as the ledger stores it.
    pub fn from_micros(micros: i64) -> Self {
        Self(Decimal::new(micros, DECIMALS))
    }

    /// As a whole number of micro-dollars; exact, because an amount has at most six decimals.
    ///
    /// An amount beyond nine trillion dollars, which no sum of real prices reaches, is capped there.
    pub fn micros(self) -> i64 {
        i64::try_from(self.0.saturating_mul(Decimal::from(1_000_000)).trunc()).unwrap_or(i64::MAX)
    }

    /// Returns whether this is zero.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// The rest of this amount after `other` is taken, or zero if `other` is more.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        if other >= self { Self::ZERO } else { Self(self.0 - other.0) }
    }

    /// The amount that a program calculated and wrote with all digits of a binary fraction, or with an exponent: `3.75E+00`, or
    /// `0.8999999999999999`. What differs from an amount by more than such a fraction can be off is none.
    pub fn of_calculated(text: &str) -> Option<Self> {
        let calculated = if text.contains(['e', 'E']) { Decimal::from_scientific(text) } else { text.parse() }.ok()?;
        let exact = calculated.round_dp(DECIMALS);
        let is_noise = (calculated - exact).abs() <= Decimal::new(1, 12) * calculated.abs().max(Decimal::ONE);
        is_noise.then(|| exact.normalize().to_string().parse().ok()).flatten()
    }
}

impl FromStr for Usd {
    type Err = InvalidUsd;

    fn from_str(text: &str) -> Result<Self, InvalidUsd> {
        let invalid = || InvalidUsd(text.to_owned());
        let digits = text.trim();
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let amount = Decimal::from_str_exact(digits).map_err(|_| invalid())?.normalize();
        if !plain || amount.is_sign_negative() || amount.scale() > DECIMALS || amount > MAX {
            return Err(invalid());
        }
        Ok(Self(amount))
    }
}

impl TryFrom<String> for Usd {
    type Error = InvalidUsd;

    fn try_from(text: String) -> Result<Self, InvalidUsd> {
        text.parse()
    }
}

/// `2614.00` as data, and `{:#}` for people: `$2,614.00`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.normalize();
        if shown.scale() < 2 {
            shown.rescale(2);
        }
        let mut text = shown.to_string();
        if f.alternate() {
            let whole = text.find('.').unwrap_or(text.len());
            (1..whole).rev().filter(|at| (whole - at).is_multiple_of(3)).for_each(|at| text.insert(at, ','));
            text.insert(0, '$');
        }
        f.pad(&text)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u32> for Usd {
    type Output = Self;
    fn mul(self, times: u32) -> Self {
        Self(self.0.saturating_mul(Decimal::from(times)))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().expect("an amount")
    }

    #[test]
    fn shows_at_least_two_decimals_and_never_rounds() {
        assert_eq!(usd("3.6").to_string(), "3.60");
        assert_eq!(usd("40").to_string(), "40.00");
        assert_eq!(usd("0.905").to_string(), "0.905");
        assert_eq!((usd("0.75") * 5).to_string(), "3.75");
        for (amount, shown) in [
            ("0", "$0.00"),
            ("999.905", "$999.905"),
            ("2614", "$2,614.00"),
            ("100000.5", "$100,000.50"),
            ("1000000000", "$1,000,000,000.00"),
        ] {
            assert_eq!(format!("{:#}", usd(amount)), shown);
        }
        assert_eq!(format!("{:>#9}", usd("1234")), "$1,234.00");
    }

    #[test]
    fn adds_tenths_exactly_where_floats_do_not() {
        assert_eq!((0..10).map(|_| usd("0.1")).sum::<Usd>(), usd("1"));
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in ["", "-1", "+1", "1e3", "1,5", "abc", "0.0000001", "1000000001", "NaN", "1_000", "$5"] {
            assert!(text.parse::<Usd>().is_err(), "{text:?} was taken for an amount");
        }
    }

    proptest! {
        #[test]
        fn micros_and_text_round_trip(micros in 0_i64..1_000_000_000_000_000) {
            let amount = Usd::from_micros(micros);
            prop_assert_eq!(amount.micros(), micros);
            prop_assert_eq!(usd(&amount.to_string()), amount);
        }
    }
}
