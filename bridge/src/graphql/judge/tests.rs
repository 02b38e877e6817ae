//! What is made of schemas that parse, and of everything that can be wrong with them.

use crate::graphql::{
    SchemaReading, print,
    schema::{GraphqlSchema, TypeKind},
    sdl,
};
use crate::report::Report;

fn fine(text: &str) -> SchemaReading {
    sdl::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    match sdl::read(text.as_bytes()) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string().replace("GraphQL SDL: ", ""),
    }
}

fn printed(text: &str) -> String {
    print::sdl(&fine(text).schema)
}

fn kind<'a>(schema: &'a GraphqlSchema, name: &str) -> &'a TypeKind {
    &schema.types.iter().find(|ty| ty.name == name).unwrap_or_else(|| panic!("no {name}")).kind
}

/// The report as its reader sees it.
fn shown(report: &Report) -> String {
    let lists = [("repaired", &report.repaired), ("skipped", &report.skipped), ("warning", &report.warnings)];
    let lines = lists
        .iter()
        .flat_map(|(name, list)| list.list.iter().map(move |finding| format!("{name} {finding}")));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    for (text, told) in [
        (
            "type Query { a: Sring }",
            "line 1, column 17: the type `Sring` is not defined; did you mean `String`?",
        ),
        ("type Query { a(x: [Nope!]): Int }", "line 1, column 19: the type `Nope` is not defined"),
        ("type Query { a: U }\nunion U = Gone", "line 2, column 11: the type `Gone` is not defined"),
        ("type Query implements Gone { a: Int }", "line 1, column 23: the type `Gone` is not defined"),
        (
            "type Query { a: In }\ninput In { q: Query }",
            "line 1, column 17: `In` is an input type; fields need an output type; line 2, column 15: `Query` is an output type; arguments and input fields need a scalar, an enum or an input type",
        ),
        (
            "type Query { a(x: Query): Int }",
            "line 1, column 19: `Query` is an output type; arguments and input fields need a scalar, an enum or an input type",
        ),
        (
            "type Query implements B { a: Int } type B { a: Int }",
            "line 1, column 23: `B` is declared as `type`; expected an interface",
        ),
        (
            "type Query { a: Int }\nextend enum Query { B }",
            "line 2, column 13: `extend enum Query`: `Query` is declared as `type`",
        ),
        (
            "schema { query: Q } type Query { a: Int }",
            "line 1, column 17: the root type `Q` is not an object type of this schema",
        ),
        (
            "schema { query: Q } scalar Q",
            "line 1, column 17: the root type `Q` is not an object type of this schema",
        ),
        ("type A { a: Int }", super::NOTHING_TO_CALL),
        ("type Query", super::NOTHING_TO_CALL),
        ("type Subscription { a: Int }", super::NOTHING_TO_CALL),
        ("schema { subscription: Query } type Query { a: Int }", super::NOTHING_TO_CALL),
        (
            "type Query { _service: _Service! _entities(representations: [_Any!]!): [_Entity]! }",
            super::NOTHING_TO_CALL,
        ),
    ] {
        assert_eq!(refused(text), told, "{text}");
    }
}

#[test]
fn an_undefined_type_is_told_once() {
    let text = "type Query { a: Gone b: [Gone] c(x: Gone): Int d: Missing }";
    assert_eq!(
        refused(text),
        "line 1, column 17: the type `Gone` is not defined; line 1, column 51: the type `Missing` is not defined"
    );
}

