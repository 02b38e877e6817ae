//! Whatever the values are, a chart is whole: on its canvas, with round numbers, and with a table of the same.

use proptest::prelude::*;

use super::*;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 200.0;
/// The largest letters, those of a narrow chart, and the width of one at most.
const LETTERS: f64 = 20.0;
const SIGN: f64 = 13.0;
const CLASSES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

fn parts(count: usize) -> Vec<TimePart> {
    let part =
        |number: usize| TimePart { label: format!("{number} Nov"), name: format!("{number} Nov 00:00") };
    (1..=count).map(part).collect()
}

fn chart<'a>(parts: &'a [TimePart], form: ChartForm, unit: Unit, values: &[Vec<Option<u64>>]) -> Chart<'a> {
    let band = |(class, values): (&'static str, &Vec<Option<u64>>)| Band {
        name: class,
        class,
        values: values.clone(),
    };
    let bands = CLASSES.into_iter().zip(values).map(band).collect();
    Chart { id: "a", title: "Values <&> \"more\"", unit, form, over: "Time (UTC)", parts, bands }
}

fn shown(form: ChartForm, values: &[Vec<Option<u64>>]) -> String {
    let parts = parts(values.first().map_or(0, Vec::len));
    chart(&parts, form, Unit::Calls, values).shown().to_string()
}

/// What stands between two texts, each time.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Vec<&'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

/// The places that a path comes through.
fn places(path: &str) -> Vec<(f64, f64)> {
    let (mut rest, mut at, mut places) = (path, (0.0, 0.0), Vec::new());
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|sign: char| sign.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        let numbers: Vec<f64> =
            rest[1..end].split_whitespace().map(|number| number.parse().unwrap()).collect();
        match (command, &numbers[..]) {
            ('M' | 'L', [x, y]) => at = (*x, *y),
            ('H', [x]) => at.0 = *x,
            ('h', [width]) => at.0 += width,
            ('v', [height]) => at.1 += height,
            ('z', []) => {}
            other => panic!("{other:?} in {path}"),
        }
        places.push(at);
        rest = &rest[end..];
    }
    places
}

/// Each text with its place: where it begins and ends, and its height.
fn texts(svg: &str) -> Vec<(f64, f64, f64, &str)> {
    let one = |text: &'_ str| -> (f64, f64, f64) {
        let attribute = |name: &str| between(text, &format!("{name}=\""), "\"")[0].to_owned();
        let (x, y): (f64, f64) = (attribute("x").parse().unwrap(), attribute("y").parse().unwrap());
        let words = text.split('>').nth(1).unwrap();
        let wide = words.chars().count() as f64 * SIGN;
        match attribute("text-anchor").as_str() {
            "middle" => (x - wide / 2.0, x + wide / 2.0, y),
            "end" => (x - wide, x, y),
            other => panic!("{other}"),
        }
    };
    let found = between(svg, "<text ", "</text>");
    found
        .into_iter()
        .map(|text| {
            let (from, to, y) = one(&format!(" {text}"));
            (from, to, y, text)
        })
        .collect()
}

fn is_whole(html: &str) {
    for wrong in ["NaN", "inf", "\"-", " -", "<&>"] {
        assert!(!html.contains(wrong), "{wrong} in {html}");
    }
    for path in between(html, " d=\"", "\"") {
        for (x, y) in places(path) {
            assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "({x}, {y}) in {path}");
        }
    }
    let texts = texts(html);
    for (from, to, y, text) in &texts {
        assert!(*from >= 0.0 && *to <= WIDTH, "{from} to {to}: {text}");
        assert!((14.0..=HEIGHT).contains(y), "{y}: {text}");
    }
    let numbers: Vec<&str> =
        texts.iter().filter(|text| text.3.contains("\"end\"")).map(|text| text.3).collect();
    let words: std::collections::BTreeSet<&str> =
        numbers.iter().filter_map(|number| number.split('>').nth(1)).collect();
    assert!(words.len() == numbers.len() && (1..=5).contains(&numbers.len()), "{numbers:?}");
    are_apart(html);
}

