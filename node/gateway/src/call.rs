//! The body of `POST /internal/call`: from JSON to an [`Order`], every bound applied once, here.
//!
//! What is sent is not built up as values, which take many times the room of their text: each member is read as what it
//! is to be, and a JSON body is passed on as it was written, without the blanks between its parts.

use std::{collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

use axum::http::HeaderMap;
use bytes::Bytes;
use farthing_bridge::{nearest, shown};
use farthing_control::encoded;
use farthing_node::{
    consumer::{Order, spending::Grant},
    secret::file::DEFAULT_SECRET,
};
use farthing_protocol::{CallId, ServiceId, Usdc, call::Method, limits};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{own_headers, problem::Problem};

/// Every field the body may have, for the error that lists them.
const FIELDS: [&str; 9] =
    ["api_id_public", "path", "method", "params", "body", "body_base64", "headers", "max_price", "call_id"];

/// The members of the body, as they were written.
type Fields<'b> = BTreeMap<Field, &'b RawValue>;

/// One of [`FIELDS`].
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Field(&'static str);

impl AsRef<str> for Field {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FieldVisitor)
    }
}

struct FieldVisitor;

impl Visitor<'_> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Field, E> {
        FIELDS.into_iter().find(|field| *field == name).map(Field).ok_or_else(|| {
            let meant = nearest(name, FIELDS.into_iter())
                .map_or_else(String::new, |field| format!("did you mean `{field}`? "));
            E::custom(format_args!(
                "unknown field `{}`; {meant}the fields are {}",
                shown(name),
                FIELDS.join(", ")
            ))
        })
    }
}

/// Reads a call. The content type is not asked for: whatever is sent must be JSON.
///
/// # Errors
/// A [`Problem`] that names the field, what was expected, and what came.
pub fn read_order(grant: Arc<Grant>, http_headers: &HeaderMap, body: &[u8]) -> Result<Order, Problem> {
    let whole: &RawValue = serde_json::from_slice(body)
        .map_err(|e| Problem::malformed(format!("the body is not valid JSON: {e}")))?;
    if !whole.get().starts_with('{') {
        return Err(Problem::malformed(format!("the body is {}, expected an object", kind_of(whole))));
    }
    let Members(fields): Members<'_, Field> =
        serde_json::from_str(whole.get()).map_err(|e| Problem::malformed(format!("the body: {e}")))?;
    // There are fewer names than a call may have.
    let mut fields: Fields<'_> = fields.unwrap_or_default();
    let service: ServiceId = required_text(&mut fields, "api_id_public", "the UUID of a service")?
        .parse()
        .map_err(|e| Problem::malformed(format!("`api_id_public`: {e}")))?;
    let path = required_text(&mut fields, "path", "a path such as /v1/things")?;
    let method: Method = required_text(&mut fields, "method", "an HTTP method")?
        .parse()
        .map_err(|e| Problem::malformed(format!("`method`: {e}")))?;
    let params = texts(&mut fields, "params")?;
    let mut headers = headers_of(&mut fields)?;
    let max_price = max_price(&mut fields, http_headers)?;
    let call_id = id_of(&grant, optional_text(&mut fields, "call_id", "a string")?, http_headers)?;
    let (body, body_type) = body_of(&mut fields)?;
    if body.len() > limits::REQUEST_BODY_BYTES_MAX {
        return Err(Problem::too_large(format!(
            "the body has more than the allowed {} bytes",
            limits::REQUEST_BODY_BYTES_MAX
        )));
    }
    if let Some(body_type) = body_type {
        headers.entry("content-type".to_owned()).or_insert_with(|| body_type.to_owned());
    }
    Ok(Order { grant, call_id, service, method, path, params, headers, body, max_price })
}

