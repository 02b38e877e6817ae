//! Spending and earnings by day, as bars. Colours come from the stylesheet; a table beside it has the numbers.

use std::fmt::Write as _;

use farthing_control::types::DayFigures;
use farthing_protocol::Usdc;

use super::Markup;
use crate::show;

const WIDTH: u64 = 560;
const HEIGHT: u64 = 140;
/// Room for the days' names below.
const BASE: u64 = HEIGHT - 20;

/// The bars of `days`; nothing when no money moved.
pub(crate) fn days(days: &[DayFigures]) -> Markup {
    let most = days.iter().map(|day| day.spent.0.max(day.earned.0)).max().unwrap_or_default();
    if most.is_zero() {
        return Markup::default();
    }
    let count = (days.len() as u64).max(1);
    let step = WIDTH / count;
    let bar = (step / 2).saturating_sub(3).max(2);
    let mut svg = format!(
        r#"<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Spent and earned per day; the table below has the amounts"><path class="axis" d="M0 {BASE}.5H{WIDTH}"/>"#
    );
    for (index, day) in days.iter().enumerate() {
        let x = index as u64 * step + 2;
        for (class, amount, x) in [("spent", day.spent.0, x), ("earned", day.earned.0, x + bar + 2)] {
            let height = scaled(amount, most);
            let y = BASE - height;
            let _ = write!(
                svg,
                r#"<rect class="{class}" x="{x}" y="{y}" width="{bar}" height="{height}" rx="2"><title>{} USDC {class} on {}</title></rect>"#,
                show::usdc(amount),
                show::day(day.day)
            );
        }
        // Every other day has a name, and today.
        if (days.len() - 1 - index).is_multiple_of(2) {
            let _ = write!(
                svg,
                r#"<text x="{}" y="{}" text-anchor="middle">{}</text>"#,
                x + bar,
                HEIGHT - 4,
                show::day(day.day)
            );
        }
    }
    svg.push_str("</svg>");
    Markup(svg)
}

/// Something is never drawn as nothing.
fn scaled(amount: Usdc, most: Usdc) -> u64 {
    if amount.is_zero() {
        return 0;
    }
    let height = u128::from(amount.micros()) * u128::from(BASE - 8) / u128::from(most.micros());
    u64::try_from(height).unwrap_or(BASE).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_inside_and_something_is_never_nothing() {
        let day = |day, spent, earned| DayFigures {
            day,
            spent: Usdc::from_micros(spent).into(),
            earned: Usdc::from_micros(earned).into(),
            ..DayFigures::default()
        };
        assert!(days(&[day(1, 0, 0)]).is_empty());
        let chart = days(&[day(1, u64::MAX, 1), day(2, 0, 5)]).to_string();
        assert!(chart.contains("height=\"112\"") && chart.contains("height=\"2\""), "{chart}");
    }
}
