//! The selection of a query: a tree of fields, its text, and the aliases in it.
//!
//! [`default`] makes the tree for a call that does not say what it wants, [`super::fields`] for one that does.
//! [`aliases`] then makes it acceptable to every validator, [`Selection::write`] is its text in the query, and
//! [`Renames`] leads back from the answer's keys to the fields' names.
//!
//! Invariant: every name in the text comes from the schema.

pub(super) mod aliases;
pub(super) mod default;
#[cfg(test)]
mod tests;

use super::schema::{Field, GraphqlSchema, InputValue, TypeId, TypeKind};

/// A selection of an object, an interface or a union. Lists and `!` around it make no difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selection {
    pub on: TypeId,
    pub typename: bool,
    pub fields: Vec<Selected>,
    /// Selections of only some of the object types that `on` can be.
    pub fragments: Vec<Self>,
}

/// A selected field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    /// Index among the fields of the selection's type.
    pub field: usize,
    pub alias: Option<String>,
    /// Present exactly if the field's result has fields.
    pub children: Option<Selection>,
}

impl Selection {
    pub const fn empty(on: TypeId) -> Self {
        Self { on, typename: false, fields: Vec::new(), fragments: Vec::new() }
    }

    pub const fn is_empty(&self) -> bool {
        !self.typename && self.fields.is_empty() && self.fragments.is_empty()
    }

    /// The selected fields with their declarations.
    pub fn declared<'a>(
        &'a self,
        schema: &'a GraphqlSchema,
    ) -> impl Iterator<Item = (&'a Selected, &'a Field)> {
        let fields = schema.fields(self.on).unwrap_or_default();
        self.fields.iter().filter_map(|selected| Some((selected, fields.get(selected.field)?)))
    }

    /// Appends it as GraphQL, with its braces.
    pub fn write(&self, schema: &GraphqlSchema, out: &mut String) {
        out.push('{');
        if self.typename {
            word("__typename", out);
        }
        for (selected, field) in self.declared(schema) {
            if let Some(alias) = &selected.alias {
                word(alias, out);
                out.push(':');
            }
            word(&field.name, out);
            if let Some(children) = &selected.children {
                children.write(schema, out);
            }
        }
        for fragment in &self.fragments {
            out.push_str("...on ");
            out.push_str(schema.get(fragment.on).map_or("", |ty| &ty.name));
            fragment.write(schema, out);
        }
        out.push('}');
    }

    pub fn text(&self, schema: &GraphqlSchema) -> String {
        let mut text = String::new();
        self.write(schema, &mut text);
        text
    }
}

/// Appends a name, with a space where it would run into the one before.
fn word(name: &str, out: &mut String) {
    if out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        out.push(' ');
    }
    out.push_str(name);
}

/// Tells whether values of the type have fields.
pub(super) fn is_composite(schema: &GraphqlSchema, id: TypeId) -> bool {
    schema.get(id).is_some_and(|ty| {
        matches!(ty.kind, TypeKind::Object(_) | TypeKind::Interface(_) | TypeKind::Union(_))
    })
}

/// Tells whether the field can be selected: without arguments, and without leading back to a root type, whose fields
/// are operations of their own, each with its price.
pub(super) fn is_selectable(schema: &GraphqlSchema, field: &Field) -> bool {
    !field.args.iter().any(InputValue::is_required) && !is_root(schema, field.ty.named())
}

pub(super) fn is_root(schema: &GraphqlSchema, id: TypeId) -> bool {
    schema.query == Some(id) || schema.mutation == Some(id)
}

/// The object types that a union or interface can be; `None` for other types.
pub(super) fn possible_types(schema: &GraphqlSchema, id: TypeId) -> Option<&[TypeId]> {
    match &schema.get(id)?.kind {
        TypeKind::Interface(interface) => Some(&interface.implementors),
        TypeKind::Union(union) => Some(&union.members),
        _ => None,
    }
}

/// Tells whether the type is a Relay connection (GraphQL Cursor Connections Specification, "Connection Types"): pages
/// of `edges` or `nodes`, and a `pageInfo`.
pub(super) fn is_connection(schema: &GraphqlSchema, id: TypeId) -> bool {
    let Some(Some(fields)) = schema.get(id).map(|ty| match &ty.kind {
        TypeKind::Object(object) => Some(&object.fields),
        _ => None,
    }) else {
        return false;
    };
    let is_list = |field: &Field| matches!(field.ty.nullable(), super::schema::TypeRef::List(_));
    fields.iter().any(|field| field.name == "pageInfo" && is_composite(schema, field.ty.named()))
        && fields.iter().any(|field| {
            matches!(field.name.as_str(), "edges" | "nodes")
                && is_list(field)
                && is_composite(schema, field.ty.named())
        })
}
