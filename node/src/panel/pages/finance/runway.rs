//! For how long the money lasts, in words. Pure.

use farthing_protocol::Usdc;

use crate::{
    control::types::{BoughtCall, DayFigures},
    panel::show,
};

const WEEK_DAYS: usize = 7;
const WEEK_SECS: u64 = 7 * 86_400;

/// "About 41,200 calls at this week's average price; 83 days at this week's pace."
pub(super) fn words(has: Usdc, days: &[DayFigures], bought: &[BoughtCall], now_secs: u64) -> String {
    if has.is_zero() {
        return "Nothing to spend: samples are free without it.".to_owned();
    }
    let recent = bought.iter().filter(|call| now_secs.saturating_sub(call.time_secs) < WEEK_SECS);
    let (mut count, mut cost) = (0_u64, 0_u64);
    for call in recent.filter(|call| !call.charged.0.is_zero()) {
        count += 1;
        cost = cost.saturating_add(call.charged.0.micros());
    }
    if count == 0 || cost == 0 {
        return "No paid calls in the last 7 days, so no pace to measure by.".to_owned();
    }
    let calls = u128::from(has.micros()) * u128::from(count) / u128::from(cost);
    let calls = format!("About {} calls at this week's average price", show::grouped(&calls.to_string()));
    let week = days.iter().rev().take(WEEK_DAYS);
    let spent = week.fold(0_u64, |sum, day| sum.saturating_add(day.spent.0.micros()));
    if spent == 0 {
        return format!("{calls}.");
    }
    let days = u128::from(has.micros()) * WEEK_DAYS as u128 / u128::from(spent);
    let lasts = match days {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        2..=3_650 => format!("{} days", show::grouped(&days.to_string())),
        _ => "more than ten years".to_owned(),
    };
    format!("{calls}, {lasts} at this week's pace.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(time_secs: u64, charged: &str) -> BoughtCall {
        serde_json::from_value(json!({
            "call_id": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b",
            "service": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b",
            "name": "", "owner": "0x0000000000000000000000000000000000000000", "operation": "GET /",
            "time_secs": time_secs, "status": 200, "reason": null, "charged": charged,
            "total_us": 1, "owner_us": 1, "upstream_us": 1,
        }))
        .unwrap()
    }

    #[test]
    fn the_runway_is_measured_by_the_last_week() {
        const NOW: u64 = 30 * 86_400;
        let usdc = Usdc::from_micros;
        let day = |spent| DayFigures { day: 1, spent: usdc(spent).into(), earned: Usdc::ZERO.into() };
        let days = [day(9_000_000), day(0), day(0), day(0), day(0), day(0), day(0), day(700_000)];
        assert!(words(Usdc::ZERO, &days, &[], NOW).contains("Nothing to spend"));
        assert!(words(usdc(1), &days, &[call(NOW - WEEK_SECS, "1")], NOW).contains("no pace"));
        let calls = [call(NOW, "0.002"), call(NOW - 60, "0.004"), call(NOW, "0"), call(0, "1")];
        let expected = "About 3,333 calls at this week's average price, 100 days at this week's pace.";
        assert_eq!(words(usdc(10_000_000), &days, &calls, NOW), expected);
        assert!(words(usdc(100), &days, &calls, NOW).ends_with("less than a day at this week's pace."));
    }
}