/// The names of times begin right of the numbers, and below the lowest of them.
fn are_apart(html: &str) {
    let axis = between(html, "<path class=\"axis\" d=\"", "\"")[0];
    let (left, _) = places(axis)[0];
    let texts = texts(html);
    let is_number = |text: &str| text.contains("\"end\"");
    let foot = texts.iter().filter(|text| is_number(text.3)).map(|text| text.2).fold(0.0, f64::max);
    for (from, _, y, text) in texts.iter().filter(|text| !is_number(text.3) && text.2 > foot) {
        assert!(*from >= left, "{text} begins at {from}, left of {left}");
        assert!(*y - LETTERS >= foot, "{text} at {y} reaches up to the zero at {foot}");
    }
}

fn form() -> impl Strategy<Value = ChartForm> {
    prop_oneof![Just(ChartForm::Beside), Just(ChartForm::Stacked), Just(ChartForm::Lines)]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Usdc), Just(Unit::Calls), Just(Unit::Time), Just(Unit::Bytes)]
}

fn value() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        2 => Just(None),
        2 => Just(Some(0)),
        4 => (0..20_000_u64).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
        1 => Just(Some(u64::MAX)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chart_of_any_values_is_on_its_canvas_and_has_round_numbers(
        form in form(),
        unit in unit(),
        values in (0..130_usize).prop_flat_map(|parts| {
            prop::collection::vec(prop::collection::vec(value(), parts), 1..=CLASSES.len())
        }),
    ) {
        let parts = parts(values[0].len());
        is_whole(&chart(&parts, form, unit, &values).shown().to_string());
    }

    #[test]
    fn a_chart_of_any_numbers_of_a_stranger_is_on_its_canvas(
        numbers in prop::collection::vec(prop_oneof![any::<f64>(), -1e4..1e4_f64, Just(7.0)], 0..130)
    ) {
        let (meaning, values) = Numbers::of(&numbers);
        let parts = parts(values.len());
        is_whole(&chart(&parts, ChartForm::Lines, Unit::Number(meaning), &[values]).shown().to_string());
    }

    #[test]
    fn the_numbers_beside_a_chart_increase_and_reach_the_most(most in any::<u64>(), times in 1..6_u64) {
        let most = u128::from(most) * u128::from(times);
        let numbers: Vec<u128> = scale::Scale::of(most).numbers().collect();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        prop_assert!(numbers[0] == 0 && numbers.last().is_some_and(|last| *last >= most), "{numbers:?}");
        let step = numbers.get(1).map_or(1, |first| *first).to_string();
        prop_assert!(["1", "2", "5"].contains(&step.trim_end_matches('0')), "{step}");
    }
}

#[test]
fn nothing_is_said_to_be_nothing_and_one_value_is_a_chart() {
    for values in [vec![], vec![vec![]], vec![vec![Some(0); 30]; 2], vec![vec![None; 3]]] {
        for form in [ChartForm::Beside, ChartForm::Stacked, ChartForm::Lines] {
            let html = shown(form, &values);
            is_whole(&html);
            assert!(
                html.contains("No data in this period</text>") && html.contains("class=\"axis\""),
                "{html}"
            );
            assert!(!html.contains("<table>") && !html.contains("class=\"legend\""), "{html}");
        }
    }
    for form in [ChartForm::Beside, ChartForm::Stacked] {
        let html = shown(form, &[vec![Some(7)]]);
        is_whole(&html);
        assert!(html.contains("<path class=\"bars one\" d=\"M"), "{html}");
        assert!(html.contains("<rect x=\"") && html.contains("<title>1 Nov 00:00: one 7</title>"), "{html}");
        assert!(html.contains("<td>1 Nov 00:00</td><td class=\"number\">7</td>"), "{html}");
        // `chart.js` makes one stop of it, whose words are the titles of its parts.
        assert!(
            html.contains("<div class=\"plot\"><svg") && html.contains("</svg></div><details>"),
            "{html}"
        );
    }
}