#[test]
fn of_duplicates_the_first_counts_and_the_others_are_told() {
    let text = "type Query { a(x: Int, x: String): Int\n a: String e: E u: U o(x: In): Int }\n\
                type Query { b: Int }\n enum E { A\n A }\n union U = T | T type T { a: Int }\n\
                input In { a: Int\n a: String }\nextend type T { a: String b: Int }";
    let reading = fine(text);
    insta::assert_snapshot!(shown(&reading.report), @r"
    warning type Query, line 3: is declared twice; the first one counts
    warning type Query, line 2: `a` is declared twice; the first one counts
    warning type Query, field a, line 1: `x` is declared twice; the first one counts
    warning enum E, line 5: `A` is declared twice; the first one counts
    warning type T, line 9: `a` is declared twice; the first one counts
    warning input In, line 8: `a` is declared twice; the first one counts
    ");
    insta::assert_snapshot!(print::sdl(&reading.schema), @r"
    schema {
      query: Query
    }

    type Query {
      a(x: Int): Int
      e: E
      u: U
      o(x: In): Int
    }

    enum E {
      A
    }

    union U = T

    type T {
      a: Int
      b: Int
    }

    input In {
      a: Int
    }
    ");
}

#[test]
fn extensions_join_what_they_extend_wherever_they_stand() {
    let text = "extend type Query { b: I } extend interface I { b: Int }\n\
                extend union U = B extend enum E { B } extend input In { b: Int } extend scalar S @specifiedBy(url: \"x\")\n\
                type Query { a(x: In): E u: U s: S } interface I { a: Int } union U = A enum E { A } input In { a: Int } scalar S\n\
                type A { a: Int } type B { a: Int } extend type A implements I { b: Int }\n\
                extend type Alone { a: Int } extend schema { mutation: Alone }";
    let reading = fine(text);
    assert_eq!(shown(&reading.report), "");
    insta::assert_snapshot!(print::sdl(&reading.schema), @r"
    schema {
      query: Query
      mutation: Alone
    }

    type Query {
      a(x: In): E
      u: U
      s: S
      b: I
    }

    interface I {
      a: Int
      b: Int
    }

    union U = A | B

    enum E {
      A
      B
    }

    input In {
      a: Int
      b: Int
    }

    scalar S

    type A implements I {
      a: Int
      b: Int
    }

    type B {
      a: Int
    }

    type Alone {
      a: Int
    }
    ");
}

#[test]
fn roots_are_those_of_the_schema_and_else_those_with_the_usual_names() {
    for (text, query, mutation) in [
        ("type Query { a: Int } type Mutation { b: Int }", Some("Query"), Some("Mutation")),
        ("type Mutation { b: Int }", None, Some("Mutation")),
        ("schema { mutation: M } type M { b: Int }", None, Some("M")),
        ("schema { query: Q mutation: M } type Q { a: Int } type M { b: Int }", Some("Q"), Some("M")),
        ("schema { query: Q } type Q { a: Int } type Mutation { b: Int }", Some("Q"), None),
        (
            "schema { query: Q } extend schema { mutation: M } type Q { a: Int } type M { b: Int }",
            Some("Q"),
            Some("M"),
        ),
        (
            "extend schema { query: Q } type Q { a: Int } type Mutation { b: Int }",
            Some("Q"),
            Some("Mutation"),
        ),
        ("schema @link(url: \"x\") type Query { a: Int }", Some("Query"), None),
        ("schema { query: Same mutation: Same } type Same { a: Int }", Some("Same"), Some("Same")),
        ("type Query { a: Int } scalar Mutation", Some("Query"), None),
        ("extend type Query { a: Int }", Some("Query"), None),
    ] {
        let schema = fine(text).schema;
        let name = |id| schema.get(id).map(|ty| ty.name.as_str());
        assert_eq!(
            (schema.query.and_then(name), schema.mutation.and_then(name)),
            (query, mutation),
            "{text}"
        );
    }
}

#[test]
fn subscriptions_and_what_no_operation_reaches_are_skipped_with_the_reason() {
    let text = "type Query { a: Int }\ntype Subscription { ticks: Tick\n tocks: Int } type Tick { at: Int } input Lost { a: Int }";
    insta::assert_snapshot!(shown(&fine(text).report), @r"
    skipped subscription ticks, line 2: a subscription is a stream of answers; a call has one answer
    skipped subscription tocks, line 3: a subscription is a stream of answers; a call has one answer
    skipped types: no query or mutation reaches `Tick`, `Lost`
    ");
    assert_eq!(fine(text).schema.types.len(), 2);
}

#[test]
fn interfaces_know_their_objects_in_the_order_of_the_schema() {
    let schema = fine(
        "type Query { node: Node other: Other } type B implements Node & Other { id: ID! }\n\
         type A implements Other & Node { id: ID! } interface Node { id: ID! } interface Other implements Node { id: ID! }",
    )
    .schema;
    for interface in ["Node", "Other"] {
        let TypeKind::Interface(interface) = kind(&schema, interface) else { panic!("not an interface") };
        let names: Vec<_> = interface
            .implementors
            .iter()
            .filter_map(|id| schema.get(*id))
            .map(|ty| ty.name.as_str())
            .collect();
        assert_eq!(names, ["B", "A"]);
    }
}

#[test]
fn members_of_unions_that_are_no_objects_are_left_out_and_told() {
    let reading = fine(
        "type Query { u: U v: V } union U = A | S | I | U type A { a: Int } scalar S interface I { a: Int } union V",
    );
    insta::assert_snapshot!(shown(&reading.report), @r"
    repaired union U, line 1: `S` is not an object type but `scalar`; unions have none of these, it was left out
    repaired union U, line 1: `I` is not an object type but `interface`; unions have none of these, it was left out
    repaired union U, line 1: `U` is not an object type but `union`; unions have none of these, it was left out
    skipped types: no query or mutation reaches `S`
    warning interface I, line 1: is implemented by no type
    warning union V, line 1: has no members
    ");
    let TypeKind::Union(union) = kind(&reading.schema, "U") else { panic!("not a union") };
    assert_eq!(union.members.len(), 1);
}

#[test]
fn conflicting_fields_of_union_members_and_recursive_inputs_are_fine() {
    let text = "type Query { find(by: Filter = {not: {and: []}}): [Hit] }\n\
                union Hit = A | B type A { value: Int! } type B { value: [String] }\n\
                input Filter { and: [Filter!] not: Filter is: Filter }";
    assert_eq!(shown(&fine(text).report), "");
    assert!(printed(text).contains("find(by: Filter = {not: {and: []}}): [Hit]"));
}

#[test]
fn one_of_is_kept_and_doubtful_ones_are_told() {
    let reading = fine(
        "type Query { a(x: One y: Two): Int } input One @oneOf { a: Int b: Int } input Two @oneOf { a: Int! }",
    );
    assert!(matches!(kind(&reading.schema, "One"), TypeKind::Input(input) if input.one_of));
    assert_eq!(
        shown(&reading.report),
        "warning input Two, line 1: is `@oneOf`, yet a field is non-null or has a default; exactly one must still be given"
    );
}

#[test]
fn deprecations_keep_their_reasons() {
    let text = "type Query { a: Int @deprecated b(x: Int @deprecated(reason: \"Use \\\"y\\\".\")): E @deprecated(reason: \"old\") \
                c(i: In): Int } enum E { A @deprecated(reason: \"\") B } input In { f: Int @deprecated }";
    insta::assert_snapshot!(printed(text), @r#"
    schema {
      query: Query
    }

    type Query {
      a: Int @deprecated
      b(x: Int @deprecated(reason: "Use \"y\".")): E @deprecated(reason: "old")
      c(i: In): Int
    }

    enum E {
      A @deprecated(reason: "")
      B
    }

    input In {
      f: Int @deprecated
    }
    "#);
}

#[test]
fn inaccessible_things_are_hidden_with_all_that_needs_them() {
    let text = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@inaccessible\"])\n\
                type Query { open: Open secret: Secret hidden: Int @inaccessible\n\
                filtered(by: SecretIn, n: Int @inaccessible, m: Int): Int needs(by: SecretIn!): Int u: U e: E n: Named i(x: In): Int\n\
                _service: _Service! _entities(representations: [_Any!]!): [_Entity]! }\n\
                type Open implements Named @key(fields: \"id\") { id: ID! internal: Int @federation__inaccessible }\n\
                type Secret implements Named @inaccessible { id: ID! } input SecretIn @inaccessible { a: Int }\n\
                union U = Open | Secret enum E { A B @inaccessible } interface Named { id: ID! }\n\
                input In { a: Int b: SecretIn c: Int @inaccessible }\n\
                directive @key(fields: FieldSet!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE";
    let reading = fine(text);
    insta::assert_snapshot!(shown(&reading.report), @r"
    skipped type Secret, line 6: is marked `@inaccessible`
    skipped input SecretIn, line 6: is marked `@inaccessible`
    skipped type Query: `secret` has a type that is marked `@inaccessible`
    skipped type Query: `hidden` is marked `@inaccessible`
    skipped type Query: `by` has a type that is marked `@inaccessible`
    skipped type Query: `n` is marked `@inaccessible`
    skipped type Query: `needs` has a required argument that is marked `@inaccessible`
    skipped type Open: `internal` is marked `@inaccessible`
    skipped enum E: `B` is marked `@inaccessible`
    skipped input In: `b` has a type that is marked `@inaccessible`
    skipped input In: `c` is marked `@inaccessible`
    ");
    insta::assert_snapshot!(print::sdl(&reading.schema), @r"
    schema {
      query: Query
    }

    type Query {
      open: Open
      filtered(m: Int): Int
      u: U
      e: E
      n: Named
      i(x: In): Int
    }

    type Open implements Named {
      id: ID!
    }

    union U = Open

    enum E {
      A
    }

    interface Named {
      id: ID!
    }

    input In {
      a: Int
    }
    ");
}

#[test]
fn the_scalars_of_federation_and_appsync_are_defined_on_the_fly() {
    for name in
        ["_Any", "FieldSet", "_FieldSet", "link__Import", "link__Purpose", "federation__Scope", "AWSJSON"]
    {
        let reading = fine(&format!("type Query {{ a(x: {name}!): [{name}] }}"));
        assert!(matches!(kind(&reading.schema, name), TypeKind::Scalar(_)), "{name}");
        assert_eq!(
            shown(&reading.report),
            format!("repaired scalar {name}: is used but not declared; it was added")
        );
    }
}

#[test]
fn reserved_and_impossible_names_are_skipped() {
    let long = "x".repeat(256);
    let reading = fine(&format!(
        "type Query {{ a: Int __b: Int {long}: Int {}: Int }} type __Own {{ a: Int }} type Int {{ a: Int }} scalar String",
        "y".repeat(255)
    ));
    let name = format!("`{}`", "x".repeat(80));
    assert_eq!(
        shown(&reading.report),
        format!(
            "skipped type Int, line 1: is a built-in scalar and cannot be something else\n\
             skipped type Query: `__b` begins with `__`, which is reserved\n\
             skipped type Query: {name} is not a GraphQL name of at most 255 letters, digits and underscores"
        )
    );
    assert_eq!(reading.schema.types.len(), 2);
}

#[test]
fn empty_types_are_kept_and_told() {
    let text = "type Query { t: T i: I u: U e: E a(x: In): Int } type T interface I union U enum E input In";
    insta::assert_snapshot!(shown(&fine(text).report), @r"
    warning type T, line 1: has no fields
    warning interface I, line 1: is implemented by no type
    warning union U, line 1: has no members
    warning enum E, line 1: has no values
    warning input In, line 1: has no fields
    ");
    assert_eq!(printed(&printed(text)), printed(text));
}
