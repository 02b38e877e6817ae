//! A real query string read as `params`, for callers who write URLs.
//!
//! Every name finds its parameter: by itself, with brackets (`ids[]`, `filter[mass][gt]`), or as a member of an
//! object whose members are parameters. The values of one name are then read in the style of the parameter, the
//! reverse of how requests are written: planning the result and reading it again changes nothing. What belongs to
//! no parameter is kept as it is, so that planning refuses it by name.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use super::Api;
use crate::{
    description::{ApiDescription, Object, Operation, Parameter, Place, Schema, Shape, Style},
    escape::decode,
    json::{Json, is_number},
    limits::VALUE_DEPTH_MAX,
    problem::{PlanError, Problem},
    shown,
};

impl Api {
    /// Reads `query`, without its question mark, as `params` of the operation at `method` and `path`.
    ///
    /// # Errors
    /// [`PlanError`]: no such operation, bad percent escapes, or several values where there can be one.
    pub fn params_of(
        &self,
        method: &str,
        path: &str,
        query: &str,
    ) -> Result<BTreeMap<String, String>, PlanError> {
        let routed = self.route(method, path)?;
        let reader = QueryReader::new(&self.description, &self.description.operations[routed.operation]);
        let mut problems = Vec::new();
        let mut by_name: BTreeMap<String, (Target<'_>, Vec<&str>)> = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, raw) = pair.split_once('=').unwrap_or((pair, ""));
            match (text_of(name), text_of(raw)) {
                (Some(name), Some(_)) => {
                    let (name, target) = reader.target(&name);
                    by_name.entry(name).or_insert_with(|| (target, Vec::new())).1.push(raw);
                }
                _ => problems.push(Problem::value("the query", pair, "percent escapes of UTF-8 text")),
            }
        }
        let mut params = BTreeMap::new();
        for (name, (target, raw)) in by_name {
            match reader.value(target, &raw) {
                Some(Value::Text(text)) => {
                    params.insert(name, text);
                }
                Some(Value::Members(members)) => {
                    params
                        .extend(members.into_iter().map(|(member, text)| (format!("{name}.{member}"), text)));
                }
                None => problems.push(Problem::Twice { name: shown(&name), places: "in the query" }),
            }
        }
        if problems.is_empty() { Ok(params) } else { Err(PlanError::Problems(problems)) }
    }
}

/// The meaning of a name in a query.
#[derive(Clone, Copy)]
enum Target<'d> {
    Parameter(&'d Parameter),
    /// Of an object; written like a list that repeats its name.
    Member(&'d Schema),
    Unknown,
}

/// The result of reading the values of one name.
enum Value {
    Text(String),
    Members(Vec<(String, String)>),
}

struct QueryReader<'d> {
    description: &'d ApiDescription,
    operation: &'d Operation,
    /// Objects whose members are parameters of the query.
    exploded: Vec<(&'d Parameter, &'d Object)>,
    /// The first of them that has a member, by its name: a query has thousands of names, and an object as many members.
    members: HashMap<&'d str, (&'d Parameter, &'d Object)>,
}

impl<'d> QueryReader<'d> {
    fn new(description: &'d ApiDescription, operation: &'d Operation) -> Self {
        let mut reader = Self { description, operation, exploded: Vec::new(), members: HashMap::new() };
        let mut seen = HashSet::new();
        let is_exploded =
            |parameter: &&Parameter| parameter.place == Place::Query && parameter.style == Style::Exploded;
        for parameter in operation.parameters.iter().filter(is_exploded) {
            let Some(object) = reader.object(&parameter.schema) else { continue };
            reader.exploded.push((parameter, object));
            if seen.insert(std::ptr::from_ref(object)) {
                for property in &object.properties {
                    reader.members.entry(&property.name).or_insert((parameter, object));
                }
            }
        }
        reader
    }

