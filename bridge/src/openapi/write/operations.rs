//! Operations under their paths, with parameters, body and answers.
//!
//! Paths that differ only in the names of their parameters are one path in OpenAPI: the first one's names are
//! used for all of them. To the service's own answers come the network's, as [`super::problems`] lists them; a
//! status that both use has both forms ([`joining`]).

mod joining;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    WriteOptions, markdown,
    names::NameAllocator,
    problems::{ANY_FAILURE, FAILURES, Failure, MEDIA_TYPE, UNAUTHORIZED},
    schemas::SchemaWriter,
};
use crate::{
    description::{
        ApiDescription, Body, BodyKind, Method, Operation, Parameter, Place, Response, RootKind, Schema,
        Shape, Status, Style,
    },
    limits::SAMPLES_BYTES_MAX,
    samples,
};

/// Writes operations.
pub(super) struct Operations<'a, 'd> {
    description: &'d ApiDescription,
    options: &'a WriteOptions,
    schemas: &'a mut SchemaWriter<'d>,
    ids: NameAllocator,
    /// Statuses whose answer is the same for several operations.
    shared: BTreeSet<u16>,
    /// Answers that stand among the components because they are too large to be said again, by name.
    large: Map<String, Value>,
    large_names: NameAllocator,
    /// Bytes that answers may still take that are said again.
    again_bytes_left: usize,
    /// Bytes that made up examples may still add to the document.
    example_bytes_left: usize,
}

/// A path as OpenAPI writes it, and its parameters' names in order.
struct WrittenPath {
    text: String,
    names: Vec<String>,
}

impl<'a, 'd> Operations<'a, 'd> {
    pub(super) fn new(
        description: &'d ApiDescription,
        options: &'a WriteOptions,
        schemas: &'a mut SchemaWriter<'d>,
    ) -> Self {
        Self {
            description,
            options,
            schemas,
            ids: NameAllocator::default(),
            shared: BTreeSet::new(),
            large: Map::new(),
            large_names: joining::names(),
            again_bytes_left: joining::AGAIN_BYTES_MAX,
            example_bytes_left: SAMPLES_BYTES_MAX,
        }
    }

    /// The path items, in the description's order.
    pub(super) fn paths(&mut self) -> Map<String, Value> {
        let mut paths: Map<String, Value> = Map::new();
        let mut by_shape: BTreeMap<String, WrittenPath> = BTreeMap::new();
        let description = self.description;
        for (index, operation) in description.operations.iter().enumerate() {
            let own = WrittenPath::of(&operation.path);
            let path =
                by_shape.entry(shape(&operation.path)).or_insert_with(|| WrittenPath::of(&operation.path));
            let renamed = |name: &str| {
                let position = own.names.iter().position(|own| own == name);
                position.and_then(|position| path.names.get(position)).map_or(name, String::as_str).to_owned()
            };
            let written = self.operation(index, operation, &renamed);
            let item = paths.entry(path.text.clone()).or_insert_with(|| json!({}));
            item[operation.method.as_str().to_ascii_lowercase()] = written;
        }
        paths
    }

    /// The answers that [`Self::paths`] referred to.
    pub(super) fn into_shared_responses(mut self) -> Map<String, Value> {
        let failures = FAILURES.iter().chain([&UNAUTHORIZED]);
        let mut shared: Vec<_> = failures.filter(|failure| self.shared.contains(&failure.status)).collect();
        shared.sort_by_key(|failure| failure.status);
        let mut response = |failure: &Failure| {
            let content = json!({ failure.media_type: { "schema": self.network(failure) } });
            json!({ "description": failure.description, "content": content })
        };
        let shared = shared.into_iter().map(|failure| (failure.name.to_owned(), response(failure)));
        let mut shared: Map<_, _> = shared.collect();
        shared.append(&mut self.large);
        shared
    }

    fn operation(&mut self, index: usize, operation: &Operation, renamed: &dyn Fn(&str) -> String) -> Value {
        let mut written = Map::new();
        written.insert("operationId".into(), self.ids.unique(&operation.id, "operation").into());
        let summary = if operation.summary.is_empty() {
            format!("{} {}", operation.method, operation.path)
        } else {
            operation.summary.clone()
        };
        written.insert("summary".into(), summary.into());
        let price = self.options.prices.get(&operation.id).or(self.options.price.as_ref());
        let text = describe(operation, price.map(String::as_str));
        if !text.is_empty() {
            written.insert("description".into(), text.into());
        }
        if let Some(price) = price {
            written.insert("x-farthing-price-usdc".into(), price.as_str().into());
        }
        let mut seen = BTreeSet::new();
        let tags: Vec<_> = operation.tags.iter().filter(|tag| seen.insert(tag.as_str())).cloned().collect();
        if !tags.is_empty() {
            written.insert("tags".into(), tags.into());
        }
        if operation.deprecated {
            written.insert("deprecated".into(), true.into());
        }
        if !operation.parameters.is_empty() {
            let parameters = operation.parameters.iter();
            let parameters = parameters.map(|parameter| self.parameter(parameter, renamed));
            written.insert("parameters".into(), parameters.collect());
        }
        // A body that nobody described is not worth showing where bodies are unusual.
        let is_usual = |body: &&Body| body.kind != BodyKind::Any || has_body(operation.method);
        if let Some(body) = operation.body.as_ref().filter(is_usual) {
            written.insert("requestBody".into(), self.body(body));
        }
        written.insert("responses".into(), self.responses(index, operation).into());
        written.into()
    }

