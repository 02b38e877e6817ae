//! One call as code that needs no client: it posts the call to the gateway of the caller's node.
//!
//! The secret and the file of the node's certificate authority come from the environment (`CONSUMER_SECRET`,
//! `FARTHING_CA_FILE`), so that code can be shared. What a stranger wrote (names, paths) and what was typed (values,
//! bodies) stands inside a literal of the language.

use farthing_bridge::is_deceptive;
use minijinja::context;
use serde::Serialize;
use serde_json::{Value as Json, ser::PrettyFormatter};

use super::{
    Language, Options, SdkError,
    escape::{Foreign, by_number, literal},
    profile::{CodePoint, Literal, PlainCode, RequestForm},
    render,
};

/// The call to show. It is not checked.
#[derive(Debug, Clone)]
pub struct PlainCall<'a> {
    /// Address of the gateway: `https://localhost:3000`.
    pub gateway: &'a str,
    /// UUID.
    pub service: &'a str,
    pub method: &'a str,
    /// Concrete, or a template whose parameters are among `params`.
    pub path: &'a str,
    /// In the order to show them.
    pub params: &'a [(String, String)],
    /// JSON, or a text.
    pub body: Option<Json>,
    /// Of a body that is a text.
    pub content_type: Option<&'a str>,
}

impl Language {
    /// The languages of [`plain`], in the order in which they are shown.
    pub const PLAIN: [Self; 6] =
        [Self::Shell, Self::Python, Self::TypeScript, Self::Go, Self::Rust, Self::Kotlin];
}

/// The call as code; `None` in a language that is not among [`Language::PLAIN`].
pub fn plain(call: &PlainCall<'_>, language: Language) -> Result<Option<String>, SdkError> {
    let profile = language.profile();
    let Some(PlainCode { template, request, .. }) = &profile.plain else { return Ok(None) };
    let address = format!("{}/internal/call", call.gateway);
    let context = context! {
        tls => address.starts_with("https://"),
        address => Foreign::value(&*address),
        call => written(&members(call), request, &profile.syntax.literal),
    };
    render::one(profile, template, &context, &Options::default()).map(Some)
}

type Members = Vec<(String, Json)>;

/// The gateway's request, its members in the order that people read them.
fn members(call: &PlainCall<'_>) -> Members {
    let params = call.params.iter().map(|(name, value)| (name.clone(), Json::from(&**value)));
    let params = (!call.params.is_empty()).then(|| Json::Object(params.collect()));
    let headers = call.content_type.map(|kind| serde_json::json!({ "content-type": kind }));
    let members = [
        ("api_id_public", Some(Json::from(call.service))),
        ("method", Some(Json::from(call.method))),
        ("path", Some(Json::from(call.path))),
        ("params", params),
        ("body", call.body.clone()),
        ("headers", headers),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn written(members: &Members, form: &RequestForm, syntax: &Literal) -> String {
    match form {
        RequestForm::Members { indent, words, prototype } => {
            let mut out = String::new();
            let writer = LiteralWriter { syntax, indent: *indent, words, prototype };
            writer.object(members.iter().map(|(name, value)| (name, value)), 0, &mut out);
            out
        }
        RequestForm::SingleQuotes => format!("'{}'", json(members).replace('\'', r"'\''")),
        // A raw string keeps line breaks; it cannot hold its own quotes.
        RequestForm::Backticks => match json(members) {
            call if call.contains('`') => literal(syntax, &call),
            call => format!("`{call}`"),
        },
        RequestForm::Hashes => {
            let call = json(members);
            let mut hashes = "#".to_owned();
            while call.contains(&format!("\"{hashes}")) {
                hashes.push('#');
            }
            format!("r{hashes}\"{call}\"{hashes}")
        }
        // Only the dollar means something there; three quotes in a row are not possible in JSON.
        RequestForm::TripleQuotes => format!("\"\"\"{}\"\"\"", json(members).replace('$', "${'$'}")),
    }
}

/// JSON on several lines, without characters that deceive.
fn json(members: &Members) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in members {
        let mut text = Vec::new();
        let mut writer =
            serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"  "));
        // Writing a value into memory does not fail.
        let _ = value.serialize(&mut writer);
        let value = String::from_utf8(text).unwrap_or_default().replace('\n', "\n  ");
        lines.push(format!("  {}: {value}", Json::from(name.as_str())));
    }
    let mut shown = String::new();
    for c in format!("{{\n{}\n}}", lines.join(",\n")).chars() {
        match c {
            '\n' => shown.push(c),
            c if is_deceptive(c) => by_number(&mut shown, c, CodePoint::Pairs),
            c => shown.push(c),
        }
    }
    shown
}

/// Values as literals of a language that has objects of its own.
struct LiteralWriter<'s> {
    syntax: &'s Literal,
    indent: usize,
    /// For null, true and false.
    words: &'s [String; 3],
    /// The spelling of `__proto__` as a name.
    prototype: &'s str,
}

impl LiteralWriter<'_> {
    fn object<'v>(
        &self,
        members: impl Iterator<Item = (&'v String, &'v Json)>,
        depth: usize,
        out: &mut String,
    ) {
        self.lines('{', members.map(|(name, value)| (Some(name), value)), depth, out);
        out.push('}');
    }

    fn lines<'v>(
        &self,
        open: char,
        entries: impl Iterator<Item = (Option<&'v String>, &'v Json)>,
        depth: usize,
        out: &mut String,
    ) {
        out.push(open);
        for (name, value) in entries {
            self.begin_line(depth + 1, out);
            match name {
                Some(name) if name == "__proto__" => out.extend([self.prototype, ": "]),
                Some(name) => out.extend([&*literal(self.syntax, name), ": "]),
                None => {}
            }
            self.value(value, depth + 1, out);
            out.push(',');
        }
        self.begin_line(depth, out);
    }

    fn begin_line(&self, depth: usize, out: &mut String) {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * self.indent));
    }

    fn value(&self, value: &Json, depth: usize, out: &mut String) {
        let [null, yes, no] = self.words;
        match value {
            Json::Null => out.push_str(null),
            Json::Bool(value) => out.push_str(if *value { yes } else { no }),
            Json::Number(number) => out.push_str(&number.to_string()),
            Json::String(text) => out.push_str(&literal(self.syntax, text)),
            Json::Array(items) if items.is_empty() => out.push_str("[]"),
            Json::Object(members) if members.is_empty() => out.push_str("{}"),
            Json::Array(items) => {
                self.lines('[', items.iter().map(|item| (None, item)), depth, out);
                out.push(']');
            }
            Json::Object(members) => self.object(members.iter(), depth, out),
        }
    }
}
