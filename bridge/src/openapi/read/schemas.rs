//! JSON Schema as OpenAPI uses it, to [`Schema`].
//!
//! 1. A reference becomes [`Shape::Ref`]; what it means is read later from a queue ([`DocumentReader::named_schemas`]),
//!    so cycles need no care. Only schemas that something refers to are read.
//! 2. A schema's own keywords become a shape ([`super::shapes`]).
//! 3. `allOf`, `oneOf` and `anyOf` are merged into it ([`super::merging`]).
//! 4. Titles, descriptions, defaults and examples are put on top.
//!
//! Schemas that are nested deeply get a name of their own, so that a description stays flat. Their number is
//! bounded; what lies beyond is taken as any JSON, with a warning.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    DocumentReader,
    refs::{name_of, reference},
    values::{Members, array, cost, flag, given, kept, text},
};
use crate::{
    description::{Discriminator, NamedSchema, OneOf, Schema, SchemaId, Shape},
    limits::{REFERENCES_MAX, SCHEMA_NODES_MAX, SCHEMAS_MAX},
    names::TakenNames,
};

/// Schemas within schemas; the next one gets a name. Each takes five brackets of a packed description.
const LEVELS_MAX: usize = 14;

/// Calls within calls while `allOf` is merged, which a worker's stack survives.
const DEPTH_MAX: usize = 100;

/// Named schemas, and how much has been read.
#[derive(Debug)]
pub(super) struct SchemaReader<'d> {
    /// By the place of their source in memory: one value may be referred to in several spellings.
    ids: HashMap<*const Value, SchemaId>,
    /// By id.
    sources: Vec<(&'d Value, String)>,
    names: TakenNames,
    /// Those that a merge has replaced by what they mean, outermost first.
    pub(super) opening: Vec<SchemaId>,
    level: usize,
    depth: usize,
    nodes_left: usize,
}

impl Default for SchemaReader<'_> {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            sources: Vec::new(),
            names: TakenNames::default(),
            opening: Vec::new(),
            level: 0,
            depth: 0,
            nodes_left: SCHEMA_NODES_MAX,
        }
    }
}

impl<'d> DocumentReader<'d> {
    /// Reads the schemas that have been referred to, and those that they refer to.
    pub(super) fn named_schemas(&mut self) -> Vec<NamedSchema> {
        let mut schemas: Vec<NamedSchema> = Vec::new();
        while let Some((source, name)) = self.schemas.sources.get(schemas.len()).cloned() {
            self.place = format!("schema {name}");
            let schema = self.schema(source);
            schemas.push(NamedSchema { name, schema });
        }
        for i in 0..schemas.len() {
            if leads_nowhere(&schemas, i) {
                let place = format!("schema {}", schemas[i].name);
                self.report.warnings.add(place, "it only refers to itself; taken as any JSON");
                schemas[i].schema.shape = Shape::Any;
            }
        }
        schemas
    }

    /// Reads a schema; references stay references.
    pub(super) fn schema(&mut self, source: &'d Value) -> Schema {
        if !self.enter() {
            return Schema::default();
        }
        let schema = match source {
            Value::Object(members) if self.spend_on(|| cost(members)) => self.schema_of(source, members),
            _ => Schema::default(),
        };
        self.leave();
        schema
    }

    /// Reads a schema within another; one that lies too deep gets a name.
    pub(super) fn inner(&mut self, source: &'d Value) -> Schema {
        self.below(|reader| {
            if reader.schemas.level < LEVELS_MAX || !source.is_object() || reference(source).is_some() {
                return reader.schema(source);
            }
            match reader.named(source, "Inner") {
                Some(id) => Schema::reference(id),
                None => Schema::default(),
            }
        })
    }

    /// Does `work` one level below.
    pub(super) fn below(&mut self, work: impl FnOnce(&mut Self) -> Schema) -> Schema {
        self.schemas.level += 1;
        let schema = work(self);
        self.schemas.level -= 1;
        schema
    }

    /// Counts one schema, and one call; whether it may be read.
    pub(super) fn enter(&mut self) -> bool {
        if self.schemas.depth >= DEPTH_MAX {
            self.warn("`allOf` is nested too deeply; the parts below it are taken as any JSON");
            return false;
        }
        if !self.spend(1) {
            return false;
        }
        self.schemas.depth += 1;
        true
    }

