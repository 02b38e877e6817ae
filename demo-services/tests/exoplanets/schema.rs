//! The schema: as introspection answers it, and as text.

use std::collections::BTreeSet;

use graphql_parser::schema::{Definition, Document, Field, InputValue, TypeDefinition, parse_schema};
use serde_json::{Value, json};

use super::service::client;
use super::support::Exoplanets;

const INTROSPECTION: &str = include_str!("introspection.graphql");

async fn introspected(service: &Exoplanets) -> Vec<Value> {
    let schema = service.ask(INTROSPECTION).await["__schema"].take();
    assert_eq!(schema["queryType"]["name"], "Query");
    assert_eq!(schema["mutationType"]["name"], "Mutation");
    assert_eq!(schema["subscriptionType"], Value::Null);
    schema["types"].as_array().unwrap().clone()
}

/// The types that are this service's own.
fn own(types: &[Value]) -> impl Iterator<Item = &Value> {
    let builtin = ["Int", "Float", "String", "Boolean", "ID"];
    let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
    types.iter().filter(move |it| !name(it).starts_with("__") && !builtin.contains(&&*name(it)))
}

fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object[name].as_array().into_iter().flatten()
}

/// `[Planet!]!` for a type reference.
fn written(reference: &Value) -> String {
    match reference["kind"].as_str().unwrap() {
        "NON_NULL" => format!("{}!", written(&reference["ofType"])),
        "LIST" => format!("[{}]", written(&reference["ofType"])),
        _ => reference["name"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn everything_in_the_schema_has_a_description() {
    let service = Exoplanets::start().await;
    for kind in own(&introspected(&service).await) {
        let parts = ["fields", "inputFields", "enumValues"].into_iter().flat_map(|parts| list(kind, parts));
        for part in parts {
            assert!(part["description"].is_string(), "{} {}", kind["name"], part["name"]);
            for argument in list(part, "args") {
                let place = format!("{} {} {}", kind["name"], part["name"], argument["name"]);
                assert!(argument["description"].is_string(), "{place}");
            }
        }
        assert!(kind["description"].is_string(), "{}", kind["name"]);
    }
}

#[tokio::test]
async fn the_network_finds_the_planets_query_that_it_expects() {
    let service = Exoplanets::start().await;
    let types = introspected(&service).await;
    let field = |of: &str, name: &str| {
        let kind = types.iter().find(|it| it["name"] == of).unwrap();
        list(kind, "fields").find(|it| it["name"] == name).unwrap_or_else(|| panic!("{of}.{name}")).clone()
    };
    let planets = field("Query", "planets");
    assert_eq!(written(&planets["type"]), "[Planet!]!");
    let arguments: Vec<_> =
        list(&planets, "args").map(|it| (it["name"].clone(), written(&it["type"]))).collect();
    assert_eq!(
        arguments,
        [(json!("discoveryMethod"), "String".to_owned()), (json!("limit"), "Int".to_owned())]
    );
    for (name, kind) in [
        ("name", "String!"),
        ("hostStar", "String!"),
        ("mass", "Float"),
        ("radius", "Float"),
        ("orbitalPeriod", "Float"),
        ("discoveryYear", "Int"),
        ("star", "Star!"),
    ] {
        assert_eq!(written(&field("Planet", name)["type"]), kind, "{name}");
    }
    assert_eq!(written(&field("Facility", "discoveryYear")["type"]), "Int!", "differs from a planet's");
    let deprecated = field("Planet", "hostName");
    assert_eq!(
        (&deprecated["isDeprecated"], &deprecated["deprecationReason"]),
        (&json!(true), &json!("Use `hostStar`."))
    );
}

#[tokio::test]
async fn defaults_are_values_of_their_types() {
    let service = Exoplanets::start().await;
    let types = introspected(&service).await;
    let defaults: BTreeSet<String> = own(&types)
        .flat_map(|kind| {
            list(kind, "fields").flat_map(|field| list(field, "args")).chain(list(kind, "inputFields"))
        })
        .filter_map(|it| {
            Some(format!(
                "{}: {} = {}",
                it["name"].as_str()?,
                written(&it["type"]),
                it["defaultValue"].as_str()?
            ))
        })
        .collect();
    let expected = [
        "limit: Int! = 10",
        "limit: Int! = 20",
        "order: SortOrder! = ASC",
        "order: SortOrder! = DESC",
        "orderBy: PlanetField! = NAME",
        "radius: Degrees = 1",
    ];
    assert_eq!(defaults, expected.map(str::to_owned).into());
}

#[tokio::test]
async fn the_schema_as_text_is_the_schema_that_is_introspected() {
    let service = Exoplanets::start().await;
    let response = client().get(service.server.url("/schema.graphql")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    let text = response.text().await.unwrap();
    let document = parse_schema::<String>(&text).unwrap();
    let types = introspected(&service).await;
    assert_eq!(
        lines_of_text(&document),
        own(&types).flat_map(lines_of_introspected).collect::<BTreeSet<_>>()
    );
}

/// Everything that a type introduces, one line each: `Query.planets(limit: Int): [Planet!]!`.
fn lines_of_introspected(kind: &Value) -> Vec<String> {
    let name = kind["name"].as_str().unwrap();
    let default = |it: &Value| it["defaultValue"].as_str().map(|it| format!(" = {it}")).unwrap_or_default();
    let input =
        |it: &Value| format!("{}: {}{}", it["name"].as_str().unwrap(), written(&it["type"]), default(it));
    let field = |it: &Value| {
        let arguments: Vec<String> = list(it, "args").map(input).collect();
        format!("{}({}): {}", it["name"].as_str().unwrap(), arguments.join(", "), written(&it["type"]))
    };
    let member = |it: &Value| it["name"].as_str().unwrap().to_owned();
    let mut parts: Vec<String> = list(kind, "fields").map(field).collect();
    parts.extend(list(kind, "inputFields").map(input));
    parts.extend(list(kind, "enumValues").map(member));
    parts.extend(list(kind, "interfaces").map(member));
    if kind["kind"] == "UNION" {
        parts.extend(list(kind, "possibleTypes").map(member));
    }
    parts.iter().map(|part| format!("{name}.{part}")).chain([name.to_owned()]).collect()
}

fn lines_of_text(document: &Document<'_, String>) -> BTreeSet<String> {
    let input = |it: &InputValue<'_, String>| {
        let default = it.default_value.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
        format!("{}: {}{default}", it.name, it.value_type)
    };
    let field = |it: &Field<'_, String>| {
        let arguments: Vec<String> = it.arguments.iter().map(input).collect();
        format!("{}({}): {}", it.name, arguments.join(", "), it.field_type)
    };
    let mut lines = BTreeSet::new();
    for definition in &document.definitions {
        let Definition::TypeDefinition(definition) = definition else { continue };
        let (name, parts): (_, Vec<String>) = match definition {
            TypeDefinition::Scalar(it) => (&it.name, Vec::new()),
            TypeDefinition::Object(it) => (
                &it.name,
                it.fields.iter().map(field).chain(it.implements_interfaces.iter().cloned()).collect(),
            ),
            TypeDefinition::Interface(it) => (&it.name, it.fields.iter().map(field).collect()),
            TypeDefinition::Union(it) => (&it.name, it.types.clone()),
            TypeDefinition::Enum(it) => {
                (&it.name, it.values.iter().map(|value| value.name.clone()).collect())
            }
            TypeDefinition::InputObject(it) => (&it.name, it.fields.iter().map(input).collect()),
        };
        lines.extend(parts.iter().map(|part| format!("{name}.{part}")).chain([name.clone()]));
    }
    lines
}
