//! GraphQL answers hold what was selected: the members shown are those of the default selection, and with
//! `fields` a caller gets others, or fewer. The document must hold for all of these answers, so no member is
//! required, others are allowed, and no member decides between alternatives.

use std::collections::BTreeSet;

use crate::{
    description::{ApiDescription, Schema, SchemaId, Shape},
    walk::{SchemaPath, WalkStep, walk, walk_answers},
};

/// The description as others are shown it: with relaxed answers, and without the GraphQL schema, which is most of such a
/// description.
pub fn shown(description: &ApiDescription) -> ApiDescription {
    let mut shown = ApiDescription {
        title: description.title.clone(),
        version: description.version.clone(),
        description: description.description.clone(),
        operations: description.operations.clone(),
        schemas: description.schemas.clone(),
        graphql: None,
        packs_answers: false,
    };
    answers(&mut shown);
    shown
}

/// Relaxes the answers of operations that stand for a GraphQL field, and what these refer to. Input types are
/// never among that.
fn answers(description: &mut ApiDescription) {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<SchemaId> = Vec::new();
    let mut visit = |schema: &mut Schema, waiting: &mut Vec<SchemaId>| {
        relax(&mut schema.shape);
        if let Shape::Ref(id) = schema.shape
            && seen.insert(id)
        {
            waiting.push(id);
        }
        WalkStep::Descend
    };
    for operation in description.operations.iter_mut().filter(|operation| operation.root.is_some()) {
        walk_answers(operation, &mut |schema, _| visit(schema, &mut waiting));
    }
    while let Some(id) = waiting.pop() {
        let named = usize::try_from(id.0).ok().and_then(|index| description.schemas.get_mut(index));
        let Some(named) = named else { continue };
        let at = SchemaPath { hint: &named.name, depth: 0 };
        walk(&mut named.schema, at, &mut |schema, _| visit(schema, &mut waiting));
    }
}

fn relax(shape: &mut Shape) {
    match shape {
        Shape::Object(object) => {
            for property in &mut object.properties {
                property.required = false;
            }
            object.additional.get_or_insert_default();
        }
        Shape::OneOf(one_of) => one_of.discriminator = None,
        _ => {}
    }
}