    /// The name in `params`, and what it stands for.
    fn target(&self, name: &str) -> (String, Target<'d>) {
        let unbracketed = name.strip_suffix("[]").unwrap_or(name);
        if let Some(parameter) = self.parameter(name).or_else(|| self.parameter(unbracketed)) {
            return (parameter.name.clone(), Target::Parameter(parameter));
        }
        if let Some((root, members)) = bracketed(unbracketed)
            && let Some(object) = self.parameter(root).and_then(|parameter| self.object(&parameter.schema))
        {
            let dotted = format!("{root}.{}", members.join("."));
            return (dotted, self.member(object, &members).map_or(Target::Unknown, Target::Member));
        }
        if let Some((parameter, object)) = self.exploded_with(name) {
            let dotted = format!("{}.{name}", parameter.name);
            return (dotted, self.member(object, &[name]).map_or(Target::Unknown, Target::Member));
        }
        if let Some((root, member)) = name.split_once('.')
            && let Some(object) = self.parameter(root).and_then(|parameter| self.object(&parameter.schema))
        {
            let members: Vec<_> = member.split('.').collect();
            return (name.to_owned(), self.member(object, &members).map_or(Target::Unknown, Target::Member));
        }
        (name.to_owned(), Target::Unknown)
    }

    fn parameter(&self, name: &str) -> Option<&'d Parameter> {
        self.operation.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The object parameter whose members are parameters of the query, and that has `name` or takes any.
    fn exploded_with(&self, name: &str) -> Option<(&'d Parameter, &'d Object)> {
        let takes_any = |object: &Object| object.additional.is_some() && !self.operation.any_params;
        let any = || self.exploded.iter().find(|(_, object)| takes_any(object));
        self.members.get(name).or_else(any).copied()
    }

