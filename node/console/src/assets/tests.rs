//! Assets have addresses of their own, and styles are made of tokens.

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_asset_has_an_address_of_its_own_that_changes_with_its_content() {
    for asset in ASSETS.iter() {
        assert!(asset.name.split('.').count() == 3 && !asset.content.is_empty(), "{}", asset.name);
    }
    assert_eq!(style(), format!("/assets/{}", ASSETS[0].name));
    assert!(answer_style().ends_with(".css") && answer_script().ends_with(".js"), "{}", answer_style());
    assert_ne!(asset("a.css", "", b"1").name, asset("a.css", "", b"2").name);
}

#[test]
fn the_styles_name_the_font_by_its_address() {
    let font = ASSETS.iter().find(|asset| asset.content_type == "font/woff2").expect("a font");
    assert!((20 * 1024..=60 * 1024).contains(&font.content.len()), "{} bytes", font.content.len());
    let styles = String::from_utf8_lossy(&ASSETS[0].content);
    assert!(styles.contains(&format!("url(\"{}\")", font.name)) && !styles.contains(FONT));
}

#[test]
fn styles_and_scripts_are_compressed_for_browsers_that_take_it_and_the_font_is_not() {
    for asset in ASSETS.iter().filter(|asset| asset.content.len() > 1_000) {
        let is_text = asset.content_type.starts_with("text/");
        assert_eq!(asset.compressed.is_some(), is_text, "{}", asset.name);
        if let Some(compressed) = &asset.compressed {
            let content = miniz_oxide::inflate::decompress_to_vec_zlib(compressed).unwrap();
            assert!(content == *asset.content, "{}", asset.name);
        }
    }
    let takes = |named: &'static str| {
        let headers = [(header::ACCEPT_ENCODING, http::HeaderValue::from_static(named))];
        takes_compressed(&headers.into_iter().collect())
    };
    assert!(takes("gzip, deflate, br, zstd") && takes("deflate"));
    assert!(!takes("gzip") && !takes("deflate;q=0") && !takes_compressed(&HeaderMap::new()));
}

const TOKENS: &str = include_str!("../../assets/tokens.css");
/// The other files of styles.
const STYLES: [(&str, &str); 5] = [
    ("charts.css", include_str!("../../assets/charts.css")),
    ("console.css", include_str!("../../assets/console.css")),
    ("guest.css", include_str!("../../assets/guest.css")),
    ("operations.css", include_str!("../../assets/operations.css")),
    ("answer.css", include_str!("../../assets/answer.css")),
];
/// Lines, and signs that are moved a little.
const LINE_PX_MAX: u32 = 3;
/// The largest space that is a token.
const SPACE_PX_MAX: u32 = 64;
const SPACES: [&str; 3] = ["gap", "margin", "padding"];
const TOKENS_ALONE: [&str; 8] = [
    "animation",
    "border-radius",
    "box-shadow",
    "font",
    "font-size",
    "font-weight",
    "line-height",
    "transition",
];
const COLOURS: [&str; 7] = ["#", "rgb", "hsl", "light-dark", "color-mix", "white", "black"];

/// A text without its parts from `begin` to `end`.
fn without(text: &str, begin: &str, end: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, inside)) = rest.split_once(begin) {
        kept.push_str(before);
        rest = inside.split_once(end).map_or("", |(_, after)| after);
    }
    kept + rest
}

/// Properties and their values, without comments and texts.
fn declarations(css: &str) -> Vec<(String, String)> {
    let css = without(&without(css, "/*", "*/"), "\"", "\"");
    let pieces = css.split_inclusive(['{', '}', ';']).filter(|piece| !piece.ends_with('{'));
    let pair = |piece: &str| {
        let (property, value) = piece.trim_end_matches(['}', ';']).split_once(':')?;
        Some((property.trim().to_owned(), value.trim().to_owned()))
    };
    pieces.filter_map(pair).collect()
}

/// The numbers before `px`; one with a fraction is on no grid.
fn pixels(value: &str) -> Vec<u32> {
    let number = |(at, _): (usize, &str)| {
        let digits = value[..at].rsplit(|c: char| !c.is_ascii_digit() && c != '.').next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
    };
    value.match_indices("px").map(number).collect()
}

/// Returns true for a value that should be a token, or lies beside the grid.
fn is_wrong(property: &str, value: &str) -> bool {
    let raw = without(value, "var(", ")");
    let is_space = SPACES.iter().any(|space| property.starts_with(space));
    let is_off_grid =
        |px: &u32| *px > LINE_PX_MAX && (!px.is_multiple_of(8) || (is_space && *px <= SPACE_PX_MAX));
    let has_number = raw.contains(|c: char| matches!(c, '1'..='9'));
    COLOURS.iter().any(|colour| raw.contains(colour))
        || pixels(&raw).iter().any(is_off_grid)
        || (TOKENS_ALONE.contains(&property) && has_number)
}

#[test]
fn styles_take_colours_spaces_type_radii_shadows_and_times_from_the_tokens() {
    for (property, value) in [
        ("color", "#fff"),
        ("padding", "var(--s2) 10px"),
        ("margin-top", "8px"),
        ("width", "90px"),
        ("height", "7.5px"),
        ("font-weight", "600"),
        ("transition", "color .12s"),
    ] {
        assert!(is_wrong(property, value), "{property}: {value}");
    }
    for (property, value) in
        [("padding", "var(--s2) 0"), ("width", "88px"), ("border", "1px solid var(--bad)")]
    {
        assert!(!is_wrong(property, value), "{property}: {value}");
    }
    for (file, css) in STYLES {
        let found = declarations(css);
        assert!(found.len() > 40, "{file}: {} declarations", found.len());
        let wrong: Vec<_> = found.into_iter().filter(|(property, value)| is_wrong(property, value)).collect();
        assert!(wrong.is_empty(), "{file}: take a token of tokens.css in place of {wrong:#?}");
    }
}

#[test]
fn every_token_that_is_used_is_there_and_every_one_that_is_there_is_used() {
    let all: String = STYLES.iter().map(|(_, css)| *css).chain([TOKENS]).collect();
    let named = declarations(&all).into_iter().map(|(property, _)| property);
    let there: BTreeSet<String> = named.filter(|name| name.starts_with("--")).collect();
    let uses = all.split("var(").skip(1).filter_map(|rest| rest.split(')').next());
    let used: BTreeSet<String> = uses.map(str::to_owned).collect();
    assert_eq!(there, used);
}

#[test]
fn tokens_are_three_weights_and_spaces_of_whole_steps() {
    let tokens = declarations(TOKENS);
    let weights: Vec<u32> = tokens.iter().filter_map(|(_, value)| value.parse().ok()).collect();
    assert_eq!(weights.len(), 3, "{weights:?}");
    let steps = |name: &str| name.strip_prefix("--s").and_then(|steps| steps.parse::<u32>().ok());
    let spaces: Vec<(u32, &String)> =
        tokens.iter().filter_map(|(name, value)| Some((steps(name)?, value))).collect();
    assert!(spaces.len() > 5, "{spaces:?}");
    for (steps, value) in spaces {
        assert_eq!(value, &format!("{}px", steps * 4));
    }
}
