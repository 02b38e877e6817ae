//! What several of these tests ask for: the program with its two outputs, and servers to look at.

use anyhow::{Result, ensure};
use farthing_testnet::program;
use farthing_tests::command::{Ran, fed};
pub use farthing_tests::upstream::serve;
use serde_json::{Value, json};
use tokio::process::Command;

/// Runs `farthing bridge inspect`, without a home to write to.
pub async fn inspect(arguments: &[&str]) -> Result<Ran> {
    inspect_input(arguments, "").await
}

/// The same with something on standard input.
pub async fn inspect_input(arguments: &[&str], input: &str) -> Result<Ran> {
    let nowhere = tempfile::tempdir()?;
    let mut inspecting = Command::new(program("farthing")?);
    inspecting.args(["bridge", "inspect"]).args(arguments).env_clear().env("HOME", nowhere.path());
    let output = fed(inspecting.current_dir(nowhere.path()), input.as_bytes()).await?;
    ensure!(std::fs::read_dir(nowhere.path())?.next().is_none(), "inspecting left files behind");
    Ran::of(output)
}

/// A file that lives as long as the returned folder.
pub fn file(name: &str, text: &str) -> Result<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(name);
    std::fs::write(&path, text)?;
    Ok((folder, path.display().to_string()))
}

/// A small API: `GET /things` with `limit` and `X-Trace`, `GET` and `DELETE /things/{id}`, `POST /things`.
pub fn things() -> Value {
    let parameter = |name: &str, place: &str, required: bool, schema: Value| json!({ "name": name, "in": place, "required": required, "schema": schema });
    let answer = json!({ "200": { "description": "It." } });
    let id = parameter("id", "path", true, json!({ "type": "integer" }));
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Things", "version": "1.2" },
        "servers": [{ "url": "https://things.example/v1" }],
        "paths": {
            "/things": {
                "get": {
                    "operationId": "list_things",
                    "summary": "Everything there is",
                    "parameters": [
                        parameter("limit", "query", false, json!({ "type": "integer", "maximum": 100 })),
                        parameter("X-Trace", "header", false, json!({ "type": "string" })),
                    ],
                    "responses": answer,
                },
                "post": {
                    "operationId": "add_thing",
                    "requestBody": { "required": true, "content": { "application/json": { "schema": {
                        "type": "object",
                        "required": ["name"],
                        "properties": { "name": { "type": "string" } },
                    } } } },
                    "responses": answer,
                },
            },
            "/things/{id}": {
                "get": { "operationId": "one_thing", "parameters": [id], "responses": answer },
                "delete": { "operationId": "no_thing", "deprecated": true, "parameters": [id], "responses": answer },
            },
        },
        "components": { "securitySchemes": {
            "key": { "type": "apiKey", "in": "header", "name": "X-Things-Key" },
        } },
        "security": [{ "key": [] }],
    })
}

/// A schema with what queries differ in: arguments of every kind, objects, a custom scalar, a mutation.
pub const PLANETS: &str = r#"
scalar Mass

enum Method { TRANSIT RADIAL_VELOCITY }

input Filter { name: String, methods: [Method!], heavierThan: Mass }

type Star { name: String!, planets: [Planet!]! }

type Planet {
  name: String!
  "In masses of the Earth."
  mass: Mass
  method: Method
  star: Star!
}

type Query {
  "Confirmed planets."
  planets(limit: Int = 20, filter: Filter, heavierThan: Mass): [Planet!]!
  planet(name: String!): Planet
}

type Mutation { note(planet: String!, text: String!): Planet! }

type Subscription { found: Planet! }
"#;

/// What a server with `type Query { planets(limit: Int = 5): [Planet!]! } type Planet { name: String! }` answers to
/// introspection.
pub fn introspection() -> Value {
    let named = |kind: &str, name: &str| json!({ "kind": kind, "name": name, "ofType": null });
    let wrapped = |kind: &str, inner: Value| json!({ "kind": kind, "name": null, "ofType": inner });
    let non_null = |inner: Value| wrapped("NON_NULL", inner);
    let field = |name: &str, args: Value, ty: Value| {
        json!({ "name": name, "description": null, "args": args, "type": ty, "isDeprecated": false,
                "deprecationReason": null })
    };
    let object = |name: &str, field: Value| {
        json!({ "kind": "OBJECT", "name": name, "description": null, "fields": [field], "inputFields": null,
                "interfaces": [], "enumValues": null, "possibleTypes": null })
    };
    let scalar = |name: &str| {
        json!({ "kind": "SCALAR", "name": name, "description": null, "fields": null, "inputFields": null,
                "interfaces": null, "enumValues": null, "possibleTypes": null })
    };
    let limit = json!([{ "name": "limit", "description": null, "type": named("SCALAR", "Int"), "defaultValue": "5" }]);
    let planets = non_null(wrapped("LIST", non_null(named("OBJECT", "Planet"))));
    json!({ "data": { "__schema": {
        "queryType": { "name": "Query" },
        "mutationType": null,
        "subscriptionType": null,
        "types": [
            object("Query", field("planets", limit, planets)),
            object("Planet", field("name", json!([]), non_null(named("SCALAR", "String")))),
            scalar("Int"),
            scalar("String"),
        ],
        "directives": [],
    } } })
}
