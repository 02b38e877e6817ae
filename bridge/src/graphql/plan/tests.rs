//! Queries from calls, and every call that is refused, against the tables of the design.

use std::collections::BTreeMap;

use crate::{
    description::{ApiDescription, Operation, RootField, RootKind},
    graphql::{
        Planner,
        schema::{Composite, Field, GraphqlSchema, Input, Type, TypeId, TypeKind, TypeRef, Union},
        testing::{api, sky},
    },
    limits::{GRAPHQL_NAME_BYTES_MAX, PARAMETERS_MAX, QUERY_BYTES_MAX, TYPE_MEMBERS_MAX},
};

#[test]
fn a_query_declares_exactly_the_arguments_that_were_given() {
    let sky = sky();
    let fields = ("fields", "name");
    for (params, expected) in [
        (vec![fields], "query{planets{name}}\n{}"),
        (vec![fields, ("limit", "5")], "query($limit: Int){planets(limit:$limit){name}}\n{\"limit\":5}"),
        (
            vec![("sort", "NAME,MASS"), ("limit", "5"), fields],
            "query($limit: Int,$sort: [Sort!]){planets(limit:$limit,sort:$sort){name}}\n\
             {\"limit\":5,\"sort\":[\"NAME\",\"MASS\"]}",
        ),
    ] {
        assert_eq!(sky.shown("planets", &params, ""), expected);
    }
    let note = sky.shown("note", &[fields_of("text")], r#"{"text": "a", "planet": "b"}"#);
    assert_eq!(
        note,
        "mutation($planet: ID!,$text: String!){note(planet:$planet,text:$text){text}}\n\
         {\"planet\":\"b\",\"text\":\"a\"}"
    );
}

fn fields_of(text: &str) -> (&str, &str) {
    ("fields", text)
}

#[test]
fn a_request_is_posted_as_json() {
    let request = sky().plan("planet", &[("name", "a\"}{")], "").unwrap();
    let body: serde_json::Value = serde_json::from_slice(&request.body()).unwrap();
    assert_eq!(body["query"], request.query);
    assert_eq!(body["variables"], serde_json::json!({"name": "a\"}{"}));
}

#[test]
fn arguments_come_in_params_or_in_the_body_but_not_in_both() {
    let sky = sky();
    assert_eq!(
        sky.variables("planets", &[("limit", "5")], r#"{"sort": ["NAME"]}"#),
        r#"{"limit":5,"sort":["NAME"]}"#
    );
    insta::assert_snapshot!(
        [
            sky.refused("planets", &[("limit", "5")], r#"{"limit": 5}"#),
            sky.refused("planets", &[("filter.name", "a")], r#"{"filter": {}}"#),
            sky.refused("planets", &[("filter", "{}"), ("filter.name", "a")], ""),
            sky.refused("planets", &[], r#"{"limit": 5, "limit": 6}"#),
            sky.refused("planets", &[], r#"{"lmit": 5}"#),
            sky.refused("planets", &[], r#"{"fields": "name"}"#),
            sky.refused("planets", &[], "[1]"),
            sky.refused("planets", &[], "limit=5"),
            sky.refused("planets", &[("lmit", "5")], ""),
            sky.refused("planets", &[("flter.name", "5")], ""),
            sky.refused("count", &[("fields", "name")], ""),
        ]
        .join("\n")
    );
}

#[test]
fn everything_that_is_missing_is_told_at_once_with_everything_that_is_wrong() {
    let sky = sky();
    let filter = r#"{"mass":{"gt":1},"and":[{"mass":{}},{"name":3}]}"#;
    insta::assert_snapshot!(sky.refused(
        "must",
        &[("filter", filter), ("int", "seven"), ("x", "1"), ("sort", "NMAE")],
        ""
    ));
}

#[test]
fn a_connection_is_asked_for_twenty_items_unless_the_caller_or_the_schema_says_otherwise() {
    let sky = sky();
    let variables = |id: &str, params: &[(&str, &str)]| {
        let fields = [("fields", "pageInfo")];
        sky.variables(id, &[params, &fields[..]].concat(), "")
    };
    assert_eq!(variables("page", &[]), r#"{"first":20}"#);
    assert_eq!(variables("page", &[("after", "x")]), r#"{"first":20,"after":"x"}"#);
    assert_eq!(variables("page", &[("first", "3")]), r#"{"first":3}"#);
    assert_eq!(variables("page", &[("last", "3")]), r#"{"last":3}"#);
    assert_eq!(variables("nodes", &[]), r#"{"first":20}"#, "it is not missing");
    assert_eq!(variables("limited", &[]), "{}", "its own default is 5");
}

#[test]
fn a_parameter_of_the_name_fields_leaves_ours_another() {
    let sky = sky();
    let both = [("text", "a"), ("fields", "b,c"), ("_fields", "__typename")];
    assert_eq!(
        sky.shown("search", &both, ""),
        "query($text: String!,$fields: [String]){search(text:$text,fields:$fields){__typename}}\n\
         {\"text\":\"a\",\"fields\":[\"b\",\"c\"]}"
    );
}

#[test]
fn no_query_is_longer_than_the_limit() {
    let long = |fields: usize| {
        let names: Vec<_> = (0..fields).map(|i| format!("field_number_{i:04}: Int")).collect();
        api(&format!("type Query {{ wide: Wide }} type Wide {{ {} }}", names.join("\n")))
    };
    let choose = |count: usize| {
        // Each name is 17 characters long; `*` chooses them without naming them.
        let sky = long(count);
        sky.shown("wide", &[("fields", "*")], "")
    };
    let around = "query{wide{}}".len();
    let fits = (QUERY_BYTES_MAX - around + 1) / 18;
    assert!(choose(fits).len() <= QUERY_BYTES_MAX + "\n{}".len());
    assert!(choose(fits).starts_with("query{"));
    assert_eq!(
        choose(fits + 1),
        format!(
            "`fields` makes a query of {} bytes, 8192 are allowed; choose fewer fields",
            around + 18 * (fits + 1) - 1
        )
    );
    assert!(long(2_000).plan("wide", &[], "").unwrap().query.len() <= QUERY_BYTES_MAX);
}

#[test]
fn arguments_beyond_the_limit_of_parameters_are_not_offered() {
    let with = |count: usize| {
        let args: Vec<_> = (0..count).map(|i| format!("a{i}: Int")).collect();
        api(&format!("type Query {{ f({}): Int ok: Int }}", args.join(" "))).report.skipped.count()
    };
    assert_eq!(with(PARAMETERS_MAX), 0);
    assert_eq!(with(PARAMETERS_MAX + 1), 1);
}

/// A schema with one root field `a: Int`.
fn smallest() -> GraphqlSchema {
    let field = |name: &str, ty: u32| Field {
        name: name.into(),
        description: String::new(),
        deprecated: None,
        args: Vec::new(),
        ty: TypeRef::Named(TypeId(ty)),
    };
    let ty = |name: &str, kind| Type { name: name.into(), description: String::new(), kind };
    let query = Composite { fields: vec![field("a", 1)], implementors: Vec::new() };
    let scalar = crate::graphql::schema::Scalar { form: crate::graphql::schema::ScalarForm::Int };
    GraphqlSchema {
        types: vec![ty("Query", TypeKind::Object(query)), ty("Int", TypeKind::Scalar(scalar))],
        query: Some(TypeId(0)),
        mutation: None,
    }
}

fn planner(schema: GraphqlSchema) -> Result<Planner, String> {
    let root = RootField::new(RootKind::Query, "a".into());
    let operation = Operation { path: "/a".into(), id: "a".into(), root: Some(root), ..Operation::default() };
    let description =
        ApiDescription { operations: vec![operation], graphql: Some(schema), ..ApiDescription::default() };
    Planner::new(&description).map_err(|error| error.to_string())
}

#[test]
fn a_strangers_schema_that_breaks_the_rules_is_refused() {
    assert!(planner(smallest()).is_ok());
    let spoilt = |spoil: &dyn Fn(&mut GraphqlSchema)| {
        let mut schema = smallest();
        spoil(&mut schema);
        planner(schema).expect_err("a schema that breaks the rules")
    };
    let field = |schema: &mut GraphqlSchema, change: &dyn Fn(&mut Field)| {
        if let TypeKind::Object(query) = &mut schema.types[0].kind {
            change(&mut query.fields[0]);
        }
    };
    let add = |schema: &mut GraphqlSchema, kind: TypeKind| {
        schema.types.push(Type { name: "X".into(), description: String::new(), kind });
    };
    let errors = [
        spoilt(&|schema| schema.query = Some(TypeId(9))),
        spoilt(&|schema| schema.query = Some(TypeId(1))),
        spoilt(&|schema| schema.mutation = Some(TypeId(9))),
        spoilt(&|schema| schema.query = None),
        spoilt(&|schema| schema.types[0].name = "Int".into()),
        spoilt(&|schema| schema.types[0].name = "Qu{ery".into()),
        spoilt(&|schema| field(schema, &|field| field.name = "a){b".into())),
        spoilt(&|schema| field(schema, &|field| field.name = String::new())),
        spoilt(&|schema| field(schema, &|field| field.name = "b".into())),
        spoilt(&|schema| field(schema, &|field| field.ty = TypeRef::Named(TypeId(7)))),
        spoilt(&|schema| field(schema, &|field| field.ty = TypeRef::Named(TypeId(0)))),
        spoilt(&|schema| {
            field(schema, &|field| {
                let inner = TypeRef::NonNull(Box::new(field.ty.clone()));
                field.ty = TypeRef::NonNull(Box::new(inner));
            });
        }),
        spoilt(&|schema| {
            field(schema, &|field| {
                for _ in 0..17 {
                    field.ty = TypeRef::List(Box::new(field.ty.clone()));
                }
            });
        }),
        spoilt(&|schema| add(schema, TypeKind::Union(Union { members: vec![TypeId(1)] }))),
        spoilt(&|schema| add(schema, TypeKind::Union(Union { members: vec![TypeId(0), TypeId(0)] }))),
        spoilt(&|schema| {
            let value = crate::graphql::schema::InputValue {
                name: "a".into(),
                description: String::new(),
                deprecated: None,
                ty: TypeRef::Named(TypeId(0)),
                default: None,
            };
            add(schema, TypeKind::Input(Input { fields: vec![value.clone()], one_of: false }));
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
    let long = spoilt(&|schema| schema.types[1].name = "x".repeat(GRAPHQL_NAME_BYTES_MAX + 1));
    assert!(long.contains("has more than 255 bytes"), "{long}");
    let root = spoilt(&|schema| add(schema, TypeKind::Union(Union { members: vec![TypeId(0)] })));
    assert!(root.contains("X has a root type as a member"), "{root}");
    let members = vec![TypeId(1); TYPE_MEMBERS_MAX + 1];
    let many = spoilt(&|schema| add(schema, TypeKind::Union(Union { members: members.clone() })));
    assert!(many.contains("members, 100000 are allowed"), "{many}");
}

#[test]
fn an_operation_that_is_not_the_planners_is_refused_without_a_panic() {
    let sky = sky();
    let nothing = BTreeMap::new();
    assert!(sky.planner.plan(&sky.description, 999, &nothing, b"").is_err());
    let other = api("type Query { a: Int }").description;
    assert!(sky.planner.plan(&other, sky.index("planets"), &nothing, b"").is_err());
    assert!(sky.planner.plan(&ApiDescription::default(), 0, &nothing, b"").is_err());
}
