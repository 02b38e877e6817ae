//! Checks that a compiled schema keeps the rules of [`super::schema`]: it may come from a stranger.
//!
//! What passes can be planned with: every id leads to a type of the right kind, every name is a GraphQL name and
//! stands once where it stands, and types are not nested too deeply.

use std::collections::HashSet;

use super::{
    schema::{Composite, Field, GraphqlSchema, InputValue, LIST_DEPTH_MAX, Type, TypeId, TypeKind, TypeRef},
    selection::is_root,
};
use crate::{
    limits::{GRAPHQL_NAME_BYTES_MAX, TYPE_MEMBERS_MAX, TYPES_MAX},
    shown,
};

/// Ok, or what is wrong first.
pub(super) fn check(schema: &GraphqlSchema) -> Result<(), String> {
    if schema.types.len() > TYPES_MAX {
        return Err(format!("the schema has {} types, {TYPES_MAX} are allowed", schema.types.len()));
    }
    names("the schema", schema.types.iter().map(|ty| &ty.name))?;
    let members: usize = schema.types.iter().map(|ty| members_of(ty).len()).sum();
    if members > TYPE_MEMBERS_MAX {
        return Err(format!(
            "its interfaces and unions have {members} members, {TYPE_MEMBERS_MAX} are allowed"
        ));
    }
    for (root, id) in [("query", schema.query), ("mutation", schema.mutation)] {
        if id.is_some_and(|id| !is_object(schema, id)) {
            return Err(format!("the {root} root is not an object type"));
        }
    }
    schema.types.iter().try_for_each(|ty| check_type(schema, ty))
}

fn check_type(schema: &GraphqlSchema, ty: &Type) -> Result<(), String> {
    let at = &ty.name;
    match &ty.kind {
        TypeKind::Scalar(_) => Ok(()),
        TypeKind::Enum(choices) => names(at, choices.values.iter().map(|value| &value.name)),
        TypeKind::Object(Composite { fields, .. }) => check_fields(schema, at, fields),
        TypeKind::Interface(interface) => {
            check_fields(schema, at, &interface.fields)?;
            check_members(schema, at, members_of(ty))
        }
        TypeKind::Union(_) => check_members(schema, at, members_of(ty)),
        TypeKind::Input(input) => inputs(schema, at, &input.fields),
    }
}

fn check_fields(schema: &GraphqlSchema, at: &str, fields: &[Field]) -> Result<(), String> {
    names(at, fields.iter().map(|field| &field.name))?;
    fields.iter().try_for_each(|field| {
        let at = format!("{at}.{}", field.name);
        let is_output = |kind: &TypeKind| !matches!(kind, TypeKind::Input(_));
        check_ref(schema, &at, &field.ty, is_output)?;
        inputs(schema, &at, &field.args)
    })
}

fn inputs(schema: &GraphqlSchema, at: &str, inputs: &[InputValue]) -> Result<(), String> {
    names(at, inputs.iter().map(|input| &input.name))?;
    let is_input =
        |kind: &TypeKind| matches!(kind, TypeKind::Scalar(_) | TypeKind::Enum(_) | TypeKind::Input(_));
    inputs
        .iter()
        .try_for_each(|input| check_ref(schema, &format!("{at}.{}", input.name), &input.ty, is_input))
}

fn check_ref(
    schema: &GraphqlSchema,
    at: &str,
    ty: &TypeRef,
    is_right: impl Fn(&TypeKind) -> bool,
) -> Result<(), String> {
    let (mut ty, mut lists, mut after_non_null) = (ty, 0, false);
    loop {
        match ty {
            TypeRef::Named(id) => {
                let found = schema.get(*id).is_some_and(|ty| is_right(&ty.kind));
                return if found { Ok(()) } else { Err(format!("{at} has no type that can stand there")) };
            }
            TypeRef::List(inner) if lists < LIST_DEPTH_MAX => {
                (ty, after_non_null) = (inner, false);
                lists += 1;
            }
            TypeRef::NonNull(inner) if !after_non_null => (ty, after_non_null) = (inner, true),
            _ => return Err(format!("the type of {at} is nested too deeply")),
        }
    }
}

/// The object types that an interface or union can be.
fn members_of(ty: &Type) -> &[TypeId] {
    match &ty.kind {
        TypeKind::Interface(interface) => &interface.implementors,
        TypeKind::Union(union) => &union.members,
        _ => &[],
    }
}

fn check_members(schema: &GraphqlSchema, at: &str, members: &[TypeId]) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(members.len());
    let is_member = |id: &TypeId| is_object(schema, *id) && seen.insert(*id);
    if !members.iter().all(is_member) {
        return Err(format!("{at} has a member that is not an object type, or one twice"));
    }
    // What is asked of it would be asked of operations that have a price of their own.
    if members.iter().any(|id| is_root(schema, *id)) {
        return Err(format!("{at} has a root type as a member"));
    }
    Ok(())
}

fn is_object(schema: &GraphqlSchema, id: TypeId) -> bool {
    matches!(schema.get(id), Some(Type { kind: TypeKind::Object(_), .. }))
}

/// Every name is a GraphQL name, and none is there twice.
fn names<'a>(at: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(names.size_hint().0);
    for name in names {
        if !is_name(name) {
            return Err(format!("`{}` in {at} is not a GraphQL name", shown(name)));
        }
        // It is repeated wherever it is referred to.
        if name.len() > GRAPHQL_NAME_BYTES_MAX {
            return Err(format!("`{}` in {at} has more than {GRAPHQL_NAME_BYTES_MAX} bytes", shown(name)));
        }
        if !seen.insert(name) {
            return Err(format!("`{}` is in {at} twice", shown(name)));
        }
    }
    Ok(())
}

/// `[_A-Za-z][_0-9A-Za-z]*`
fn is_name(text: &str) -> bool {
    let is_start = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    text.bytes().next().is_some_and(is_start) && text.bytes().all(|b| is_start(b) || b.is_ascii_digit())
}
