//! Sharing changes how a description is written down, not what it says.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    description::{Content, Object, Operation, Property, Response, Status},
    document,
    samples::tests::for_service,
    testing,
};

fn object(names: &[&str]) -> Schema {
    let property = |name: &&str| Property { name: (*name).into(), required: true, schema: Schema::string() };
    let properties = names.iter().map(property).collect();
    Schema::of(Shape::Object(Object { properties, ..Object::default() }))
}

/// A description whose operations answer with these schemas.
fn answering(schemas: Vec<Schema>) -> ApiDescription {
    let operation = |(index, schema)| {
        let content = Content { media_type: "application/json".into(), schema, ..Content::default() };
        let response =
            Response { status: Status::Code(200), description: String::new(), content: Some(content) };
        let id = format!("op_{index}");
        Operation { path: format!("/{index}"), id, responses: vec![response], ..Operation::default() }
    };
    let operations = schemas.into_iter().enumerate().map(operation).collect();
    ApiDescription { operations, ..ApiDescription::default() }
}

fn answers(description: &ApiDescription) -> Vec<&Schema> {
    let contents =
        description.operations.iter().filter_map(|operation| operation.responses[0].content.as_ref());
    contents.map(|content| &content.schema).collect()
}

fn names(description: &ApiDescription) -> Vec<&str> {
    description.schemas.iter().map(|named| named.name.as_str()).collect()
}

#[test]
fn equal_shapes_are_named_once_and_keep_what_is_said_of_them() {
    let described = |text: &str| Schema { description: text.into(), ..object(&["a"]) }.or_null();
    let mut description = answering(vec![described("one"), object(&["b"]), described("two")]);
    share(&mut description);
    assert_eq!(names(&description), ["Op0Answer"]);
    assert_eq!(description.schemas[0].schema, object(&["a"]));
    let reference =
        |text: &str| Schema { description: text.into(), ..Schema::reference(SchemaId(0)) }.or_null();
    assert_eq!(answers(&description), [&reference("one"), &object(&["b"]), &reference("two")]);
}

#[test]
fn what_is_inside_an_equal_shape_moves_with_it() {
    let nested = || {
        let property = Property { name: "inner".into(), required: false, schema: object(&["a"]) };
        Schema::of(Shape::Object(Object { properties: vec![property], ..Object::default() }))
    };
    let mut description = answering(vec![nested(), nested()]);
    share(&mut description);
    assert_eq!(names(&description), ["Op0Answer"]);
    assert_eq!(description.schemas[0].schema, nested());
}

#[test]
fn a_shape_that_has_a_name_is_referred_to_by_it() {
    let mut description = answering(vec![object(&["a"])]);
    description.schemas.push(NamedSchema { name: "Thing".into(), schema: object(&["a"]) });
    share(&mut description);
    assert_eq!(names(&description), ["Thing"]);
    assert_eq!(answers(&description), [&Schema::reference(SchemaId(0))]);
}

#[test]
fn names_do_not_collide() {
    let titled = |names: &[&str]| Schema { title: "a thing".into(), ..object(names) };
    let mut description = answering(vec![titled(&["a"]), titled(&["b"]), titled(&["a"]), titled(&["b"])]);
    share(&mut description);
    assert_eq!(names(&description), ["AThing", "AThing2"]);
}

#[test]
fn schemas_of_any_depth_can_be_encoded_once_shared() {
    let deep = (0..90).fold(object(&["a"]), |schema, level| {
        let property = Property { name: format!("level{level}"), required: true, schema };
        Schema::of(Shape::Object(Object { properties: vec![property], ..Object::default() }))
    });
    let mut description = answering(vec![deep]);
    assert!(matches!(document::encode(&description), Err(document::DocumentError::TooDeep)));
    share(&mut description);
    let encoded = document::encode(&description).expect("shared");
    assert_eq!(document::decode(&encoded).expect("just encoded"), description);
}

#[test]
fn examples_are_kept_to_the_depth_that_values_may_have() {
    let nested = |levels| (0..levels).fold(json!(1), |value, _| json!([value]));
    for (levels, is_kept) in [(VALUE_DEPTH_MAX, true), (VALUE_DEPTH_MAX + 1, false)] {
        let mut description = answering(vec![Schema { example: Some(nested(levels)), ..Schema::default() }]);
        share(&mut description);
        assert_eq!(answers(&description)[0].example.is_some(), is_kept, "{levels}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sharing_twice_changes_nothing_more(description in testing::descriptions()) {
        let mut once = description;
        share(&mut once);
        let mut twice = once.clone();
        share(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn samples_of_a_shared_description_are_the_same(description in testing::descriptions()) {
        let mut shared = description.clone();
        share(&mut shared);
        prop_assert_eq!(for_service(&shared), for_service(&description));
    }

    #[test]
    fn every_shared_description_comes_back_from_its_document(description in testing::descriptions()) {
        let mut shared = description;
        share(&mut shared);
        let encoded = document::encode(&shared).expect("small");
        prop_assert_eq!(document::decode(&encoded).expect("just encoded"), shared);
    }
}
