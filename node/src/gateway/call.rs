//! The body of `POST /internal/call`: from JSON to an [`Order`], every bound applied once, here.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::HeaderMap;
use bytes::Bytes;
use farthing_protocol::{CallId, ServiceId, Usdc, call::Method, limits};
use serde_json::{Map, Value, value::RawValue};

use crate::consumer::{Order, spending::Grant};

use super::problem::Problem;

/// Every field the body may have, for the error that lists them.
const FIELDS: [&str; 8] =
    ["api_id_public", "path", "method", "params", "body", "headers", "max_price", "call_id"];

/// Reads a call. The content type is not asked for: whatever is sent must be JSON.
///
/// # Errors
/// A [`Problem`] that names the field, what was expected, and what came.
pub fn read_order(grant: Arc<Grant>, http_headers: &HeaderMap, body: &[u8]) -> Result<Order, Problem> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|e| Problem::malformed(format!("the body is not valid JSON: {e}")))?;
    let Value::Object(mut fields) = value else {
        return Err(Problem::malformed(format!("the body is {}, expected an object", kind_of(&value))));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(Problem::malformed(format!(
            "unknown field `{}`; the fields are {}",
            clip(unknown),
            FIELDS.join(", ")
        )));
    }
    let service: ServiceId = required_text(&mut fields, "api_id_public", "the UUID of a service")?
        .parse()
        .map_err(|e| Problem::malformed(format!("`api_id_public`: {e}")))?;
    let path = required_text(&mut fields, "path", "a path such as /v1/things")?;
    let method: Method = required_text(&mut fields, "method", "an HTTP method")?
        .parse()
        .map_err(|e| Problem::malformed(format!("`method`: {e}")))?;
    let params = texts(&mut fields, "params", body)?;
    let headers = texts(&mut fields, "headers", body)?
        .into_iter()
        .map(|(name, v)| (name.to_ascii_lowercase(), v))
        .collect();
    let max_price = fields
        .remove("max_price")
        .map(|value| match value {
            Value::String(text) => {
                text.parse::<Usdc>().map_err(|e| Problem::malformed(format!("`max_price`: {e}")))
            }
            other => Err(expected("max_price", "a decimal string in USDC such as \"0.01\"", &other)),
        })
        .transpose()?;
    let call_id = call_id(&mut fields, http_headers)?;
    let (body, body_type) = match fields.remove("body") {
        None | Some(Value::Null) => (Bytes::new(), None),
        Some(Value::String(text)) => (Bytes::from(text), Some("text/plain; charset=utf-8")),
        Some(value) => (Bytes::from(value.to_string()), Some("application/json")),
    };
    if body.len() > limits::REQUEST_BODY_BYTES_MAX {
        return Err(Problem::too_large(format!(
            "`body` has {} bytes, at most {} are passed on",
            body.len(),
            limits::REQUEST_BODY_BYTES_MAX
        )));
    }
    let mut headers: BTreeMap<String, String> = headers;
    if let Some(body_type) = body_type {
        headers.entry("content-type".to_owned()).or_insert_with(|| body_type.to_owned());
    }
    Ok(Order { grant, call_id, service, method, path, params, headers, body, max_price })
}

/// The id of the call: from the body or the `Idempotency-Key` header, or a new one.
fn call_id(fields: &mut Map<String, Value>, http_headers: &HeaderMap) -> Result<CallId, Problem> {
    let in_body = fields
        .remove("call_id")
        .map(|value| match value {
            Value::String(text) => Ok(text),
            other => Err(expected("call_id", "a string", &other)),
        })
        .transpose()?;
    id_of(in_body, http_headers)
}

/// The id of a call whose body names `in_body`.
pub(super) fn id_of(in_body: Option<String>, http_headers: &HeaderMap) -> Result<CallId, Problem> {
    let in_header = http_headers
        .get("idempotency-key")
        .map(|value| value.to_str().map(str::to_owned))
        .transpose()
        .map_err(|_| Problem::malformed("`Idempotency-Key` must be printable ASCII"))?;
    let key = match (in_body, in_header) {
        (Some(body), Some(header)) if body != header => {
            return Err(Problem::malformed("`call_id` and `Idempotency-Key` differ; send one of them"));
        }
        (body, header) => body.or(header),
    };
    match key {
        None => Ok(CallId::from_bytes(uuid::Uuid::new_v4().into_bytes())),
        Some(key) if key.is_empty() || key.len() > 128 => {
            Err(Problem::malformed("`call_id` must have 1 to 128 bytes"))
        }
        Some(key) => Ok(CallId::from_idempotency_key(&key)),
    }
}

/// An object of texts; numbers and booleans stand for their own text. `body` is where they came from: a number
/// is passed on digit by digit as it was written there, whatever its size or form.
fn texts(
    fields: &mut Map<String, Value>,
    field: &str,
    body: &[u8],
) -> Result<BTreeMap<String, String>, Problem> {
    let entries = match fields.remove(field) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(other) => return Err(expected(field, "an object of names and strings", &other)),
    };
    let has_numbers = entries.values().any(Value::is_number);
    let written = has_numbers.then(|| as_written(body, field)).flatten().unwrap_or_default();
    entries
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(number) => {
                let text =
                    written.get(&name).map_or_else(|| number.to_string(), |text| text.get().to_owned());
                Ok((name, text))
            }
            Value::Bool(flag) => Ok((name, flag.to_string())),
            other => Err(Problem::malformed(format!(
                "`{field}.{}` is {}, expected a string",
                clip(&name),
                kind_of(&other)
            ))),
        })
        .collect()
}

