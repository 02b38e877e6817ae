//! Numbers of any size and sign as the values of a chart: whole, and counted from a round number at or below the least.

use super::scale::{Scale, decimal, short};

/// Decimals that are kept, as far as all numbers have room with them.
const DECIMALS_MAX: u32 = 9;

/// The meaning of values that count from another number than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The number that the value zero stands for, in units of the last decimal.
    base: i128,
    decimals: u32,
    scale: Scale,
}

impl Numbers {
    /// Returns the meaning of the values of these numbers, and the values. A number beyond 19 digits has none.
    pub(crate) fn of(numbers: &[f64]) -> (Self, Vec<Option<u64>>) {
        let have_room = |decimals: &u32| numbers.iter().all(|number| whole(*number, *decimals).is_some());
        let decimals = (0..=DECIMALS_MAX).rev().find(have_room).unwrap_or_default();
        let wholes: Vec<Option<i128>> = numbers.iter().map(|number| whole(*number, decimals)).collect();
        let known = || wholes.iter().flatten().copied();
        let (least, most) = (known().min().unwrap_or_default(), known().max().unwrap_or_default());
        let (base, scale) = Scale::between(least, most);
        let value = |number: &Option<i128>| u64::try_from((*number)? - base).ok();
        (Self { base, decimals, scale }, wholes.iter().map(value).collect())
    }

    /// The numbers beside the chart.
    pub(super) const fn scale(self) -> Scale {
        self.scale
    }

    /// A value as it stands beside the chart.
    pub(super) fn label(self, value: u128) -> String {
        signed(self.at(value), |number| short(number, self.decimals))
    }

    /// A value as a table has it.
    pub(super) fn shown(self, value: u64) -> String {
        signed(self.at(value.into()), |number| decimal(number, self.decimals))
    }

    fn at(self, value: u128) -> i128 {
        i128::try_from(value).map_or(i128::MAX, |value| self.base.saturating_add(value))
    }
}

fn signed(number: i128, words: impl Fn(u128) -> String) -> String {
    let sign = if number < 0 { "−" } else { "" };
    format!("{sign}{}", words(number.unsigned_abs()))
}

/// A number in units of its last decimal; `None` where it is too large. Written digits lead there without a loss of sign or size.
fn whole(number: f64, decimals: u32) -> Option<i128> {
    let digits = usize::try_from(decimals).ok()?;
    let written = format!("{number:.digits$}").replace('.', "");
    written.parse::<i64>().ok().map(i128::from)
}
