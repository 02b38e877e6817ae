//! The arguments of the tools, and the requests to the node that they become.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};

use farthing_bridge::shown;
use farthing_control::types::{CallRequest, CatalogQuery, MethodText, ServiceIdText, UsdcText};
use farthing_values::{Method, Usdc};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Arguments, Trouble,
    tools::{SEARCH_LIMIT, SEARCH_LIMIT_MAX, ToolName},
};

/// The longest words of a search.
const QUERY_BYTES_MAX: usize = 500;

/// The arguments of `search_catalog`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchArguments {
    query: String,
    category: Option<String>,
    max_price: Option<UsdcText>,
    limit: Option<usize>,
}

/// The arguments of `describe_service` and `get_sample`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceArguments {
    pub service: ServiceIdText,
    operation: Option<String>,
}

/// The arguments of `spending_status`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// The arguments of `call_service`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallArguments {
    service: ServiceIdText,
    method: MethodText,
    path: String,
    #[serde(default)]
    params: Option<BTreeMap<String, Value>>,
    body: Option<Value>,
    max_price: UsdcText,
    call_id: Option<String>,
}

/// The arguments of `read_answer`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    pub call_id: String,
    pub offset: usize,
}

/// Reads the arguments of a tool.
pub fn read<T: DeserializeOwned>(tool: ToolName, arguments: Option<Arguments>) -> Result<T, Trouble> {
    serde_json::from_value(Value::Object(arguments.unwrap_or_default())).map_err(|error| {
        let next = match tool {
            ToolName::CallService => {
                "Correct the arguments by the schema of call_service. max_price is text, such as \"0.01\"."
            }
            _ => "Correct the arguments by the schema of the tool.",
        };
        Trouble::of_arguments(&format!("the arguments of {} cannot be read: {error}", tool.name()), next)
    })
}

impl SearchArguments {
    #[must_use]
    pub fn query(self) -> CatalogQuery {
        let Self { query, category, max_price, limit } = self;
        CatalogQuery {
            words: query[..query.floor_char_boundary(QUERY_BYTES_MAX)].to_owned(),
            category: category.filter(|category| !category.is_empty()),
            price_max: max_price,
            limit: Some(limit.unwrap_or(SEARCH_LIMIT).clamp(1, SEARCH_LIMIT_MAX)),
            ..CatalogQuery::default()
        }
    }
}

impl ServiceArguments {
    /// The method and the path of the operation, if one is named.
    ///
    /// # Errors
    /// [`Trouble`] when it is not a method and a path.
    pub fn operation(&self) -> Result<Option<(Method, String)>, Trouble> {
        let Some(named) = self.operation.as_deref().map(str::trim).filter(|named| !named.is_empty()) else {
            return Ok(None);
        };
        let read = |named: &str| {
            let (method, path) = named.split_once(' ')?;
            Some((method.parse::<Method>().ok()?, path.trim().to_owned()))
        };
        let operation = read(named).filter(|(_, path)| path.starts_with('/'));
        operation.map(Some).ok_or_else(|| {
            let message = format!("`operation` is `{}`, expected a method and a path", shown(named));
            Trouble::of_arguments(&message, "Write it as describe_service shows it, such as \"GET /things\".")
        })
    }
}

impl CallArguments {
    /// Returns the most that the call may cost.
    #[must_use]
    pub const fn max_price(&self) -> Usdc {
        self.max_price.0
    }

    /// The request to the node, with a call id only if the agent names one.
    ///
    /// # Errors
    /// [`Trouble`] when a parameter is a list or an object.
    pub fn request(self) -> Result<CallRequest, Trouble> {
        let Self { service, method, path, params, body, max_price, call_id } = self;
        let params = params.unwrap_or_default().into_iter();
        Ok(CallRequest {
            api_id_public: service,
            path,
            method,
            params: params.map(parameter).collect::<Result<_, _>>()?,
            body,
            body_base64: None,
            headers: BTreeMap::new(),
            max_price: Some(max_price),
            call_id: call_id.filter(|id| !id.is_empty()),
        })
    }
}

fn parameter((name, value): (String, Value)) -> Result<(String, String), Trouble> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        _ => {
            let message = format!("`params.{}` is not a text, a number or a boolean", shown(&name));
            return Err(Trouble::of_arguments(
                &message,
                "Write each parameter as text, as describe_service shows it.",
            ));
        }
    };
    Ok((name, text))
}

/// A call of the holder of one secret: the same for the same call, whatever its call id and its highest price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    pub secret: String,
    pub call: u64,
}

