//! The picture of a chart, as SVG. Places are whole numbers between zero and the canvas.

use std::fmt::Write as _;

use super::{Band, Chart, ChartForm, Unit, push_escaped, scale, scale::Scale};

const WIDTH: u64 = 560;
const HEIGHT: u64 = 200;
/// Above the highest number, and room for a bar whose thin parts make it higher.
const TOP: u64 = 16;
/// The size of the letters where a chart is narrow. The stylesheets take it as `--t-chart`; where there is more room, letters
/// are smaller.
pub(super) const LETTERS: u64 = 20;
/// From the foot of a letter to the edge below it.
const FOOT: u64 = 8;
/// The foot of a round number's letters, below its line: they stand beside the middle of it.
const NUMBER_FOOT: u64 = 5;
/// Below zero, for the names of times, and for the foot of the zero above them.
const BELOW: u64 = FOOT + LETTERS + NUMBER_FOOT;
/// Zero's place.
const BASE: u64 = HEIGHT - BELOW;
const PLOT_HEIGHT: u64 = BASE - TOP;
const RIGHT: u64 = 8;
/// A sign of a label is as wide at most: 65 of 100 parts of its height.
const SIGN: u64 = LETTERS * 65 / 100;
/// From a round number to its line.
const BESIDE: u64 = 8;
/// Between names of times.
const GAP: u64 = 12;
const BAR_MAX: u64 = 40;
/// Something is never drawn as nothing.
const BAR_LEAST: u64 = 2;
/// Half the line of a value that stands alone.
const ALONE_HALF: u64 = 6;

/// The place of every part in the picture.
struct Plot {
    scale: Scale,
    left: u64,
    /// Of one part.
    width: u64,
}

impl Plot {
    fn of(chart: &Chart<'_>) -> Self {
        let scale = match chart.unit {
            Unit::Number(numbers) => numbers.scale(),
            Unit::Usdc | Unit::Calls | Unit::Time | Unit::Bytes => Scale::of(most(chart)),
        };
        let signs = scale.numbers().map(|number| signs(&scale::label(chart.unit, number)));
        let left = signs.max().unwrap_or_default() * SIGN + BESIDE;
        let parts = (chart.parts.len() as u64).max(1);
        Self { scale, left, width: ((WIDTH - RIGHT).saturating_sub(left) / parts).max(1) }
    }

    /// The left side of a part.
    fn x(&self, part: usize) -> u64 {
        self.left + part as u64 * self.width
    }

    fn middle(&self, part: usize) -> u64 {
        self.x(part) + self.width / 2
    }

    fn height(&self, value: u128, least: u64) -> u64 {
        self.scale.height(value, PLOT_HEIGHT, least)
    }
}

/// The most that one bar or point shows.
fn most(chart: &Chart<'_>) -> u128 {
    let at = |part: usize| chart.bands.iter().filter_map(move |band| band.at(part)).map(u128::from);
    let parts = 0..chart.parts.len();
    match chart.form {
        ChartForm::Stacked => parts.map(|part| at(part).sum::<u128>()).max(),
        ChartForm::Beside | ChartForm::Lines => parts.filter_map(|part| at(part).max()).max(),
    }
    .unwrap_or_default()
}

fn signs(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The whole picture.
pub(super) fn drawn(chart: &Chart<'_>) -> String {
    let plot = Plot::of(chart);
    let id = chart.id;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-about\"><title id=\"{id}-title\">"
    );
    push_escaped(&mut svg, chart.title);
    let _ = write!(svg, "</title><desc id=\"{id}-about\">");
    push_escaped(&mut svg, &about(chart));
    svg.push_str("</desc>");
    push_numbers(&mut svg, chart, &plot);
    if chart.is_empty() {
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">No data in this period</text>",
            WIDTH / 2,
            TOP + PLOT_HEIGHT / 2
        );
    } else {
        push_bands(&mut svg, chart, &plot);
    }
    push_times(&mut svg, chart, &plot);
    push_hints(&mut svg, chart, &plot);
    svg.push_str("</svg>");
    svg
}

/// Says what the picture shows, for those who do not see it.
fn about(chart: &Chart<'_>) -> String {
    let (Some(first), Some(last)) = (chart.parts.first(), chart.parts.last()) else {
        return "There are no values.".to_owned();
    };
    let time = format!("{}: from {} to {}.", chart.over, first.name, last.name);
    let highest = chart.bands.iter().filter(|band| !band.is_empty(chart.unit)).filter_map(|band| {
        let (part, value) = (0..chart.parts.len())
            .filter_map(|part| Some((part, band.at(part)?)))
            .max_by_key(|(_, value)| *value)?;
        Some(format!("{} at most {}, {}.", band.name, chart.unit.shown(value), chart.parts.get(part)?.name))
    });
    let highest = highest.collect::<Vec<_>>().join(" ");
    match highest.as_str() {
        "" => format!("{time} No data in this period."),
        highest => format!("{time} {highest} The table below has every value."),
    }
}

/// The round numbers, each with its line.
fn push_numbers(svg: &mut String, chart: &Chart<'_>, plot: &Plot) {
    for number in plot.scale.numbers() {
        let y = BASE - plot.height(number, 0);
        let class = if number == 0 { "axis" } else { "grid" };
        let _ = write!(
            svg,
            "<path class=\"{class}\" d=\"M{} {y}.5H{}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            plot.left,
            WIDTH - RIGHT,
            plot.left - BESIDE,
            y + NUMBER_FOOT,
            scale::label(chart.unit, number)
        );
    }
}

