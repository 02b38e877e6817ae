//! Default values as SDL literals: enum members bare, everything else as in JSON with bare names of fields.

use std::{collections::HashMap, fmt::Write};

use serde_json::{Map, Value};

use crate::graphql::{
    schema::{GraphqlSchema, TypeId, TypeKind, TypeRef},
    sdl::strings::quoted,
};

/// Writes values of a schema's types.
pub(super) struct ValuePrinter<'a> {
    schema: &'a GraphqlSchema,
    /// Fields of input types by their names, so that large values are written in linear time.
    inputs: HashMap<TypeId, HashMap<&'a str, &'a TypeRef>>,
}

impl<'a> ValuePrinter<'a> {
    pub fn new(schema: &'a GraphqlSchema) -> Self {
        let fields = |(ty, id): (&'a super::Type, u32)| match &ty.kind {
            TypeKind::Input(input) => {
                let fields = input.fields.iter().map(|field| (field.name.as_str(), &field.ty));
                Some((TypeId(id), fields.collect()))
            }
            _ => None,
        };
        Self { schema, inputs: schema.types.iter().zip(0..).filter_map(fields).collect() }
    }

    /// Writes `value`, which is meant for `ty`. A value that does not fit its type is written as what it is.
    pub fn write(&self, out: &mut String, ty: &TypeRef, value: &Value) {
        match (ty.nullable(), value) {
            (TypeRef::List(items), Value::Array(values)) => self.list(out, items, values),
            // A single value stands for a list of it.
            (TypeRef::List(items), value) if !value.is_null() => self.write(out, items, value),
            (_, Value::Null) => out.push_str("null"),
            (_, Value::Bool(boolean)) => out.push_str(if *boolean { "true" } else { "false" }),
            (_, Value::Number(number)) => write!(out, "{number}").unwrap_or_default(),
            (ty, Value::String(text)) if self.is_enum(ty) && is_member(text) => out.push_str(text),
            (_, Value::String(text)) => out.push_str(&quoted(text)),
            (ty, Value::Array(values)) => self.list(out, ty, values),
            (ty, Value::Object(members)) => self.object(out, ty, members),
        }
    }

    fn list(&self, out: &mut String, items: &TypeRef, values: &[Value]) {
        out.push('[');
        for (index, value) in values.iter().enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            self.write(out, items, value);
        }
        out.push(']');
    }

    fn object(&self, out: &mut String, ty: &TypeRef, members: &Map<String, Value>) {
        let fields = self.inputs.get(&ty.named());
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            write!(out, "{name}: ").unwrap_or_default();
            let field = fields.and_then(|fields| fields.get(name.as_str()).copied());
            self.write(out, field.unwrap_or(ty), value);
        }
        out.push('}');
    }

    fn is_enum(&self, ty: &TypeRef) -> bool {
        self.schema.get(ty.named()).is_some_and(|ty| matches!(ty.kind, TypeKind::Enum(_)))
    }
}

/// Tells whether a text can stand without quotes, as a member of an enum.
fn is_member(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !matches!(text, "true" | "false" | "null")
}