/// The headers of a call, their names in lower case.
fn headers_of(fields: &mut Fields<'_>) -> Result<BTreeMap<String, String>, Problem> {
    let mut headers = BTreeMap::new();
    for (name, value) in texts(fields, "headers")? {
        let name = name.to_ascii_lowercase();
        if headers.contains_key(&name) {
            let told = format!(
                "`headers`: send `{}` once: it is there twice, with different capitals",
                shown(&name)
            );
            return Err(Problem::malformed(told));
        }
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The body of a call, and its type where the caller names none. Bytes have that which the description names.
fn body_of(fields: &mut Fields<'_>) -> Result<(Bytes, Option<&'static str>), Problem> {
    let base64 = optional_text(fields, "body_base64", "a string of base64")?;
    match (take(fields, "body"), base64) {
        (Some(_), Some(_)) => {
            Err(Problem::malformed("both `body` and `body_base64` are set; send only one of them"))
        }
        (None, Some(text)) => {
            let body = encoded::from_text(&text).ok_or_else(|| {
                Problem::malformed("`body_base64` is not base64 (RFC 4648, 4) without blanks and line breaks")
            })?;
            Ok((body.into(), None))
        }
        (None, None) => Ok((Bytes::new(), None)),
        (Some(value), None) => Ok(match text(value) {
            Some(text) => (Bytes::from(text), Some("text/plain; charset=utf-8")),
            None => (Bytes::from(without_blanks(value.get())), Some("application/json")),
        }),
    }
}

/// The highest price of a call: from its body or the header of the request.
fn max_price(fields: &mut Fields<'_>, http_headers: &HeaderMap) -> Result<Option<Usdc>, Problem> {
    let in_body = optional_text(fields, "max_price", "a decimal string in USDC such as \"0.01\"")?
        .map(|text| text.parse::<Usdc>().map_err(|e| Problem::malformed(format!("`max_price`: {e}"))))
        .transpose()?;
    match (in_body, own_headers::max_price(http_headers)?) {
        (Some(body), Some(header)) if body != header => Err(Problem::malformed(format!(
            "`max_price` and `{}` differ; send only one of them",
            own_headers::MAX_PRICE
        ))),
        (body, header) => Ok(body.or(header)),
    }
}

/// The id of a call whose body names `in_body`: from there or the `Idempotency-Key` header, or a new one.
pub(super) fn id_of(
    grant: &Grant,
    in_body: Option<String>,
    http_headers: &HeaderMap,
) -> Result<CallId, Problem> {
    let in_header = own_headers::only(http_headers, "Idempotency-Key")?
        .map(|value| value.to_str().map(str::to_owned))
        .transpose()
        .map_err(|_| Problem::malformed("`Idempotency-Key` must be printable ASCII"))?;
    let key = match (in_body, in_header) {
        (Some(body), Some(header)) if body != header => {
            return Err(Problem::malformed("`call_id` and `Idempotency-Key` differ; send only one of them"));
        }
        (body, header) => body.or(header),
    };
    match key {
        None => Ok(CallId::from_bytes(uuid::Uuid::new_v4().into_bytes())),
        Some(key) if key.is_empty() || key.len() > 128 => {
            Err(Problem::malformed("`call_id` must have 1 to 128 bytes"))
        }
        Some(key) => named(grant, &key),
    }
}

/// Programs choose keys that others could foresee, so each secret has its own: nobody takes those of another, nor gets
/// its answers. A UUID is the same for all, so none is taken that could be the id of another's key.
fn named(grant: &Grant, key: &str) -> Result<CallId, Problem> {
    let is_default = grant.name == DEFAULT_SECRET;
    match key.parse::<CallId>() {
        Ok(id) if id.may_be_of_a_text() && !is_default => Err(Problem::malformed(
            "`call_id` is a UUID of version 8, which is reserved; send the text it was made from, or a UUID of another \
             version",
        )),
        Ok(id) => Ok(id),
        Err(_) if is_default => Ok(CallId::from_idempotency_key(key)),
        Err(_) => Ok(CallId::from_idempotency_key(&format!("{}\0{key}", grant.name))),
    }
}

/// A member that is there and not `null`.
fn take<'b>(fields: &mut Fields<'b>, field: &'static str) -> Option<&'b RawValue> {
    fields.remove(&Field(field)).filter(|value| value.get() != "null")
}

/// An object of texts; numbers and booleans stand for their own text, digit by digit as it was written.
fn texts(fields: &mut Fields<'_>, field: &'static str) -> Result<BTreeMap<String, String>, Problem> {
    let Some(value) = take(fields, field) else { return Ok(BTreeMap::new()) };
    if !value.get().starts_with('{') {
        return Err(expected(field, "an object of names and strings", value));
    }
    let Members(texts): Members<'_, String> =
        serde_json::from_str(value.get()).map_err(|e| Problem::malformed(format!("`{field}`: {e}")))?;
    let too_many = || Problem::too_large(format!("`{field}` has more than {} names", limits::PARAMS_MAX));
    texts
        .ok_or_else(too_many)?
        .into_iter()
        .map(|(name, value)| match (text(value), value.get().as_bytes().first()) {
            (Some(text), _) => Ok((name, text)),
            (None, Some(b'-' | b'0'..=b'9' | b't' | b'f')) => Ok((name, value.get().to_owned())),
            _ => Err(Problem::malformed(format!(
                "`{field}.{}` is {}, expected a string",
                shown(&name),
                kind_of(value)
            ))),
        })
        .collect()
}

/// The members of an object: names and what was written for them; `None` when there are more than a call may have. A name
/// that is there twice is refused: readers differ in which of the two counts, and one of them may be who allows the call.
struct Members<'b, N>(Option<BTreeMap<N, &'b RawValue>>);

impl<'de: 'b, 'b, N: Deserialize<'de> + Ord + AsRef<str>> Deserialize<'de> for Members<'b, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor::<N>(PhantomData)).map(Members)
    }
}

