//! The round numbers beside a chart: 1, 2 or 5 times a power of ten, from zero up to what is shown at most.

use super::Unit;

/// Lines above zero, at most.
const LINES_MAX: u128 = 4;

/// The numbers beside a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    step: u128,
    /// Above zero; none where nothing is shown.
    lines: u128,
}

impl Scale {
    /// For values up to `most`.
    pub(super) fn of(most: u128) -> Self {
        let step = round_step(most);
        Self { step, lines: most.div_ceil(step) }
    }

    /// For numbers from `least` to `most`: the round number that it begins with, at or below them, and the scale above that.
    pub(super) fn between(least: i128, most: i128) -> (i128, Self) {
        let with = |step: u128| {
            let signed = i128::try_from(step).ok()?;
            let base = least.div_euclid(signed).checked_mul(signed)?;
            let above = most.abs_diff(base);
            let has_room = step.saturating_mul(LINES_MAX) >= above;
            has_room.then(|| (base, Self { step, lines: above.div_ceil(step) }))
        };
        steps().find_map(with).unwrap_or_else(|| (least, Self::of(most.abs_diff(least))))
    }

    /// The numbers, from zero upwards.
    pub(super) fn numbers(self) -> impl Iterator<Item = u128> {
        (0..=self.lines).map(move |line| line * self.step)
    }

    /// The height of a value where the highest number is `height` above zero. What is more than nothing has at least `least`.
    pub(super) fn height(self, value: u128, height: u64, least: u64) -> u64 {
        let top = self.step * self.lines;
        if value == 0 || top == 0 {
            return 0;
        }
        // Both are far below the most that fits, for sums of amounts as well.
        let scaled = value.min(top) * u128::from(height) / top;
        u64::try_from(scaled).unwrap_or(height).max(least)
    }
}

/// The steps that are round: 1, 2, 5, 10, 20 and so on.
fn steps() -> impl Iterator<Item = u128> {
    let powers = std::iter::successors(Some(1_u128), |power| power.checked_mul(10));
    powers.flat_map(|power| [power, power.saturating_mul(2), power.saturating_mul(5)])
}

/// The smallest step with which so many lines reach `most`.
fn round_step(most: u128) -> u128 {
    steps().find(|step| step.saturating_mul(LINES_MAX) >= most).unwrap_or(u128::MAX)
}

/// A number as it stands beside a chart: short.
pub(super) fn label(unit: Unit, number: u128) -> String {
    match unit {
        Unit::Usdc => short(number, 6),
        Unit::Calls => short(number, 0),
        Unit::Number(numbers) => numbers.label(number),
        Unit::Time if number == 0 => "0".to_owned(),
        Unit::Time => match number {
            ..1_000 => format!("{number} µs"),
            1_000..1_000_000 => format!("{} ms", short(number, 3)),
            _ => format!("{} s", short(number, 6)),
        },
        Unit::Bytes if number == 0 => "0".to_owned(),
        Unit::Bytes => match number {
            ..1_000 => format!("{number} B"),
            1_000..1_000_000 => format!("{} kB", short(number, 3)),
            1_000_000..1_000_000_000 => format!("{} MB", short(number, 6)),
            _ => format!("{} GB", short(number, 9)),
        },
    }
}

/// A number that is counted in parts of which ten to the power of `decimals` are one: `0.002`, `1.5`, `20k`.
pub(super) fn short(number: u128, decimals: u32) -> String {
    let per = |thousands: u32| 10_u128.pow(decimals + 3 * thousands);
    let large = [("T", 4), ("B", 3), ("M", 2), ("k", 1)];
    let found = large.into_iter().find(|(_, thousands)| number >= per(*thousands));
    let (sign, thousands) = found.unwrap_or(("", 0));
    format!("{}{sign}", decimal(number, decimals + 3 * thousands))
}

/// The same number in full: `20000`.
pub(super) fn decimal(number: u128, decimals: u32) -> String {
    let per = 10_u128.pow(decimals);
    let (whole, rest) = (number / per, number % per);
    let digits = usize::try_from(decimals).unwrap_or_default();
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_beside_a_chart_are_round_and_reach_what_is_shown() {
        for (most, numbers) in [
            (0, vec![0]),
            (1, vec![0, 1]),
            (3, vec![0, 1, 2, 3]),
            (4, vec![0, 1, 2, 3, 4]),
            (5, vec![0, 2, 4, 6]),
            (8, vec![0, 2, 4, 6, 8]),
            (9, vec![0, 5, 10]),
            (21, vec![0, 10, 20, 30]),
            (9_900, vec![0, 5_000, 10_000]),
        ] {
            assert_eq!(Scale::of(most).numbers().collect::<Vec<_>>(), numbers, "{most}");
        }
    }

    #[test]
    fn a_scale_begins_with_a_round_number_at_or_below_the_least() {
        for (least, most, numbers) in [
            (2, 2, vec![2]),
            (-5, 15, vec![-5, 0, 5, 10, 15]),
            (5, 13, vec![5, 10, 15]),
            (990, 1_013, vec![990, 1_000, 1_010, 1_020]),
            (-7, -3, vec![-7, -6, -5, -4, -3]),
        ] {
            let (base, scale) = Scale::between(least, most);
            let beside: Vec<i128> =
                scale.numbers().map(|number| base + i128::try_from(number).unwrap()).collect();
            assert_eq!(beside, numbers, "{least} to {most}");
        }
    }

    #[test]
    fn a_number_is_short_whatever_it_counts() {
        for (unit, number, words) in [
            (Unit::Usdc, 0, "0"),
            (Unit::Usdc, 1, "0.000001"),
            (Unit::Usdc, 2_000, "0.002"),
            (Unit::Usdc, 1_500_000, "1.5"),
            (Unit::Usdc, 20_000_000_000, "20k"),
            (Unit::Usdc, 20_000_000_000_000_000_000, "20T"),
            (Unit::Calls, 0, "0"),
            (Unit::Calls, 999, "999"),
            (Unit::Calls, 1_000, "1k"),
            (Unit::Calls, 2_500_000, "2.5M"),
            (Unit::Time, 0, "0"),
            (Unit::Time, 500, "500 µs"),
            (Unit::Time, 200_000, "200 ms"),
            (Unit::Time, 1_500_000, "1.5 s"),
            (Unit::Bytes, 0, "0"),
            (Unit::Bytes, 500, "500 B"),
            (Unit::Bytes, 20_000, "20 kB"),
            (Unit::Bytes, 1_500_000, "1.5 MB"),
            (Unit::Bytes, 2_000_000_000_000, "2k GB"),
        ] {
            assert_eq!(label(unit, number), words);
        }
    }
}
