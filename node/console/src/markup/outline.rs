//! Outlines of values as lists in lists: a value with values within it is folded.
//!
//! Everything in them is a stranger's. Lists take of the room that a page has left, those beside each other before those within
//! them; what has no room is counted and left to the OpenAPI document.

use std::fmt::Write as _;

use farthing_bridge::outline::{Outline, OutlineEnd, OutlineRole};

use super::{Markup, push_escaped};
use crate::show;

/// Elements around a line, and the note that a list within it may end with.
const LINE_BYTES: usize = 120;
const FOLD_BYTES: usize = 200;

/// HTML that a page may still have.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Room {
    pub(crate) const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes so many bytes, if there are as many.
    pub(crate) const fn take(&mut self, bytes: usize) -> bool {
        let Some(left) = self.0.checked_sub(bytes) else { return false };
        self.0 = left;
        true
    }

    /// A room of at most so many bytes within this one.
    pub(crate) const fn part(&mut self, bytes: usize) -> Self {
        let bytes = if bytes < self.0 { bytes } else { self.0 };
        self.0 -= bytes;
        Self(bytes)
    }

    /// Gives back what a part did not need.
    pub(crate) const fn give_back(&mut self, part: &Self) {
        self.0 += part.0;
    }
}

/// A text as it is escaped, if it has room.
pub(crate) fn text_in(room: &mut Room, text: &str) -> Option<Markup> {
    let mut html = String::new();
    push_escaped(&mut html, &show::visible_lines(text));
    room.take(html.len()).then_some(Markup(html))
}

/// These values, as a list.
pub(crate) fn of<'o>(values: impl IntoIterator<Item = &'o Outline>, room: &mut Room) -> Markup {
    let mut html = String::new();
    if room.take(FOLD_BYTES) {
        list(&mut html, values, None, room);
    }
    Markup(html)
}

fn list<'o>(
    html: &mut String,
    values: impl IntoIterator<Item = &'o Outline>,
    end: Option<OutlineEnd>,
    room: &mut Room,
) {
    let mut hidden = 0_usize;
    let mut lines = Vec::new();
    for value in values {
        let line = line(value);
        let is_folded = !value.parts.is_empty() || value.end.is_some();
        let bytes = line.len() + LINE_BYTES + if is_folded { FOLD_BYTES } else { 0 };
        if hidden > 0 || !room.take(bytes) {
            hidden += 1;
            continue;
        }
        lines.push((value, line, is_folded));
    }
    html.push_str("<ul class=\"outline\">");
    for (value, line, is_folded) in lines {
        if is_folded {
            let _ = write!(html, "<li><details><summary>{line}</summary>");
            list(html, &value.parts, value.end, room);
            html.push_str("</details></li>");
        } else {
            let _ = write!(html, "<li>{line}</li>");
        }
    }
    if let Some(why) = ended(hidden, end) {
        let _ = write!(html, "<li class=\"hint\">{why}</li>");
    }
    html.push_str("</ul>");
}

fn ended(hidden: usize, end: Option<OutlineEnd>) -> Option<String> {
    let why = match (hidden, end) {
        (0, None) => return None,
        (0, Some(OutlineEnd::Circle)) => "Same as above: this type contains itself.".to_owned(),
        (0, Some(OutlineEnd::Deep)) => "Deeper levels are in the OpenAPI document.".to_owned(),
        (0, Some(OutlineEnd::Long)) => "More are in the OpenAPI document.".to_owned(),
        (1, _) => "1 more is in the OpenAPI document.".to_owned(),
        (hidden, _) => format!("{hidden} more are in the OpenAPI document."),
    };
    Some(why)
}

/// A value by itself: its name, its kind and what is said of it.
fn line(value: &Outline) -> String {
    let mut html = String::new();
    match value.role {
        OutlineRole::Whole | OutlineRole::Member if value.name.is_empty() => {}
        OutlineRole::Whole | OutlineRole::Member => {
            html.push_str("<code><bdi>");
            push_escaped(&mut html, &show::visible(&value.name));
            html.push_str("</bdi></code> ");
        }
        OutlineRole::Others => html.push_str("any other name "),
        OutlineRole::Variant => html.push_str("or "),
    }
    push_marked(&mut html, "kind", &value.kind);
    if value.required {
        html.push_str(" <span class=\"required\">required</span>");
    }
    if value.deprecated {
        html.push_str(" <span class=\"hint\">deprecated</span>");
    }
    let facts = facts(value);
    if !facts.is_empty() {
        html.push(' ');
        push_marked(&mut html, "hint", &facts.join(" · "));
    }
    if !value.description.is_empty() {
        html.push(' ');
        push_marked(&mut html, "about", &value.description.replace('`', ""));
    }
    html
}

