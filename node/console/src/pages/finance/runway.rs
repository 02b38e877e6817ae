//! For how long the money lasts, in words. Pure.

use farthing_control::types::DayFigures;
use farthing_values::Usdc;

use crate::show;

const WEEK_DAYS: usize = 7;

/// "About 41,200 calls at this week's average cost, 83 days at this week's pace." Days are the oldest first; a call
/// that was answered and cost nothing counts as one, too.
pub(super) fn words(has: Usdc, days: &[DayFigures]) -> String {
    if has.is_zero() {
        return "Nothing to spend yet. Samples are free.".to_owned();
    }
    let week = days.iter().rev().take(WEEK_DAYS);
    let (calls, spent) = week.fold((0_u64, 0_u64), |(calls, spent), day| {
        (calls.saturating_add(day.bought), spent.saturating_add(day.spent.0.micros()))
    });
    if calls == 0 || spent == 0 {
        return "No paid calls in the last 7 days, so your node cannot estimate it.".to_owned();
    }
    let times = |count: u128| u128::from(has.micros()) * count / u128::from(spent);
    let lasts = match times(WEEK_DAYS as u128) {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        days @ 2..=3_650 => format!("{} days", show::grouped(&days.to_string())),
        _ => "more than ten years".to_owned(),
    };
    let calls = show::grouped(&times(u128::from(calls)).to_string());
    format!("About {calls} calls at this week's average cost, {lasts} at this week's pace.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runway_is_measured_by_the_last_week() {
        let usdc = Usdc::from_micros;
        let day = |bought, spent| DayFigures { bought, spent: usdc(spent).into(), ..DayFigures::default() };
        let quiet = || day(0, 0);
        let days = [
            day(9, 9_000_000),
            quiet(),
            day(100, 300_000),
            quiet(),
            quiet(),
            quiet(),
            quiet(),
            day(100, 400_000),
        ];
        assert!(words(Usdc::ZERO, &days).contains("Nothing to spend"));
        assert!(words(usdc(1), &days[..2]).contains("at this week's pace"));
        assert!(words(usdc(1), &[quiet()]).contains("cannot estimate"));
        let expected = "About 2,857 calls at this week's average cost, 100 days at this week's pace.";
        assert_eq!(words(usdc(10_000_000), &days), expected);
        assert!(words(usdc(100), &days).ends_with("less than a day at this week's pace."));
    }
}