fn push_bands(svg: &mut String, chart: &Chart<'_>, plot: &Plot) {
    let mut below = vec![(0_u128, 0_u64); chart.parts.len()];
    for (place, band) in chart.bands.iter().enumerate() {
        let (kind, path) = match chart.form {
            ChartForm::Beside => ("bars", beside(band, plot, place as u64, chart.bands.len() as u64)),
            ChartForm::Stacked => ("bars", stacked(band, plot, &mut below)),
            ChartForm::Lines => ("line", line(band, plot, chart.parts.len())),
        };
        if !path.is_empty() {
            let _ = write!(svg, "<path class=\"{kind} {}\" d=\"{path}\"/>", band.class);
        }
    }
}

fn beside(band: &Band, plot: &Plot, place: u64, bands: u64) -> String {
    let mut path = String::new();
    let bar = (plot.width.saturating_sub(2) / bands.max(1)).clamp(1, BAR_MAX);
    let inset = plot.width.saturating_sub(bar * bands) / 2;
    for (part, value) in band.values.iter().enumerate() {
        let height = plot.height(value.unwrap_or_default().into(), BAR_LEAST);
        push_bar(&mut path, plot.x(part) + inset + place * bar, BASE, bar, height);
    }
    path
}

/// `below` has, of each part, what stands below: its sum, and its height.
fn stacked(band: &Band, plot: &Plot, below: &mut [(u128, u64)]) -> String {
    let mut path = String::new();
    let bar = (plot.width * 3 / 4).clamp(1, BAR_MAX);
    let inset = plot.width.saturating_sub(bar) / 2;
    for (part, (sum, height)) in below.iter_mut().enumerate() {
        let value = band.at(part).unwrap_or_default();
        if value == 0 {
            continue;
        }
        *sum += u128::from(value);
        let top = plot.height(*sum, 0).max(*height + BAR_LEAST);
        push_bar(&mut path, plot.x(part) + inset, BASE - *height, bar, top - *height);
        *height = top;
    }
    path
}

fn push_bar(path: &mut String, x: u64, base: u64, width: u64, height: u64) {
    if height > 0 {
        let _ = write!(path, "M{x} {base}v-{height}h{width}v{height}z");
    }
}

/// A line through the values that follow each other; one that stands alone is a short line.
fn line(band: &Band, plot: &Plot, parts: usize) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for part in 0..parts {
        let Some(value) = band.at(part) else {
            is_open = false;
            continue;
        };
        let (x, y) = (plot.middle(part), BASE - plot.height(value.into(), 0));
        let is_alone = !is_open && band.at(part + 1).is_none();
        let _ = match (is_open, is_alone) {
            (true, _) => write!(path, "L{x} {y}"),
            (false, true) => write!(path, "M{} {y}h{}", x.saturating_sub(ALONE_HALF), 2 * ALONE_HALF),
            (false, false) => write!(path, "M{x} {y}"),
        };
        is_open = true;
    }
    path
}

/// Names of times, as many as have room below the values.
fn push_times(svg: &mut String, chart: &Chart<'_>, plot: &Plot) {
    let mut free_from = plot.left;
    for (part, time) in chart.parts.iter().enumerate().filter(|(_, time)| !time.label.is_empty()) {
        let half = (signs(&time.label) * SIGN).div_ceil(2);
        let (first, last) = (plot.left + half, WIDTH.saturating_sub(half));
        let x = plot.middle(part).max(first).min(last);
        if x.saturating_sub(half) < free_from {
            continue;
        }
        free_from = x + half + GAP;
        let _ = write!(svg, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">", HEIGHT - FOOT);
        push_escaped(svg, &time.label);
        svg.push_str("</text>");
    }
}

/// The values of each part, told where a pointer rests.
fn push_hints(svg: &mut String, chart: &Chart<'_>, plot: &Plot) {
    svg.push_str("<g class=\"hints\">");
    for (part, time) in chart.parts.iter().enumerate() {
        let (x, width) = (plot.x(part), plot.width);
        let _ = write!(svg, "<rect x=\"{x}\" y=\"{TOP}\" width=\"{width}\" height=\"{PLOT_HEIGHT}\"><title>");
        push_escaped(svg, &format!("{}: {}", time.name, chart.words_at(part)));
        svg.push_str("</title></rect>");
    }
    svg.push_str("</g>");
}

/// Bars without anything around them.
pub(super) fn spark(values: &[u64], title: &str) -> Option<String> {
    const SPARK_WIDTH: u64 = 112;
    const SPARK_HEIGHT: u64 = 24;
    let most = values.iter().copied().max().filter(|most| *most > 0)?;
    let width = (SPARK_WIDTH / values.len() as u64).max(1);
    let mut path = String::new();
    for (part, value) in values.iter().enumerate() {
        let height = u128::from(*value) * u128::from(SPARK_HEIGHT) / u128::from(most);
        let height = u64::try_from(height).unwrap_or(SPARK_HEIGHT).max(u64::from(*value > 0));
        push_bar(&mut path, part as u64 * width, SPARK_HEIGHT, (width * 3 / 4).max(1), height);
    }
    let mut svg =
        format!("<svg class=\"spark\" viewBox=\"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}\" role=\"img\"><title>");
    push_escaped(&mut svg, title);
    let _ = write!(svg, "</title><path d=\"{path}\"/></svg>");
    Some(svg)
}
