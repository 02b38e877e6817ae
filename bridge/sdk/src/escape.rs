//! Strangers' text in code: one filter for every place it can stand in, and no way around them.
//!
//! Texts of a description travel through templates as [`Foreign`], which a template cannot print. The filters
//! turn one into a string literal (`lit`), documentation (`doc`), a comment (`comment`), a value of JSON, TOML or
//! Markdown (`json`, `toml`, `md`), or words for a build file (`label`). Whatever could end its place, or hide in it, is
//! escaped or replaced.

use std::{fmt::Write as _, sync::Arc};

use farthing_bridge::is_deceptive;
use minijinja::{
    Environment, Error, ErrorKind, Value,
    value::{Object, ObjectRepr},
};

use super::profile::{CodePoint, Doc, Literal, Profile, Syntax};

/// A stranger's text. Printing it is an error; it is true when it is not empty.
#[derive(Debug)]
pub(super) struct Foreign(String);

impl Foreign {
    pub(super) fn value(text: impl Into<String>) -> Value {
        Value::from_object(Self(text.into()))
    }
}

impl Object for Foreign {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.0.is_empty()
    }

    /// Reached by joining it to another text, which no template has a reason to do.
    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(text without a filter)")
    }
}

/// Makes the filters of a language known, and printing without one an error.
pub(super) fn install(environment: &mut Environment<'_>, profile: &'static Profile) {
    let Syntax { literal, comment, doc } = &profile.syntax;
    let with = |environment: &mut Environment<'_>, name: &'static str, filter: fn(&str) -> String| {
        environment.add_filter(name, move |value: &Value| text_of(value).map(|text| filter(&text)));
    };
    environment
        .add_filter("lit", move |value: &Value| text_of(value).map(|text| self::literal(literal, &text)));
    environment.add_filter("comment", move |value: &Value, indent: Option<usize>| {
        text_of(value).map(|text| self::comment(comment, &text, indent.unwrap_or_default()))
    });
    environment.add_filter("doc", move |value: &Value, indent: Option<usize>, goes_on: Option<bool>| {
        let goes_on = goes_on.unwrap_or_default();
        text_of(value).map(|text| self::doc(doc, &text, indent.unwrap_or_default(), goes_on))
    });
    environment.add_filter("pad", |name: &str, column: usize| format!("{name:column$}"));
    with(environment, "json", |text| quoted(text, &[], CodePoint::Pairs));
    with(environment, "toml", |text| quoted(text, &[], CodePoint::Wide));
    with(environment, "label", label);
    with(environment, "md", markdown);
    with(environment, "code", |text| code_span(&one_line(text)).unwrap_or_else(|| markdown(text)));
    environment.add_filter("way", |value: &Value| way(value));
    with(environment, "integer", integer);
    with(environment, "key", key);
    environment.set_formatter(|out, state, value| {
        if value.downcast_object_ref::<Foreign>().is_some() {
            return Err(Error::new(ErrorKind::InvalidOperation, "prints a stranger's text without a filter"));
        }
        minijinja::escape_formatter(out, state, value)
    });
}

fn text_of(value: &Value) -> Result<String, Error> {
    if value.is_undefined() || value.is_none() {
        return Err(Error::new(ErrorKind::UndefinedError, "a filter is given nothing"));
    }
    Ok(value.downcast_object_ref::<Foreign>().map_or_else(|| value.to_string(), |text| text.0.clone()))
}

pub(super) fn literal(literal: &Literal, text: &str) -> String {
    match literal {
        Literal::Quoted { escaped, code_point } => quoted(text, escaped, *code_point),
        Literal::Shell => shell(text),
    }
}

fn quoted(text: &str, escaped: &[char], code_point: CodePoint) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if escaped.contains(&c) => literal.extend(['\\', c]),
            c if is_deceptive(c) => by_number(&mut literal, c, code_point),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Writing to memory does not fail.
pub(super) fn by_number(literal: &mut String, c: char, code_point: CodePoint) {
    let number = u32::from(c);
    let mut units = [0; 2];
    let _ = match code_point {
        CodePoint::Braces => write!(literal, "\\u{{{number:x}}}"),
        CodePoint::Wide if number > 0xffff => write!(literal, "\\U{number:08x}"),
        CodePoint::Wide | CodePoint::Pairs => {
            c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(literal, "\\u{unit:04x}"))
        }
    };
}

