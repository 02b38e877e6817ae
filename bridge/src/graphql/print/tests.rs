//! Whatever is printed is read again as the same schema.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::graphql::{
    print::sdl,
    scalars::form,
    schema::{
        Composite, Enum, EnumValue, Field, GraphqlSchema, Input, InputValue, Scalar, Type, TypeId, TypeKind,
        TypeRef, Union,
    },
};

const OUTPUTS: [u32; 10] = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11];
const ENUM: u32 = 4;
const INPUT: u32 = 5;
const JSON: u32 = 6;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \\t\\n\\r\"\\\\a]{0,20}",
        "( {0,4}[a-z\"\\\\]{0,6}\n){0,5}",
        Just(String::new()),
        Just("a\"\"\"b\\\"\"\"".to_owned()),
    ]
}

fn type_ref(named: impl Strategy<Value = u32>) -> impl Strategy<Value = TypeRef> {
    (named, prop::collection::vec(any::<bool>(), 0..5)).prop_map(|(id, wraps)| {
        wraps.into_iter().fold(TypeRef::Named(TypeId(id)), |inner, is_list| match (is_list, &inner) {
            (false, TypeRef::NonNull(_)) => inner,
            (false, _) => TypeRef::NonNull(Box::new(inner)),
            (true, _) => TypeRef::List(Box::new(inner)),
        })
    })
}

/// JSON that a literal can stand for: floats of few digits, names as keys.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<i32>().prop_map(|number| json!(f64::from(number) / 8.0)),
        any::<bool>().prop_map(|boolean| json!(boolean)),
        text().prop_map(|text| json!(text)),
        prop::sample::select(vec!["A", "true", "nullsFirst", "farthing__x"]).prop_map(|name| json!(name)),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z_][a-zA-Z0-9_]{0,6}|true|nullx|type", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn input_values() -> impl Strategy<Value = Vec<InputValue>> {
    let types = type_ref(prop::sample::select(vec![ENUM, INPUT, JSON, 7, 8, 9, 10, 11]));
    let value = (text(), prop::option::of(text()), types, prop::option::of(json_value()));
    prop::collection::vec(value, 0..4).prop_map(|values| {
        let values = values.into_iter().enumerate();
        values
            .map(|(index, (description, deprecated, ty, default))| InputValue {
                name: format!("trueArg{index}"),
                description,
                deprecated,
                ty,
                default: default.filter(|value| !value.is_null()),
            })
            .collect()
    })
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let field =
        (text(), prop::option::of(text()), input_values(), type_ref(prop::sample::select(OUTPUTS.to_vec())));
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let fields = fields.into_iter().enumerate();
        fields
            .map(|(index, (description, deprecated, args, ty))| Field {
                name: format!("field{index}"),
                description,
                deprecated,
                args,
                ty,
            })
            .collect()
    })
}

fn ty(name: &str, description: &str, kind: TypeKind) -> Type {
    Type { name: name.into(), description: description.into(), kind }
}

prop_compose! {
    /// A schema with one type of each kind, all reached from the first.
    fn schemas()(
        descriptions in prop::collection::vec(text(), 7),
        query in fields(), object in fields(), interface in fields(), input in input_values(),
        values in prop::collection::vec((text(), prop::option::of(text())), 0..4),
        one_of in any::<bool>(), has_mutation in any::<bool>(), is_empty in any::<bool>(),
    ) -> GraphqlSchema {
        let composite = |fields, implementors| Composite { fields, implementors };
        let reach = OUTPUTS.iter().map(|id| Field {
            name: format!("reach{id}"),
            description: String::new(),
            deprecated: None,
            args: vec![InputValue {
                name: "input".into(),
                description: String::new(),
                deprecated: None,
                ty: TypeRef::Named(TypeId(INPUT)),
                default: None,
            }],
            ty: TypeRef::Named(TypeId(*id)),
        });
        let values = values.into_iter().enumerate().map(|(index, (description, deprecated))| EnumValue {
            name: format!("nullV{index}"), description, deprecated,
        }).collect();
        let members = if is_empty { vec![] } else { vec![TypeId(1), TypeId(0)] };
        let mut types = vec![
            ty("Root", &descriptions[0], TypeKind::Object(composite(reach.chain(query).collect(), vec![]))),
            ty("Mutation", &descriptions[1], TypeKind::Object(composite(object, vec![]))),
            ty("Face", &descriptions[2], TypeKind::Interface(composite(interface, vec![TypeId(0), TypeId(1)]))),
            ty("union", &descriptions[3], TypeKind::Union(Union { members })),
            ty("Kind", &descriptions[4], TypeKind::Enum(Enum { values })),
            ty("In", &descriptions[5], TypeKind::Input(Input { fields: input, one_of })),
            ty("JSON", &descriptions[6], TypeKind::Scalar(Scalar { form: form("JSON") })),
        ];
        types.extend(["Int", "Float", "String", "Boolean", "ID"].map(|name| {
            ty(name, "", TypeKind::Scalar(Scalar { form: form(name) }))
        }));
        GraphqlSchema { types, query: Some(TypeId(0)), mutation: has_mutation.then_some(TypeId(1)) }
    }
}

proptest! {
    #[test]
    fn a_printed_schema_is_read_as_the_same(schema in schemas()) {
        let printed = sdl(&schema);
        let reading = crate::graphql::sdl::read(printed.as_bytes());
        let reading = reading.map_err(|error| TestCaseError::fail(format!("{error}\n{printed}")))?;
        prop_assert_eq!(reading.schema, schema, "{}", printed);
        prop_assert!(reading.report.repaired.is_empty());
    }
}

#[test]
fn a_schema_is_printed_as_people_write_it() {
    let text = include_str!("../introspection/tests/library.graphql");
    let reading = crate::graphql::sdl::read(text.as_bytes()).expect("a schema");
    insta::assert_snapshot!(sdl(&reading.schema));
}
