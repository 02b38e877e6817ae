//! GraphQL SDL in: a schema file of a stranger becomes a compiled schema and a report, whatever is in it.
//!
//! Bytes are decoded ([`text`]), scanned for what could exhaust the parser ([`scan`]), cut into definitions
//! ([`split`]), of which each is put right ([`repair`]) and parsed ([`parse`]); the whole is judged and compiled by
//! [`super::judge`]. Every mistake is told with its line and column, up to 20 of them.

mod parse;
mod position;
mod repair;
mod scan;
mod split;
pub(super) mod strings;
mod text;

#[cfg(test)]
mod tests;

use super::{
    draft::{DraftArgument, DraftBody, DraftDefinition, DraftInputs, SchemaDraft},
    judge,
    reading::SchemaReading,
};
use crate::report::{ReadError, ReadProblem, Report};

pub(super) use parse::NO_REASON;

const FORMAT: &str = "GraphQL SDL";
/// Bytes of a schema file that tell what it is. Comments and descriptions may come before the first definition.
const HEAD_BYTES: usize = 64 * 1024;

/// Reads a schema.
///
/// # Errors
///
/// When there is nothing to call, a limit is exceeded, or something cannot be understood: what, and where.
pub fn read(bytes: &[u8]) -> Result<SchemaReading, ReadError> {
    let mut report = Report { format: FORMAT.into(), ..Report::default() };
    let text = text::decode(bytes, &mut report)?;
    let draft = draft(&text, &mut report)?;
    judge::compile(draft, report, FORMAT)
}

/// Tells whether bytes look like a schema file, judged by their first lines.
pub(crate) fn looks_like_sdl(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_BYTES)]);
    let is_json_or_markup = head.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '<']);
    !is_json_or_markup && head.lines().any(begins_definition)
}

/// Tells whether a line begins a definition of GraphQL.
pub(crate) fn begins_definition(line: &str) -> bool {
    const KEYWORDS: &[&str] =
        &["type", "schema", "extend", "interface", "union", "enum", "input", "scalar", "directive"];
    let line = line.trim_start_matches('\u{feff}').trim_start();
    KEYWORDS.iter().any(|keyword| {
        let Some(rest) = line.strip_prefix(keyword) else { return false };
        let next = rest.trim_start();
        let is_word =
            rest.len() > next.len() && next.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_word || next.starts_with(['{', '@'])
    })
}

/// All definitions of a document, or all mistakes in them.
fn draft(text: &str, report: &mut Report) -> Result<SchemaDraft, ReadError> {
    let tokens = scan::tokens(text)?;
    if tokens.is_empty() {
        return Err(ReadError::new(
            FORMAT,
            "the file is empty; expected definitions such as `type Query { … }`",
        ));
    }
    let mut draft = SchemaDraft::default();
    let mut problems = Vec::new();
    let (mut at, mut position) = (0, (1, 1));
    for definition in split::definitions(text, &tokens) {
        let start = definition.tokens.first().map_or(at, |token| token.start);
        position = position::advance(position, text.get(at..start).unwrap_or_default());
        at = start;
        if let Err(mistake) = one(text, &definition, position, report, &mut draft) {
            problems.push(ReadProblem { position: Some(mistake.at), what: mistake.what });
            if problems.len() == ReadError::PROBLEMS_MAX {
                break;
            }
        }
    }
    if problems.is_empty() { Ok(draft) } else { Err(ReadError { format: FORMAT, problems }) }
}

fn one(
    text: &str,
    definition: &split::Definition<'_>,
    at: (u64, u64),
    report: &mut Report,
    draft: &mut SchemaDraft,
) -> Result<(), parse::Mistake> {
    match definition.keyword_text(text) {
        // Their locations and arguments change nothing that can be called.
        "directive" => Ok(()),
        "" | "extend" => Err(parse::Mistake { at, what: misplaced(text, definition) }),
        _ => {
            let repaired = repair::repair(text, definition, at, report);
            parse::parse(&repaired, definition.extend.is_some(), draft)
        }
    }
}

/// Says what something is that is no definition.
fn misplaced(text: &str, definition: &split::Definition<'_>) -> String {
    let found = definition.tokens.first().map_or("", |token| token.text(text));
    match found {
        "query" | "mutation" | "subscription" | "fragment" => {
            format!("`{found}` begins a request, not a schema; use the schema that the server publishes")
        }
        "extend" => "`extend` is not followed by what it extends".into(),
        _ if definition.description.is_some() => "a description is not followed by a definition".into(),
        _ => format!(
            "`{}` is not a definition; expected for example `type`, `input` or `enum`",
            crate::shown(found)
        ),
    }
}

/// A literal such as `[1, 2]` or `{kind: NEW}` as JSON; `None` for what is no literal.
pub(super) fn value(text: &str) -> Option<serde_json::Value> {
    let document = format!("input V{{v:V={text}\n}}");
    let draft = draft(&document, &mut Report::default()).ok()?;
    // Whatever else the text may hold, it is not a single literal then.
    let [DraftDefinition { body: DraftBody::Input(DraftInputs { fields, one_of: false }), .. }] =
        draft.types.as_slice()
    else {
        return None;
    };
    let [DraftArgument { default, head, .. }] = fields.as_slice() else { return None };
    let is_plain = head.deprecated.is_none() && !head.is_hidden && !text.contains('@');
    is_plain.then(|| default.clone().unwrap_or_default())
}