#[test]
fn the_first_date_stands_right_of_a_long_number_and_below_the_zero() {
    let values = vec![vec![Some(1_234_567_u64); 28]];
    let parts = parts(28);
    let html = chart(&parts, ChartForm::Beside, Unit::Usdc, &values).shown().to_string();
    is_whole(&html);
    assert!(html.contains(">1 Nov</text>") && html.contains(">0.5</text>"), "{html}");
}

#[test]
fn no_style_draws_letters_larger_than_the_picture_measures() {
    let size = |token: &str| -> u64 {
        let tokens = include_str!("../../../assets/tokens.css");
        between(tokens, &format!("{token}: "), "px;")[0].parse().unwrap()
    };
    let styles = [include_str!("../../../assets/charts.css"), include_str!("../../../assets/console.css")];
    let rules = styles.concat();
    let sizes = between(&rules, ".chart text", "}");
    assert!(sizes.len() >= 3, "{sizes:?}");
    for rule in sizes {
        let token = between(rule, "font-size: var(", ")")[0];
        assert!(size(token) <= drawing::LETTERS, "{token} in {rule}");
    }
    assert_eq!(size("--t-chart"), drawing::LETTERS);
}

#[test]
fn a_line_has_gaps_where_there_is_no_value_and_a_short_line_where_one_stands_alone() {
    let html = shown(ChartForm::Lines, &[vec![Some(1), None, Some(3), Some(4), None]]);
    let [path] = &between(&html, "<path class=\"line one\" d=\"", "\"")[..] else { panic!("{html}") };
    let commands: String = path.chars().filter(char::is_ascii_alphabetic).collect();
    assert_eq!(commands, "MhML");
    assert!(path.contains("h12"), "a line that is too short to see: {path}");
    // In words a gap is no zero.
    assert!(html.contains("<title>2 Nov 00:00: none</title>"), "{html}");
    assert!(!html.contains("<td>2 Nov 00:00</td>"), "{html}");
}

#[test]
fn something_small_beside_something_huge_is_seen() {
    let html = shown(ChartForm::Stacked, &[vec![Some(u64::MAX), Some(1)], vec![Some(1), Some(1)]]);
    is_whole(&html);
    let heights = |class: &str| -> Vec<i64> {
        let [path] = &between(&html, &format!("<path class=\"bars {class}\" d=\""), "\"")[..] else {
            panic!("{html}")
        };
        between(path, "v-", "h").into_iter().map(|height| height.parse().unwrap()).collect()
    };
    assert!(heights("one").iter().chain(&heights("two")).all(|height| *height >= 2), "{html}");
    assert_eq!(heights("two"), [2, 2]);
}

#[test]
fn a_sparkline_is_small_and_nothing_is_no_picture() {
    assert!(sparkline(&[], "none").is_empty() && sparkline(&[0, 0], "none").is_empty());
    let svg = sparkline(&[0, 1, u64::MAX], "<3 calls>").to_string();
    assert!(svg.starts_with("<svg class=\"spark\"") && !svg.contains("<3"), "{svg}");
    for (x, y) in places(between(&svg, " d=\"", "\"")[0]) {
        assert!((0.0..=112.0).contains(&x) && (0.0..=24.0).contains(&y), "{svg}");
    }
    assert!(sparkline(&[5; 30], "calls").to_string().len() < 1_000);
}

#[test]
fn a_full_chart_is_a_few_kilobytes() {
    let values = vec![vec![Some(1_234_567_u64); 30]; 6];
    let parts = parts(30);
    let html = chart(&parts, ChartForm::Stacked, Unit::Usdc, &values).shown().to_string();
    assert!(html.len() < 20_000, "{}", html.len());
}
