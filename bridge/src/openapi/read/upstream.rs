//! The owner's server, as the document describes it: its addresses and how it wants to be authenticated.

use serde_json::Value;

use super::{
    DocumentReader,
    values::{Members, array, object, scalar, text},
};
use crate::{report::SecurityScheme, shown};

/// Addresses that are listed.
const SERVERS_MAX: usize = 20;
/// An address with its variables filled in: each may say one long value many times.
const SERVER_BYTES_MAX: usize = 2 * 1024;
/// Security schemes that are looked at: every parameter is held against each of them.
const SCHEMES_MAX: usize = 20;

impl DocumentReader<'_> {
    /// Base addresses with their variables filled in, absolute or relative.
    pub(super) fn servers(&mut self) -> Vec<String> {
        let mut servers = Vec::new();
        let sources = self.document.root.as_object().map_or(&[][..], |root| array(root, "servers"));
        for source in sources.iter().take(SERVERS_MAX) {
            let Some(url) = source.get("url").and_then(Value::as_str) else { continue };
            match filled(url.trim(), source.get("variables")) {
                Ok(url) if url.is_empty() || servers.contains(&url) => {}
                Ok(url) => servers.push(url),
                Err(problem) => {
                    let what = format!("the server {} {problem}; left out", shown(url));
                    self.report.warnings.add("servers", what);
                }
            }
        }
        servers
    }

    pub(super) fn security(&mut self) -> Vec<SecurityScheme> {
        let components = self.document.root.get("components").and_then(Value::as_object);
        let sources = components.and_then(|components| object(components, "securitySchemes"));
        let mut schemes = Vec::new();
        let further = sources.map_or(0, Members::len).saturating_sub(SCHEMES_MAX);
        if further > 0 {
            let what = format!("there may be {SCHEMES_MAX}; the last {further} are left out");
            self.report.warnings.add("security schemes", what);
        }
        for (name, source) in sources.into_iter().flatten().take(SCHEMES_MAX) {
            let place = format!("security scheme {name}");
            let source = match self.document.follow(source) {
                Ok(source) => source,
                Err(problem) => {
                    self.report.warnings.add(place, problem.to_string());
                    continue;
                }
            };
            match scheme(source) {
                Some(scheme) if !schemes.contains(&scheme) => schemes.push(scheme),
                Some(_) => {}
                None => self.report.warnings.add(place, "its kind is not known; left out"),
            }
        }
        schemes
    }
}

fn scheme(source: &Value) -> Option<SecurityScheme> {
    let source = source.as_object()?;
    let name = text(source, "name");
    Some(match (text(source, "type").as_str(), text(source, "in").as_str()) {
        ("apiKey", _) if name.is_empty() => return None,
        ("apiKey", "header") => SecurityScheme::ApiKeyHeader(name),
        ("apiKey", "query") => SecurityScheme::ApiKeyQuery(name),
        ("apiKey", "cookie") => SecurityScheme::ApiKeyCookie(name),
        ("http", _) => match text(source, "scheme").to_ascii_lowercase().as_str() {
            "basic" => SecurityScheme::Basic,
            "bearer" => SecurityScheme::Bearer,
            "" => return None,
            other => SecurityScheme::Other(format!("HTTP {other}")),
        },
        ("basic", _) => SecurityScheme::Basic,
        ("oauth2", _) => SecurityScheme::Other("OAuth 2".into()),
        ("openIdConnect", _) => SecurityScheme::Other("OpenID Connect".into()),
        ("mutualTLS", _) => SecurityScheme::Other("mutual TLS".into()),
        _ => return None,
    })
}

/// `url` with the default of each `{variable}`, or its first choice; otherwise what is wrong with it.
fn filled(url: &str, variables: Option<&Value>) -> Result<String, String> {
    let mut text = String::new();
    let mut add = |part: &str| {
        text += part;
        if text.len() <= SERVER_BYTES_MAX { Ok(()) } else { Err("is too long".to_owned()) }
    };
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else { break };
        let variable = variables.and_then(|variables| variables.get(name)).and_then(Value::as_object);
        let default = variable.and_then(|variable| scalar(variable.get("default")?));
        let first = || variable.and_then(|variable| scalar(array(variable, "enum").first()?));
        add(before)?;
        add(&default.or_else(first).ok_or_else(|| format!("leaves `{}` open", shown(name)))?)?;
        rest = tail;
    }
    add(rest)?;
    Ok(text)
}
