//! An answer of the sandbox as its page shows it: what it cost, and its body as a map, a picture, a table, a chart, a tree or
//! text.
//!
//! The body is a stranger's and may be huge or binary: every view is bounded and escaped, and the download has all
//! of it.

use std::fmt::Write as _;

use farthing_control::types::{CallOutcome, OperationSample, Problem};
use http::StatusCode;
use serde_json::Value;

use crate::{
    course::{self, Course, CoursePoint},
    history::{Answer, StoredExchange},
    markup::{Band, Chart, ChartForm, JsonTree, Markup, Numbers, TimePart, Unit, map_of, tree_of},
    outcome::{self, ShownOutcome},
    pages::service::origin_words,
    show,
    table::{self, Table},
    texts,
};

use super::{cost, preview::ShownContent};

const ROWS_MAX: usize = 50;
/// Of a chart. Each has a place in the picture and a row in its table: pages stay small.
const POINTS_MAX: usize = 80;
/// Of a body's text as it stands in the page, escapes included: pages stay small.
const TEXT_BYTES_MAX: usize = 20 * 1024;
/// Larger bodies are not read as JSON: they would be slow to show, and few look through them.
const JSON_BYTES_MAX: usize = 1024 * 1024;
/// Of a binary body.
const HEX_BYTES_MAX: usize = 256;
const HEADERS_MAX: usize = 40;
const HEADER_CHARS_MAX: usize = 300;

texts::words! {
    /// A way to look at an answer.
    pub(super) enum AnswerView(name.0: &'static str) {
        Map = "map";
        Preview = "preview";
        Table = "table";
        Chart = "chart";
        Tree = "tree";
        Raw = "raw";
        Headers = "headers";
        Timing = "timing";
        Receipt = "receipt";
    }
}

impl AnswerView {
    pub(super) fn title(self) -> String {
        texts::capital(self.name())
    }
}

/// An answer as the template shows it.
pub(super) struct ShownAnswer {
    pub(super) call_id: String,
    pub(super) live: bool,
    pub(super) outcome: ShownOutcome,
    /// `200 OK`; of an answer alone.
    pub(super) status: String,
    /// The origin of a sample.
    pub(super) origin: &'static str,
    pub(super) cost: String,
    pub(super) took: String,
    pub(super) size: String,
    pub(super) problem: Option<ProblemShown>,
    /// Those that there are; none for an answer without a body.
    pub(super) views: Vec<AnswerView>,
    pub(super) view: AnswerView,
    pub(super) map: Markup,
    /// The content that a browser shows by itself.
    pub(super) content: Option<ShownContent>,
    pub(super) table: Table,
    pub(super) chart: Option<ChartShown>,
    pub(super) tree: JsonTree,
    pub(super) text: String,
    /// True if the text is only the beginning.
    pub(super) is_cut: bool,
    pub(super) is_binary: bool,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timing: Vec<TimingRow>,
    pub(super) receipt: String,
    pub(super) can_be_downloaded: bool,
    /// True if the body was dropped to make room.
    pub(super) is_gone: bool,
}

pub(super) struct ProblemShown {
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) next: String,
    /// The page that does something about it: words of the link, and address.
    pub(super) page: Option<(&'static str, &'static str)>,
}

/// A course of numbers as a picture.
pub(super) struct ChartShown {
    pub(super) name: String,
    pub(super) is_over_time: bool,
    pub(super) lowest: String,
    pub(super) highest: String,
    pub(super) picture: Markup,
    /// Numbers that are left out.
    pub(super) hidden: usize,
}

/// One part of the time taken.
pub(super) struct TimingRow {
    pub(super) name: &'static str,
    pub(super) took: String,
    /// Of the whole, in per cent.
    pub(super) share: u64,
}

