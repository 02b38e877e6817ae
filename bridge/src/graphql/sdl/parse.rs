//! One repaired definition through the parser into the draft.

use async_graphql_parser::{
    Error, Pos, Positioned,
    types::{
        BaseType, ConstDirective, FieldDefinition, InputValueDefinition, SchemaDefinition, Type,
        TypeDefinition, TypeKind, TypeSystemDefinition,
    },
};
use async_graphql_value::{ConstValue, Name};
use serde_json::Value as Json;

use super::{
    position::Anchors,
    repair::{Repaired, unescape},
};
use crate::graphql::{
    draft::{
        At, DraftArgument, DraftBody, DraftDefinition, DraftField, DraftInputs, Fields, Head, Named,
        Reference, SchemaDraft, Wrap,
    },
    schema::LIST_DEPTH_MAX,
};

/// The reason of a deprecation without one (the directive's default).
pub(in crate::graphql) const NO_REASON: &str = "No longer supported";

/// A mistake in a definition, and its place in the owner's text.
#[derive(Debug)]
pub(super) struct Mistake {
    pub at: (u64, u64),
    pub what: String,
}

/// Parses a definition and adds it to the draft.
pub(super) fn parse(repaired: &Repaired<'_>, extends: bool, draft: &mut SchemaDraft) -> Result<(), Mistake> {
    // What remains of an empty `schema {}`.
    if repaired.text.trim_end() == "extend schema" {
        return Ok(());
    }
    let reader = SdlReader { anchors: &repaired.anchors };
    let document = async_graphql_parser::parse_schema(&repaired.text)
        .map_err(|error| reader.mistake(&error, &repaired.text))?;
    for definition in document.definitions {
        match definition {
            TypeSystemDefinition::Schema(schema) => reader.schema(schema.node, extends, draft),
            TypeSystemDefinition::Type(ty) => draft.types.push(reader.definition(ty.node, extends)?),
            TypeSystemDefinition::Directive(_) => {}
        }
    }
    Ok(())
}

struct SdlReader<'a> {
    anchors: &'a Anchors,
}

impl SdlReader<'_> {
    fn at(&self, pos: Pos) -> (u64, u64) {
        self.anchors.source((wide(pos.line), wide(pos.column)))
    }

    fn some_at(&self, pos: Pos) -> At {
        Some(self.at(pos))
    }

    fn named(&self, name: &Positioned<Name>) -> Named {
        Named { at: self.some_at(name.pos), name: text(&name.node) }
    }

    fn schema(&self, schema: SchemaDefinition, extends: bool, draft: &mut SchemaDraft) {
        let roots = &mut draft.roots;
        let names_any = schema.query.is_some() || schema.mutation.is_some() || schema.subscription.is_some();
        roots.is_complete |= !extends && names_any;
        for (root, name) in [
            (&mut roots.query, schema.query),
            (&mut roots.mutation, schema.mutation),
            (&mut roots.subscription, schema.subscription),
        ] {
            // An extension adds, it does not replace.
            *root = root.take().or_else(|| name.map(|name| self.named(&name)));
        }
    }

    fn definition(&self, ty: TypeDefinition, extends: bool) -> Result<DraftDefinition, Mistake> {
        let one_of = has(&ty.directives, "oneOf");
        let mut head = self.head(&ty.name, ty.description, &ty.directives);
        if let Some(Json::String(url)) = argument(&ty.directives, "specifiedBy", "url") {
            head.description = format!("{}\n\nSpecified by {url}", head.description).trim().to_owned();
        }
        let body = match ty.kind {
            TypeKind::Scalar => DraftBody::Scalar,
            TypeKind::Object(object) => DraftBody::Object(self.fields(object.fields, object.implements)?),
            TypeKind::Interface(interface) => {
                DraftBody::Interface(self.fields(interface.fields, interface.implements)?)
            }
            TypeKind::Union(union) => {
                DraftBody::Union(union.members.into_iter().map(|member| self.named(&member)).collect())
            }
            TypeKind::Enum(values) => DraftBody::Enum(
                values
                    .values
                    .into_iter()
                    .map(|value| self.head(&value.node.value, value.node.description, &value.node.directives))
                    .collect(),
            ),
            TypeKind::InputObject(input) => {
                DraftBody::Input(DraftInputs { fields: self.arguments(input.fields)?, one_of })
            }
        };
        Ok(DraftDefinition { head, extends, body })
    }

    fn fields(
        &self,
        fields: Vec<Positioned<FieldDefinition>>,
        implements: Vec<Positioned<Name>>,
    ) -> Result<Fields, Mistake> {
        let fields = fields.into_iter().map(|field| self.field(field.node)).collect::<Result<_, _>>()?;
        Ok(Fields { fields, implements: implements.into_iter().map(|name| self.named(&name)).collect() })
    }

    fn field(&self, field: FieldDefinition) -> Result<DraftField, Mistake> {
        Ok(DraftField {
            head: self.head(&field.name, field.description, &field.directives),
            args: self.arguments(field.arguments)?,
            ty: self.reference(&field.ty)?,
        })
    }

    fn arguments(
        &self,
        arguments: Vec<Positioned<InputValueDefinition>>,
    ) -> Result<Vec<DraftArgument>, Mistake> {
        arguments.into_iter().map(|argument| self.argument(argument.node)).collect()
    }

    fn argument(&self, argument: InputValueDefinition) -> Result<DraftArgument, Mistake> {
        Ok(DraftArgument {
            head: self.head(&argument.name, argument.description, &argument.directives),
            ty: self.reference(&argument.ty)?,
            default: argument.default_value.map(|value| json(value.node)).filter(|value| !value.is_null()),
        })
    }

    fn head(
        &self,
        name: &Positioned<Name>,
        description: Option<Positioned<String>>,
        directives: &[Positioned<ConstDirective>],
    ) -> Head {
        let reason = match argument(directives, "deprecated", "reason") {
            Some(Json::String(reason)) => reason,
            _ => NO_REASON.to_owned(),
        };
        Head {
            at: self.some_at(name.pos),
            name: text(&name.node),
            description: description.map(|description| description.node).unwrap_or_default(),
            deprecated: has(directives, "deprecated").then_some(reason),
            is_hidden: has(directives, "inaccessible") || has(directives, "federation__inaccessible"),
        }
    }

    fn reference(&self, ty: &Positioned<Type>) -> Result<Reference, Mistake> {
        let at = self.at(ty.pos);
        let mut wraps = Vec::new();
        let mut inner = &ty.node;
        let name = loop {
            if !inner.nullable {
                wraps.push(Wrap::NonNull);
            }
            match &inner.base {
                BaseType::Named(name) => break text(name),
                BaseType::List(items) => {
                    wraps.push(Wrap::List);
                    inner = items;
                }
            }
        };
        if wraps.iter().filter(|wrap| **wrap == Wrap::List).count() > LIST_DEPTH_MAX {
            let what = format!("lists are nested deeper than {LIST_DEPTH_MAX}");
            return Err(Mistake { at, what });
        }
        wraps.reverse();
        Ok(Reference { name, at: Some(at), wraps })
    }

    fn mistake(&self, error: &Error, text: &str) -> Mistake {
        let pos = error.positions().next().unwrap_or(Pos { line: 1, column: 1 });
        let found = rest_of(text, pos);
        let what = match error {
            Error::Syntax { message, .. } => match message.rsplit_once("= expected ") {
                Some((_, expected)) => format!("{found}; expected {}", words(expected)),
                None if message.starts_with("invalid number") => "the number is too large".into(),
                None => message.clone(),
            },
            other => other.to_string(),
        };
        Mistake { at: self.at(pos), what }
    }
}

