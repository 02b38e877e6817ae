//! Arbitrary descriptions that keep the invariants of [`crate::description`], except that a few references may
//! lead nowhere or in circles.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Number, Value, json};

use crate::description::{
    ApiDescription, ArrayOf, Body, BodyKind, Content, Discriminator, Method, NamedSchema, NumberBounds,
    Object, OneOf, Operation, Parameter, Place, Property, Response, RootField, RootKind, Schema, SchemaId,
    Shape, Status, StringBounds, Style,
};

/// Named schemas; references go up to one further.
const SCHEMAS: u32 = 5;

/// Any description with up to eight operations.
pub(crate) fn descriptions() -> impl Strategy<Value = ApiDescription> {
    let schemas = vec(schema(), SCHEMAS as usize);
    (words(), words(), vec(operation(), 0..8), schemas).prop_map(
        |(title, description, operations, schemas)| {
            let names = ["Planet", "Page[Planet]", "惑星", "Problem", "planet"];
            let named = names.into_iter().zip(schemas);
            ApiDescription {
                title,
                description,
                operations: operations
                    .into_iter()
                    .enumerate()
                    .map(|(index, make)| numbered(index, make))
                    .collect(),
                schemas: named.map(|(name, schema)| NamedSchema { name: name.into(), schema }).collect(),
                ..ApiDescription::default()
            }
        },
    )
}