impl ShownAnswer {
    /// The answer of `kept`, seen as `asked` if that is possible.
    pub(super) fn new(kept: &StoredExchange, asked: Option<&str>) -> Self {
        let exchange = &kept.exchange;
        let answer = &exchange.answer;
        let json = json(answer);
        let content = ShownContent::of(&answer.media_type, &answer.body);
        let course = json.as_ref().and_then(course::of);
        let map = json.as_ref().map(map_of).unwrap_or_default();
        let table = json.as_ref().map(|json| table::of(json, ROWS_MAX)).unwrap_or_default();
        let exists = |view: &AnswerView| match view {
            AnswerView::Map => !map.is_empty(),
            AnswerView::Preview => content.is_some(),
            AnswerView::Table => !table.rows.is_empty(),
            AnswerView::Chart => course.is_some(),
            AnswerView::Tree => json.is_some(),
            AnswerView::Raw => !answer.body.is_empty(),
            AnswerView::Headers => !answer.headers.is_empty(),
            AnswerView::Timing => exchange.live && !answer.timing.is_empty(),
            AnswerView::Receipt => !answer.receipt.is_empty(),
        };
        let views: Vec<AnswerView> = AnswerView::ALL.into_iter().filter(exists).collect();
        let wanted = views.iter().copied().find(|view| Some(view.name()) == asked);
        let view = wanted.or_else(|| views.first().copied()).unwrap_or(AnswerView::Raw);
        let text = std::str::from_utf8(&answer.body).ok();
        let whole = match (view, text) {
            (AnswerView::Raw, Some(text)) => text.to_owned(),
            (AnswerView::Raw, None) => hex(&answer.body),
            _ => String::new(),
        };
        let tree = json.as_ref().filter(|_| view == AnswerView::Tree).map(tree_of);
        let shown = bounded(&whole);
        Self {
            call_id: exchange.call_id.to_string(),
            live: exchange.live,
            outcome: outcome_of(answer),
            status: status(answer.status),
            origin: answer.origin,
            cost: cost::paid(exchange.live, answer),
            took: show::duration(answer.took_us),
            size: show::size(answer.body.len() as u64),
            problem: answer.problem.as_ref().map(problem),
            view,
            map: if view == AnswerView::Map { map } else { Markup::default() },
            content: content.filter(|_| view == AnswerView::Preview),
            table: if view == AnswerView::Table { table } else { Table::default() },
            chart: course.filter(|_| view == AnswerView::Chart).map(|course| chart(&course)),
            tree: tree.unwrap_or_default(),
            is_cut: shown.len() < whole.len(),
            text: shown.chars().filter(|c| !show::is_invisible(*c)).collect(),
            is_binary: text.is_none(),
            headers: headers(answer),
            timing: timing(answer),
            receipt: answer.receipt.clone(),
            can_be_downloaded: !answer.body.is_empty(),
            is_gone: !kept.has_body,
            views,
        }
    }
}

/// Tells how the call of an answer ended; a sample counts as the answer that it is.
pub(super) fn outcome_of(answer: &Answer) -> ShownOutcome {
    match &answer.problem {
        None => outcome::shown(CallOutcome::Answered, Some(answer.status)),
        Some(problem) => outcome::of(CallOutcome::of_problem(problem.name(), problem.charged)),
    }
}

pub(super) fn of_sample(sample: &OperationSample) -> Answer {
    let sample = &sample.sample;
    Answer {
        status: sample.status,
        media_type: sample.media_type.clone(),
        origin: origin_words(sample.origin),
        body: sample.body.clone().into(),
        ..Answer::default()
    }
}