    /// Counts schemas; whether there may be so many.
    pub(super) fn spend(&mut self, nodes: usize) -> bool {
        let left = self.schemas.nodes_left.checked_sub(nodes);
        if left.is_none() {
            self.warn_once("the schemas are too many, or merge into too many; the rest is taken as any JSON");
        }
        self.schemas.nodes_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Counts what takes work to count: not when nothing is left, for very many may refer to one large part.
    pub(super) fn spend_on(&mut self, nodes: impl FnOnce() -> usize) -> bool {
        let is_spent = self.schemas.nodes_left == 0;
        self.spend(if is_spent { 1 } else { nodes() })
    }

    pub(super) fn leave(&mut self) {
        self.schemas.depth -= 1;
    }

    fn schema_of(&mut self, source: &'d Value, members: &'d Members) -> Schema {
        let referred = reference(source).map(|reference| self.referring(reference));
        // Before 3.1 what stands beside a reference means nothing, save for what people write there anyway.
        let own_counts = referred.is_none() || self.version.has_siblings();
        let mut schema = if own_counts { self.own_shape(members) } else { Schema::default() };
        if let Some(referred) = referred {
            schema = self.both(schema, referred);
        }
        if own_counts {
            for part in array(members, "allOf") {
                let part = self.schema(part);
                schema = self.both(schema, part);
            }
            for keyword in ["oneOf", "anyOf"] {
                let alternatives = self.alternatives(array(members, keyword), members);
                schema = self.both(schema, alternatives);
            }
        }
        schema.nullable |= says_nullable(members);
        annotate(&mut schema, members);
        schema
    }

    fn referring(&mut self, reference: &str) -> Schema {
        let source = match self.document.target(reference) {
            Ok(source) => source,
            Err(problem) => {
                self.warn(&format!("{problem}; taken as any JSON"));
                return Schema::default();
            }
        };
        self.named(source, reference).map_or_else(Schema::default, Schema::reference)
    }

    /// The id of a schema that gets a name of its own; `None` when there are too many.
    fn named(&mut self, source: &'d Value, reference: &str) -> Option<SchemaId> {
        let key = std::ptr::from_ref(source);
        let schemas = &mut self.schemas;
        if let Some(id) = schemas.ids.get(&key) {
            return Some(*id);
        }
        let Some(id) =
            u32::try_from(schemas.sources.len()).ok().filter(|_| schemas.sources.len() < SCHEMAS_MAX)
        else {
            self.warn_once("the named schemas are too many; the rest is taken as any JSON");
            return None;
        };
        let name = schemas.names.unique(&name_of(reference), "");
        schemas.ids.insert(key, SchemaId(id));
        schemas.sources.push((source, name));
        Some(SchemaId(id))
    }

    /// Reads the meaning of a named schema where it is used; `None` within itself.
    pub(super) fn opened(&mut self, schema: Schema) -> Option<Schema> {
        let mut schema = schema;
        for _ in 0..REFERENCES_MAX {
            let Shape::Ref(id) = schema.shape else { return Some(schema) };
            if self.schemas.opening.contains(&id) {
                return None;
            }
            let (source, _) = self.schemas.sources.get(usize::try_from(id.0).ok()?)?;
            self.schemas.opening.push(id);
            let meant = self.schema(source);
            self.schemas.opening.pop();
            schema = Schema { nullable: schema.nullable || meant.nullable, ..meant };
        }
        None
    }

    /// `oneOf` or `anyOf`: a variant that is only `null` makes the rest nullable.
    fn alternatives(&mut self, sources: &'d [Value], members: &'d Members) -> Schema {
        // Variants that only choose among required members say nothing that is checked here.
        if sources.iter().all(only_requires) {
            return Schema::default();
        }
        let mut nullable = false;
        let mut variants = Vec::new();
        for source in sources {
            if is_null(source) {
                nullable = true;
            } else {
                variants.push(self.inner(source));
            }
        }
        let schema = match variants.len() {
            0 => Schema::default(),
            1 => variants.remove(0),
            _ => {
                let discriminator = self.discriminator(members, &variants);
                Schema::of(Shape::OneOf(OneOf { variants, discriminator }))
            }
        };
        Schema { nullable: schema.nullable || nullable, ..schema }
    }

    fn discriminator(&self, members: &Members, variants: &[Schema]) -> Option<Discriminator> {
        let source = members.get("discriminator")?.as_object()?;
        let property = Some(text(source, "propertyName")).filter(|name| !name.is_empty())?;
        let mut places: HashMap<SchemaId, u32> = HashMap::new();
        for (place, variant) in (0..).zip(variants) {
            if let Shape::Ref(id) = variant.shape {
                places.entry(id).or_insert(place);
            }
        }
        let explicit = source.get("mapping").and_then(Value::as_object).into_iter().flatten();
        let place = |meant: &Value| places.get(&self.known_schema(meant.as_str()?)?).copied();
        let mut mapping: Vec<(String, u32)> =
            explicit.filter_map(|(value, meant)| Some((value.clone(), place(meant)?))).collect();
        let mut values: HashSet<String> = mapping.iter().map(|(value, _)| value.clone()).collect();
        let mapped: HashSet<u32> = mapping.iter().map(|(_, place)| *place).collect();
        // A variant that is not mapped goes by its own name.
        for (place, variant) in (0..).zip(variants) {
            let Shape::Ref(id) = variant.shape else { continue };
            let Some((_, name)) = self.schemas.sources.get(id.0 as usize) else { continue };
            let is_first = places.get(&id) == Some(&place);
            if is_first && !mapped.contains(&place) && values.insert(name.clone()) {
                mapping.push((name.clone(), place));
            }
        }
        Some(Discriminator { property, mapping })
    }

    /// The schema that a mapping means, by reference or by name.
    fn known_schema(&self, meant: &str) -> Option<SchemaId> {
        let by_name = || self.document.target(&format!("#/components/schemas/{meant}"));
        let source = self.document.target(meant).or_else(|_| by_name()).ok()?;
        self.schemas.ids.get(&std::ptr::from_ref(source)).copied()
    }
}

fn says_nullable(members: &Members) -> bool {
    let kind = members.get("type");
    let has_null_type =
        || kind.is_some_and(|kind| kind == "null") || array(members, "type").contains(&"null".into());
    flag(members, "nullable") || flag(members, "x-nullable") || has_null_type()
}

/// Tells whether only `null` fits.
pub(super) fn is_null(source: &Value) -> bool {
    let only_null =
        |values: &Value| values.as_array().is_some_and(|list| list.len() == 1 && list[0].is_null());
    source.get("type").is_some_and(|kind| kind == "null" || *kind == serde_json::json!(["null"]))
        || source.get("const").is_some_and(Value::is_null)
        || source.get("enum").is_some_and(only_null)
}

fn only_requires(source: &Value) -> bool {
    const SILENT: &[&str] = &["required", "not", "title", "description"];
    source.as_object().is_some_and(|members| members.keys().all(|key| SILENT.contains(&key.as_str())))
}

fn annotate(schema: &mut Schema, members: &Members) {
    let set = |field: &mut String, key| {
        let text = text(members, key);
        if !text.is_empty() {
            *field = text;
        }
    };
    set(&mut schema.title, "title");
    set(&mut schema.description, "description");
    schema.deprecated |= flag(members, "deprecated") || flag(members, "x-deprecated");
    if let Some(default) = given(members, "default") {
        schema.default = Some(default);
    }
    let examples = || array(members, "examples").iter().find_map(kept);
    let example = given(members, "example").or_else(examples).or_else(|| given(members, "x-example"));
    if example.is_some() {
        schema.example = example;
    }
}

/// Tells whether a schema is a chain of references that never ends, or only after very many.
fn leads_nowhere(schemas: &[NamedSchema], from: usize) -> bool {
    let mut at = from;
    for _ in 0..REFERENCES_MAX {
        match schemas.get(at).map(|named| &named.schema.shape) {
            Some(Shape::Ref(id)) => at = id.0 as usize,
            _ => return false,
        }
    }
    true
}

impl DocumentReader<'_> {
    /// A warning at the present place.
    pub(super) fn warn(&mut self, what: &str) {
        self.report.warnings.add(&self.place, what);
    }

    /// A warning that is true of the whole document and told once.
    fn warn_once(&mut self, what: &str) {
        let told = self.report.warnings.list.iter().any(|finding| finding.what == what);
        if !told {
            self.report.warnings.add(&self.place, what);
        }
    }
}
