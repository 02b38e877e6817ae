//! Amounts of ETH: whole wei, decimal text in and out.

use std::{fmt, str::FromStr};

const DECIMALS: usize = 18;
const WEI_PER_ETH: u128 = 1_000_000_000_000_000_000;

/// An amount of the chain's own coin, in wei.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eth {
    pub wei: u128,
}

/// Decimal text without exponent or trailing zeros: `0.0002`, `1`.
impl fmt::Display for Eth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:018}", self.wei % WEI_PER_ETH);
        let text = format!("{}.{}", self.wei / WEI_PER_ETH, fraction);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The text is not an amount of ETH.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an amount of ETH is a decimal with at most 18 decimals, such as 0.001")]
pub struct ParseEthError;

impl FromStr for Eth {
    type Err = ParseEthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > DECIMALS {
            return Err(ParseEthError);
        }
        let whole: u128 = whole.parse().map_err(|_| ParseEthError)?;
        let fraction: u128 = format!("{fraction:0<DECIMALS$}").parse().map_err(|_| ParseEthError)?;
        let wei = whole.checked_mul(WEI_PER_ETH).and_then(|wei| wei.checked_add(fraction));
        wei.map(|wei| Self { wei }).ok_or(ParseEthError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_wei_are_two_forms_of_one_thing() {
        for (text, wei) in
            [("0", 0), ("1", WEI_PER_ETH), ("0.0002", 200_000_000_000_000), ("0.000000000000000001", 1)]
        {
            assert_eq!(text.parse(), Ok(Eth { wei }));
            assert_eq!(Eth { wei }.to_string(), text);
        }
        for bad in ["", ".", "1.", ".5", "1e3", "-1", "0.0000000000000000001", &"9".repeat(40)] {
            assert_eq!(bad.parse::<Eth>(), Err(ParseEthError), "{bad}");
        }
        assert_eq!(Eth { wei: 10 * WEI_PER_ETH }.to_string(), "10");
    }
}
