//! Strangers' JSON as a tree that folds, made of elements of HTML alone. Every bound that is met is counted, so that the page can
//! say how much is left out.
//!
//! Texts and names stand as JSON writes them, and what would deceive a reader stands as its escape: what is not cut can be read
//! back exactly, which the script that copies values does.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Markup, push_escaped};
use crate::show;

/// Levels that are shown; what lies deeper is counted.
const DEPTH_MAX: usize = 10;
/// Of one list or object.
const CHILDREN_MAX: usize = 100;
const TEXT_CHARS_MAX: usize = 200;
/// From here on nothing more begins: the longest value and the ends of all levels have room in a page of 60 KB.
const BYTES_MAX: usize = 18 * 1024;
/// Levels that are open at first.
const OPEN_LEVELS: usize = 2;

/// A document as a tree, and the values that are not in it.
#[derive(Debug, Default)]
pub(crate) struct JsonTree {
    pub(crate) markup: Markup,
    pub(crate) left_out: usize,
}

pub(crate) fn of(document: &Value) -> JsonTree {
    let mut tree = TreeWriter { html: String::new(), left_out: 0 };
    match document {
        Value::Array(list) => tree.list(list, 0),
        Value::Object(object) => tree.members(object.iter().map(|(name, value)| (name.as_str(), value)), 0),
        leaf => tree.leaf(leaf),
    }
    JsonTree { markup: Markup(tree.html), left_out: tree.left_out }
}

struct TreeWriter {
    html: String,
    left_out: usize,
}

impl TreeWriter {
    /// The places of a list, which the browser numbers.
    fn list(&mut self, list: &[Value], depth: usize) {
        self.html.push_str("<ol start=\"0\">");
        self.children(list.iter().map(|value| (None, value)), depth);
        self.html.push_str("</ol>");
    }

    fn members<'v>(&mut self, members: impl Iterator<Item = (&'v str, &'v Value)>, depth: usize) {
        self.html.push_str("<ul>");
        self.children(members.map(|(name, value)| (Some(name), value)), depth);
        self.html.push_str("</ul>");
    }

    fn children<'v>(&mut self, children: impl Iterator<Item = (Option<&'v str>, &'v Value)>, depth: usize) {
        let mut rest = 0;
        for (at, (name, value)) in children.enumerate() {
            if at >= CHILDREN_MAX || self.html.len() >= BYTES_MAX {
                rest += 1;
                self.left_out += values_of(value);
                continue;
            }
            self.html.push_str("<li>");
            self.child(name, value, depth);
            self.html.push_str("</li>");
        }
        if rest > 0 {
            let _ = write!(self.html, "<li class=\"more\">{rest} more</li>");
        }
    }

    fn child(&mut self, name: Option<&str>, value: &Value, depth: usize) {
        let count = match value {
            Value::Array(list) if !list.is_empty() => list.len(),
            Value::Object(object) if !object.is_empty() => object.len(),
            leaf => {
                self.name(name);
                self.leaf(leaf);
                return;
            }
        };
        if depth + 1 >= DEPTH_MAX {
            self.name(name);
            self.count(value, count);
            self.left_out += values_of(value) - 1;
            return;
        }
        self.html.push_str(if depth + 1 < OPEN_LEVELS {
            "<details open><summary>"
        } else {
            "<details><summary>"
        });
        self.name(name);
        self.count(value, count);
        self.html.push_str("</summary>");
        match value {
            Value::Array(list) => self.list(list, depth + 1),
            Value::Object(object) => {
                self.members(object.iter().map(|(name, value)| (name.as_str(), value)), depth + 1);
            }
            _ => {}
        }
        self.html.push_str("</details>");
    }

    fn name(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.text("b", "", name);
            self.html.push(' ');
        }
    }

    /// `{3}` or `[12]`
    fn count(&mut self, value: &Value, count: usize) {
        let (begin, end) = if value.is_array() { ('[', ']') } else { ('{', '}') };
        let _ = write!(self.html, "<small>{begin}{count}{end}</small>");
    }

    fn leaf(&mut self, value: &Value) {
        let class = match value {
            Value::String(text) => return self.text("i", "s", text),
            Value::Number(_) => "n",
            _ => "k",
        };
        let _ = write!(self.html, "<i class=\"{class}\">{value}</i>");
    }

    /// A text as JSON writes it; of a long one the beginning, marked as cut.
    fn text(&mut self, element: &str, class: &str, text: &str) {
        let cut = text.char_indices().nth(TEXT_CHARS_MAX).map(|(at, _)| at);
        let classes = if cut.is_some() { format!("{class} cut") } else { class.to_owned() };
        let _ = match classes.trim_start() {
            "" => write!(self.html, "<{element}>"),
            classes => write!(self.html, "<{element} class=\"{classes}\">"),
        };
        push_escaped(&mut self.html, &written(&text[..cut.unwrap_or(text.len())]));
        let _ = write!(self.html, "</{element}>");
    }
}

