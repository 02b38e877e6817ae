//! Calls and money over a time that a visitor chooses by a link: what the node tells of it, as charts.

use farthing_control::{
    Local, endpoint,
    types::{CallOutcome, CallSums, Series, SeriesPoint, SeriesRange, TrafficPoint},
};
use farthing_os::clock;
use farthing_values::{Address, ServiceId, Usdc};

use super::{
    failure::Failure,
    markup::{Band, Chart, ChartForm, Markup, TimePart, Unit},
    outcome::{self, ShownOutcome},
    show,
};

const DAY_SECS: u64 = 86_400;

/// Reads the range of an address; the week unless it names one.
pub(super) fn range_named(name: Option<&str>) -> SeriesRange {
    name.and_then(|name| name.parse().ok()).unwrap_or(SeriesRange::Week)
}

const fn words(range: SeriesRange) -> &'static str {
    match range {
        SeriesRange::Hour => "60 minutes",
        SeriesRange::Day => "24 hours",
        SeriesRange::Week => "7 days",
        SeriesRange::Month => "30 days",
        SeriesRange::Year => "12 months",
    }
}

/// Links to the same page with other ranges.
#[derive(Debug)]
pub(super) struct Ranges {
    pub(super) links: Vec<RangeLink>,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RangeLink {
    pub(super) address: String,
    pub(super) words: &'static str,
    pub(super) is_shown: bool,
}

impl Ranges {
    /// Of the page at `path`, which has no query of its own; `anchor` is its part with the charts.
    pub(super) fn new(path: &str, anchor: &str, shown: SeriesRange) -> Self {
        let link = |range: SeriesRange| RangeLink {
            address: format!("{path}?range={range}#{anchor}"),
            words: words(range),
            is_shown: range == shown,
        };
        Self { links: SeriesRange::ALL.into_iter().map(link).collect() }
    }
}

/// The calls that charts are of.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallsOf {
    All,
    Service(ServiceId),
    /// Calls that were bought from the owner with this wallet.
    Owner(Address),
}

/// Calls and money over a time, with the names of its parts.
#[derive(Debug)]
pub(super) struct Charts {
    series: Series,
    parts: Vec<TimePart>,
}

impl Charts {
    /// Asks the node.
    pub(super) async fn of(node: &Local, range: SeriesRange, calls: CallsOf) -> Result<Self, Failure> {
        let asked = endpoint::Series.with("range", range);
        let asked = match calls {
            CallsOf::All => asked,
            CallsOf::Service(service) => asked.with("service", service),
            CallsOf::Owner(owner) => asked.with("owner", owner),
        };
        Ok(Self::new(node.ask(asked).await?))
    }

    fn new(series: Series) -> Self {
        let parts = series.points.iter().map(|point| part(series.range, point.start_secs));
        Self { parts: parts.collect(), series }
    }

    /// Returns whether any call was bought.
    pub(super) fn has_bought(&self) -> bool {
        self.series.bought != CallSums::default()
    }

    /// Returns how many bought calls have ended, and what they cost.
    pub(super) fn bought_sum(&self) -> (u64, Usdc) {
        let bought = &self.series.bought;
        let calls = CallOutcome::ALL.into_iter().map(|outcome| bought.outcomes.of(outcome)).sum();
        (calls, bought.charged.0)
    }

    /// Draws what was spent and earned.
    pub(super) fn money(&self) -> Markup {
        let bands = vec![
            self.band("Spent", "spent", |point| Some(point.bought.charged.0.micros())),
            self.band("Earned", "earned", |point| Some(point.served.charged.0.micros())),
        ];
        self.chart("money", "Spent and earned", Unit::Usdc, ChartForm::Beside, bands)
    }

    /// Draws what was spent.
    pub(super) fn spent(&self) -> Markup {
        let spent = self.band("Spent", "spent", |point| Some(point.bought.charged.0.micros()));
        self.chart("spent", "Spent", Unit::Usdc, ChartForm::Beside, vec![spent])
    }

    /// Draws what was earned.
    pub(super) fn earned(&self) -> Markup {
        let earned = self.band("Earned", "earned", |point| Some(point.served.charged.0.micros()));
        self.chart("earned", "Earned", Unit::Usdc, ChartForm::Beside, vec![earned])
    }

    /// Draws how calls of both sides ended.
    pub(super) fn outcomes(&self) -> Markup {
        self.outcomes_of("Calls by outcome", |outcome, point| {
            let [bought, served] = [&point.bought, &point.served].map(|sums| sums.outcomes.of(outcome));
            bought.saturating_add(served)
        })
    }

    /// Draws how bought calls ended.
    pub(super) fn bought_outcomes(&self) -> Markup {
        self.outcomes_of("Calls by outcome", |outcome, point| point.bought.outcomes.of(outcome))
    }

    /// Draws how served calls ended.
    pub(super) fn served_outcomes(&self) -> Markup {
        self.outcomes_of("Calls by outcome", |outcome, point| point.served.outcomes.of(outcome))
    }