fn json(answer: &Answer) -> Option<Value> {
    if answer.body.len() > JSON_BYTES_MAX {
        return None;
    }
    let value: Value = serde_json::from_slice(&answer.body).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn chart(course: &Course) -> ChartShown {
    let values = || course.points.iter().map(|point| point.value);
    let (lowest, highest) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let drawn = course.points.get(..POINTS_MAX).unwrap_or(&course.points);
    ChartShown {
        name: course.name.clone(),
        is_over_time: course.is_over_time,
        lowest: lowest.to_string(),
        highest: highest.to_string(),
        picture: picture(course, drawn),
        hidden: course.hidden + course.points.len().saturating_sub(drawn.len()),
    }
}

fn picture(course: &Course, drawn: &[CoursePoint]) -> Markup {
    let numbers: Vec<f64> = drawn.iter().map(|point| point.value).collect();
    let (meaning, values) = Numbers::of(&numbers);
    let part = |point: &CoursePoint| TimePart { label: point.at.clone(), name: point.at.clone() };
    let parts: Vec<TimePart> = drawn.iter().map(part).collect();
    let chart = Chart {
        id: "answer-chart",
        title: if course.name.is_empty() { "Numbers" } else { &course.name },
        unit: Unit::Number(meaning),
        form: ChartForm::Lines,
        over: if course.is_over_time { "Time" } else { "Place" },
        parts: &parts,
        bands: vec![Band { name: "Value", class: "half", values }],
    };
    chart.shown()
}

fn status(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"))
}

fn problem(problem: &Problem) -> ProblemShown {
    // A limit has its page, in place of a command.
    let (next, page) = match problem.limit.map(texts::step_against) {
        Some((step, page)) => (step.to_owned(), Some(page)),
        None => (
            problem.next.as_deref().map(show::visible).unwrap_or_default(),
            texts::page_against(problem.name()),
        ),
    };
    ProblemShown {
        title: show::visible(&problem.title),
        detail: texts::sentence(&show::visible(&problem.detail)),
        next,
        page,
    }
}

/// The beginning of a text that takes no more room in a page than [`TEXT_BYTES_MAX`].
fn bounded(text: &str) -> &str {
    let mut room = TEXT_BYTES_MAX;
    for (at, c) in text.char_indices() {
        let bytes = if matches!(c, '"' | '\'' | '<' | '>' | '&') { 5 } else { c.len_utf8() };
        match room.checked_sub(bytes) {
            Some(left) => room = left,
            None => return &text[..at],
        }
    }
    text
}

/// The first bytes of what is no text, sixteen in a line.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, chunk) in bytes[..bytes.len().min(HEX_BYTES_MAX)].chunks(16).enumerate() {
        let _ = write!(text, "{:08x} ", line * 16);
        for byte in chunk {
            let _ = write!(text, " {byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn headers(answer: &Answer) -> Vec<(String, String)> {
    let shown = |text: &str| show::visible(text).chars().take(HEADER_CHARS_MAX).collect::<String>();
    answer.headers.iter().take(HEADERS_MAX).map(|(name, value)| (shown(name), shown(value))).collect()
}

fn timing(answer: &Answer) -> Vec<TimingRow> {
    // An owner says what it likes.
    let total: u128 = answer.timing.iter().map(|(_, us)| u128::from(*us)).sum();
    let row = |(name, us): &(String, u64)| {
        let name = match name.as_str() {
            "gateway" => "Your node",
            "funding" => "Opening or topping up the channel",
            "network" => "The network, there and back",
            "owner" => "The owner's node",
            "upstream" => "The service itself",
            _ => return None,
        };
        let share = u64::try_from(u128::from(*us) * 100 / total.max(1)).unwrap_or(100);
        Some(TimingRow { name, took: show::duration(*us), share })
    };
    answer.timing.iter().filter_map(row).collect()
}

/// `gateway;dur=1.250, network;dur=3.5` in microseconds.
pub(super) fn read_timing(header: &str) -> Vec<(String, u64)> {
    let one = |part: &str| {
        let (name, millis) = part.trim().split_once(";dur=")?;
        let (whole, fraction) = millis.split_once('.').unwrap_or((millis, ""));
        let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
        let us = whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(fraction.parse().ok()?)?;
        Some((name.to_owned(), us))
    };
    header.split(',').filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Instant};

    use farthing_control::types::{LimitKind, ProblemName};
    use farthing_values::{CallId, ServiceId};

    use super::*;
    use crate::history::{AskedParty, CallStage, Exchange};

    fn shown(body: &[u8], view: &str) -> ShownAnswer {
        let answer = Answer { status: 200, body: body.to_vec().into(), ..Answer::default() };
        let exchange = Exchange {
            call_id: CallId::from_bytes([1; 16]),
            service: ServiceId::from_bytes([1; 16]),
            asked: AskedParty::Owner,
            at_secs: 0,
            began: Instant::now(),
            live: true,
            stage: CallStage::Ended,
            operation: "GET /a".to_owned(),
            fields: Vec::new(),
            answer,
        };
        ShownAnswer::new(&StoredExchange { exchange: Arc::new(exchange), has_body: true }, Some(view))
    }

    #[test]
    fn a_body_is_seen_in_every_way_that_it_allows() {
        let map =
            br#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"place":"Hualian"},
            "geometry":{"type":"Point","coordinates":[121.5,24.0]}}]}"#;
        let seen = shown(map, "");
        assert_eq!(seen.views, [AnswerView::Map, AnswerView::Table, AnswerView::Tree, AnswerView::Raw]);
        assert!(seen.view == AnswerView::Map && !seen.map.is_empty());
        assert_eq!(shown(map, "table").table.columns[0], "place");
        let tree = shown(map, "tree").tree.markup.to_string();
        assert!(tree.starts_with("<ul><li><b>&#34;type&#34;"), "in the order of the answer: {tree}");
        assert_eq!(shown(b"{\"a\":1}", "map").view, AnswerView::Tree, "there is no map");
        assert_eq!(shown(b"\x1b[31mred\n", "raw").text, "[31mred\n");
        assert!(shown(b"", "").views.is_empty());
    }

    #[test]
    fn a_limit_that_refuses_a_call_names_its_page_and_no_command() {
        let next = "Raise it with `farthing spending limits --per-call 1`.";
        let refused = Problem::of_status(StatusCode::PAYMENT_REQUIRED, "it costs more; twice as much", next);
        for limit in LimitKind::ALL {
            let shown = problem(&Problem {
                kind: ProblemName::OverLimit.kind(),
                limit: Some(limit),
                ..refused.clone()
            });
            assert_eq!(shown.detail, "It costs more; twice as much.", "all of it");
            assert!(!shown.next.contains("farthing"), "{limit}: {}", shown.next);
            let (is_of_secret, page) = (limit.name().starts_with("secret-"), shown.page.unwrap().1);
            assert_eq!(page.contains("/secrets"), is_of_secret, "{limit}: {page}");
            assert_eq!(shown.next.contains("Secrets"), is_of_secret, "{limit}: {}", shown.next);
            assert_eq!(
                shown.next.contains("midnight"),
                limit.name().ends_with("-day"),
                "{limit}: {}",
                shown.next
            );
        }
        assert_eq!(problem(&refused).next, next, "without a limit, the node's own words");
    }

    #[test]
    fn a_course_of_numbers_has_a_chart_between_its_lowest_and_its_highest() {
        let seen = shown(br#"{"noise":[-5,0,5,15]}"#, "");
        assert_eq!((seen.views[0], seen.view), (AnswerView::Chart, AnswerView::Chart));
        let chart = seen.chart.unwrap();
        assert_eq!(
            (chart.name.as_str(), chart.lowest.as_str(), chart.highest.as_str()),
            ("noise", "-5", "15")
        );
        let picture = chart.picture.to_string();
        for beside in
            [">−5</text>", ">0</text>", ">15</text>", "<path class=\"line half\"", ">−5</td>", ">15</td>"]
        {
            assert!(picture.contains(beside), "{beside}: {picture}");
        }
        let even = shown(b"[2,2,2,2]", "chart").chart.unwrap().picture.to_string();
        assert!(
            even.matches("class=\"number\">2</td>").count() == 4 && !even.contains("No data in this period"),
            "{even}"
        );
        let long = format!("{:?}", (0..600).collect::<Vec<_>>());
        let long = shown(long.as_bytes(), "chart").chart.unwrap();
        assert_eq!((long.picture.to_string().matches("<tr><td>").count(), long.hidden), (POINTS_MAX, 520));
    }

    #[test]
    fn a_picture_is_shown_as_one_and_stays_bytes_beside_that() {
        let seen = shown(b"\x89PNG\r\n\x1a\n\0\0\0\0", "");
        assert_eq!(seen.views, [AnswerView::Preview, AnswerView::Raw]);
        assert_eq!(seen.content.unwrap().media_type, "image/png");
    }

    #[test]
    fn a_huge_or_binary_body_is_bounded() {
        let huge = vec![b'"'; 3_000_000];
        let seen = shown(&huge, "raw");
        assert!(seen.is_cut && seen.text.len() * 5 <= TEXT_BYTES_MAX, "{}", seen.text.len());
        assert_eq!((seen.size.as_str(), seen.can_be_downloaded), ("2.8 MiB", true));
        let binary = shown(&[0xff; 5_000], "raw");
        assert!(binary.is_binary && binary.text.lines().count() == 16);
        let wide = "é".repeat(TEXT_BYTES_MAX);
        assert_eq!(shown(wide.as_bytes(), "raw").text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn times_that_no_owner_can_have_taken_are_shown_all_the_same() {
        let most = u64::MAX;
        let timing = read_timing(
            "gateway;dur=1.000, owner;dur=18446744073709551.615, upstream;dur=18446744073709551.615",
        );
        let rows = super::timing(&Answer { timing, ..Answer::default() });
        let shares: Vec<u64> = rows.iter().map(|row| row.share).collect();
        assert_eq!((shares, rows[1].took.clone()), (vec![0, 49, 49], show::duration(most)));
    }

    #[test]
    fn the_header_of_times_is_read() {
        let timing =
            read_timing("gateway;dur=1.250, funding;dur=0.000, network;dur=3.5, odd, upstream;dur=7");
        let us: Vec<u64> = timing.iter().map(|(_, us)| *us).collect();
        assert_eq!(us, [1_250, 0, 3_500, 7_000]);
    }
}
