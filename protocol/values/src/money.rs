//! Money: whole micro-USDC, checked arithmetic, decimal text in and out.
//!
//! One USDC is 1,000,000 micros, the token's smallest unit. A `u64` holds 18 trillion USDC, several hundred
//! times the supply, so every amount of the network fits and conversion from the contract's 128-bit words is
//! checked once at the edge. Nothing here, and nothing built on it, uses floating point.

use std::{fmt, str::FromStr};

use minicbor::{CborLen, Decode, Encode};

pub const MICROS_PER_USDC: u64 = 1_000_000;
const DECIMALS: usize = 6;

/// An amount of USDC in whole micros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Usdc(#[n(0)] u64);

impl Usdc {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    #[must_use]
    pub fn checked_mul(self, times: u64) -> Option<Self> {
        self.0.checked_mul(times).map(Self)
    }

    /// The sum, or [`Usdc::MAX`]: for comparisons against a bound, where "too much" is all that matters.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero: for what remains of a budget.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

/// Decimal text without exponent or trailing zeros beyond cents: `0.002`, `1.50`, `20.00`.
impl fmt::Display for Usdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}.{:06}", self.0 / MICROS_PER_USDC, self.0 % MICROS_PER_USDC);
        let zeros = text.len() - text.trim_end_matches('0').len();
        // Two decimals stay.
        text.truncate(text.len() - zeros.min(4));
        f.pad(&text)
    }
}

/// The error for a text that is not an amount of USDC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUsdcError {
    #[error("`{0}` is not an amount of USDC; write a decimal of 0 or more, such as 0.002")]
    NotDecimal(String),
    #[error("`{0}` has more than 6 decimals; the smallest amount is 0.000001 USDC")]
    TooPrecise(String),
    #[error("`{0}` is more USDC than can exist")]
    TooLarge(String),
}

impl FromStr for Usdc {
    type Err = ParseUsdcError;

    /// Reads `12`, `0.5` or `0.002`. Signs, exponents, separators and blanks are refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = || text.chars().take(40).collect::<String>();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(ParseUsdcError::NotDecimal(shown()));
        }
        if fraction.len() > DECIMALS {
            return Err(ParseUsdcError::TooPrecise(shown()));
        }
        let too_large = || ParseUsdcError::TooLarge(shown());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let micros: u64 = format!("{fraction:0<DECIMALS$}").parse().map_err(|_| too_large())?;
        whole.checked_mul(MICROS_PER_USDC).and_then(|w| w.checked_add(micros)).map(Self).ok_or_else(too_large)
    }
}

/// The contract counts in 128-bit words; an amount above `u64` cannot be USDC.
impl TryFrom<u128> for Usdc {
    type Error = std::num::TryFromIntError;

    fn try_from(micros: u128) -> Result<Self, Self::Error> {
        u64::try_from(micros).map(Self)
    }
}

impl From<Usdc> for u128 {
    fn from(amount: Usdc) -> Self {
        Self::from(amount.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        for (text, micros, shown) in [
            ("0", 0, "0.00"),
            ("0.002", 2_000, "0.002"),
            ("1.5", 1_500_000, "1.50"),
            ("20", 20_000_000, "20.00"),
            ("0.000001", 1, "0.000001"),
            ("18446744073709.551615", u64::MAX, "18446744073709.551615"),
        ] {
            let amount: Usdc = text.parse().unwrap();
            assert_eq!(amount.micros(), micros, "{text}");
            assert_eq!(amount.to_string(), shown);
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "0x1", "1.2.3", "NaN", "١"] {
            assert!(matches!(text.parse::<Usdc>(), Err(ParseUsdcError::NotDecimal(_))), "{text}");
        }
        assert!(matches!("0.0000001".parse::<Usdc>(), Err(ParseUsdcError::TooPrecise(_))));
        for text in ["18446744073709.551616", "99999999999999999999"] {
            assert!(matches!(text.parse::<Usdc>(), Err(ParseUsdcError::TooLarge(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_amount_are_two_forms_of_one_thing(micros: u64) {
            let amount = Usdc::from_micros(micros);
            prop_assert_eq!(amount.to_string().parse::<Usdc>().unwrap(), amount);
        }

        #[test]
        fn arithmetic_never_wraps(a: u64, b: u64) {
            let (x, y) = (Usdc::from_micros(a), Usdc::from_micros(b));
            prop_assert_eq!(x.checked_add(y).map(Usdc::micros), a.checked_add(b));
            prop_assert_eq!(x.checked_sub(y).map(Usdc::micros), a.checked_sub(b));
            prop_assert_eq!(x.checked_mul(b).map(Usdc::micros), a.checked_mul(b));
        }

        #[test]
        fn no_text_panics_the_reader(text in ".{0,40}") {
            let _ = text.parse::<Usdc>();
        }
    }
}