struct MembersVisitor<N>(PhantomData<N>);

impl<'de, N: Deserialize<'de> + Ord + AsRef<str>> Visitor<'de> for MembersVisitor<N> {
    type Value = Option<BTreeMap<N, &'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut kept = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<N, &RawValue>()? {
            if kept.contains_key(&name) {
                let name = shown(name.as_ref());
                return Err(A::Error::custom(format_args!("send `{name}` once: it is there twice")));
            }
            kept.insert(name, value);
            if kept.len() > limits::PARAMS_MAX {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
        }
        Ok(Some(kept))
    }
}

/// Returns the text of a JSON string; `None` for anything else.
fn text(value: &RawValue) -> Option<String> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

fn required_text(fields: &mut Fields<'_>, field: &'static str, what: &str) -> Result<String, Problem> {
    let value = take(fields, field)
        .ok_or_else(|| Problem::malformed(format!("`{field}` is missing; it is {what}")))?;
    text(value).ok_or_else(|| expected(field, &format!("a string: {what}"), value))
}

fn optional_text(
    fields: &mut Fields<'_>,
    field: &'static str,
    what: &str,
) -> Result<Option<String>, Problem> {
    take(fields, field).map(|value| text(value).ok_or_else(|| expected(field, what, value))).transpose()
}

/// JSON without the blanks between its parts, so that a call that is repeated with others is the same call.
fn without_blanks(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_part = |c: &char| {
        let is_blank = !is_text && c.is_ascii_whitespace();
        match c {
            '"' if !is_escaped => is_text = !is_text,
            _ => {}
        }
        is_escaped = is_text && *c == '\\' && !is_escaped;
        !is_blank
    };
    json.chars().filter(is_part).collect()
}

fn expected(field: &str, what: &str, found: &RawValue) -> Problem {
    Problem::malformed(format!("`{field}` is {}, expected {what}", kind_of(found)))
}

