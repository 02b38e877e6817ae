//! An introspection result in: what a running server says of itself becomes the same compiled schema as its SDL.
//!
//! The JSON is taken as far as it makes sense — servers leave parts out — into a draft, which [`super::judge`]
//! compiles. Default values are SDL inside the JSON and go through the SDL reader.

mod query;
mod raw;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, rc::Rc};

use super::{
    draft::{
        DraftArgument, DraftBody, DraftDefinition, DraftField, DraftInputs, Fields, Head, Named, Reference,
        Roots, SchemaDraft, Wrap,
    },
    judge,
    reading::SchemaReading,
    schema::LIST_DEPTH_MAX,
    sdl,
};
use crate::{
    limits::{DOCUMENT_BYTES_MAX, GRAPHQL_NAME_BYTES_MAX, TYPES_MAX},
    report::{ReadError, Report},
};

pub use query::{QUERY, QUERY_RICH};

const FORMAT: &str = "GraphQL introspection";

/// Reads `{"data":{"__schema":…}}`, `{"__schema":…}`, or the `{"data":{"_service":{"sdl":…}}}` of a subgraph.
///
/// # Errors
///
/// When it is none of these, or the schema in it cannot be used: why.
pub fn read(json: &[u8]) -> Result<SchemaReading, ReadError> {
    if json.len() > DOCUMENT_BYTES_MAX {
        let what =
            format!("the result has {} bytes, {DOCUMENT_BYTES_MAX} are the most that is read", json.len());
        return Err(ReadError::new(FORMAT, what));
    }
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    let answer: raw::RawAnswer = serde_json::from_slice(json).map_err(|error| not_an_answer(&error))?;
    let data = answer.data.unwrap_or_default();
    if let Some(schema) = answer.schema.or(data.schema) {
        let mut report = Report { format: FORMAT.into(), ..Report::default() };
        let draft = draft(schema, &mut report)?;
        return judge::compile(draft, report, FORMAT);
    }
    if let Some(sdl) = data.service.and_then(|service| service.sdl) {
        return sdl::read(sdl.as_bytes());
    }
    Err(ReadError::new(FORMAT, explain(answer.errors.as_deref().unwrap_or_default())))
}

fn not_an_answer(error: &serde_json::Error) -> ReadError {
    let what = match error.classify() {
        serde_json::error::Category::Data => "this is not an introspection result",
        _ => "this is not JSON",
    };
    ReadError::of_json(FORMAT, what, error)
}

fn explain(errors: &[raw::RawError]) -> String {
    match errors.iter().find_map(|error| error.message.as_deref()) {
        Some(message) => {
            let message: String = message.chars().filter(|c| !c.is_control()).take(200).collect();
            format!(
                "the server answered with an error: {message}. If introspection is switched off, use the SDL file \
                 instead"
            )
        }
        None => "there is no `__schema` in it; use the unchanged answer to the introspection query".into(),
    }
}

fn draft(schema: raw::RawSchema, report: &mut Report) -> Result<SchemaDraft, ReadError> {
    let types = schema.types.unwrap_or_default();
    if types.len() > TYPES_MAX {
        let what = format!("the schema has {} types, {TYPES_MAX} are the most that is read", types.len());
        return Err(ReadError::new(FORMAT, what));
    }
    // By object, each interface once: one may name an object very often.
    let mut possible: HashMap<String, Vec<Rc<str>>> = HashMap::new();
    let mut draft = SchemaDraft::default();
    for mut ty in types {
        // A longer name is left out later, and should not be copied for each of its objects before.
        let name = ty.name.as_deref().filter(|name| name.len() <= GRAPHQL_NAME_BYTES_MAX);
        if let (Some("INTERFACE"), Some(name)) = (ty.kind.as_deref(), name) {
            let interface: Rc<str> = name.into();
            for object in ty.possible_types.take().into_iter().flatten().filter_map(|object| object.name) {
                let interfaces = possible.entry(object).or_default();
                if !interfaces.last().is_some_and(|last| Rc::ptr_eq(last, &interface)) {
                    interfaces.push(interface.clone());
                }
            }
        }
        draft.types.extend(Converter { report: &mut *report }.definition(ty)?);
    }
    implement(&mut draft.types, possible);
    let named = |root: Option<raw::Root>| root?.name.map(|name| Named { name, at: None });
    draft.roots = Roots {
        is_complete: true,
        query: named(schema.query_type),
        mutation: named(schema.mutation_type),
        subscription: named(schema.subscription_type),
    };
    Ok(draft)
}

/// Interfaces name their objects, and objects their interfaces; some servers say only the former.
fn implement(types: &mut [DraftDefinition], mut interfaces: HashMap<String, Vec<Rc<str>>>) {
    for ty in types {
        if let (DraftBody::Object(object), Some(names)) = (&mut ty.body, interfaces.remove(&ty.head.name)) {
            // Those named on both sides are told apart when duplicates go.
            object.implements.extend(names.iter().map(|name| Named { name: name.to_string(), at: None }));
        }
    }
}

struct Converter<'a> {
    report: &'a mut Report,
}

