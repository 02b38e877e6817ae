//! Every component and every class of the styles has an example, within the bytes of a page.

use std::collections::BTreeSet;

use super::*;
use crate::testing::frame;

const STYLES: [&str; 5] = [
    include_str!("../../../assets/charts.css"),
    include_str!("../../../assets/console.css"),
    include_str!("../../../assets/guest.css"),
    include_str!("../../../assets/operations.css"),
    include_str!("../../../assets/answer.css"),
];
/// The frame is around the examples.
const AROUND: [&str; 2] =
    [include_str!("../../../templates/frame.html"), include_str!("../../../templates/design.html")];
/// A page may have 60 KB. The frame needs some, and alerts of the node.
const EXAMPLES_BYTES_MAX: usize = 48 * 1024;
/// Classes without an example: they place parts on pages of one kind, whose own pictures show them.
const LAYOUTS: [&str; 31] = [
    "advice",
    "beside",
    "choices",
    "deposit",
    "entries",
    "facts",
    "file",
    "files",
    "found",
    "guest",
    "guest-card",
    "hidden-operations",
    "hits",
    "manual",
    "money-actions",
    "offers",
    "offers-told",
    "operation",
    "results",
    "sample",
    "sandbox",
    "sandbox-answer",
    "step-actions",
    "step-card",
    "step-head",
    "ticks",
    "tree-tools",
    "view",
    "words",
    "workbench",
    // A script gives it to what a search in a tree finds.
    "hit",
];
/// Pictures that fill a page of their own, and what a script adds to a chart that has the focus.
const PICTURES: [&str; 8] = ["area", "here", "land", "map", "place", "preview", "qr", "told"];

/// The examples of a part, one behind the other.
fn examples(part: DesignPart) -> String {
    let components = shown(&frame(), part).unwrap();
    components.iter().flat_map(|one| &one.examples).map(ToString::to_string).collect()
}

fn values<'h>(html: &'h str, attribute: &str) -> Vec<&'h str> {
    let begins = format!(" {attribute}=\"");
    html.split(&begins).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The classes that selectors of a file name.
fn classes(css: &str) -> BTreeSet<String> {
    let selectors = css.split_inclusive(['{', '}', ';', '/']).filter(|piece| piece.ends_with('{'));
    let mut classes = BTreeSet::new();
    for selector in selectors.filter(|selector| !selector.trim_start().starts_with('@')) {
        for rest in selector.split('.').skip(1) {
            let name =
                rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
            classes.insert(name.to_owned());
        }
    }
    classes
}

#[test]
fn every_component_has_examples_in_both_themes() {
    for part in DesignPart::ALL {
        let components = shown(&frame(), part).unwrap();
        assert!(!components.is_empty(), "{}", part.name());
        for ShownComponent { component, examples } in components {
            let [light, dark] = &examples[..] else { panic!("{}", component.name()) };
            assert!(light.html.len() > 100, "{}: {}", component.name(), light.html);
            assert_eq!((light.theme, dark.theme), (Theme::Light, Theme::Dark));
        }
    }
}

#[test]
fn every_class_of_the_styles_has_an_example() {
    let all: String = DesignPart::ALL.map(examples).concat() + &AROUND.concat();
    let shown: BTreeSet<&str> =
        values(&all, "class").into_iter().flat_map(|value| value.split([' ', '{', '}', '%'])).collect();
    let named: BTreeSet<String> = STYLES.into_iter().flat_map(classes).collect();
    assert!(named.len() > 150, "{named:?}");
    let is_aside = |class: &str| LAYOUTS.contains(&class) || PICTURES.contains(&class);
    let without: Vec<&String> =
        named.iter().filter(|class| !is_aside(class) && !shown.contains(class.as_str())).collect();
    assert!(without.is_empty(), "give each an example in templates/design-examples.html: {without:?}");
    let gone: Vec<&str> = LAYOUTS
        .into_iter()
        .chain(PICTURES)
        .filter(|class| !named.contains(*class) || shown.contains(class))
        .collect();
    assert!(gone.is_empty(), "these have an example or are gone: {gone:?}");
}

#[test]
fn examples_have_ids_of_their_own_and_send_nothing() {
    for part in DesignPart::ALL {
        let html = examples(part);
        assert!(html.len() <= EXAMPLES_BYTES_MAX, "{}: {} bytes", part.name(), html.len());
        let ids = values(&html, "id");
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len(), "{}: {ids:?}", part.name());
        for id in ["for", "aria-labelledby", "aria-describedby"].iter().flat_map(|name| values(&html, name)) {
            assert!(id.split(' ').all(|id| distinct.contains(id)), "{}: no {id}", part.name());
        }
        assert!(!html.contains("\"post\""), "{}", part.name());
    }
}

#[test]
fn what_names_an_element_gets_the_mark_of_its_place() {
    let html = "<form method=\"post\">\n<label for=\"a\">A = \"b\"</label><input id=\"a\" aria-describedby=\"a b\" value=\"\">";
    let apart = apart(html, "dark");
    let expected = "<form method=\"get\">\n<label for=\"a-dark\">A = \"b\"</label>\
                    <input id=\"a-dark\" aria-describedby=\"a-dark b-dark\" value=\"\">";
    assert_eq!(apart, expected);
}
