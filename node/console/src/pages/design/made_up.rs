//! Made-up values of examples, of the types that pages show.

use farthing_bridge::outline::{Outline, OutlineRole};
use farthing_control::types::{CallOutcome, SeriesRange};
use serde_json::json;

use crate::{
    markup::{
        Band, Chart, ChartForm, Markup, Room, TimePart, Unit, code_of, outline_of, own_markdown, sparkline,
        tree_of,
    },
    outcome,
    pages::{
        activity::log::LogRow,
        catalog::Card,
        operations::{Around, Branch, Leaf, OperationTree},
        register::review::Finding,
        sandbox::{Code, CodeTabs, under_way::ShownUnderWay},
        saved::{SavedLink, SavedLinks},
        service::VersionShown,
    },
    series::Ranges,
    texts::Alert,
};

const ID: &str = "00000000-0000-4000-8000-000000000000";
/// Longer than a row of a table has room for.
const LONG_NAME: &str = "Tides of every harbour of the North Sea, the Baltic and the Channel";
const CODE: &str = "# Prices are exact.\ndef price(calls):\n    return \"USDC\", 0.002 * calls\n";

/// The values of all examples.
pub(super) struct MadeUp {
    pub(super) outcomes: Vec<outcome::ShownOutcome>,
    pub(super) calls: Vec<LogRow>,
    pub(super) cards: Vec<Card>,
    pub(super) long_name: &'static str,
    pub(super) ranges: Ranges,
    pub(super) charts: Vec<Markup>,
    pub(super) spark: Markup,
    pub(super) findings: Vec<Finding>,
    pub(super) versions: Vec<VersionShown>,
    pub(super) alerts: Vec<Alert>,
    pub(super) code: CodeTabs,
    pub(super) source: Markup,
    pub(super) prose: Markup,
    pub(super) json: Markup,
    pub(super) outline: Markup,
    pub(super) operations: OperationTree,
    pub(super) operations_found: OperationTree,
    pub(super) saved: SavedLinks,
    pub(super) waiting: Vec<ShownUnderWay>,
}

impl MadeUp {
    pub(super) fn new() -> Self {
        Self {
            outcomes: CallOutcome::ALL
                .into_iter()
                .map(|outcome| outcome::shown(outcome, Some(200)))
                .collect(),
            calls: calls(),
            cards: cards(),
            long_name: LONG_NAME,
            ranges: Ranges::new("/panel", "charts", SeriesRange::Week),
            charts: charts(),
            spark: sparkline(&[1, 3, 0, 2, 4], "10 calls in 5 days"),
            findings: vec![Finding {
                title: "Left out",
                lines: vec![("GET /v1/old".to_owned(), "has no answer".to_owned())],
                hidden: 3,
            }],
            versions: versions(),
            alerts: vec![Alert {
                title: "USDC runs out",
                cause: "The wallet has 0.20 USDC; see `farthing status`.".to_owned(),
                action: "See Finance",
                link: Some("/panel/finance"),
            }],
            code: code(),
            source: code_of("price.py", CODE).0,
            prose: own_markdown("A paragraph, a list, and a quotation.\n\n- one\n\n> Said.\n", |_| None),
            json: json_tree(),
            outline: outline(),
            operations: tree(),
            operations_found: searched(),
            saved: saved(),
            waiting: [(CallOutcome::UnderWay, false), (CallOutcome::Undecided, true)].map(waiting).into(),
        }
    }
}

fn json_tree() -> Markup {
    let note = "low water ".repeat(24);
    tree_of(&json!({ "name": "Lowestoft", "open": true, "depths": [4, 7.5, null], "note": note })).markup
}

fn calls() -> Vec<LogRow> {
    let row = |outcome, status, charged: &str| LogRow {
        link: "/panel/activity".to_owned(),
        bought: true,
        name: "Tides".to_owned(),
        operation: "GET /v1/tides".to_owned(),
        peer: "0x7E5F…5Bdf".to_owned(),
        secret: Some("dashboard".to_owned()),
        when: "3 min ago".to_owned(),
        at: "2026-11-21 23:30:15 UTC".to_owned(),
        outcome: outcome::shown(outcome, status),
        status,
        code: None,
        others: 0,
        took: "42 ms".to_owned(),
        can_be_cancelled: outcome == CallOutcome::UnderWay,
        charged: charged.to_owned(),
    };
    let refused = LogRow {
        bought: false,
        operation: String::new(),
        code: Some("unknown_service".to_owned()),
        others: 4,
        secret: None,
        ..row(CallOutcome::Refused, None, "–")
    };
    let under_way = LogRow { took: "4 s so far".to_owned(), ..row(CallOutcome::UnderWay, None, "–") };
    vec![under_way, row(CallOutcome::Answered, Some(200), "0.002"), refused]
}

fn cards() -> Vec<Card> {
    let card = |name: &str| Card {
        id: ID.to_owned(),
        name: name.to_owned(),
        summary: "High and low water, for 40 harbours.".to_owned(),
        category: "weather".to_owned(),
        tags: vec!["sea".to_owned(), "tides".to_owned()],
        kind: "REST".to_owned(),
        operations: 2,
        has_samples: true,
        price: "0.002".to_owned(),
        per_thousand: "2.00".to_owned(),
        charges_declined: false,
        owner: "0x7E5F…5Bdf".to_owned(),
        wallet: "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf".to_owned(),
        owner_petname: Some("The tides of the harbour office".to_owned()),
        state: "online",
        state_class: "good",
        measured: "Your node has not called it yet.".to_owned(),
        updated: "2 h ago".to_owned(),
        look_alike: None,
        not_buyable: None,
        flag: None,
    };
    let other = Card {
        summary: String::new(),
        tags: Vec::new(),
        state: "offline",
        state_class: "neutral",
        look_alike: Some("Another owner has a service of this name".to_owned()),
        ..card(LONG_NAME)
    };
    vec![card("Tides"), other]
}