    fn parameter(&mut self, parameter: &Parameter, renamed: &dyn Fn(&str) -> String) -> Value {
        let is_in_path = parameter.place == Place::Path;
        let name = if is_in_path { renamed(&parameter.name) } else { parameter.name.clone() };
        let mut written = Map::new();
        written.insert("name".into(), name.into());
        written.insert("in".into(), parameter.place.name().into());
        if !parameter.description.is_empty() {
            written.insert("description".into(), markdown(&parameter.description).into());
        }
        if parameter.required || is_in_path {
            written.insert("required".into(), true.into());
        }
        if parameter.deprecated {
            written.insert("deprecated".into(), true.into());
        }
        let schema = self.schemas.write(&parameter.schema);
        let example =
            parameter.example.as_ref().filter(|value| self.schemas.can_show(&parameter.schema, value));
        if parameter.style == Style::Json {
            let mut media = json!({ "schema": schema });
            if let Some(example) = example {
                media["example"] = example.clone();
            }
            written.insert("content".into(), json!({ "application/json": media }));
            return written.into();
        }
        if may_be_composite(self.description, &parameter.schema) {
            write_style(parameter.place, parameter.style, &mut written);
        }
        written.insert("schema".into(), schema);
        if let Some(example) = example {
            written.insert("example".into(), example.clone());
        }
        written.into()
    }

    fn body(&mut self, body: &Body) -> Value {
        let mut written = Map::new();
        if !body.description.is_empty() {
            written.insert("description".into(), markdown(&body.description).into());
        }
        let media = self.media(&body.schema, body.example.as_ref());
        let mut content = Map::new();
        // A form's members can come as JSON too; the owner's node makes a form of them.
        if body.kind == BodyKind::Form {
            content.insert("application/json".into(), media.clone());
        }
        let media_type = if body.media_type.is_empty() { "*/*" } else { &body.media_type };
        content.insert(media_type.into(), media);
        for also in &body.also {
            content.entry(also.as_str()).or_insert_with(|| json!({}));
        }
        written.insert("content".into(), content.into());
        if body.required {
            written.insert("required".into(), true.into());
        }
        written.into()
    }

    fn media(&mut self, schema: &Schema, example: Option<&Value>) -> Value {
        let mut media = json!({ "schema": self.schemas.write(schema) });
        if let Some(example) = example.filter(|value| self.schemas.can_show(schema, value)) {
            media["example"] = example.clone();
        }
        media
    }

    /// The service's answers and the network's, by status.
    fn responses(&mut self, index: usize, operation: &Operation) -> Map<String, Value> {
        let mut responses: BTreeMap<Status, Value> = BTreeMap::new();
        let declared: Vec<_> =
            operation.responses.iter().filter(|response| exists(response.status)).collect();
        for response in &declared {
            responses.insert(response.status, self.response(response));
        }
        if !declared.iter().any(|response| response.status.is_success() || response.status == Status::Default)
        {
            let undeclared = json!({ "description": "The service's answer, without a further description." });
            responses.insert(Status::Class(2), undeclared);
        }
        self.add_made_up_example(index, operation, &mut responses);
        let unauthorized = self.options.needs_secret.then_some(&UNAUTHORIZED);
        for failure in FAILURES.iter().chain(unauthorized) {
            let response = match self.joined_with_own(operation, failure, &mut responses) {
                Some(joined) => joined,
                None => {
                    self.shared.insert(failure.status);
                    json!({ "$ref": format!("#/components/responses/{}", failure.name) })
                }
            };
            responses.insert(Status::Code(failure.status), response);
        }
        responses.into_iter().map(|(status, response)| (status.to_string(), response)).collect()
    }

    fn response(&mut self, response: &Response) -> Value {
        let description = if response.description.is_empty() {
            reason(response.status).to_owned()
        } else {
            markdown(&response.description)
        };
        let mut written = json!({ "description": description });
        if let Some(content) = &response.content {
            let media_type = content.media_type.as_str();
            let media_type = if media_type.is_empty() { "*/*" } else { media_type };
            let media = self.media(&content.schema, content.example.as_ref());
            written["content"] = json!({ media_type: media });
            for kind in &content.also {
                written["content"][kind] = json!({});
            }
        }
        written
    }

    /// The form of the network's own answer.
    fn network(&mut self, failure: &Failure) -> Value {
        if failure.media_type == MEDIA_TYPE {
            self.schemas.problem_reference()
        } else {
            json!({ "type": "string" })
        }
    }