fn facts(value: &Outline) -> Vec<String> {
    let mut facts = value.bounds.clone();
    if !value.choices.is_empty() {
        facts.push(format!("all: {}", value.choices.join(", ")));
    }
    facts.extend(value.default.as_ref().map(|default| format!("default {default}")));
    facts.extend(value.example.as_ref().map(|example| format!("for example {example}")));
    facts
}

fn push_marked(html: &mut String, class: &str, text: &str) {
    let _ = write!(html, "<span class=\"{class}\"><bdi>");
    push_escaped(html, &show::visible(text));
    html.push_str("</bdi></span>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, kind: &str) -> Outline {
        Outline {
            role: OutlineRole::Member,
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..Outline::default()
        }
    }

    #[test]
    fn a_value_says_its_name_its_kind_and_its_bounds_and_folds_what_is_within_it() {
        let limit = Outline {
            required: true,
            bounds: vec!["at least 1".to_owned(), "at most 100".to_owned()],
            default: Some("20".to_owned()),
            example: Some("7".to_owned()),
            description: "How `many`".to_owned(),
            ..value("limit", "integer")
        };
        let others = Outline { role: OutlineRole::Others, ..value("", "string") };
        let star = Outline { parts: vec![limit, others], ..value("star", "Star") };
        let again = Outline { end: Some(OutlineEnd::Circle), ..value("again", "Star") };
        assert_eq!(
            of([&star, &again], &mut Room::of(10_000)).to_string(),
            "<ul class=\"outline\"><li><details><summary><code><bdi>star</bdi></code> <span class=\"kind\"><bdi>Star</bdi></span></summary>\
             <ul class=\"outline\"><li><code><bdi>limit</bdi></code> <span class=\"kind\"><bdi>integer</bdi></span> \
             <span class=\"required\">required</span> \
             <span class=\"hint\"><bdi>at least 1 · at most 100 · default 20 · for example 7</bdi></span> \
             <span class=\"about\"><bdi>How many</bdi></span></li>\
             <li>any other name <span class=\"kind\"><bdi>string</bdi></span></li></ul></details></li>\
             <li><details><summary><code><bdi>again</bdi></code> <span class=\"kind\"><bdi>Star</bdi></span></summary>\
             <ul class=\"outline\"><li class=\"hint\">Same as above: this type contains itself.</li></ul></details></li></ul>"
        );
    }

    #[test]
    fn what_a_stranger_wrote_stays_text() {
        let hostile = Outline {
            description: "<img src=x onerror=alert(1)>".to_owned(),
            example: Some("\"><script>".to_owned()),
            ..value("<b>\u{202e}x", "</code>")
        };
        let html = of([&hostile], &mut Room::of(10_000)).to_string();
        for alive in ["<img", "<script", "<b>", "</code></span>", "\u{202e}"] {
            assert!(!html.contains(alive), "{alive}: {html}");
        }
        assert!(html.contains("&#60;img src=x") && html.contains("&#60;b&#62;x"), "{html}");
    }

    #[test]
    fn a_list_has_no_more_than_its_room_and_counts_what_is_left_out() {
        let inner: Vec<Outline> = (0..50).map(|at| value(&format!("inner{at}"), "string")).collect();
        let first = Outline { parts: inner, ..value("first", "object") };
        let beside: Vec<Outline> = (0..20).map(|at| value(&format!("beside{at}"), "string")).collect();
        let all: Vec<&Outline> = [&first].into_iter().chain(&beside).collect();
        for bytes in [0, 300, 1_000, 5_000, 8_000, 100_000] {
            let html = of(all.iter().copied(), &mut Room::of(bytes)).to_string();
            assert!(html.len() <= bytes, "{} of {bytes}", html.len());
            for element in ["ul", "li", "details", "summary", "span", "bdi", "code"] {
                let opened = html.matches(&format!("<{element}>")).count()
                    + html.matches(&format!("<{element} ")).count();
                assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "{element} of {bytes}");
            }
        }
        let html = of(all.iter().copied(), &mut Room::of(8_000)).to_string();
        assert!(html.contains("beside19") && !html.contains("inner49"), "what is beside comes first: {html}");
        assert!(html.contains(" more are in the OpenAPI document."), "{html}");
    }

    #[test]
    fn room_is_taken_once_and_given_back() {
        let mut room = Room::of(100);
        assert!(room.take(60) && !room.take(41));
        let part = room.part(1_000);
        assert!(!room.take(1));
        room.give_back(&part);
        assert!(room.take(40) && !room.take(1));
        assert_eq!(text_in(&mut Room::of(4), "a<b"), None);
        assert_eq!(text_in(&mut Room::of(7), "a<b").map(|html| html.to_string()).as_deref(), Some("a&#60;b"));
    }
}