/// Of nothing, of one value, of many, of many in one bar, and of lines with a gap.
fn charts() -> Vec<Markup> {
    let money =
        |spent: &[u64], earned: &[u64]| vec![band("Spent", "spent", spent), band("Earned", "earned", earned)];
    let outcomes = vec![
        band("Answered", "answered", &[90, 120, 80]),
        band("Timed out", "timed-out", &[4, 0, 9]),
        band("Too large", "too-large", &[0, 6, 0]),
        band("Failed", "failed", &[7, 0, 3]),
        band("Refused", "turned-away", &[0, 12, 5]),
    ];
    let slowest = vec![Some(90_000), Some(240_000), None, Some(130_000)];
    let times = vec![
        band("Median", "half", &[42_000, 50_000, 47_000, 61_000]),
        Band { name: "95 of 100", class: "most", values: slowest },
    ];
    vec![
        chart("none", "Nothing", Unit::Usdc, ChartForm::Beside, money(&[0, 0], &[0, 0])),
        chart("single", "One value", Unit::Usdc, ChartForm::Beside, money(&[200_000], &[0])),
        chart("many", "Many values", Unit::Usdc, ChartForm::Beside, money(&[2_000, 6_000], &[8_000, 1_000])),
        chart("stacked", "Calls by outcome", Unit::Calls, ChartForm::Stacked, outcomes),
        chart("lines", "Times", Unit::Time, ChartForm::Lines, times),
    ]
}

fn band(name: &'static str, class: &'static str, values: &[u64]) -> Band {
    Band { name, class, values: values.iter().copied().map(Some).collect() }
}

fn chart(id: &str, title: &str, unit: Unit, form: ChartForm, bands: Vec<Band>) -> Markup {
    let days = bands.first().map_or(0, |band| band.values.len());
    let parts: Vec<TimePart> =
        (1..=days).map(|day| TimePart { label: format!("{day} May"), name: format!("{day} May") }).collect();
    Chart { id, title, unit, form, over: "Day", parts: &parts, bands }.shown()
}

fn versions() -> Vec<VersionShown> {
    let version = |version, what: &[&str]| VersionShown {
        version,
        when: "2 h ago".to_owned(),
        at: "2026-11-21 23:30:15 UTC".to_owned(),
        price: "0.002".to_owned(),
        what: what.iter().map(ToString::to_string).collect(),
        seen_here: version == 2,
    };
    vec![version(2, &["Added: GET /v1/harbours"]), version(1, &[])]
}

fn code() -> CodeTabs {
    let code = |language: &str, title: &str, text: &str| Code {
        language: language.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
    };
    CodeTabs {
        note: None,
        plain: vec![code("curl", "curl", "curl --fail …"), code("python", "Python", "requests.get(…)")],
        clients: vec![code("client-python", "Python client", "tides.harbours()")],
        chosen: "curl".to_owned(),
    }
}

fn outline() -> Markup {
    let value = |name: &str, kind: &str| Outline {
        role: OutlineRole::Member,
        name: name.to_owned(),
        kind: kind.to_owned(),
        ..Outline::default()
    };
    let limit = Outline {
        required: true,
        bounds: vec!["at least 1".to_owned()],
        description: "Rows of the answer.".to_owned(),
        ..value("limit", "integer")
    };
    let harbour = Outline { parts: vec![value("name", "string")], ..value("harbour", "Harbour") };
    outline_of([&limit, &harbour], &mut Room::of(4_096))
}

fn leaf(path: &str, is_chosen: bool) -> Leaf {
    Leaf {
        method: "GET".to_owned(),
        path: path.to_owned(),
        summary: String::new(),
        link: "?operation=1".to_owned(),
        is_chosen,
    }
}

fn tree() -> OperationTree {
    let branch = |name: &str, leaves: Vec<Leaf>| Branch {
        name: name.to_owned(),
        count: 2,
        link: "?group=1".to_owned(),
        is_open: !leaves.is_empty(),
        leaves,
        around: Around::default(),
    };
    let tides = vec![leaf("/v1/tides", true), leaf("/v1/tides/{harbour}", false)];
    OperationTree {
        total: 4,
        branches: vec![branch("tides", tides), branch("harbours", Vec::new())],
        around: Around { earlier: None, later: Some("?groups=1".to_owned()) },
        ..OperationTree::default()
    }
}

fn searched() -> OperationTree {
    let hit = Leaf { summary: "Every harbour.".to_owned(), ..leaf("/v1/harbours", false) };
    OperationTree {
        total: 4,
        words: "harbour".to_owned(),
        hits: vec![hit],
        hits_total: 1,
        ..OperationTree::default()
    }
}

fn saved() -> SavedLinks {
    let link =
        |name: &str, is_open| SavedLink { name: name.to_owned(), link: "/panel/saved".to_owned(), is_open };
    let links = vec![link("High water at Hull", true), link(LONG_NAME, false)];
    SavedLinks { total: 3, all: "/panel/saved".to_owned(), is_open: true, links }
}

fn waiting((outcome, is_let_go): (CallOutcome, bool)) -> ShownUnderWay {
    ShownUnderWay {
        call_id: ID.to_owned(),
        elapsed_secs: 4,
        at_most_secs: Some(30),
        is_let_go,
        charged_if: "the owner answered",
        outcome: outcome::of(outcome),
    }
}
