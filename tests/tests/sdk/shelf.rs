//! A service of pages: the same five books by cursor, by page and by offset.

use anyhow::Result;
use axum::{Json, Router, extract::Query, routing::get};
use farthing_control::{
    endpoint,
    types::{Api, ServiceFile, SourceFile, SourceKind},
};
use farthing_testnet::demo::Demo;
use farthing_tests::upstream::serve;
use farthing_values::Usdc;
use serde::Deserialize;
use serde_json::{Value, json};

pub const PRICE: Usdc = Usdc::from_micros(1_000);

/// What one language pays: all pages by cursor and by page, two of three by offset.
pub const PAGES: u64 = 3 + 3 + 2;

const BOOKS: usize = 5;

/// What a language prints: all books, those of two pages, and that a page above the limit was not paid.
pub const EXPECTED: [&str; 4] =
    ["cursor 0 1 2 3 4", "page 0 1 2 3 4", "offset 0 1 2 3", "pages-budget price-above-cap false"];

#[derive(Deserialize)]
struct Asked {
    after: Option<usize>,
    page: Option<usize>,
    offset: Option<usize>,
    limit: usize,
}

fn books(begin: usize, limit: usize) -> Vec<Value> {
    (0..BOOKS).skip(begin).take(limit).map(|id| json!({ "id": id })).collect()
}

async fn by_cursor(Query(asked): Query<Asked>) -> Json<Value> {
    let begin = asked.after.unwrap_or(0);
    let next = begin + asked.limit;
    let next = (next < BOOKS).then(|| next.to_string());
    Json(json!({ "books": books(begin, asked.limit), "page_info": { "next_cursor": next } }))
}

async fn by_page(Query(asked): Query<Asked>) -> Json<Value> {
    let page = asked.page.unwrap_or(1);
    Json(json!({ "items": books((page - 1) * asked.limit, asked.limit) }))
}

async fn by_offset(Query(asked): Query<Asked>) -> Json<Value> {
    Json(books(asked.offset.unwrap_or(0), asked.limit).into())
}

/// What its owner says of it.
pub fn document() -> Value {
    let operation = |id: &str, parameter: Value, answer: Value| {
        let limit = json!({ "name": "limit", "in": "query", "required": true, "schema": { "type": "integer", "format": "int32" } });
        let content = json!({ "application/json": { "schema": answer } });
        json!({ "get": {
            "operationId": id,
            "parameters": [parameter, limit],
            "responses": { "200": { "description": "Books", "content": content } },
        } })
    };
    let whole = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer" } });
    let list = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Book" } });
    let info = json!({ "type": "object", "properties": { "next_cursor": { "type": ["string", "null"] } } });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Shelf", "version": "1" },
        "paths": {
            "/by-cursor": operation(
                "byCursor",
                json!({ "name": "after", "in": "query", "schema": { "type": "string" } }),
                json!({ "type": "object", "required": ["books"], "properties": { "books": list, "page_info": info } }),
            ),
            "/by-page": operation(
                "byPage",
                whole("page"),
                json!({ "type": "object", "properties": { "items": list } }),
            ),
            "/by-offset": operation("byOffset", whole("offset"), list.clone()),
        },
        "components": { "schemas": { "Book": {
            "type": "object", "required": ["id"], "properties": { "id": { "type": "integer", "format": "int64" } },
        } } },
    })
}

/// Starts the service and sells it from the earthquakes' node.
pub async fn publish(demo: &Demo) -> Result<Api> {
    let router = Router::new()
        .route("/openapi.json", get(async || Json(document())))
        .route("/by-cursor", get(by_cursor))
        .route("/by-page", get(by_page))
        .route("/by-offset", get(by_offset));
    let source = SourceFile::at(SourceKind::Openapi, serve(router).await? + "/openapi.json");
    let file = ServiceFile {
        name: "Shelf".to_owned(),
        summary: "Five books on three kinds of pages".to_owned(),
        source: Some(source),
        ..ServiceFile::priced(PRICE)
    };
    Ok(demo.earthquakes.node.control().tell(endpoint::AddApi, &file).await?)
}
