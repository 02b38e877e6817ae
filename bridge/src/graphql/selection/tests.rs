//! Default selections, as queries.

use crate::{
    graphql::testing::{api, sky},
    limits::{DEFAULT_FIELDS_MAX, QUERY_BYTES_MAX},
    steps::Steps,
};

/// The query without its selection's siblings: one line for each operation.
#[test]
fn what_is_asked_for_when_nobody_chooses() {
    let sky = sky();
    let must = [("name", "x")];
    let body = r#"{"planet": "a", "text": "b"}"#;
    insta::assert_snapshot!(
        [
            sky.shown("planets", &[], ""),
            sky.shown("planet", &must, ""),
            sky.shown("page", &[], ""),
            sky.shown("nodes", &[], ""),
            sky.shown("search", &[("text", "x")], ""),
            sky.shown("bodies", &[], ""),
            sky.shown("count", &[], ""),
            sky.shown("hermit", &[], ""),
            sky.shown("shy", &[], ""),
            sky.shown("note", &[], body),
        ]
        .join("\n")
    );
}

#[test]
fn members_whose_fields_differ_in_type_get_an_alias_however_small_the_difference() {
    let query = |types: &str| {
        let sky = api(&format!("type Query {{ u: U }} union U = A | B | C {types}"));
        sky.shown("u", &[], "").replace("\n{}", "")
    };
    insta::assert_snapshot!(
        [
            query("type A { x: Int } type B { x: Int! } type C { x: [Int] }"),
            query("type A { x: Int x_Int: Int } type B { x: Int! } type C { x: Int x_Int: String }"),
            query("type A { x: E } type B { x: String } type C { x: F } enum E { V } enum F { V }"),
            query("type A { o: P } type B { o: Q } type C { o: P } type P { x: Int } type Q { x: String }"),
            query("type A { o: P } type B { o: [P] } type C { o: P } type P { x: V } union V = S | T type S { y: Int } type T { y: String }"),
        ]
        .join("\n"));
}

#[test]
fn an_interface_shows_what_twelve_of_its_types_add() {
    let types: Vec<_> =
        (0..14).map(|i| format!("type T{i} implements N {{ id: ID! own{i}: Int }}")).collect();
    let sky = api(&format!("type Query {{ n: N }} interface N {{ id: ID! }} {}", types.join(" ")));
    let query = sky.shown("n", &[], "");
    assert!(query.starts_with("query{n{__typename id...on T0{own0}"), "{query}");
    assert!(query.contains("...on T11{own11}}}") && !query.contains("T12"), "{query}");
}

#[test]
fn a_default_selection_is_bounded_and_gives_up_what_lies_deepest() {
    let wide = |fields: usize, name: usize| {
        let leaf = |i: usize| format!("f{i:0name$}: Int");
        let fields: Vec<_> = (0..fields).map(leaf).collect();
        let fields = fields.join(" ");
        api(&format!("type Query {{ w: W }} type W {{ deep: D {fields} }} type D {{ {fields} }}"))
    };
    let count = |query: &str| query.matches('f').count();

    let query = wide(100, 1).shown("w", &[], "");
    assert_eq!(count(&query), 200, "all fit");
    let query = wide(200, 1).shown("w", &[], "");
    let (deep, own) = query.split_once('}').unwrap();
    assert_eq!((count(deep), count(own)), (DEFAULT_FIELDS_MAX - 201, 200), "the object takes a field too");
    let query = wide(200, 50).shown("w", &[], "");
    assert!(query.len() <= QUERY_BYTES_MAX && query.len() > QUERY_BYTES_MAX - 60, "{}", query.len());
    assert!(!query.contains("deep"), "what lies above was not even complete");
}

#[test]
fn a_query_with_aliases_keeps_the_limit_too() {
    let fields = |ty: &str| {
        (0..60).map(|i| format!("a_rather_long_name_of_a_field_{i:03}: {ty}")).collect::<Vec<_>>().join(" ")
    };
    let sky = api(&format!(
        "type Query {{ u: U }} union U = A | B | C | D type A {{ {} }} type B {{ {} }} type C {{ {} }} type D {{ {} }}",
        fields("Int"),
        fields("Int!"),
        fields("[Int]"),
        fields("String")
    ));
    let query = sky.plan("u", &[], "").unwrap().query;
    assert!(query.len() <= QUERY_BYTES_MAX && query.len() > QUERY_BYTES_MAX / 2, "{}", query.len());
}

#[test]
fn a_default_selection_is_smaller_when_there_are_no_steps_left() {
    let sky = api("type Query { a: A } type A { x: Int b: B } type B { y: Int c: C } type C { z: Int }");
    let schema = sky.description.graphql.as_ref().unwrap();
    let planned = sky.planner.operation(0).unwrap();
    let field = planned.declared(schema).unwrap();
    let selected =
        |steps| planned.default_selection(schema, field, &mut Steps::new(steps)).unwrap().text(schema);
    assert_eq!(selected(100), "{x b{y c{z}}}");
    let texts: Vec<_> = (1..10).map(selected).collect();
    assert!(texts.contains(&"{__typename}".into()) && texts.contains(&"{x}".into()), "{texts:?}");
}
