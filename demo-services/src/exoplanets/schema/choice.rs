//! An enum as an argument with a default.
//!
//! Juniper's derive writes the default of an enum as text, so that the schema would say `order: SortOrder! = "ASC"`,
//! which is no value of that enum. [`Choice`] is the same GraphQL type and writes the bare name.

use juniper::macros::reflect::{BaseSubTypes, BaseType, Type, Types, WrappedType, WrappedValue};
use juniper::marker::IsInputType;
use juniper::meta::MetaType;
use juniper::{
    DefaultScalarValue, FromInputValue, GraphQLType, GraphQLValue, InputValue, Registry, ScalarValue,
    ToInputValue,
};

/// A member of the enum `E`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<E>(pub(super) E);

impl<E: ToInputValue> ToInputValue for Choice<E> {
    fn to_input_value(&self) -> InputValue {
        let value = self.0.to_input_value();
        match value.as_scalar().and_then(ScalarValue::try_as_str) {
            Some(name) => InputValue::enum_value(name),
            None => value,
        }
    }
}

impl<E: FromInputValue> FromInputValue for Choice<E> {
    type Error = E::Error;

    fn from_input_value(value: &InputValue) -> Result<Self, E::Error> {
        E::from_input_value(value).map(Self)
    }
}

impl<E: GraphQLType<DefaultScalarValue>> GraphQLType<DefaultScalarValue> for Choice<E> {
    fn name(info: &Self::TypeInfo) -> Option<juniper::arcstr::ArcStr> {
        E::name(info)
    }

    fn meta(info: &Self::TypeInfo, registry: &mut Registry) -> MetaType {
        E::meta(info, registry)
    }
}

impl<E: GraphQLValue<DefaultScalarValue>> GraphQLValue<DefaultScalarValue> for Choice<E> {
    type Context = E::Context;
    type TypeInfo = E::TypeInfo;

    fn type_name(&self, info: &Self::TypeInfo) -> Option<juniper::arcstr::ArcStr> {
        self.0.type_name(info)
    }
}

impl<E: IsInputType<DefaultScalarValue>> IsInputType<DefaultScalarValue> for Choice<E> {}

impl<E: BaseType<DefaultScalarValue>> BaseType<DefaultScalarValue> for Choice<E> {
    const NAME: Type = E::NAME;
}

impl<E: BaseSubTypes<DefaultScalarValue>> BaseSubTypes<DefaultScalarValue> for Choice<E> {
    const NAMES: Types = E::NAMES;
}

impl<E: WrappedType<DefaultScalarValue>> WrappedType<DefaultScalarValue> for Choice<E> {
    const VALUE: WrappedValue = E::VALUE;
}