/// A text as JSON writes it, in which what would deceive a reader is escaped as well.
fn written(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut written = String::with_capacity(json.len());
    for c in json.chars() {
        if show::is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(written, "\\u{unit:04x}");
            }
        } else {
            written.push(c);
        }
    }
    written
}

/// Counts a value and all values in it.
fn values_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(values_of).sum::<usize>(),
        Value::Object(object) => object.values().map(values_of).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn html(document: &Value) -> String {
        of(document).markup.to_string()
    }

    #[test]
    fn a_document_becomes_lists_that_fold_and_values_by_their_kind() {
        let document = json!({ "a": [1, true, null, "x"], "b": {}, "c": 1.5 });
        assert_eq!(
            html(&document),
            "<ul><li><details open><summary><b>&#34;a&#34;</b> <small>[4]</small></summary><ol start=\"0\">\
             <li><i class=\"n\">1</i></li><li><i class=\"k\">true</i></li><li><i class=\"k\">null</i></li>\
             <li><i class=\"s\">&#34;x&#34;</i></li></ol></details></li>\
             <li><b>&#34;b&#34;</b> <i class=\"k\">{}</i></li>\
             <li><b>&#34;c&#34;</b> <i class=\"n\">1.5</i></li></ul>"
        );
        assert_eq!(of(&document).left_out, 0);
    }

    #[test]
    fn only_the_first_levels_are_open() {
        let folded = html(&json!([[[[1]]]]));
        assert_eq!(folded.matches("<details open>").count(), 1, "{folded}");
        assert_eq!(folded.matches("<details>").count(), 2, "{folded}");
    }

    #[test]
    fn nothing_of_a_text_becomes_markup_or_turns_the_words_around_it() {
        let document = json!({ "<b>\u{202e}": "</i><script>\u{200b}\n\"&\u{e0001}" });
        let seen = html(&document);
        for alive in ["<b>\u{202e}", "<script", "\u{202e}", "\u{200b}", "\n", "\u{e0001}"] {
            assert!(!seen.contains(alive), "{alive:?} in {seen}");
        }
        for told in ["\\u202e", "\\u200b", "\\n", "&#60;script&#62;"] {
            assert!(seen.contains(told), "{told} in {seen}");
        }
    }

    #[test]
    fn what_is_too_deep_too_many_or_too_long_is_counted() {
        let mut deep = json!(7);
        for _ in 0..40 {
            deep = json!([deep]);
        }
        let tree = of(&deep);
        assert_eq!(tree.markup.to_string().matches("<ol").count(), DEPTH_MAX);
        // The innermost that is shown stands for itself; 40 lists and a number are 41 values, without the outermost.
        assert_eq!(tree.left_out, 40 - DEPTH_MAX);

        let many = of(&json!((0..CHILDREN_MAX + 5).collect::<Vec<_>>()));
        assert_eq!(many.left_out, 5);
        assert!(many.markup.to_string().ends_with("<li class=\"more\">5 more</li></ol>"));

        let long = html(&json!("é".repeat(TEXT_CHARS_MAX + 1)));
        assert_eq!(long, format!("<i class=\"s cut\">&#34;{}&#34;</i>", "é".repeat(TEXT_CHARS_MAX)));
        assert!(!html(&json!("é".repeat(TEXT_CHARS_MAX))).contains("cut"));
    }

    #[test]
    fn however_large_the_document_its_tree_has_room_in_a_page() {
        let wide: Vec<Value> =
            (0..100).map(|n| json!({ "\"<&>'".repeat(200): "\"<&>'".repeat(200), "n": n })).collect();
        let row = json!({ "rows": wide, "more": wide });
        let document = Value::from(vec![row; 50]);
        let tree = of(&document);
        let bytes = tree.markup.to_string().len();
        assert!((BYTES_MAX..BYTES_MAX + 6 * 1024).contains(&bytes), "{bytes}");
        assert!(tree.left_out > 10_000, "{}", tree.left_out);
    }
}