/// Makes ids and paths unique, and declares the path's parameter.
fn numbered(index: usize, mut operation: Operation) -> Operation {
    operation.id = format!("{}{index}", operation.id);
    operation.path = format!("/things{index}/{{the.id}}.json");
    operation.parameters.push(Parameter {
        name: "the.id".into(),
        place: Place::Path,
        required: true,
        schema: Schema::string(),
        ..Parameter::default()
    });
    for (index, parameter) in operation.parameters.iter_mut().enumerate() {
        if parameter.place != Place::Path {
            parameter.name = format!("{}{index}", parameter.name);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    operation.responses.retain(|response| seen.insert(response.status));
    operation
}

fn operation() -> impl Strategy<Value = Operation> {
    let root = option::of(select(vec![RootKind::Query, RootKind::Mutation]));
    let texts = (select(vec!["list", "get it", "größe"]), words(), words());
    let flags = (any::<bool>(), any::<bool>());
    (
        select(Method::ALL.to_vec()),
        texts,
        flags,
        vec(parameter(), 0..4),
        option::of(body()),
        vec(response(), 0..4),
        root,
    )
        .prop_map(
            |(
                method,
                (id, summary, description),
                (deprecated, any_params),
                parameters,
                body,
                responses,
                root,
            )| {
                Operation {
                    method,
                    id: id.into(),
                    summary,
                    description,
                    tags: vec!["things".into(), "things".into()],
                    deprecated,
                    parameters,
                    body,
                    responses,
                    any_params,
                    root: root.map(|kind| RootField::new(kind, "field".into())),
                    ..Operation::default()
                }
            },
        )
}

fn parameter() -> impl Strategy<Value = Parameter> {
    let styles =
        vec![Style::Comma, Style::Exploded, Style::Space, Style::Pipe, Style::DeepObject, Style::Json];
    let places = select(vec![(Place::Query, "q"), (Place::Header, "X-H")]);
    (places, select(styles), any::<bool>(), schema(), words(), option::of(value())).prop_map(
        |((place, name), style, required, schema, description, example)| Parameter {
            name: name.into(),
            place,
            style: if place == Place::Query { style } else { Style::Comma },
            required,
            description,
            schema,
            example,
            ..Parameter::default()
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let kinds = vec![BodyKind::Json, BodyKind::Form, BodyKind::Text, BodyKind::Any];
    (select(kinds), media_type(), any::<bool>(), schema(), option::of(value())).prop_map(
        |(kind, media_type, required, schema, example)| Body {
            kind,
            media_type,
            required,
            schema,
            example,
            ..Body::default()
        },
    )
}

fn response() -> impl Strategy<Value = Response> {
    let statuses = [200, 201, 204, 400, 404, 502, 42].map(Status::Code).into_iter();
    let statuses = statuses.chain([Status::Class(2), Status::Class(4), Status::Class(7), Status::Default]);
    let content = (media_type(), schema(), option::of(value())).prop_map(|(media_type, schema, example)| {
        Content { media_type, schema, example, ..Content::default() }
    });
    (select(statuses.collect::<Vec<_>>()), words(), option::of(content))
        .prop_map(|(status, description, content)| Response { status, description, content })
}

fn media_type() -> impl Strategy<Value = String> {
    select(vec!["application/json", "application/problem+json", "text/csv", ""]).prop_map(ToOwned::to_owned)
}

/// Nested a few levels.
pub(crate) fn schema() -> impl Strategy<Value = Schema> {
    let leaf = prop_oneof![
        Just(Shape::Any),
        Just(Shape::Boolean),
        numbers().prop_map(Shape::Integer),
        numbers().prop_map(Shape::Number),
        strings().prop_map(Shape::String),
        (0..=SCHEMAS).prop_map(|id| Shape::Ref(SchemaId(id))),
    ];
    annotated(leaf).prop_recursive(3, 16, 3, |inner| annotated(composite(inner)))
}

fn composite(inner: impl Strategy<Value = Schema> + Clone + 'static) -> impl Strategy<Value = Shape> {
    let bounds = (option::of(0..3_u64), option::of(3..5_u64));
    let array = (inner.clone(), bounds).prop_map(|(items, (items_min, items_max))| {
        Shape::Array(Box::new(ArrayOf { items, items_min, items_max }))
    });
    let additional = option::of(inner.clone().prop_map(Box::new));
    let object = (vec((inner.clone(), any::<bool>()), 0..3), additional, any::<bool>()).prop_map(
        |(schemas, additional, exactly_one)| {
            let names = ["name", "$ref", "größe"];
            let properties = names.into_iter().zip(schemas);
            let property =
                |(name, (schema, required)): (&str, _)| Property { name: name.into(), required, schema };
            Shape::Object(Object { properties: properties.map(property).collect(), additional, exactly_one })
        },
    );
    let one_of = (vec(inner, 0..3), any::<bool>()).prop_map(|(variants, told)| {
        let mapping = vec![("a".into(), 0), ("b".into(), 1), ("c".into(), 9)];
        let discriminator = told.then(|| Discriminator { property: "name".into(), mapping });
        Shape::OneOf(OneOf { variants, discriminator })
    });
    prop_oneof![array, object, one_of]
}

fn annotated(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = Schema> {
    let flags = (any::<bool>(), any::<bool>());
    (shape, flags, words(), vec(value(), 0..2), option::of(value()), option::of(value())).prop_map(
        |(shape, (nullable, deprecated), title, choices, default, example)| {
            let choices = choices.into_iter().filter(|choice| !choice.is_null()).collect();
            Schema {
                shape,
                nullable,
                choices,
                description: title.clone(),
                title,
                default,
                example,
                deprecated,
            }
        },
    )
}

fn numbers() -> impl Strategy<Value = NumberBounds> {
    let edge = select(vec![json!(-3), json!(0), json!(0.5), json!(7), json!(i64::MIN), json!(u64::MAX)]);
    let edge = edge.prop_map(|edge| match edge {
        Value::Number(number) => number,
        _ => Number::from(0),
    });
    let format = select(vec!["", "int32", "int64", "double"]);
    (format, option::of(edge.clone()), option::of(edge), any::<bool>(), any::<bool>()).prop_map(
        |(format, minimum, maximum, minimum_is_exclusive, maximum_is_exclusive)| NumberBounds {
            format: format.into(),
            minimum,
            maximum,
            minimum_is_exclusive,
            maximum_is_exclusive,
        },
    )
}

fn strings() -> impl Strategy<Value = StringBounds> {
    let format = select(vec!["", "date-time", "uuid", "email", "uri", "binary", "made-up"]);
    let pattern = select(vec!["", "^[a-z]+$", "(?=look)ahead"]);
    (format, option::of(0..4_u64), option::of(4..9_u64), pattern).prop_map(
        |(format, length_min, length_max, pattern)| StringBounds {
            format: format.into(),
            length_min,
            length_max,
            pattern: pattern.into(),
        },
    )
}

fn words() -> impl Strategy<Value = String> {
    select(vec!["", "", "Planets", "<script>alert(1)</script>", "Zwei\nZeilen", "{}[]\"\\"])
        .prop_map(ToOwned::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(1),
        json!(0.25),
        json!("text"),
        json!("2026-01-31T12:00:00Z"),
        json!([]),
        json!([1]),
        json!({}),
        json!({ "name": "x" }),
    ])
}