impl Converter<'_> {
    /// `None` for what is no type.
    fn definition(&mut self, ty: raw::RawType) -> Result<Option<DraftDefinition>, ReadError> {
        let Some(name) = ty.name else {
            self.report.skipped.add("a type", "has no name");
            return Ok(None);
        };
        // Introspection's own types are the same everywhere.
        if name.starts_with("__") {
            return Ok(None);
        }
        let interfaces = || ty.interfaces.iter().flatten();
        // Findings show no more of it, and it begins the place of every field.
        let owner = crate::shown(&name);
        let body = match ty.kind.as_deref().unwrap_or_default() {
            "SCALAR" => DraftBody::Scalar,
            "OBJECT" => DraftBody::Object(self.fields(&owner, ty.fields, names(interfaces()))?),
            "INTERFACE" => DraftBody::Interface(self.fields(&owner, ty.fields, names(interfaces()))?),
            "UNION" => DraftBody::Union(names(ty.possible_types.iter().flatten())),
            "ENUM" => {
                DraftBody::Enum(ty.enum_values.into_iter().flatten().map(raw::RawMember::head).collect())
            }
            "INPUT_OBJECT" => DraftBody::Input(DraftInputs {
                fields: self.arguments(&owner, ty.input_fields)?,
                one_of: ty.is_one_of.unwrap_or_default(),
            }),
            other => {
                let place = format!("type {owner}");
                self.report.skipped.add(place, format!("its kind `{}` is unknown", crate::shown(other)));
                return Ok(None);
            }
        };
        let mut description = ty.description.unwrap_or_default();
        if let Some(url) = ty.specified_by_url {
            description = format!("{description}\n\nSpecified by {url}").trim().to_owned();
        }
        Ok(Some(DraftDefinition {
            head: Head { name, description, ..Head::default() },
            extends: false,
            body,
        }))
    }

    fn fields(
        &mut self,
        owner: &str,
        fields: Option<Vec<raw::RawMember>>,
        implements: Vec<Named>,
    ) -> Result<Fields, ReadError> {
        let mut converted = Vec::new();
        for mut field in fields.unwrap_or_default() {
            let place = field.place(owner);
            converted.push(DraftField {
                args: self.arguments(&place, field.args.take())?,
                ty: reference(&place, field.ty.take())?,
                head: field.head(),
            });
        }
        Ok(Fields { fields: converted, implements })
    }

    fn arguments(
        &mut self,
        owner: &str,
        args: Option<Vec<raw::RawMember>>,
    ) -> Result<Vec<DraftArgument>, ReadError> {
        let mut converted = Vec::new();
        for mut argument in args.unwrap_or_default() {
            let place = argument.place(owner);
            converted.push(DraftArgument {
                ty: reference(&place, argument.ty.take())?,
                default: argument.default_value.take().and_then(|text| self.default(&place, text)),
                head: argument.head(),
            });
        }
        Ok(converted)
    }

    /// A default is SDL; what is not SDL is still a default, and shown as it is.
    fn default(&mut self, place: &str, text: String) -> Option<serde_json::Value> {
        match sdl::value(&text) {
            Some(value) => Some(value).filter(|value| !value.is_null()),
            None => {
                let what = format!(
                    "its default `{}` is not written as GraphQL; it is shown as text",
                    crate::shown(&text)
                );
                self.report.warnings.add(crate::shown(place), what);
                Some(serde_json::Value::String(text))
            }
        }
    }
}

impl raw::RawMember {
    /// Returns where it is, to be shown.
    fn place(&self, owner: &str) -> String {
        format!("{owner}.{}", crate::shown(self.name.as_deref().unwrap_or_default()))
    }

    fn head(self) -> Head {
        // Servers that leave `isDeprecated` out still give the reason.
        let is_deprecated = self.is_deprecated.unwrap_or(self.deprecation_reason.is_some());
        let reason = self.deprecation_reason.unwrap_or_else(|| sdl::NO_REASON.into());
        Head {
            name: self.name.unwrap_or_default(),
            description: self.description.unwrap_or_default(),
            deprecated: is_deprecated.then_some(reason),
            ..Head::default()
        }
    }
}

fn names<'a>(types: impl Iterator<Item = &'a raw::RawTypeRef>) -> Vec<Named> {
    types.filter_map(|ty| ty.name.clone()).map(|name| Named { name, at: None }).collect()
}

fn reference(place: &str, ty: Option<raw::RawTypeRef>) -> Result<Reference, ReadError> {
    let problem = |what: &str| ReadError::new(FORMAT, format!("{}: {what}", crate::shown(place)));
    let mut inner = ty.ok_or_else(|| problem("it has no type"))?;
    let mut wraps = Vec::new();
    let name = loop {
        match inner.kind.as_deref() {
            Some("LIST") => wraps.push(Wrap::List),
            Some("NON_NULL") if wraps.last() == Some(&Wrap::NonNull) => {
                return Err(problem("a non-null type is inside another one"));
            }
            Some("NON_NULL") => wraps.push(Wrap::NonNull),
            _ => break inner.name.ok_or_else(|| problem("its type has no name"))?,
        }
        if wraps.len() > 2 * LIST_DEPTH_MAX + 1 {
            return Err(problem("lists are nested too deeply"));
        }
        inner = *inner.of_type.ok_or_else(|| {
            problem("its type is cut off; ask for more levels of `ofType` in the introspection query")
        })?;
    };
    wraps.reverse();
    Ok(Reference { name, at: None, wraps })
}

/// Returns whether bytes may be an introspection result; cheap, looks only at their beginning.
pub fn looks_like_introspection(bytes: &[u8]) -> bool {
    /// Servers put little before the schema: errors, timings.
    const LOOKED_AT: usize = 4 * 1024;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = String::from_utf8_lossy(bytes.get(..LOOKED_AT).unwrap_or(bytes));
    head.trim_start().starts_with('{')
        && ["\"__schema\"", "\"_service\""].iter().any(|member| head.contains(member))
}
