//! Default values as SDL literals: enum members bare, everything else as in JSON with bare names of fields.

use std::fmt::Write;

use serde_json::Value;

use crate::graphql::{
    schema::{Schema, TypeKind, TypeRef},
    sdl::strings::quoted,
};

/// Writes `value`, which is meant for `ty`. A value that does not fit its type is written as what it is.
pub(super) fn write(out: &mut String, schema: &Schema, ty: &TypeRef, value: &Value) {
    match (ty.nullable(), value) {
        (TypeRef::List(inner), Value::Array(items)) => list(out, schema, inner, items),
        // A single value stands for a list of it.
        (TypeRef::List(inner), value) if !value.is_null() => write(out, schema, inner, value),
        (_, Value::Null) => out.push_str("null"),
        (_, Value::Bool(boolean)) => out.push_str(if *boolean { "true" } else { "false" }),
        (_, Value::Number(number)) => write!(out, "{number}").unwrap_or_default(),
        (ty, Value::String(text)) if is_member(schema, ty, text) => out.push_str(text),
        (_, Value::String(text)) => out.push_str(&quoted(text)),
        (ty, Value::Array(items)) => list(out, schema, ty, items),
        (ty, Value::Object(members)) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                let separator = if index == 0 { "" } else { ", " };
                let _ = write!(out, "{separator}{name}: ");
                let member_type = field_type(schema, ty, name);
                write(out, schema, member_type.unwrap_or(ty), member);
            }
            out.push('}');
        }
    }
}

fn list(out: &mut String, schema: &Schema, ty: &TypeRef, items: &[Value]) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(out, schema, ty, item);
    }
    out.push(']');
}

/// Whether a text is a member of the enum `ty`, and so a name.
fn is_member(schema: &Schema, ty: &TypeRef, text: &str) -> bool {
    match schema.get(ty.named()).map(|ty| &ty.kind) {
        Some(TypeKind::Enum(values)) => values.values.iter().any(|value| value.name == text),
        _ => false,
    }
}

fn field_type<'a>(schema: &'a Schema, ty: &TypeRef, name: &str) -> Option<&'a TypeRef> {
    match &schema.get(ty.named())?.kind {
        TypeKind::Input(input) => input.fields.iter().find(|field| field.name == name).map(|field| &field.ty),
        _ => None,
    }
}
