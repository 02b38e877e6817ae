//! A running exoplanets service to ask, and the archive's table to compare its answers with.

use std::collections::HashMap;

use farthing_demo_services::exoplanets;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

use super::service::{Server, client};

const JSON: &str = "application/json";

pub(crate) struct Exoplanets {
    pub(crate) server: Server,
    client: reqwest::Client,
}

/// What came back over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Exoplanets {
    pub(crate) async fn start() -> Self {
        let server = Server::start(exoplanets::router(exoplanets::embedded().unwrap())).await;
        Self { server, client: client() }
    }

    /// The `data` of a query that succeeds.
    pub(crate) async fn ask(&self, query: &str) -> Value {
        self.ask_with(query, json!({})).await
    }

    pub(crate) async fn ask_with(&self, query: &str, variables: Value) -> Value {
        let mut reply = self.request_with(query, variables).await;
        assert_eq!(reply.body.get("errors"), None, "{query}");
        assert_eq!(reply.status, 200);
        reply.body["data"].take()
    }

    /// Code and message of the first error of a query that is executed and refused.
    pub(crate) async fn refusal(&self, query: &str) -> (String, String) {
        let reply = self.request(&json!({ "query": query })).await;
        let error = &reply.body["errors"][0];
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{query}: {reply:?}")).to_owned();
        (text(&error["extensions"]["code"]), text(&error["message"]))
    }

    pub(crate) async fn request_with(&self, query: &str, variables: Value) -> Reply {
        self.request(&json!({ "query": query, "variables": variables })).await
    }

    pub(crate) async fn request(&self, body: &Value) -> Reply {
        self.post(body.to_string(), JSON, JSON).await
    }

    pub(crate) async fn post(&self, body: String, content_type: &str, accept: &str) -> Reply {
        let request = self.client.post(self.server.url("/graphql"));
        let request = request.header(CONTENT_TYPE, content_type).header(ACCEPT, accept);
        let response = request.body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text}"));
        Reply { status, content_type, body }
    }
}

/// A line of the archive's table: text by column.
pub(crate) type Row = HashMap<String, String>;

/// The table as the archive wrote it, read without the service's code.
pub(crate) fn table() -> Vec<Row> {
    let table: &[u8] = include_bytes!("../../data/exoplanets.csv");
    csv::Reader::from_reader(table).into_deserialize().map(Result::unwrap).collect()
}

/// The number in a column, if there is one.
pub(crate) fn number(row: &Row, column: &str) -> Option<f64> {
    Some(row[column].as_str()).filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

/// The values of one field in a list of objects.
pub(crate) fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a Value> {
    list.as_array().unwrap().iter().map(|element| &element[field]).collect()
}
