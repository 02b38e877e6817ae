//! After the owner removed operations: what nothing leads to any more goes too.

use super::{
    reach::keep_reachable,
    schema::{GraphqlSchema, TypeKind},
};
use crate::{
    description::{ApiDescription, RootKind, Schema as NeutralSchema, SchemaId, Shape},
    walk::{SchemaPath, WalkStep, walk, walk_operations},
};

/// Drops the root fields without an operation, then the types and the named schemas that nothing refers to.
pub fn prune(description: &mut ApiDescription) {
    let roots: Vec<_> =
        description.operations.iter().filter_map(|operation| operation.root.clone()).collect();
    if let Some(schema) = &mut description.graphql {
        for kind in [RootKind::Query, RootKind::Mutation] {
            keep_fields(schema, kind, |name| {
                roots.iter().any(|root| root.kind == kind && root.field == name)
            });
        }
        keep_reachable(schema);
    }
    keep_schemas(description);
}

fn keep_fields(schema: &mut GraphqlSchema, kind: RootKind, is_kept: impl Fn(&str) -> bool) {
    let Some(id) = schema.root(kind) else { return };
    let Some(ty) = schema.types.get_mut(id.index()) else { return };
    let TypeKind::Object(object) = &mut ty.kind else { return };
    object.fields.retain(|field| is_kept(&field.name));
    if object.fields.is_empty() {
        match kind {
            RootKind::Query => schema.query = None,
            RootKind::Mutation => schema.mutation = None,
        }
    }
}

/// Keeps the named schemas that operations lead to, in their order.
fn keep_schemas(description: &mut ApiDescription) {
    let mut open = Vec::new();
    walk_operations(description, &mut |schema, _| {
        open.extend(reference(&schema.shape));
        WalkStep::Descend
    });
    let mut new_ids: Vec<Option<u32>> = vec![None; description.schemas.len()];
    while let Some(id) = open.pop() {
        let Some(mark) = new_ids.get_mut(id) else { continue };
        if mark.replace(0).is_none() {
            let mut visit = |schema: &mut NeutralSchema, _: SchemaPath<'_>| {
                open.extend(reference(&schema.shape));
                WalkStep::Descend
            };
            walk(&mut description.schemas[id].schema, SchemaPath { hint: "", depth: 0 }, &mut visit);
        }
    }
    for (new, id) in new_ids.iter_mut().flatten().zip(0..) {
        *new = id;
    }
    let mut kept = new_ids.iter();
    description.schemas.retain(|_| kept.next().is_some_and(Option::is_some));
    let mut renumber = |schema: &mut NeutralSchema, _: SchemaPath<'_>| {
        if let Some(new) = reference(&schema.shape).and_then(|id| *new_ids.get(id)?) {
            schema.shape = Shape::Ref(SchemaId(new));
        }
        WalkStep::Descend
    };
    walk_operations(description, &mut renumber);
    for named in &mut description.schemas {
        walk(&mut named.schema, SchemaPath { hint: "", depth: 0 }, &mut renumber);
    }
}

fn reference(shape: &Shape) -> Option<usize> {
    match shape {
        Shape::Ref(id) => usize::try_from(id.0).ok(),
        _ => None,
    }
}
