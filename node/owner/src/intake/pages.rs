//! Finds in pages, scripts and headers where a description is. Pure.
//!
//! Documentation pages (Swagger UI, Redoc, Scalar, RapiDoc, Elements) name their document in an attribute, in
//! a script, or in a configuration that a script names; some hold the document itself. No page is run or
//! parsed as HTML: quoted texts behind the few names in use are enough, and wrong guesses are only asked for
//! and found to be nothing.

use serde_json::value::RawValue;
use url::Url;

/// Addresses taken from one page; real ones have a handful (Swagger UI with several versions).
const LEADS_MAX: usize = 16;
/// An address on a page.
const ADDRESS_BYTES_MAX: usize = 512;
/// Enough for the longest name that tells what a text is.
const BEFORE_BYTES_MAX: usize = 80;

/// Relations of RFC 8631 and RFC 9727 that lead to a description.
const RELATIONS: &[&str] = &["service-desc", "service-doc", "api-catalog"];

/// Targets of `Link` headers (RFC 8288) that lead to a description.
pub(super) fn linked<'a>(headers: impl Iterator<Item = &'a str>, base: &Url) -> Vec<Url> {
    let links = headers.flat_map(split_links).filter_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        is_wanted(parameters).then(|| base.join(target.trim()).ok())?
    });
    links.take(LEADS_MAX).collect()
}

/// Splits a header at the commas between links, which are neither in `<…>` nor in quotes.
fn split_links(header: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut target) = (Vec::new(), 0, false, false);
    for (at, character) in header.char_indices() {
        match character {
            '"' if !target => quoted = !quoted,
            '<' if !quoted => target = true,
            '>' if !quoted => target = false,
            ',' if !quoted && !target => {
                parts.push(&header[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&header[start..]);
    parts
}

fn is_wanted(parameters: &str) -> bool {
    parameters.split(';').any(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else { return false };
        let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
        name.trim().eq_ignore_ascii_case("rel")
            && relations.any(|relation| RELATIONS.iter().any(|wanted| relation.eq_ignore_ascii_case(wanted)))
    })
}

/// Targets of an API catalog (RFC 9727, a linkset of RFC 9264).
pub(super) fn catalogued(body: &[u8], base: &Url) -> Vec<Url> {
    let Ok(catalog) = serde_json::from_slice::<serde_json::Value>(body) else { return Vec::new() };
    let contexts = catalog["linkset"].as_array().into_iter().flatten();
    let targets = contexts.flat_map(|context| {
        // The anchor of an entry, or an item without more, may itself be a document.
        let links = ["service-desc", "service-doc", "item", "api-catalog"]
            .map(|relation| context[relation].as_array().map_or(&[][..], Vec::as_slice));
        links.into_iter().flatten().filter_map(|link| link["href"].as_str()).collect::<Vec<_>>()
    });
    targets.filter_map(|target| base.join(target).ok()).take(LEADS_MAX).collect()
}

/// The leads that a page or script gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leads {
    /// Addresses where a document may be.
    pub(super) documents: Vec<Url>,
    /// Scripts that configure the page.
    pub(super) scripts: Vec<Url>,
    /// The document itself.
    pub(super) embedded: Option<String>,
}

/// Reads a page, a script, or a configuration in JSON. `base` is the page's address: scripts write addresses
/// relative to the page that loads them.
pub(super) fn leads(text: &str, base: &Url) -> Leads {
    let embedded = embedded(text);
    let text = without_entities(text);
    let mut leads = Leads { embedded, ..Leads::default() };
    for (before, quoted) in quoted(&text) {
        let list = match meaning(before, quoted) {
            Some(Meaning::Document) => &mut leads.documents,
            Some(Meaning::Script) => &mut leads.scripts,
            None => continue,
        };
        if let Ok(url) = base.join(quoted)
            && list.len() < LEADS_MAX
            && !list.contains(&url)
        {
            list.push(url);
        }
    }
    leads
}

enum Meaning {
    Document,
    Script,
}

/// Judges a quoted text by what stands before it.
fn meaning(before: &str, quoted: &str) -> Option<Meaning> {
    let is_an_address = !quoted.is_empty()
        && quoted.len() <= ADDRESS_BYTES_MAX
        && !quoted.contains(|c: char| c.is_whitespace() || c.is_control() || "<>{}\\^`".contains(c));
    let before = before.trim_end();
    if !is_an_address {
        return None;
    }
    // Redoc.init('openapi.json'), createApiReference('#app', …) excluded by its first argument.
    if let Some(call) = before.strip_suffix('(') {
        return call.ends_with("Redoc.init").then_some(Meaning::Document);
    }
    let name = before.strip_suffix([':', '='])?.trim_end().trim_end_matches(['"', '\'']);
    let start = name.rfind(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c)).map_or(0, |at| at + 1);
    let name: String = name
        .get(start..)?
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    let file = quoted.split(['?', '#']).next().unwrap_or(quoted).rsplit('/').next().unwrap_or(quoted);
    match name.as_str() {
        "src" if file.contains("initializer") || file.contains("swagger-ui-init") => Some(Meaning::Script),
        "src" => None,
        _ if [".js", ".css", ".png", ".svg", ".ico"].iter().any(|kind| file.ends_with(kind)) => None,
        "url" | "specurl" | "dataurl" | "configurl" | "apidescriptionurl" | "openapiurl" | "swaggerurl"
        | "swaggerjsonurl" | "definitionurl" | "apidocumenturl" => Some(Meaning::Document),
        _ => None,
    }
}

/// Every text between two quotes of a line, with what stands before it. Any quote may be the opening one, because
/// attributes hold scripts and apostrophes are quotes too; what stands before decides.
fn quoted(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().flat_map(|line| {
        line.match_indices(['"', '\'', '`']).filter_map(move |(open, quote)| {
            let length = line[open + 1..].find(quote)?;
            let before = &line[floor(line, open.saturating_sub(BEFORE_BYTES_MAX))..open];
            Some((before, &line[open + 1..open + 1 + length]))
        })
    })
}

/// The nearest boundary of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The few entities with which attributes write quotes.
fn without_entities(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

/// A description inside of a script: an object whose first member is `openapi` or `swagger`.
fn embedded(text: &str) -> Option<String> {
    let starts = ["\"openapi\"", "\"swagger\""].into_iter().flat_map(|key| text.match_indices(key));
    starts.take(LEADS_MAX).find_map(|(at, key)| {
        let is_a_member = text[at + key.len()..].trim_start().starts_with(':');
        let open = text[..at].trim_end().strip_suffix('{')?.len();
        let mut values = serde_json::Deserializer::from_str(&text[open..]).into_iter::<Box<RawValue>>();
        let object = values.next()?.ok()?;
        is_a_member.then(|| object.get().to_owned())
    })
}

#[cfg(test)]
mod tests;