/// Describes what stands at a position, for an error.
fn rest_of(text: &str, pos: Pos) -> String {
    let line = text.split('\n').nth(pos.line.saturating_sub(1)).unwrap_or_default();
    let rest: String = line.chars().skip(pos.column.saturating_sub(1)).collect();
    let word: String = match rest.chars().next() {
        Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
        }
        Some(c) if !c.is_whitespace() => c.to_string(),
        _ => return "something is missing here".into(),
    };
    format!("`{}` is not allowed here", unescape(&word))
}

/// The parser's rules in words.
fn words(expected: &str) -> String {
    let mut text = expected.trim().to_owned();
    for (rule, word) in [
        ("const_directives", "a directive"),
        ("const_directive", "a directive"),
        ("const_arguments", "arguments in brackets"),
        ("const_argument", "an argument"),
        ("const_value", "a value"),
        ("const_object_field", "a field"),
        ("input_fields_definition", "input fields in braces"),
        ("input_value_definition", "an argument"),
        ("fields_definition", "fields in braces"),
        ("field_definition", "a field"),
        ("arguments_definition", "arguments in brackets"),
        ("operation_type_definition", "`query`, `mutation` or `subscription`"),
        ("operation_type", "`query`, `mutation` or `subscription`"),
        ("implements_interfaces", "`implements`"),
        ("union_member_types", "`=` and types"),
        ("enum_values", "values in braces"),
        ("enum_value_definition", "a value"),
        ("enum_value", "a value"),
        ("default_value", "a default"),
        ("type_system_definition", "a definition"),
        ("EOI", "the end"),
        ("type_", "a type"),
        ("string", "a description"),
        ("name", "a name"),
    ] {
        text = replace_word(&text, rule, word);
    }
    text
}

/// Replaces `rule` where it is a word of its own.
fn replace_word(text: &str, rule: &str, word: &str) -> String {
    let replaced: Vec<String> = text
        .split(' ')
        .map(|part| match part.strip_suffix(',').unwrap_or(part) == rule {
            true => part.replace(rule, word),
            false => part.to_owned(),
        })
        .collect();
    replaced.join(" ")
}

fn has(directives: &[Positioned<ConstDirective>], name: &str) -> bool {
    directives.iter().any(|directive| directive.node.name.node == *name)
}

fn argument(directives: &[Positioned<ConstDirective>], name: &str, argument: &str) -> Option<Json> {
    let directive = directives.iter().find(|directive| directive.node.name.node == *name)?;
    Some(json(directive.node.get_argument(argument)?.node.clone()))
}

fn text(name: &Name) -> String {
    unescape(name).to_owned()
}

/// A literal as JSON, enum members as strings. The scanner has bounded its depth.
fn json(value: ConstValue) -> Json {
    match value {
        ConstValue::Null | ConstValue::Binary(_) => Json::Null,
        ConstValue::Number(number) => Json::Number(number),
        ConstValue::String(text) => Json::String(text),
        ConstValue::Boolean(boolean) => Json::Bool(boolean),
        ConstValue::Enum(name) => Json::String(text(&name)),
        ConstValue::List(items) => items.into_iter().map(json).collect(),
        ConstValue::Object(fields) => {
            Json::Object(fields.into_iter().map(|(name, value)| (text(&name), json(value))).collect())
        }
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
