//! `farthing bridge inspect` on files: the report, the document, one request, many requests, and mistakes.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::support::{PLANETS, file, inspect, inspect_input, things};

#[tokio::test]
async fn a_rest_document_is_reported_to_people_and_to_programs() -> Result<()> {
    let (_folder, path) = file("things.json", &things().to_string())?;
    let report = inspect(&[&path]).await?.ok()?;
    for shown in [
        "Things 1.2",
        "OpenAPI 3.1",
        "4 operations bridged",
        "https://things.example/v1",
        "API key in the header X-Things-Key",
        "Everything there is",
        "limit, X-Trace",
        "id*",
        "(deprecated)",
        "body: application/json",
    ] {
        ensure!(report.out.contains(shown), "`{shown}` is not in:\n{}", report.out);
    }

    let report = inspect(&[&path, "--json"]).await?.ok()?.json()?;
    assert_eq!(report["origin"], json!(path));
    assert_eq!(report["kind"], "rest");
    assert_eq!(report["upstreams"], json!(["https://things.example/v1"]));
    assert_eq!(report["report"]["bridged"], 4);
    let list = &report["operations"][0];
    assert_eq!(
        (&list["method"], &list["path"], &list["id"]),
        (&json!("GET"), &json!("/things"), &json!("list_things"))
    );
    assert_eq!(list["parameters"][0], json!({ "name": "limit", "in": "query", "required": false }));
    Ok(())
}

#[tokio::test]
async fn standard_input_is_as_good_as_a_file() -> Result<()> {
    let report = inspect_input(&["-", "--json"], &things().to_string()).await?.ok()?.json()?;
    assert_eq!((&report["origin"], &report["title"]), (&json!("standard input"), &json!("Things")));
    let schema = inspect_input(&["-", "--json"], PLANETS).await?.ok()?.json()?;
    assert_eq!(schema["kind"], "graphql");
    Ok(())
}

#[tokio::test]
async fn a_schema_is_reported_with_what_is_not_bridged_and_why() -> Result<()> {
    let (_folder, path) = file("planets.graphql", PLANETS)?;
    let report = inspect(&[&path]).await?.ok()?;
    for shown in [
        "GraphQL",
        "3 operations bridged",
        "/planets",
        "Confirmed planets.",
        "name*",
        "Skipped (1)",
        "ubscription",
    ] {
        ensure!(report.out.contains(shown), "`{shown}` is not in:\n{}", report.out);
    }
    Ok(())
}

