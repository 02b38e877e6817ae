//! Inputs that callers may send: arguments and input objects as neutral schemas.
//!
//! Enums and input objects are named schemas, because they have names that mean something to a caller and may
//! contain themselves.

use std::collections::HashMap;

use serde_json::Number;

use crate::{
    description::{ArrayOf, NamedSchema, NumberBounds, Object, Property, Schema, SchemaId, Shape, Style},
    graphql::schema::{Enum, GraphqlSchema, Input, InputValue, ScalarForm, TypeId, TypeKind, TypeRef},
};

/// Makes schemas, and collects the named ones.
pub(super) struct InputSchemas<'s> {
    schema: &'s GraphqlSchema,
    ids: HashMap<TypeId, SchemaId>,
    pub schemas: Vec<NamedSchema>,
}

impl<'s> InputSchemas<'s> {
    pub fn new(schema: &'s GraphqlSchema) -> Self {
        Self { schema, ids: HashMap::new(), schemas: Vec::new() }
    }

    /// An argument given as text, where `null` is a word for strings and ids.
    pub fn as_text(&mut self, ty: &TypeRef) -> Schema {
        let mut schema = self.value(ty);
        let is_verbatim = matches!(ty.nullable(), TypeRef::Named(id) if matches!(
            self.scalar(*id), Some(ScalarForm::String | ScalarForm::Id)
        ));
        schema.nullable &= !is_verbatim;
        if let (Shape::Array(array), Style::Comma) = (&mut schema.shape, self.style(ty)) {
            // No text means an empty list only.
            array.items_min = Some(1);
        }
        schema
    }

    /// Returns the style in which an argument is written as text.
    pub fn style(&self, ty: &TypeRef) -> Style {
        let is_leaf = |id: TypeId| match self.schema.get(id).map(|ty| &ty.kind) {
            Some(TypeKind::Scalar(scalar)) => scalar.form != ScalarForm::CustomJson,
            Some(TypeKind::Enum(_)) => true,
            _ => false,
        };
        let is_plain = |ty: &TypeRef| matches!(ty.nullable(), TypeRef::Named(id) if is_leaf(*id));
        match ty.nullable() {
            TypeRef::List(item) if is_plain(item) => Style::Comma,
            inner if is_plain(inner) => Style::Comma,
            _ => Style::Json,
        }
    }

    /// A value given as JSON.
    pub fn value(&mut self, ty: &TypeRef) -> Schema {
        let mut schema = match ty.nullable() {
            TypeRef::List(item) => {
                let items = self.value(item);
                Schema::of(Shape::Array(Box::new(ArrayOf { items, ..ArrayOf::default() })))
            }
            inner => self.named(inner.named()),
        };
        schema.nullable |= !ty.is_non_null();
        schema
    }

    /// An object of arguments or input fields.
    pub fn object(&mut self, values: &[InputValue], one_of: bool) -> Object {
        let properties = values.iter().map(|value| {
            let mut schema = self.value(&value.ty);
            // The one member of `@oneOf` is not null, although its type has no `!`.
            schema.nullable &= !one_of;
            schema.description = super::described(&value.description, value.deprecated.as_deref());
            schema.deprecated = value.deprecated.is_some();
            schema.default = value.default.clone();
            Property { name: value.name.clone(), required: value.is_required(), schema }
        });
        Object { properties: properties.collect(), additional: None, exactly_one: one_of }
    }

    fn scalar(&self, id: TypeId) -> Option<ScalarForm> {
        match self.schema.get(id).map(|ty| &ty.kind) {
            Some(TypeKind::Scalar(scalar)) => Some(scalar.form),
            _ => None,
        }
    }

    fn named(&mut self, id: TypeId) -> Schema {
        let Some(ty) = self.schema.get(id) else { return Schema::default() };
        match &ty.kind {
            TypeKind::Scalar(scalar) => self::scalar(&ty.name, scalar.form),
            TypeKind::Enum(choices) => self.choices(id, choices),
            TypeKind::Input(input) => self.input(id, input),
            // Not in a checked schema.
            TypeKind::Object(_) | TypeKind::Interface(_) | TypeKind::Union(_) => Schema::default(),
        }
    }

    fn input(&mut self, id: TypeId, input: &Input) -> Schema {
        if let Some(known) = self.ids.get(&id) {
            return Schema::reference(*known);
        }
        // First the name, then what is in it: it may contain itself.
        let named = self.name(id);
        let object = self.object(&input.fields, input.one_of);
        if let Some(entry) = usize::try_from(named.0).ok().and_then(|index| self.schemas.get_mut(index)) {
            entry.schema.shape = Shape::Object(object);
        }
        Schema::reference(named)
    }

    pub fn choices(&mut self, id: TypeId, choices: &Enum) -> Schema {
        if let Some(known) = self.ids.get(&id) {
            return Schema::reference(*known);
        }
        let named = self.name(id);
        if let Some(entry) = usize::try_from(named.0).ok().and_then(|index| self.schemas.get_mut(index)) {
            entry.schema.choices = choices.values.iter().map(|value| value.name.as_str().into()).collect();
            entry.schema.shape = Schema::string().shape;
        }
        Schema::reference(named)
    }

    /// A named schema to be filled.
    fn name(&mut self, id: TypeId) -> SchemaId {
        let named = SchemaId(u32::try_from(self.schemas.len()).unwrap_or(u32::MAX));
        let ty = self.schema.get(id);
        let schema = Schema {
            description: ty.map(|ty| ty.description.clone()).unwrap_or_default(),
            ..Schema::default()
        };
        self.schemas.push(NamedSchema { name: ty.map(|ty| ty.name.clone()).unwrap_or_default(), schema });
        self.ids.insert(id, named);
        named
    }
}

/// A scalar as an argument.
pub(super) fn scalar(name: &str, form: ScalarForm) -> Schema {
    match form {
        ScalarForm::Int => Schema::of(Shape::Integer(NumberBounds {
            format: "int32".into(),
            minimum: Some(Number::from(i32::MIN)),
            maximum: Some(Number::from(i32::MAX)),
            ..NumberBounds::default()
        })),
        ScalarForm::Float => {
            Schema::of(Shape::Number(NumberBounds { format: "double".into(), ..NumberBounds::default() }))
        }
        ScalarForm::Boolean => Schema::boolean(),
        ScalarForm::String | ScalarForm::Id => Schema::string(),
        ScalarForm::CustomJson => Schema { title: name.to_owned(), ..Schema::default() },
        ScalarForm::CustomNumber => Schema { title: name.to_owned(), ..Schema::number() },
        ScalarForm::CustomString => Schema { title: name.to_owned(), ..Schema::string() },
    }
}