impl Fingerprint {
    /// The fingerprint of a call. `keys`: nobody else knows them, so that an agent cannot look for two calls with one
    /// fingerprint, of which its user sees one.
    #[must_use]
    pub fn of(secret: &str, request: &CallRequest, keys: &RandomState) -> Self {
        let CallRequest { api_id_public, path, method, params, body, .. } = request;
        let body = body.as_ref().map(Value::to_string);
        let call = keys.hash_one((api_id_public.to_string(), path, method.to_string(), params, body));
        Self { secret: secret.to_owned(), call }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

    fn given(value: Value) -> Option<Arguments> {
        match value {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        }
    }

    fn call(value: Value) -> Result<CallRequest, Trouble> {
        read::<CallArguments>(ToolName::CallService, given(value))?.request()
    }

    #[test]
    fn a_call_becomes_the_request_of_a_script() {
        let request = call(json!({
            "service": ID, "method": "get", "path": "/a", "params": { "n": 5, "m": 4.5, "b": true, "s": "x" },
            "max_price": "0.01", "body": null, "call_id": null,
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({
                "api_id_public": ID, "path": "/a", "method": "GET",
                "params": { "b": "true", "m": "4.5", "n": "5", "s": "x" }, "max_price": "0.01",
            })
        );
    }

    #[test]
    fn a_call_without_a_price_or_with_one_that_is_no_text_is_refused() {
        for (price, told) in [
            (json!(null), "max_price"),
            (json!(0.01), "expected a string"),
            (json!("-1"), "not an amount"),
            (json!("1e3"), "not an amount"),
            (json!("0.0000001"), "more than 6 decimals"),
        ] {
            let mut arguments = json!({ "service": ID, "method": "GET", "path": "/a" });
            if !price.is_null() {
                arguments["max_price"] = price;
            }
            let trouble = call(arguments).unwrap_err();
            assert!(trouble.message.contains(told) && trouble.next.contains("0.01"), "{trouble:?}");
        }
    }

    #[test]
    fn unknown_names_and_values_of_other_kinds_are_refused() {
        for wrong in [
            json!({ "service": "Earthquakes", "method": "GET", "path": "/a", "max_price": "1" }),
            json!({ "service": ID, "method": "FETCH", "path": "/a", "max_price": "1" }),
            json!({ "service": ID, "method": "GET", "path": "/a", "max_price": "1", "secret": "other" }),
            json!({ "service": ID, "method": "GET", "path": "/a", "max_price": "1", "confirm_token": "t" }),
            json!({ "service": ID, "method": "GET", "path": "/a", "max_price": "1", "params": { "a": [1] } }),
        ] {
            assert_eq!(call(wrong.clone()).unwrap_err().code, "invalid-arguments", "{wrong}");
        }
        assert!(read::<NoArguments>(ToolName::SpendingStatus, None).is_ok());
        assert!(read::<NoArguments>(ToolName::SpendingStatus, given(json!({ "limit": 1 }))).is_err());
    }

    #[test]
    fn a_search_shows_no_more_than_a_model_reads() {
        let query = |value| read::<SearchArguments>(ToolName::SearchCatalog, given(value)).unwrap().query();
        assert_eq!(query(json!({ "query": "a" })).limit, Some(SEARCH_LIMIT));
        assert_eq!(query(json!({ "query": "a", "limit": 0 })).limit, Some(1));
        assert_eq!(query(json!({ "query": "a", "limit": 1_000 })).limit, Some(SEARCH_LIMIT_MAX));
        assert_eq!(query(json!({ "query": "a", "category": "" })).category, None);
        assert_eq!(query(json!({ "query": "é".repeat(400) })).words.len(), QUERY_BYTES_MAX);
    }

    #[test]
    fn an_operation_is_a_method_and_a_path() {
        let operation = |text: &str| {
            let arguments = given(json!({ "service": ID, "operation": text }));
            read::<ServiceArguments>(ToolName::GetSample, arguments).unwrap().operation()
        };
        assert_eq!(operation("GET /a/{b}").unwrap(), Some((Method::Get, "/a/{b}".to_owned())));
        assert_eq!(operation(" ").unwrap(), None);
        for wrong in ["/a", "GET", "GET a", "FETCH /a"] {
            assert!(operation(wrong).unwrap_err().next.contains("GET /things"), "{wrong}");
        }
    }

    #[test]
    fn the_same_call_has_the_same_fingerprint() {
        let keys = RandomState::new();
        let of = |path: &str, price: &str, id: Value| {
            let arguments =
                json!({ "service": ID, "method": "GET", "path": path, "max_price": price, "call_id": id });
            Fingerprint::of("a", &call(arguments).unwrap(), &keys)
        };
        let one = of("/a", "1", Value::Null);
        assert_eq!(one, of("/a", "2", json!("again")));
        assert_ne!(one, of("/b", "1", Value::Null));
        assert_ne!(one, Fingerprint { secret: "b".to_owned(), ..one.clone() });
    }
}
