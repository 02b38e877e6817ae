//! Outputs that callers get: the shape of an answer to a selection.
//!
//! Every selected field is there, so every property is required; what may be missing is null. An object carries
//! its type's name as title. Of an interface or union, every object type with fields of its own is a variant with
//! its `__typename`, and all others together are one.

use serde_json::Value;

use super::inputs::{self, InputSchemas};
use crate::{
    description::{Discriminator, Object, OneOf, Property, Schema, Shape},
    graphql::{
        schema::{GraphqlSchema, Scalar, ScalarForm, TypeId, TypeKind, TypeRef},
        selection::{Selection, possible_types},
    },
};

/// Names that `__typename` lists; beyond that it is any name.
const TYPE_NAMES_MAX: usize = 100;

/// The values of a field of type `ty`, of which `selection` is asked.
pub(super) fn output(
    schema: &GraphqlSchema,
    enums: &mut InputSchemas<'_>,
    ty: &TypeRef,
    selection: Option<&Selection>,
) -> Schema {
    Outputs { schema, enums }.value(ty, selection)
}

struct Outputs<'s, 'i, 'e> {
    schema: &'s GraphqlSchema,
    enums: &'i mut InputSchemas<'e>,
}

impl Outputs<'_, '_, '_> {
    fn value(&mut self, ty: &TypeRef, selection: Option<&Selection>) -> Schema {
        let mut schema = match (ty.nullable(), selection) {
            (TypeRef::List(item), _) => Schema::array(self.value(item, selection)),
            (_, Some(selection)) => self.composite(selection),
            (inner, None) => self.leaf(inner.named()),
        };
        schema.nullable |= !ty.is_non_null();
        schema
    }

    fn leaf(&mut self, id: TypeId) -> Schema {
        let Some(ty) = self.schema.get(id) else { return Schema::default() };
        match &ty.kind {
            // The form is how a caller's text is read, told by the name. No name promises how a service writes its
            // answers: some write large numbers as text, and some write a `Degrees` as a number.
            TypeKind::Scalar(Scalar {
                form: ScalarForm::CustomNumber | ScalarForm::CustomString, ..
            }) => Schema { title: ty.name.clone(), ..Schema::default() },
            TypeKind::Scalar(scalar) => inputs::scalar(&ty.name, scalar.form),
            TypeKind::Enum(choices) => self.enums.choices(id, choices),
            _ => Schema::default(),
        }
    }

    fn composite(&mut self, selection: &Selection) -> Schema {
        let possible = match possible_types(self.schema, selection.on) {
            Some(possible) if !selection.fragments.is_empty() => possible,
            possible => return self.object(selection, None, possible.unwrap_or(&[selection.on])),
        };
        let mut variants = Vec::new();
        let mut mapping = Vec::new();
        for fragment in &selection.fragments {
            let name = self.name(fragment.on);
            mapping.push((name, u32::try_from(variants.len()).unwrap_or(u32::MAX)));
            variants.push(self.object(selection, Some(fragment), &[fragment.on]));
        }
        let has_fragment = |id: &TypeId| selection.fragments.iter().any(|fragment| fragment.on == *id);
        // Every fragment is of one of them. More than are named are not sought.
        let others = possible.len().saturating_sub(selection.fragments.len());
        if others > 0 {
            let named = if others <= TYPE_NAMES_MAX { possible } else { &[] };
            let others: Vec<TypeId> = named.iter().copied().filter(|id| !has_fragment(id)).collect();
            let other = u32::try_from(variants.len()).unwrap_or(u32::MAX);
            mapping.extend(others.iter().map(|id| (self.name(*id), other)));
            variants.push(self.object(selection, None, &others));
        }
        let discriminator =
            selection.typename.then(|| Discriminator { property: "__typename".into(), mapping });
        let title = self.name(selection.on);
        Schema { title, ..Schema::of(Shape::OneOf(OneOf { variants, discriminator })) }
    }

    fn object(&mut self, selection: &Selection, fragment: Option<&Selection>, types: &[TypeId]) -> Schema {
        let mut properties = Vec::new();
        if selection.typename {
            let names = if types.len() <= TYPE_NAMES_MAX { types } else { &[] };
            let choices = names.iter().map(|id| Value::from(self.name(*id))).collect();
            properties.push(property("__typename", Schema { choices, ..Schema::string() }));
        }
        for part in [Some(selection), fragment].into_iter().flatten() {
            for (selected, field) in part.declared(self.schema) {
                let mut schema = self.value(&field.ty, selected.children.as_ref());
                schema.description.clone_from(&field.description);
                properties.push(property(&field.name, schema));
            }
        }
        let on = match fragment {
            Some(fragment) => fragment.on,
            None => selection.on,
        };
        let object = Object { properties, additional: None, exactly_one: false };
        Schema { title: self.name(on), ..Schema::of(Shape::Object(object)) }
    }

    fn name(&self, id: TypeId) -> String {
        self.schema.get(id).map(|ty| ty.name.clone()).unwrap_or_default()
    }
}

fn property(name: &str, schema: Schema) -> Property {
    Property { name: name.to_owned(), required: true, schema }
}
