//! Values as literals of a language.

use std::fmt::Write as _;

use serde_json::Value;

use crate::is_deceptive;

/// Languages with literals of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Python,
    JavaScript,
    Go,
    Rust,
    Kotlin,
}

impl Dialect {
    /// A text between double quotes: what could end it, begin a placeholder, break the line or deceive is escaped.
    pub(super) fn text(self, text: &str) -> String {
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '$' if self == Self::Kotlin => quoted.push_str("\\$"),
                _ if is_deceptive(c) => self.escape(c, &mut quoted),
                _ => quoted.push(c),
            }
        }
        quoted.push('"');
        quoted
    }

    fn escape(self, c: char, out: &mut String) {
        let code = u32::from(c);
        let _ = match self {
            Self::Python | Self::Go if code > 0xffff => write!(out, "\\U{code:08x}"),
            Self::Rust => write!(out, "\\u{{{code:x}}}"),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
                Ok(())
            }
        };
    }

    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Python => ("None", "True", "False"),
            _ => ("null", "true", "false"),
        }
    }

    fn key(self, name: &str) -> String {
        let text = self.text(name);
        // Without brackets this one would set the object's prototype.
        if self == Self::JavaScript && name == "__proto__" { format!("[{text}]") } else { text }
    }
}

/// An object of these members, over several lines.
pub(super) fn literal(dialect: Dialect, members: &[(String, Value)]) -> String {
    let mut out = String::new();
    object(dialect, members.iter().map(|(name, value)| (name, value)), 0, &mut out);
    out
}

fn object<'v>(
    dialect: Dialect,
    members: impl Iterator<Item = (&'v String, &'v Value)>,
    depth: usize,
    out: &mut String,
) {
    out.push_str("{\n");
    for (name, member) in members {
        indent(dialect, depth + 1, out);
        out.push_str(&dialect.key(name));
        out.push_str(": ");
        value(dialect, member, depth + 1, out);
        out.push_str(",\n");
    }
    indent(dialect, depth, out);
    out.push('}');
}

fn value(dialect: Dialect, shown: &Value, depth: usize, out: &mut String) {
    let (null, yes, no) = dialect.words();
    match shown {
        Value::Null => out.push_str(null),
        Value::Bool(true) => out.push_str(yes),
        Value::Bool(false) => out.push_str(no),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => out.push_str(&dialect.text(text)),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(members) if members.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push_str("[\n");
            for item in items {
                indent(dialect, depth + 1, out);
                value(dialect, item, depth + 1, out);
                out.push_str(",\n");
            }
            indent(dialect, depth, out);
            out.push(']');
        }
        Value::Object(members) => object(dialect, members.iter(), depth, out),
    }
}

fn indent(dialect: Dialect, depth: usize, out: &mut String) {
    let width = if dialect == Dialect::Python { 4 } else { 2 };
    for _ in 0..depth * width {
        out.push(' ');
    }
}
