//! Parameters of an operation: merged with those of its path, and only those that a caller can and may send.

use std::collections::{HashMap, hash_map::Entry};

use serde_json::Value;

use super::{
    DocumentReader,
    contents::TOO_MUCH,
    operations::template_names,
    refs::reference,
    values::{BYTES_PER_NODE, Members, array, bytes, cost, flag, given, is_json, kept, object, text},
};
use crate::{
    description::{Parameter, Place, Schema, Style},
    headers::header_is_forbidden,
    limits::PARAMETERS_MAX,
    media::essence,
    report::SecurityScheme,
    shown,
};

/// Headers that other parts of a description speak of.
const DESCRIBED_ELSEWHERE: &[&str] = &["accept", "content-type", "authorization"];

impl<'d> DocumentReader<'d> {
    /// The parameters of an operation; `Err` says why it cannot be offered.
    pub(super) fn parameters(
        &mut self,
        path: &str,
        of_path: &'d [Value],
        of_operation: &'d [Value],
        security: &[SecurityScheme],
    ) -> Result<Vec<Parameter>, String> {
        if template_names(path).len() > PARAMETERS_MAX {
            return Err(format!("it requires more than {PARAMETERS_MAX} parameters"));
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        for source in self.declared(of_path, of_operation)? {
            if is_injected(source, security) {
                let name = shown(&text(source, "name"));
                self.warn(&format!("the parameter `{name}` is the owner's key; the owner's node adds it"));
                continue;
            }
            parameters.extend(self.parameter(source)?);
        }
        self.fit_to_template(path, &mut parameters);
        let parameters = self.one_of_each_name(parameters)?;
        self.not_too_many(parameters)
    }

    /// Those of the path and the operation; the operation's own replace the path's of the same name and place.
    fn declared(
        &mut self,
        of_path: &'d [Value],
        of_operation: &'d [Value],
    ) -> Result<Vec<&'d Members>, String> {
        let mut declared: Vec<&'d Members> = Vec::new();
        let mut places: HashMap<(Option<&Value>, Option<&Value>), usize> = HashMap::new();
        for source in of_path.iter().chain(of_operation) {
            let source = self
                .document
                .follow(source)
                .map_err(|problem| format!("a parameter is missing: {problem}"))?;
            let Some(source) = source.as_object() else { continue };
            let place = source.get("in");
            // Parts of a Swagger body that others refer to.
            let is_of_body = || place.is_some_and(|place| place == "body" || place == "formData");
            if self.version.is_swagger() && is_of_body() {
                continue;
            }
            // Before anything else: very many operations may refer to one large parameter.
            if !self.spend_on(|| 1 + cost(source)) {
                return Err(TOO_MUCH.into());
            }
            match places.entry((source.get("name"), place)) {
                Entry::Occupied(other) => declared[*other.get()] = source,
                Entry::Vacant(free) => {
                    free.insert(declared.len());
                    declared.push(source);
                }
            }
            if declared.len() > 4 * PARAMETERS_MAX {
                return Err(format!("it has more than {PARAMETERS_MAX} parameters"));
            }
        }
        Ok(declared)
    }

    fn parameter(&mut self, source: &'d Members) -> Result<Option<Parameter>, String> {
        let (name, place) = (text(source, "name"), text(source, "in"));
        let required = flag(source, "required");
        if name.is_empty() || name.chars().any(char::is_control) || name.len() > NAME_BYTES_MAX {
            return self.undeliverable(required, "a parameter has no usable name");
        }
        let place = match place.as_str() {
            "query" => Place::Query,
            "path" => Place::Path,
            "header" => Place::Header,
            "cookie" => {
                return self.undeliverable(
                    required,
                    &format!("`{}` is a cookie, which is never sent", shown(&name)),
                );
            }
            other => {
                let what = format!(
                    "the parameter `{}` is in `{}`, which is not a valid place",
                    shown(&name),
                    shown(other)
                );
                return self.undeliverable(required, &what);
            }
        };
        if place == Place::Header && self.header_is_dropped(&name) {
            return Ok(None);
        }
        let content = object(source, "content").and_then(|content| content.iter().next());
        let is_json_text = content.is_some_and(|(kind, _)| is_json(&essence(kind)));
        let Some(style) = (if is_json_text { Some(Style::Json) } else { style(place, source) }) else {
            let what = format!(
                "`{}` has the style {}, which is not offered",
                shown(&name),
                shown(&text(source, "style"))
            );
            return self.undeliverable(required || place == Place::Path, &what);
        };
        if flag(source, "allowReserved") {
            self.warn(&format!("reserved characters of `{}` are sent encoded", shown(&name)));
        }
        if place == Place::Path && !required {
            self.report
                .repaired
                .add(&self.place, format!("`{}` is in the path, so it is required", shown(&name)));
        }
        let schema = content.map_or_else(|| source.get("schema"), |(_, content)| content.get("schema"));
        let schema = schema.map_or_else(Schema::string, |schema| self.schema(schema));
        Ok(Some(Parameter {
            place,
            style,
            required: required || place == Place::Path,
            schema,
            description: text(source, "description"),
            deprecated: flag(source, "deprecated"),
            example: self.example(source),
            name,
        }))
    }

    /// A parameter that cannot be sent: the operation cannot do without a required one.
    fn undeliverable(&mut self, required: bool, what: &str) -> Result<Option<Parameter>, String> {
        if required {
            return Err(format!("{what}, and it is required"));
        }
        self.warn(&format!("{what}; left out"));
        Ok(None)
    }

