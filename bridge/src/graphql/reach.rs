//! The types that a call can reach from the root types.

use super::schema::{GraphqlSchema, Type, TypeId, TypeKind, TypeRef};

/// Drops the types that no root field leads to and renumbers the others, keeping their order. Returns the
/// dropped ones.
pub(super) fn keep_reachable(schema: &mut GraphqlSchema) -> Vec<Type> {
    let is_reached = reached(schema);
    let mut ids = Vec::with_capacity(schema.types.len());
    let mut next = 0;
    for is_reached in &is_reached {
        ids.push(is_reached.then_some(TypeId(next)));
        next += u32::from(*is_reached);
    }
    let renumbering = Renumbering(ids);
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for (ty, is_reached) in std::mem::take(&mut schema.types).into_iter().zip(is_reached) {
        if is_reached { kept.push(renumbering.ty(ty)) } else { dropped.push(ty) }
    }
    schema.types = kept;
    schema.query = schema.query.and_then(|id| renumbering.id(id));
    schema.mutation = schema.mutation.and_then(|id| renumbering.id(id));
    dropped
}

fn reached(schema: &GraphqlSchema) -> Vec<bool> {
    let mut is_reached = vec![false; schema.types.len()];
    let mut open: Vec<TypeId> = schema.query.into_iter().chain(schema.mutation).collect();
    while let Some(id) = open.pop() {
        let (Some(mark), Some(ty)) = (is_reached.get_mut(id.index()), schema.get(id)) else { continue };
        if !std::mem::replace(mark, true) {
            open.extend(mentions(ty));
        }
    }
    is_reached
}

fn mentions(ty: &Type) -> Vec<TypeId> {
    match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Enum(_) => Vec::new(),
        TypeKind::Object(composite) | TypeKind::Interface(composite) => {
            let fields = composite.fields.iter();
            fields
                .flat_map(|field| {
                    field.args.iter().map(|argument| argument.ty.named()).chain([field.ty.named()])
                })
                .chain(composite.implementors.iter().copied())
                .collect()
        }
        TypeKind::Union(union) => union.members.clone(),
        TypeKind::Input(input) => input.fields.iter().map(|field| field.ty.named()).collect(),
    }
}

/// New ids by old ones; what is mentioned by a type that is kept is kept too.
struct Renumbering(Vec<Option<TypeId>>);

impl Renumbering {
    fn id(&self, id: TypeId) -> Option<TypeId> {
        self.0.get(id.index()).copied().flatten()
    }

    fn ty(&self, mut ty: Type) -> Type {
        match &mut ty.kind {
            TypeKind::Scalar(_) | TypeKind::Enum(_) => {}
            TypeKind::Object(composite) | TypeKind::Interface(composite) => {
                for field in &mut composite.fields {
                    self.reference(&mut field.ty);
                    field.args.iter_mut().for_each(|argument| self.reference(&mut argument.ty));
                }
                self.list(&mut composite.implementors);
            }
            TypeKind::Union(union) => self.list(&mut union.members),
            TypeKind::Input(input) => input.fields.iter_mut().for_each(|field| self.reference(&mut field.ty)),
        }
        ty
    }

    fn list(&self, ids: &mut Vec<TypeId>) {
        *ids = ids.iter().filter_map(|id| self.id(*id)).collect();
    }

    fn reference(&self, ty: &mut TypeRef) {
        match ty {
            TypeRef::Named(id) => *id = self.id(*id).unwrap_or(*id),
            TypeRef::List(inner) | TypeRef::NonNull(inner) => self.reference(inner),
        }
    }
}