fn kind_of(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') if text(value).is_none() => {
            "a string with half of a surrogate pair, which is not a character"
        }
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => "a number",
    }
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

    /// As values these would take hundreds of megabytes.
    #[test]
    fn very_many_names_are_refused_before_they_are_kept() {
        let numbers: Vec<String> = (0..250_000).map(|n| format!(r#""p{n}":{n}"#)).collect();
        let many = numbers.join(",");
        let with = |field: &str| {
            refusal(&format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"GET",{field}}}"#))
        };
        for field in ["params", "headers"] {
            let told = with(&format!(r#""{field}":{{{many}}}"#));
            assert!(told.starts_with(&format!("`{field}` has more than 64 names")), "{told}");
        }
        assert!(with(&many).contains("unknown field `p0`"));
        assert!(with(&format!(r#""{}":1"#, "long\\u001b".repeat(9_000))).len() < 300);
    }

    #[test]
    fn a_body_is_passed_on_as_it_was_written_but_for_blanks() {
        let sent = |body: &str| {
            let call = format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"POST","body": {body} }}"#);
            let order = read(&call).unwrap();
            let kind = order.headers.get("content-type").cloned().unwrap_or_default();
            (String::from_utf8(order.body.to_vec()).unwrap(), kind)
        };
        let json = r#"{"n":12345678901234567890123,"f":1.50,"t":"a \" b\\","é":[1,2]}"#;
        let spaced =
            "{ \"n\" : 12345678901234567890123,\n\t\"f\": 1.50, \"t\":\"a \\\" b\\\\\" , \"é\": [ 1, 2 ] }";
        for written in [json, spaced] {
            assert_eq!(sent(written), (json.to_owned(), "application/json".to_owned()));
        }
        assert_eq!(sent(r#""a b\n""#), ("a b\n".to_owned(), "text/plain; charset=utf-8".to_owned()));
        assert_eq!(sent("null"), (String::new(), String::new()));
    }

    #[test]
    fn bytes_come_as_base64_and_have_the_type_that_is_named() {
        let with = |fields: &str| {
            read(&format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"POST",{fields}}}"#))
        };
        let order = with(r#""body_base64":"AP+A","headers":{"Content-Type":"image/png"}"#).unwrap();
        assert_eq!(&order.body[..], [0, 255, 128]);
        assert_eq!(order.headers["content-type"], "image/png");
        let order = with(r#""body_base64":"AP+A","body":null"#).unwrap();
        assert!(order.headers.is_empty(), "the description says what it is");
        assert_eq!(with(r#""body_base64":"""#).unwrap().body.len(), 0);
        for (fields, expected) in [
            (r#""body_base64":"A P+A""#, "is not base64"),
            (r#""body_base64":7"#, "`body_base64` is a number, expected a string of base64"),
            (r#""body_base64":"AP+A","body":"x""#, "send only one of them"),
        ] {
            let told = with(fields).unwrap_err().detail;
            assert!(told.contains(expected), "{fields}: {told}");
        }
    }

    #[test]
    fn a_key_of_one_secret_is_no_key_of_another() {
        let named = |secret: &str, key: &str| named(&Grant::unlimited(secret), key);
        let with = |secret: &str, key: &str| named(secret, key).unwrap();
        assert_eq!(with("default", "order-8"), CallId::from_idempotency_key("order-8"));
        assert_ne!(with("limited", "order-8"), with("default", "order-8"));
        assert_ne!(with("limited", "order-8"), with("other", "order-8"));
        assert_eq!(with("limited", ID), with("default", ID), "the id that an answer names finds it");
        let of_a_text = with("limited", "order-8").to_string();
        assert!(named("other", &of_a_text).is_err(), "the key of another secret");
        assert_eq!(with("default", &of_a_text), with("limited", "order-8"));
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
            (&call(r#""params":{"a":"x\ud83d"}"#), "`params.a` is a string with half of a surrogate pair"),
            (&call(r#""call_id":"\udc00""#), "`call_id` is a string with half of a surrogate pair"),
            (&call(r#""params":"a""#), "`params` is a string, expected an object"),
            (&call(r#""max_price":0.1"#), "`max_price` is a number"),
            (&call(r#""max_price":"1e3""#), "not an amount of USDC"),
            (&call(r#""call_id":"""#), "1 to 128 bytes"),
            (&call(r#""prams":{}"#), "unknown field `prams`; did you mean `params`?"),
            (&call(r#""max_price_usdc":"1""#), "unknown field `max_price_usdc`; did you mean `max_price`?"),
            (&call(r#""colour":"blue""#), "unknown field `colour`; the fields are"),
            (&call(r#""max_price":"1","max_price":"0.1""#), "send `max_price` once: it is there twice"),
            (&call(r#""max_price":"1","max_pr\u0069ce":null"#), "send `max_price` once"),
            (&call(r#""params":{"a":"1","b":"2","\u0061":"1"}"#), "`params`: send `a` once"),
            (&call(r#""headers":{"Accept":"a","accept":"b"}"#), "`headers`: send `accept` once"),
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
        // Neither of two counts: a repeat under the other would be charged again.
        headers.append("idempotency-key", HeaderValue::from_static("order-8"));
        let refused = read_order(Arc::new(Grant::unlimited("default")), &headers, body.as_bytes());
        let told = refused.unwrap_err().detail;
        assert_eq!(told, "`Idempotency-Key` is there more than once; send it once");
    }

    #[test]
    fn the_header_limits_the_price_as_the_body_does() {
        let call = |field: &str| format!(r#"{{"api_id_public":"{ID}","path":"/a","method":"GET"{field}}}"#);
        let mut headers = HeaderMap::new();
        headers.insert(own_headers::MAX_PRICE, HeaderValue::from_static("0.001"));
        let read = |body: &str| read_order(Arc::new(Grant::unlimited("default")), &headers, body.as_bytes());
        for body in [call(""), call(r#","max_price":"0.0010""#)] {
            assert_eq!(read(&body).unwrap().max_price, Some(Usdc::from_micros(1_000)), "{body}");
        }
        let refused = read(&call(r#","max_price":"0.002""#)).unwrap_err().detail;
        assert!(refused.contains("differ"), "{refused}");
    }
}
