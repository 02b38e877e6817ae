//! Descriptions that mean harm.

use super::*;
use crate::{
    description::{NamedSchema, OneOf, RootField, RootKind, SchemaId},
    limits::{NAME_BYTES_MAX, OPERATIONS_MAX, PARAMETERS_MAX},
    testing::timed,
};

#[test]
fn a_description_that_is_hostile_is_refused() {
    let get = |path: &str| operation(Method::Get, path, vec![]);
    let named = |name: &str, schema| NamedSchema { name: name.into(), schema };
    let nested = (0..200).fold(Schema::string(), |schema, _| Schema::array(schema));
    let with_body = |schema| {
        let (kind, media_type) = (BodyKind::Json, "application/json".into());
        let body = Body { kind, media_type, schema, ..Body::default() };
        described(vec![Operation { body: Some(body), ..get("/a") }])
    };
    let with_schemas = |schemas| ApiDescription { schemas, ..described(vec![get("/a")]) };
    let twice =
        Schema::of(Shape::Object(Object { properties: vec![Property::default(); 2], ..Object::default() }));
    let root = |kind| Some(RootField::new(kind, "a".into()));
    let many: Vec<_> = (0..=OPERATIONS_MAX).map(|i| get(&format!("/{i}"))).collect();
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    // Some text between them keeps them apart.
    let in_path = |count| (0..count).map(|i| format!("{{p{i}}}x")).collect::<String>();
    let both = operation(Method::Get, "/{id}", vec![]);
    let parameters = |count| {
        (0..count).map(|i| parameter(&format!("p{i}"), Place::Query, Schema::string(), false)).collect()
    };
    for (description, reason) in [
        (described(vec![get("/a"), Operation { path: "/b".into(), ..get("/a") }]), "id of another"),
        (described(vec![get("/a"), Operation { id: "b".into(), ..get("/a") }]), "two operations answer"),
        (described(vec![get("/a?x={x}")]), "may not contain"),
        (described(vec![get("/a#b")]), "may not contain"),
        (described(vec![get(&"/a".repeat(65))]), "too long"),
        (described(vec![operation(Method::Get, "/a", parameters(PARAMETERS_MAX + 1))]), "at most 64"),
        (described(vec![get(&format!("/{}", in_path(PARAMETERS_MAX + 1)))]), "at most 64"),
        (described(vec![Operation { parameters: parameters(PARAMETERS_MAX), ..both }]), "at most 64"),
        (described(vec![Operation { id: long.clone(), ..get("/a") }]), "an id that is too long"),
        (with_schemas(vec![named(&long, Schema::string())]), "a name that is too long"),
        (described(many), "at most 2000"),
        (with_body(Schema::reference(SchemaId(0))), "does not exist"),
        (with_body(nested.clone()), "nested too deeply"),
        (with_body(twice), "two members of the same name"),
        (with_schemas(vec![named("A", Schema::reference(SchemaId(7)))]), "does not exist"),
        (with_schemas(vec![named("A", Schema::reference(SchemaId(0)))]), "only references"),
        (
            with_schemas(vec![named("A", Schema::string()), named("A", Schema::string())]),
            "named like another",
        ),
        (with_schemas(vec![named("A", nested)]), "nested too deeply"),
        (described(vec![Operation { root: root(RootKind::Query), ..get("/a") }]), "there is no schema"),
        (described(vec![Operation { root: root(RootKind::Query), ..get("/{a}") }]), "no parameters"),
    ] {
        let error = Api::new(description).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(Api::new(described(vec![operation(Method::Get, "/a", parameters(PARAMETERS_MAX))])).is_ok());
    assert!(Api::new(described(vec![get(&"/a".repeat(64))])).is_ok());
}

#[test]
fn a_long_query_of_a_wide_object_is_read_in_one_step_for_each_name() {
    let property = |name: String| Property { name, required: false, schema: Schema::string() };
    let object =
        Object { properties: (0..100_000).map(|i| property(format!("m{i}"))).collect(), ..Object::default() };
    let alternatives = (0..50_000).map(|_| Schema::array(Schema::string())).collect();
    let items = Schema::of(Shape::OneOf(OneOf { variants: alternatives, discriminator: None }));
    let exploded = Parameter {
        style: Style::Exploded,
        ..parameter("o", Place::Query, Schema::of(Shape::Object(object)), false)
    };
    let list = Parameter { style: Style::Comma, ..parameter("l", Place::Query, Schema::array(items), false) };
    let api = Api::new(described(vec![operation(Method::Get, "/a", vec![exploded, list])])).unwrap();
    let names: Vec<String> = (0..8_000).map(|i| format!("x{i}=1")).collect();
    let query = format!("{}&l={}", names.join("&"), vec!["["; 8_000].join(","));
    let params = timed(|| api.params_of("GET", "/a", &query).unwrap());
    assert_eq!((params.len(), params["x7999"].as_str()), (8_001, "1"));
}