    fn shape(&self, schema: &'d Schema) -> Option<&'d Shape> {
        self.description.resolve(schema).map(|schema| &schema.shape)
    }

    /// The object that `schema` is, or the first one among its alternatives.
    fn object(&self, schema: &'d Schema) -> Option<&'d Object> {
        self.first(schema, |shape| if let Shape::Object(object) = shape { Some(object) } else { None })
    }

    /// Returns the schema of a list's items, if `schema` is a list or has one among its alternatives.
    fn items(&self, schema: &'d Schema) -> Option<&'d Schema> {
        self.first(schema, |shape| if let Shape::Array(array) = shape { Some(&array.items) } else { None })
    }

    fn first<T>(&self, schema: &'d Schema, wanted: impl Fn(&'d Shape) -> Option<T>) -> Option<T> {
        match self.shape(schema)? {
            Shape::OneOf(one_of) => {
                one_of.variants.iter().find_map(|variant| self.shape(variant).and_then(&wanted))
            }
            shape => wanted(shape),
        }
    }

    fn member(&self, object: &'d Object, path: &[&str]) -> Option<&'d Schema> {
        let (first, rest) = path.split_first()?;
        let declared = object.properties.iter().find(|property| property.name == *first);
        let schema = declared.map(|property| &property.schema).or(object.additional.as_deref())?;
        if rest.is_empty() { Some(schema) } else { self.member(self.object(schema)?, rest) }
    }

    /// Reads the value that the texts `raw`, at least one, stand for; `None` when there can be only one text.
    fn value(&self, target: Target<'d>, raw: &[&str]) -> Option<Value> {
        let (schema, style) = match target {
            Target::Parameter(parameter) => (Some(&parameter.schema), parameter.style),
            Target::Member(schema) => (Some(schema), Style::Exploded),
            Target::Unknown => (None, Style::Exploded),
        };
        let schema = schema.filter(|_| style != Style::Json);
        let is_list = |schema| matches!(self.shape(schema), Some(Shape::Array(_)));
        if let Some(items) =
            schema.filter(|schema| raw.len() > 1 || is_list(schema)).and_then(|s| self.items(s))
        {
            return self.list(items, style, raw).map(Value::Text);
        }
        let [raw] = raw else { return None };
        let text = text_of(raw)?;
        let is_object = schema.is_some_and(|schema| matches!(self.shape(schema), Some(Shape::Object(_))));
        let is_joined = matches!(style, Style::Comma | Style::Space | Style::Pipe) && !text.starts_with('{');
        if is_object && is_joined {
            let parts: Vec<_> = split(raw, style).into_iter().map(Cow::into_owned).collect();
            if parts.len().is_multiple_of(2) {
                let members = parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                return Some(Value::Members(members.collect()));
            }
        }
        Some(Value::Text(text.into_owned()))
    }

    /// JSON text of the list that `raw` stand for. A list of lists or objects is JSON already.
    fn list(&self, items: &'d Schema, style: Style, raw: &[&str]) -> Option<String> {
        let nested = matches!(self.shape(items), Some(Shape::Array(_) | Shape::Object(_)));
        let texts: Vec<Cow<'_, str>> = if nested {
            raw.iter().filter_map(|raw| text_of(raw)).collect()
        } else {
            raw.iter().flat_map(|raw| split(raw, style)).collect()
        };
        if let ([text], true) = (&texts[..], nested)
            && text.starts_with('[')
        {
            return Some(text.to_string());
        }
        let kinds = self.kinds(items);
        let items: Vec<_> = texts.iter().map(|text| kinds.item(text)).collect();
        Some(format!("[{}]", items.join(",")))
    }

    /// The kinds of a list's items; of alternatives within alternatives, none.
    fn kinds(&self, items: &'d Schema) -> ItemKinds {
        let mut kinds = ItemKinds::default();
        match self.shape(items) {
            Some(Shape::OneOf(one_of)) => {
                for variant in &one_of.variants {
                    self.add(&mut kinds, variant);
                }
            }
            _ => self.add(&mut kinds, items),
        }
        kinds
    }

    fn add(&self, kinds: &mut ItemKinds, schema: &Schema) {
        let Some(resolved) = self.description.resolve(schema) else { return };
        let may_be_null = schema.nullable || resolved.nullable;
        match resolved.shape {
            Shape::Integer(_) | Shape::Number(_) => kinds.number = true,
            Shape::Boolean => kinds.boolean = true,
            Shape::Array(_) | Shape::Object(_) => kinds.compound = true,
            _ => return,
        }
        kinds.null |= may_be_null;
    }
}

/// The kinds that a list's items may have, beside text.
#[derive(Default)]
struct ItemKinds {
    number: bool,
    boolean: bool,
    compound: bool,
    null: bool,
}

impl ItemKinds {
    /// `text` as JSON of the kind that a list holds, or as a string, which checking then refuses.
    fn item(&self, text: &str) -> String {
        let is_compound = || !text.starts_with('"') && Json::parse(text, VALUE_DEPTH_MAX).is_ok();
        let is_raw = (self.null && text == "null")
            || (self.number && is_number(text))
            || (self.boolean && matches!(text, "true" | "false"))
            || (self.compound && is_compound());
        if is_raw { text.to_owned() } else { quoted(text) }
    }
}

fn quoted(text: &str) -> String {
    Json::String(text.into()).to_text()
}

/// `f[a][b]` → `f` and `a`, `b`.
fn bracketed(name: &str) -> Option<(&str, Vec<&str>)> {
    let (root, rest) = name.strip_suffix(']')?.split_once('[')?;
    Some((root, rest.split("][").collect()))
}

/// The text of a name or value in a query, where a plus sign is a blank.
fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    if raw.contains('+') { Some(decode(&raw.replace('+', " "))?.into_owned().into()) } else { decode(raw) }
}

/// The items of one value. Commas separate as long as they are not encoded; blanks and bars always do.
fn split(raw: &str, style: Style) -> Vec<Cow<'_, str>> {
    let separate = |separator: char| {
        let text = text_of(raw).unwrap_or_default().into_owned();
        text.split(separator).map(|item| Cow::Owned(item.to_owned())).collect()
    };
    match style {
        Style::Space => separate(' '),
        Style::Pipe => separate('|'),
        _ => raw.split(',').filter_map(text_of).collect(),
    }
}