    fn header_is_dropped(&mut self, name: &str) -> bool {
        if DESCRIBED_ELSEWHERE.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            self.warn(&format!("the header {name} follows from the call and is not a parameter"));
            return true;
        }
        if header_is_forbidden(name) {
            self.warn(&format!("the header `{}` cannot be set by a caller; left out", shown(name)));
            return true;
        }
        false
    }

    /// The template's names and the path parameters become the same.
    fn fit_to_template(&mut self, path: &str, parameters: &mut Vec<Parameter>) {
        let names = template_names(path);
        let place = self.place.clone();
        let report = &mut self.report;
        parameters.retain(|parameter| {
            let stays = parameter.place != Place::Path || names.contains(&parameter.name.as_str());
            if !stays {
                let what = format!(
                    "the path has no `{}`, which is declared for it; left out",
                    shown(&parameter.name)
                );
                report.warnings.add(&place, what);
            }
            stays
        });
        for name in names {
            let is_it = |parameter: &Parameter| parameter.place == Place::Path && parameter.name == name;
            if !parameters.iter().any(is_it) {
                report.repaired.add(&place, format!("`{name}` of the path was not declared; taken as text"));
                parameters.push(Parameter {
                    name: name.to_owned(),
                    place: Place::Path,
                    required: true,
                    schema: Schema::string(),
                    ..Parameter::default()
                });
            }
        }
    }

    /// Callers name a parameter and not its place, so a name can stand for one only: path before query before
    /// header. Header names are the same in any case.
    fn one_of_each_name(&mut self, parameters: Vec<Parameter>) -> Result<Vec<Parameter>, String> {
        let rank = |place| match place {
            Place::Path => 0,
            Place::Query => 1,
            Place::Header => 2,
        };
        let key = |parameter: &Parameter| match parameter.place {
            Place::Header => parameter.name.to_ascii_lowercase(),
            Place::Path | Place::Query => parameter.name.clone(),
        };
        let mut kept: Vec<Parameter> = Vec::new();
        for parameter in parameters {
            let Some(rival) = kept.iter_mut().find(|rival| key(rival) == key(&parameter)) else {
                kept.push(parameter);
                continue;
            };
            let (winner, loser) = if rank(parameter.place) < rank(rival.place) {
                let loser = std::mem::replace(rival, parameter);
                (rival.name.clone(), loser)
            } else {
                (rival.name.clone(), parameter)
            };
            let what = format!("`{}` is declared in several places", shown(&winner));
            self.undeliverable(loser.required, &what)?;
        }
        Ok(kept)
    }

    fn not_too_many(&mut self, mut parameters: Vec<Parameter>) -> Result<Vec<Parameter>, String> {
        let excess = parameters.len().saturating_sub(PARAMETERS_MAX);
        if excess > 0 {
            let mut left = excess;
            // The last optional ones go.
            let mut keep: Vec<bool> = parameters
                .iter()
                .rev()
                .map(|parameter| {
                    let goes = left > 0 && !parameter.required;
                    left -= usize::from(goes);
                    !goes
                })
                .collect();
            if left > 0 {
                return Err(format!("it requires more than {PARAMETERS_MAX} parameters"));
            }
            parameters.retain(|_| keep.pop().unwrap_or(true));
            self.warn(&format!(
                "the last {excess} optional parameters are left out; there may be {PARAMETERS_MAX}"
            ));
        }
        Ok(parameters)
    }

    /// The first example of a parameter or of a body.
    pub(super) fn example(&mut self, source: &'d Members) -> Option<Value> {
        let own = given(source, "example");
        own.or_else(|| self.named_example(source)).or_else(|| given(source, "x-example"))
    }

    fn named_example(&mut self, source: &'d Members) -> Option<Value> {
        let first = match source.get("examples")? {
            Value::Object(examples) => examples.values().next()?,
            _ => return array(source, "examples").iter().find_map(kept),
        };
        let meant = self.document.follow(first).ok()?.as_object()?;
        // What is referred to is not among the source's own texts, and very many may refer to it.
        let is_shared = reference(first).is_some();
        if is_shared && !self.spend_on(|| meant.get("value").map_or(0, bytes) / BYTES_PER_NODE) {
            return None;
        }
        given(meant, "value")
    }
}

const NAME_BYTES_MAX: usize = 128;

/// `None` for a style that is not offered.
fn style(place: Place, source: &Members) -> Option<Style> {
    let style = text(source, "style");
    let explode = source.get("explode").and_then(Value::as_bool);
    let if_exploded = |explode, otherwise| if explode { Style::Exploded } else { otherwise };
    match (place, style.as_str()) {
        (Place::Query, "" | "form") => Some(if_exploded(explode.unwrap_or(true), Style::Comma)),
        (Place::Query, "spaceDelimited") => Some(if_exploded(explode.unwrap_or(false), Style::Space)),
        (Place::Query, "pipeDelimited") => Some(if_exploded(explode.unwrap_or(false), Style::Pipe)),
        (Place::Query, "deepObject") => Some(Style::DeepObject),
        (Place::Path | Place::Header, "" | "simple") => {
            Some(if_exploded(explode.unwrap_or(false), Style::Comma))
        }
        _ => None,
    }
}

/// Tells whether the owner's node adds the parameter: a caller who could set it could replace the owner's key.
fn is_injected(source: &Members, security: &[SecurityScheme]) -> bool {
    let (name, place) = (text(source, "name"), text(source, "in"));
    security.iter().any(|scheme| match scheme {
        SecurityScheme::ApiKeyHeader(key) => place == "header" && name.eq_ignore_ascii_case(key),
        SecurityScheme::ApiKeyQuery(key) => place == "query" && name == *key,
        _ => false,
    })
}