    /// Shows what an answer looks like where the service does not.
    fn add_made_up_example(
        &mut self,
        index: usize,
        operation: &Operation,
        responses: &mut BTreeMap<Status, Value>,
    ) {
        let Some((status, content)) = samples::shown_answer(operation) else { return };
        let Some(media) = responses
            .get_mut(&status)
            .and_then(|response| response.get_mut("content"))
            .and_then(|all| all.get_mut(&content.media_type))
        else {
            return;
        };
        if media.get("example").is_some() {
            return;
        }
        let Some(value) = samples::made_up(self.description, index, &mut self.schemas.steps) else { return };
        let bytes = value.to_string().len();
        if bytes <= self.example_bytes_left && self.schemas.can_show(&content.schema, &value) {
            self.example_bytes_left -= bytes;
            media["examples"] =
                json!({ "made-up": { "summary": "Made up from the schema", "value": value } });
        }
    }
}

impl WrittenPath {
    fn of(template: &str) -> Self {
        let names = parts(template).filter_map(|(_, name)| name.map(ToOwned::to_owned)).collect();
        // Neither character can stand in a path, and documents cannot have them in a key.
        Self { text: template.replace('?', "%3F").replace('#', "%23"), names }
    }
}

/// The template without the names of its parameters.
fn shape(template: &str) -> String {
    parts(template)
        .map(|(literal, name)| if name.is_some() { format!("{literal}{{}}") } else { literal.into() })
        .collect()
}

/// Literal texts, each with the name of the parameter that follows it.
fn parts(template: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    template.split_inclusive('}').map(|part| {
        match part.strip_suffix('}').and_then(|part| part.split_once('{')) {
            Some((literal, name)) => (literal, Some(name)),
            None => (part, None),
        }
    })
}

/// Writes what a reader of the document should know, also beyond what the service says.
fn describe(operation: &Operation, price: Option<&str>) -> String {
    let mut paragraphs = Vec::new();
    if !operation.description.is_empty() {
        paragraphs.push(markdown(&operation.description));
    }
    let has = |name: &str| operation.parameters.iter().any(|parameter| parameter.name == name);
    let fields = ["_fields", "fields"].into_iter().find(|name| has(name));
    if let (Some(root), Some(fields)) = (&operation.root, fields) {
        let kind = match root.kind {
            RootKind::Query => "query",
            RootKind::Mutation => "mutation",
        };
        paragraphs.push(format!(
            "This is the GraphQL {kind} `{}`. Without `{fields}` the answer has the members shown here; with it, \
             those that were selected, and no others.",
            root.field
        ));
    }
    if operation.any_params {
        paragraphs.push("Query parameters that are not listed here are passed on unchanged.".into());
    }
    if let Some(price) = price {
        paragraphs.push(format!("A call costs {price} USDC; a call that fails costs nothing."));
    }
    paragraphs.join("\n\n")
}

/// Tells whether a value can be an array or an object; only these are written differently from style to style.
fn may_be_composite(description: &ApiDescription, schema: &Schema) -> bool {
    let is_composite = |schema: &Schema| {
        let resolved = description.resolve(schema).map(|schema| &schema.shape);
        !matches!(resolved, Some(Shape::Boolean | Shape::Integer(_) | Shape::Number(_) | Shape::String(_)))
    };
    match description.resolve(schema).map(|schema| &schema.shape) {
        Some(Shape::OneOf(one_of)) => one_of.variants.is_empty() || one_of.variants.iter().any(is_composite),
        _ => is_composite(schema),
    }
}

fn write_style(place: Place, style: Style, written: &mut Map<String, Value>) {
    // In a path or header there is one style; the reader of a description gives it no other.
    let (name, explode) = match (place, style) {
        (Place::Query, Style::Space) => ("spaceDelimited", false),
        (Place::Query, Style::Pipe) => ("pipeDelimited", false),
        (Place::Query, Style::DeepObject) => ("deepObject", true),
        (Place::Query, Style::Exploded) => ("form", true),
        (Place::Query, _) => ("form", false),
        (_, Style::Exploded) => ("simple", true),
        (_, _) => ("simple", false),
    };
    written.insert("style".into(), name.into());
    written.insert("explode".into(), explode.into());
}

const fn has_body(method: Method) -> bool {
    matches!(method, Method::Post | Method::Put | Method::Patch)
}

const fn exists(status: Status) -> bool {
    matches!(status, Status::Code(100..=599) | Status::Class(1..=5) | Status::Default)
}

const fn reason(status: Status) -> &'static str {
    match status {
        Status::Code(200) => "OK",
        Status::Code(201) => "Created",
        Status::Code(202) => "Accepted",
        Status::Code(204) => "Done, without content",
        Status::Code(200..=299) | Status::Class(2) => "Success",
        Status::Code(300..=399) | Status::Class(3) => "Elsewhere",
        Status::Code(400) => "The request is wrong",
        Status::Code(401 | 403) => "Not allowed",
        Status::Code(404) => "There is no such thing",
        Status::Code(400..=499) | Status::Class(4) => "The request cannot be answered",
        Status::Code(500..=599) | Status::Class(5) => "The service failed",
        Status::Code(_) | Status::Class(_) => "An interim answer",
        Status::Default => "Any other answer",
    }
}