#[tokio::test]
async fn the_document_for_consumers_is_printed_in_either_version() -> Result<()> {
    for (name, text) in [("things.json", things().to_string()), ("planets.graphql", PLANETS.to_owned())] {
        let (_folder, path) = file(name, &text)?;
        for (flag, version) in [("--openapi", "3.1"), ("--openapi=3.1", "3.1"), ("--openapi=3.0", "3.0")] {
            let document = inspect(&[&path, flag]).await?.ok()?.json()?;
            let written = document["openapi"].as_str().unwrap_or_default();
            ensure!(written.starts_with(version), "{flag}: {written}");
            let paths = document["paths"].as_object().context("no paths")?;
            ensure!(
                !paths.is_empty() && document["components"]["securitySchemes"]["key"].is_null(),
                "{document}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_call_shows_the_request_that_goes_upstream() -> Result<()> {
    let (_folder, path) = file("things.json", &things().to_string())?;
    let call = ["--operation", "GET /things", "-p", "limit=5", "-p", "X-Trace=a b"];
    let text = inspect(&[&[path.as_str()], &call[..]].concat()).await?.ok()?;
    assert_eq!(text.out, "GET https://things.example/v1/things?limit=5\nx-trace: a b\n");
    let sent = inspect(&[&[path.as_str(), "--json"], &call[..]].concat()).await?.ok()?.json()?;
    assert_eq!(
        sent,
        json!({
            "operation": "GET /things",
            "method": "GET",
            "url": "https://things.example/v1/things?limit=5",
            "headers": { "x-trace": "a b" },
        })
    );
    let one = inspect(&[&path, "--operation", "get /things/{id}", "-p", "id=7"]).await?.ok()?;
    assert_eq!(one.out, "GET https://things.example/v1/things/7\n");
    let posted = inspect(&[&path, "--operation", "POST /things", "--body", r#"{"name":"x"}"#, "--json"])
        .await?
        .ok()?;
    let posted = posted.json()?;
    assert_eq!(
        serde_json::from_str::<Value>(posted["body"].as_str().context("no body")?)?,
        json!({ "name": "x" })
    );
    Ok(())
}

#[tokio::test]
async fn a_call_shows_the_query_that_goes_upstream() -> Result<()> {
    let (_folder, path) = file("planets.graphql", PLANETS)?;
    let call = ["--operation", "GET /planets", "-p", "limit=5", "-p", "fields=name"];
    let query = inspect(&[&[path.as_str(), "--json"], &call[..]].concat()).await?.ok()?.json()?;
    assert_eq!(query["operation"], "GET /planets");
    assert_eq!(query["variables"], json!({ "limit": 5 }));
    let text = query["query"].as_str().context("no query")?;
    assert_eq!(text, "query($limit: Int){planets(limit:$limit){name}}");
    let shown = inspect(&[&[path.as_str()], &call[..]].concat()).await?.ok()?;
    ensure!(shown.out.contains(text) && shown.out.contains(r#"{"limit":5}"#), "{}", shown.out);
    Ok(())
}

#[tokio::test]
async fn a_call_that_would_be_refused_says_what_the_caller_would_be_told() -> Result<()> {
    let (_folder, rest) = file("things.json", &things().to_string())?;
    let (_folder, graphql) = file("planets.graphql", PLANETS)?;
    for (path, call, says) in [
        (&rest, &["GET /things", "-p", "limt=5"][..], &["`limt`", "did you mean `limit`?"][..]),
        (&rest, &["GET /things", "-p", "limit=many"], &["`limit`", "`many`"]),
        (&rest, &["GET /things/seven"], &["`id`", "`seven`"]),
        (&rest, &["GET /thing"], &["/thing"]),
        (&rest, &["GET /things/../secret"], &["segment of dots"]),
        (&rest, &["POST /things", "--body", "{}"], &["name"]),
        (&rest, &["POST /things", "--body", "{"], &["not JSON"]),
        (&rest, &["/things"], &["GET /planets"]),
        (&rest, &["GET /things", "-p", "limit=1", "-p", "limit=2"], &["given more than once"]),
        (&graphql, &["GET /planets", "-p", "limit=7.0"], &["`limit`", "7.0"]),
        (&graphql, &["GET /planet"], &["missing", "`name`"]),
        (&graphql, &["GET /planets", "-p", "fields=nme"], &["name"]),
        (&graphql, &["GET /planets", "-p", "filter.methods=TRANSITS"], &["TRANSIT"]),
    ] {
        let arguments = [&[path.as_str(), "--operation"], call].concat();
        inspect(&arguments).await?.fails(2, says).with_context(|| format!("{call:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn generated_requests_cover_every_operation_and_are_the_same_for_the_same_seed() -> Result<()> {
    let (_folder, path) = file("planets.graphql", PLANETS)?;
    let generate = |seed: &'static str| {
        let path = path.clone();
        async move { inspect(&[&path, "--queries", "60", "--seed", seed]).await?.ok() }
    };
    let (first, again, other) = (generate("1").await?, generate("1").await?, generate("2").await?);
    assert_eq!(first.out, again.out);
    ensure!(first.out != other.out, "two seeds, one output");
    let mut operations = BTreeSet::new();
    for line in first.out.lines() {
        let request: Value = serde_json::from_str(line)?;
        let members: Vec<_> = request.as_object().context("no object")?.keys().cloned().collect();
        assert_eq!(members, ["operation", "query", "variables"]);
        ensure!(request["variables"].is_object() && request["query"].is_string(), "{line}");
        operations.extend(request["operation"].as_str().map(str::to_owned));
    }
    assert_eq!(first.out.lines().count(), 60);
    assert_eq!(operations, ["GET /planet", "GET /planets", "POST /note"].map(str::to_owned).into());
    Ok(())
}

#[tokio::test]
async fn the_owner_decides_what_a_custom_scalar_is() -> Result<()> {
    let (_folder, path) = file("planets.graphql", PLANETS)?;
    let variables = |form: &'static str| {
        let path = path.clone();
        async move {
            let call = ["--operation", "GET /planets", "-p", "heavierThan=1.50"];
            let sent =
                inspect(&[&[path.as_str(), "--json", "--scalar", form], &call[..]].concat()).await?.ok()?;
            Ok::<_, anyhow::Error>(sent.out)
        }
    };
    let number = variables("Mass=number").await?;
    ensure!(number.contains("1.50") && !number.contains("\"1.50\""), "{number}");
    let string = variables("Mass=string").await?;
    ensure!(string.contains("\"1.50\""), "{string}");
    for (form, says) in [
        ("Mas=json", "the schema has Mass"),
        ("Star=json", "the schema has Mass"),
        ("Mass=float", "json, number or string"),
    ] {
        inspect(&[&path, "--scalar", form]).await?.fails(2, &[says])?;
    }
    let (_folder, rest) = file("things.json", &things().to_string())?;
    inspect(&[&rest, "--scalar", "Mass=json"]).await?.fails(2, &["not a GraphQL schema"])?;
    Ok(())
}

#[tokio::test]
async fn mistakes_in_a_file_are_named_with_line_and_column() -> Result<()> {
    for (name, text, position) in [
        ("broken.json", "{\n  \"openapi\": \"3.1.0\",\n  oops\n}", ":3:"),
        ("broken.yaml", "openapi: 3.1.0\ninfo:\n  title: [\npaths: {}\n", ":"),
        ("broken.graphql", "type Query {\n  a: [String\n}", ":3:"),
        ("undefined.graphql", "type Query {\n  a: Missing\n}", ":2:"),
        ("empty.json", "", ""),
        ("prose.txt", "This is no API.", ""),
    ] {
        let (_folder, path) = file(name, text)?;
        inspect(&[&path])
            .await?
            .fails(2, &[&format!("{path}{position}")])
            .with_context(|| name.to_owned())?;
    }
    inspect(&["no-such-file.json"]).await?.fails(2, &["no-such-file.json cannot be read"])?;
    Ok(())
}

#[tokio::test]
async fn a_file_is_read_up_to_its_limit() -> Result<()> {
    const BYTES_MAX: usize = 16 * 1024 * 1024;
    let document = things().to_string();
    for (bytes, fits) in [(BYTES_MAX - 1, true), (BYTES_MAX, true), (BYTES_MAX + 1, false)] {
        let padded = document.clone() + &" ".repeat(bytes - document.len());
        let (_folder, path) = file("large.json", &padded)?;
        let ran = inspect(&[&path]).await?;
        if fits {
            ran.ok()?
        } else {
            ran.fails(2, &["larger than the 16 MiB"])?
        };
    }
    Ok(())
}

#[tokio::test]
async fn views_exclude_each_other_and_what_belongs_to_one_is_refused_elsewhere() -> Result<()> {
    for arguments in [
        &[][..],
        &["-", "--openapi", "--operation", "GET /a"],
        &["-", "--openapi=2.0"],
        &["-", "--queries", "1", "--openapi"],
        &["-", "-p", "a=b"],
        &["-", "--seed", "1"],
        &["-", "--body", "{}"],
        &["-", "--queries", "-1"],
        &["-", "--timeout", "0"],
        &["http://["],
    ] {
        inspect(arguments).await?.fails(2, &[]).with_context(|| format!("{arguments:?}"))?;
    }
    let rest = things().to_string();
    inspect_input(&["-", "--queries", "1"], &rest).await?.fails(2, &["not a GraphQL schema"])?;
    Ok(())
}