fn shell(text: &str) -> String {
    if !text.contains(|c| is_deceptive(c) || c == '\'' || c == '\\') {
        return format!("'{text}'");
    }
    let mut literal = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            // A shell's strings cannot hold it.
            '\0' => {}
            c if is_deceptive(c) => by_number(&mut literal, c, CodePoint::Wide),
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

/// Lines of plain text: nothing that moves a cursor or hides, no blanks at their ends, no empty ones at either end.
fn lines(text: &str) -> Vec<String> {
    let is_break = |c: char| matches!(c, '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let line = |line: &str| {
        let visible: String =
            line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !is_deceptive(*c)).collect();
        visible.trim_end().to_owned()
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<String> = text.trim().split(is_break).map(line).collect();
    // Paragraphs are apart by one empty line.
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    lines
}

fn one_line(text: &str) -> String {
    lines(text).iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The words of a text for a file that a build tool reads. MSBuild and Maven put values in place of `$(…)`, `${…}` and
/// `%24` whatever XML escapes, and others may: only what means nothing to any of them stays.
fn label(text: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || ".,-_()'".contains(c);
    let words: String = one_line(text).chars().map(|c| if is_kept(c) { c } else { ' ' }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines joined so that each but the first begins with the indentation and `prefix`.
fn joined(lines: impl IntoIterator<Item = String>, indent: usize, prefix: &str) -> String {
    let begin = format!("\n{}{prefix}", " ".repeat(indent));
    let mut joined = String::new();
    for (index, line) in lines.into_iter().enumerate() {
        if index > 0 {
            joined.push_str(if line.is_empty() { begin.trim_end_matches(' ') } else { &begin });
        }
        joined.push_str(&line);
    }
    joined
}

fn comment(prefix: &str, text: &str, indent: usize) -> String {
    // PHP ends at `?>` even in a comment, Java reads `\u` everywhere, and a line that ends in a backslash goes on.
    let line = |line: String| line.replace("?>", "? >").replace('\\', "/");
    joined(lines(text).into_iter().map(line), indent, prefix)
}

/// The replacement for Python's prompt, behind which `doctest` finds code to run.
const PROMPT: &str = "> >>";

/// `goes_on`: whether the template itself puts a word behind it.
fn doc(doc: &Doc, text: &str, indent: usize, goes_on: bool) -> String {
    let lines = lines(text).into_iter();
    match doc {
        Doc::TripleQuotes => {
            // Three in a row would end it, and one at the very end would belong to those that do.
            let text = joined(lines, indent, "").replace('\\', "\\\\").replace(">>>", PROMPT);
            let last = if goes_on { None } else { text.strip_suffix('"') };
            let (inside, last) = last.map_or((&*text, ""), |inside| (inside, "\\\""));
            format!("{}{last}", inside.replace("\"\"\"", "\\\"\\\"\\\""))
        }
        Doc::Stars => {
            // Comments nest in Kotlin and Swift, tags are read by compilers, and these show HTML.
            let line = |line: String| {
                unfenced(&line)
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace("*/", "*&#47;")
                    .replace("/*", "/&#42;")
                    .replace('@', "&#64;")
                    .replace('{', "&#123;")
                    .replace('\\', "&#92;")
            };
            joined(lines.map(line), indent, " * ")
        }
        Doc::Lines(prefix) => {
            // Rust runs what is indented, be it in a list or a quotation: one blank indents nothing.
            let flat = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
            joined(lines.map(|line| unfenced(&flat(line)).replace('\\', "\\\\")), indent, prefix)
        }
        Doc::XmlLines => joined(lines.map(|line| xml(&line)), indent, "/// "),
    }
}

/// Nothing begins a block of code: tools that test examples in documentation run what stands there.
fn unfenced(line: &str) -> String {
    line.replace("```", "'''").replace("~~~", "'''")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

/// Text within a line of Markdown. What stands between two backticks stays code, in which a backslash would be seen.
fn markdown(text: &str) -> String {
    let line = one_line(text);
    let parts: Vec<&str> = line.split('`').collect();
    let is_paired =
        parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(|code| !code.trim().is_empty());
    // Two in a row would be another sign.
    let is_apart = parts.iter().skip(2).step_by(2).rev().skip(1).all(|between| !between.is_empty());
    if !is_paired || !is_apart {
        return plain(&line);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        1 => code_span(part).unwrap_or_default(),
        _ => plain(part),
    };
    parts.iter().enumerate().map(part).collect()
}

fn plain(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if "\\`*_{}[]<>#|&~$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Code within a line of Markdown, in a table as well; none for what would end it.
fn code_span(text: &str) -> Option<String> {
    (!text.contains('`') && !text.trim().is_empty()).then(|| format!("`{}`", text.replace('|', "\\|")))
}

/// Members on a way as a path of `jq`, in a literal of the shell.
fn way(steps: &Value) -> Result<String, Error> {
    let mut path = String::from(".");
    for step in steps.try_iter()? {
        path.push_str(&format!("[{}]?", quoted(&text_of(&step.get_attr("wire")?)?, &[], CodePoint::Pairs)));
    }
    Ok(shell(&path))
}

/// A whole number in JavaScript: a bigint where a number would lose digits; 0 for what is none.
fn integer(text: &str) -> String {
    match text.parse::<i128>() {
        Ok(number) if number.unsigned_abs() < 1 << 53 => number.to_string(),
        Ok(number) => format!("{number}n"),
        Err(_) => "0".to_owned(),
    }
}

/// A member's name in JavaScript, quoted unless it is a plain identifier.
fn key(text: &str) -> String {
    // In an object literal this name alone would be the prototype.
    if text == "__proto__" {
        return "[\"__proto__\"]".to_owned();
    }
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { text.to_owned() } else { quoted(text, &[], CodePoint::Pairs) }
}