    fn outcomes_of(&self, title: &str, count: impl Fn(CallOutcome, &SeriesPoint) -> u64) -> Markup {
        let band = |ended: CallOutcome| {
            let ShownOutcome { words, band, .. } = outcome::of(ended);
            self.band(words, band, |point| Some(count(ended, point)))
        };
        let bands = CallOutcome::ALL.into_iter().map(band).collect();
        self.chart("outcomes", title, Unit::Calls, ChartForm::Stacked, bands)
    }

    /// Draws how long bought calls took.
    pub(super) fn bought_times(&self) -> Markup {
        self.times("Call time", |point| &point.bought)
    }

    /// Draws how long the service took for served calls.
    pub(super) fn served_times(&self) -> Markup {
        self.times("Server response time", |point| &point.served)
    }

    fn times(&self, title: &str, side: impl Fn(&SeriesPoint) -> &CallSums) -> Markup {
        let bands = vec![
            self.band("50 % of answers within", "half", |point| side(point).p50_us),
            self.band("95 % of answers within", "most", |point| side(point).p95_us),
        ];
        self.chart("times", title, Unit::Time, ChartForm::Lines, bands)
    }

    fn band(
        &self,
        name: &'static str,
        class: &'static str,
        value: impl Fn(&SeriesPoint) -> Option<u64>,
    ) -> Band {
        Band { name, class, values: self.series.points.iter().map(value).collect() }
    }

    fn chart(&self, id: &str, title: &str, unit: Unit, form: ChartForm, bands: Vec<Band>) -> Markup {
        let title = format!("{title}, {}", words(self.series.range));
        let id = format!("chart-{id}");
        Chart { id: &id, title: &title, unit, form, over: "Time (UTC)", parts: &self.parts, bands }.shown()
    }
}

/// Draws what was sent to other nodes and received from them.
pub(super) async fn traffic(node: &Local, range: SeriesRange) -> Result<Markup, Failure> {
    let told = node.ask(endpoint::TrafficSeries.with("range", range)).await?;
    let parts: Vec<TimePart> = told.points.iter().map(|point| part(range, point.start_secs)).collect();
    let values = |bytes: fn(&TrafficPoint) -> u64| -> Vec<Option<u64>> {
        told.points.iter().map(|point| Some(bytes(point))).collect()
    };
    let bands = vec![
        Band { name: "Sent", class: "spent", values: values(|point| point.sent_bytes) },
        Band { name: "Received", class: "earned", values: values(|point| point.received_bytes) },
    ];
    let title = format!("Sent and received, {}", words(range));
    let (unit, form) = (Unit::Bytes, ChartForm::Beside);
    let chart =
        Chart { id: "chart-traffic", title: &title, unit, form, over: "Time (UTC)", parts: &parts, bands };
    Ok(chart.shown())
}

/// Names a part of the time. Where a day or a month has several parts, the first of them has its label.
fn part(range: SeriesRange, start_secs: u64) -> TimePart {
    let day = show::day(u32::try_from(start_secs / DAY_SECS).unwrap_or(u32::MAX));
    let hour = format!("{:02}:00", start_secs % DAY_SECS / 3_600);
    let minute = format!("{:02}:{:02}", start_secs % DAY_SECS / 3_600, start_secs % 3_600 / 60);
    let (year, ..) = clock::civil(start_secs);
    match range {
        SeriesRange::Hour => TimePart { name: format!("{day} {minute}"), label: minute },
        SeriesRange::Day => TimePart { name: format!("{day} {hour}"), label: hour },
        SeriesRange::Week => {
            let is_first = start_secs.is_multiple_of(DAY_SECS);
            TimePart { name: format!("{day} {hour}"), label: if is_first { day } else { String::new() } }
        }
        SeriesRange::Month => TimePart { name: day.clone(), label: day },
        SeriesRange::Year => {
            let month = day.split(' ').nth(1).unwrap_or_default().to_owned();
            TimePart { name: format!("{month} {year}"), label: month }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_time_is_named_as_people_name_it() {
        let noon = clock::start_of("2026-11-21").unwrap() + 12 * 3_600;
        for (range, secs, label, name) in [
            (SeriesRange::Hour, noon + 300, "12:05", "21 Nov 12:05"),
            (SeriesRange::Day, noon, "12:00", "21 Nov 12:00"),
            (SeriesRange::Week, noon, "", "21 Nov 12:00"),
            (SeriesRange::Week, noon - 12 * 3_600, "21 Nov", "21 Nov 00:00"),
            (SeriesRange::Month, noon, "21 Nov", "21 Nov"),
            (SeriesRange::Year, noon, "Nov", "Nov 2026"),
        ] {
            let part = part(range, secs);
            assert_eq!((part.label.as_str(), part.name.as_str()), (label, name), "{range}");
        }
    }

    #[test]
    fn an_address_names_a_range_and_the_week_is_shown_otherwise() {
        for range in SeriesRange::ALL {
            assert_eq!(range_named(Some(range.name())), range);
        }
        assert_eq!((range_named(None), range_named(Some("century"))), (SeriesRange::Week, SeriesRange::Week));
        let Ranges { links } = Ranges::new("/panel", "money", SeriesRange::Month);
        assert_eq!(links[0].address, "/panel?range=hour#money");
        let shown: Vec<&str> = links.iter().filter(|link| link.is_shown).map(|link| link.words).collect();
        assert_eq!(shown, ["30 days"]);
    }
}