/// The texts of what `field` has in `body`. Reads the whole body, so it is asked once for all of them.
fn as_written<'b>(body: &'b [u8], field: &str) -> Option<BTreeMap<String, &'b RawValue>> {
    let mut fields: BTreeMap<String, &'b RawValue> = serde_json::from_slice(body).ok()?;
    serde_json::from_str(fields.remove(field)?.get()).ok()
}

fn required_text(fields: &mut Map<String, Value>, field: &str, what: &str) -> Result<String, Problem> {
    match fields.remove(field) {
        Some(Value::String(text)) => Ok(text),
        None => Err(Problem::malformed(format!("`{field}` is missing; it is {what}"))),
        Some(other) => Err(expected(field, &format!("a string: {what}"), &other)),
    }
}

fn expected(field: &str, what: &str, found: &Value) -> Problem {
    Problem::malformed(format!("`{field}` is {}, expected {what}", kind_of(found)))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A stranger's name in an error: short, and nothing that a terminal would obey.
fn clip(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

    fn read(body: &str) -> Result<Order, Problem> {
        read_order(Arc::new(Grant::unlimited("default")), &HeaderMap::new(), body.as_bytes())
    }

    fn refusal(body: &str) -> String {
        read(body).expect_err(body).detail
    }

    #[test]
    fn numbers_and_booleans_are_taken_as_their_text() {
        let body = format!(
            r#"{{"api_id_public":"{ID}","path":"/a","method":"get","params":{{"m":4.5,"n":7,"b":true,"s":"x"}}}}"#
        );
        let order = read(&body).unwrap();
        assert_eq!(order.method, Method::Get);
        let params: Vec<_> = order.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(params, ["b=true", "m=4.5", "n=7", "s=x"]);
    }

    #[test]
    fn a_number_is_passed_on_as_it_was_written() {
        let body = format!(
            r#"{{"api_id_public":"{ID}","path":"/a","method":"GET","params":{{"a":12345678901234567890123,"b":1e2,"c":-0,"d":1.50}}}}"#
        );
        let params: Vec<_> = read(&body).unwrap().params.into_values().collect();
        assert_eq!(params, ["12345678901234567890123", "1e2", "-0", "1.50"]);
        let escaped = body.replace("params", r"p\u0061rams");
        assert_eq!(read(&escaped).unwrap().params.into_values().collect::<Vec<_>>(), params);
    }

    /// Reading the body again for each number would take hours here.
    #[test]
    fn a_call_with_very_many_numbers_is_read_at_once() {
        let numbers: Vec<String> = (0..250_000).map(|n| format!(r#""p{n}":{n}"#)).collect();
        let body = format!(
            r#"{{"api_id_public":"{ID}","path":"/a","method":"GET","params":{{{}}}}}"#,
            numbers.join(",")
        );
        let (done, told) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || done.send(read(&body).map(|order| order.params.len())));
        let read = told.recv_timeout(std::time::Duration::from_secs(120)).expect("it is read in the end");
        assert_eq!(read.unwrap(), 250_000);
    }

    #[test]
    fn every_mistake_names_its_field_and_what_was_expected() {
        let call = |field: &str| format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"GET",{field}}}"#);
        for (body, expected) in [
            ("{", "not valid JSON"),
            ("[]", "an array, expected an object"),
            (r#"{"path":"/a"}"#, "`api_id_public` is missing"),
            (r#"{"api_id_public":"x","path":"/a","method":"GET"}"#, "is a UUID"),
            (r#"{"api_id_public":7}"#, "`api_id_public` is a number"),
            (&call(r#""params":[1]"#), "`params` is an array"),
            (&call(r#""params":{"a":null}"#), "`params.a` is null"),
            (&call(r#""params":{"a":{}}"#), "`params.a` is an object"),
            (&call(r#""max_price":0.1"#), "`max_price` is a number"),
            (&call(r#""max_price":"1e3""#), "not an amount of USDC"),
            (&call(r#""call_id":"""#), "1 to 128 bytes"),
            (&call(r#""prams":{}"#), "unknown field `prams`"),
        ] {
            assert!(refusal(body).contains(expected), "{body}: {}", refusal(body));
        }
        let body = format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"BREW"}}"#);
        assert!(refusal(&body).contains("`BREW` is not one of GET"));
    }

    #[test]
    fn the_idempotency_key_is_the_call_id() {
        let body = format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"GET"}}"#);
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", HeaderValue::from_static("order-7"));
        let order = read_order(Arc::new(Grant::unlimited("default")), &headers, body.as_bytes()).unwrap();
        assert_eq!(order.call_id, CallId::from_idempotency_key("order-7"));
        let both = format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"GET","call_id":"other"}}"#);
        assert!(
            read_order(Arc::new(Grant::unlimited("default")), &headers, both.as_bytes())
                .unwrap_err()
                .detail
                .contains("differ")
        );
    }
}
