//! The sandbox's form, filled in: between the fields that a browser sends and the call that the node makes.
//!
//! Parameters travel in fields named `p.` and the parameter's name, percent-encoded: names are strangers'. An empty
//! field is a parameter left out. The call's id follows from the form's own random number and from everything that is
//! asked: sending the same form again is the same call, paid once, and sending a changed one is another.

use std::collections::BTreeMap;

use farthing_bridge::form::{BodyField, Form};
use farthing_control::types::CallForm;
use farthing_protocol::{CallId, ServiceId, Usdc};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{page::encoded, show};

const PARAMETER: &str = "p.";
const BODY: &str = "body";
const EXTRA: &str = "extra";
const NONCE: &str = "nonce";
const PRICE: &str = "price";

/// Input of the form, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filled {
    /// By parameter.
    values: BTreeMap<String, String>,
    /// Undeclared parameters, one `name=value` a line.
    pub(super) extra: String,
    pub(super) body: String,
    nonce: String,
    /// The price that the button carried.
    agreed: Option<Usdc>,
}

/// A call, ready to be sent or shown as code.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) params: Vec<(String, String)>,
    pub(super) body: Option<CallBody>,
}

#[derive(Debug)]
pub(super) struct CallBody {
    /// JSON as it was typed, or a text as JSON.
    raw: Box<RawValue>,
    pub(super) value: Value,
    /// Of a text.
    pub(super) content_type: Option<String>,
}

impl CallBody {
    /// As it is sent: JSON as it was typed, or the text itself.
    pub(super) fn text(&self) -> &str {
        match &self.value {
            Value::String(text) if self.content_type.is_some() => text,
            _ => self.raw.get(),
        }
    }
}

impl Filled {
    /// The form as it is first shown: required fields have an example, the rest is empty.
    pub(super) fn start(form: &Form) -> Self {
        // Examples are strangers' texts.
        let harmless = |text: &str| text.chars().filter(|c| !show::is_invisible(*c)).collect::<String>();
        let fields = form.fields.iter().filter(|field| !field.start().is_empty());
        let example = form.body.as_ref().and_then(|body| body.example.as_deref());
        Self {
            values: fields.map(|field| (field.name.clone(), harmless(field.start()))).collect(),
            body: example.map(harmless).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The form as a browser sent it.
    pub(super) fn sent(fields: &[(String, String)]) -> Self {
        let one = |name: &str| {
            let field = fields.iter().find(|(own, _)| own == name);
            // Browsers send line breaks as CR LF.
            field.map(|(_, value)| value.replace("\r\n", "\n")).unwrap_or_default()
        };
        let values = fields.iter().filter_map(|(name, value)| {
            let name = decoded(name.strip_prefix(PARAMETER)?);
            (!value.is_empty()).then(|| (name, value.replace("\r\n", "\n")))
        });
        Self {
            values: values.collect(),
            extra: one(EXTRA),
            body: one(BODY),
            nonce: one(NONCE),
            agreed: one(PRICE).parse().ok(),
        }
    }

    /// Returns whether the form came with the price that the button carried.
    pub(super) const fn has_price(&self) -> bool {
        self.agreed.is_some()
    }

    pub(super) fn value(&self, parameter: &str) -> &str {
        self.values.get(parameter).map_or("", String::as_str)
    }

    /// The call, as far as it can be told without the service's description.
    ///
    /// # Errors
    /// What cannot be read, for the person who typed it; nothing is sent then.
    pub(super) fn call(&self, form: &Form) -> Result<Call, String> {
        let declared = form.fields.iter().filter_map(|field| {
            let value = self.values.get(&field.name)?;
            Some((field.name.clone(), value.clone()))
        });
        let mut params: Vec<(String, String)> = declared.collect();
        let extra = if form.any_params { self.extra.as_str() } else { "" };
        for line in extra.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once('=') else {
                return Err(format!(
                    "“More parameters” has the line “{line}”; write name=value in each line."
                ));
            };
            if params.iter().any(|(own, _)| own == name) {
                return Err(format!("The parameter “{name}” is given twice; leave one of them out."));
            }
            params.push((name.to_owned(), value.to_owned()));
        }
        let body = form.body.as_ref().map(|field| self.body(field)).transpose()?.flatten();
        Ok(Call { params, body })
    }

    fn body(&self, field: &BodyField) -> Result<Option<CallBody>, String> {
        if self.body.trim().is_empty() {
            return if field.required { Err("This call needs a body.".to_owned()) } else { Ok(None) };
        }
        let raw = RawValue::from_string(self.body.trim().to_owned());
        let value = serde_json::from_str::<Value>(&self.body);
        match (raw, value) {
            (Ok(raw), Ok(value)) if field.is_json() || value.is_object() || value.is_array() => {
                Ok(Some(CallBody { raw, value, content_type: None }))
            }
            (Err(error), _) | (_, Err(error)) if field.is_json() => {
                Err(format!("The body is not JSON: {error}."))
            }
            _ => {
                let value = Value::from(self.body.as_str());
                let raw = serde_json::value::to_raw_value(&value).map_err(|error| error.to_string())?;
                let content_type = Some(field.media_type.clone()).filter(|kind| !kind.contains('*'));
                Ok(Some(CallBody { raw, value, content_type }))
            }
        }
    }

    /// The request for the node, and its id.
    pub(super) fn request(&self, service: ServiceId, asked: &CallForm, call: &Call) -> (CallId, Vec<u8>) {
        let params = call.params.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let content_type = call.body.as_ref().and_then(|body| body.content_type.as_ref());
        let mut request = Request {
            api_id_public: service.to_string(),
            method: asked.method.to_string(),
            path: &asked.path,
            params: params.collect(),
            body: call.body.as_ref().map(|body| &*body.raw),
            headers: content_type
                .map(|kind| ("content-type".to_owned(), Value::from(kind.as_str())))
                .into_iter()
                .collect(),
            max_price: self.agreed.unwrap_or(asked.price.0).to_string(),
            call_id: self.nonce.clone(),
        };
        let text = |request: &Request<'_>| serde_json::to_string(request).unwrap_or_default();
        let call_id = CallId::from_idempotency_key(&format!("console {}", text(&request)));
        request.call_id = call_id.to_string();
        (call_id, text(&request).into_bytes())
    }
}

/// The body of the command `call`.
#[derive(Serialize)]
struct Request<'a> {
    api_id_public: String,
    method: String,
    path: &'a str,
    params: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    max_price: String,
    call_id: String,
}

/// The field of a parameter.
pub(super) fn field_name(parameter: &str) -> String {
    format!("{PARAMETER}{}", encoded(parameter))
}

/// An operation's name where a browser sends it back: as it is, unless something in it cannot be seen.
pub(super) fn operation_value(operation: &str) -> String {
    let is_plain = !operation.starts_with('~') && show::visible(operation) == operation;
    if is_plain { operation.to_owned() } else { format!("~{}", encoded(operation)) }
}

pub(super) fn read_operation(value: &str) -> String {
    value.strip_prefix('~').map_or_else(|| value.to_owned(), decoded)
}

fn decoded(text: &str) -> String {
    let replaced = text.replace('=', "%3D").replace('&', "%26");
    url::form_urlencoded::parse(replaced.as_bytes())
        .next()
        .map_or_else(String::new, |(name, _)| name.into_owned())
}

#[cfg(test)]
mod tests {
    use farthing_bridge::description::BodyKind;
    use farthing_protocol::call::Method;

    use super::*;

    const SERVICE: ServiceId = ServiceId::from_bytes([7; 16]);

    fn asked(kind: BodyKind, any_params: bool) -> CallForm {
        let body = BodyField {
            kind,
            media_type: "text/csv".to_owned(),
            required: false,
            type_name: String::new(),
            description: String::new(),
            example: None,
        };
        let field = |name: &str| {
            serde_json::from_value(serde_json::json!(
                { "name": name, "in": "query", "type": "string", "input": "text" }
            ))
            .unwrap()
        };
        CallForm {
            method: Method::Post.into(),
            path: "/a".to_owned(),
            price: Usdc::from_micros(2_000).into(),
            summary: String::new(),
            description: String::new(),
            deprecated: false,
            timeout_secs: None,
            form: Form { fields: vec![field("b"), field("ä &=\u{202e}")], any_params, body: Some(body) },
        }
    }

    fn sent(fields: &[(&str, &str)]) -> Filled {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Filled::sent(&fields)
    }

    #[test]
    fn names_come_back_as_they_were_and_empty_fields_are_left_out() {
        let asked = asked(BodyKind::Json, false);
        let odd = field_name("ä &=\u{202e}");
        assert!(odd.is_ascii());
        let filled = sent(&[(&odd, "x=&y"), ("p.b", ""), ("p.unknown", "1"), (EXTRA, "c=1")]);
        let call = filled.call(&asked.form).unwrap();
        assert_eq!(call.params, [("ä &=\u{202e}".to_owned(), "x=&y".to_owned())]);
    }

    #[test]
    fn an_operation_is_named_without_what_cannot_be_seen() {
        for operation in ["GET /a/{id}", "GET /~a", "~", "GET /\u{202e}b"] {
            let value = operation_value(operation);
            assert!(!value.contains('\u{202e}'));
            assert_eq!(read_operation(&value), operation);
        }
        assert_eq!(operation_value("GET /a/{id}"), "GET /a/{id}", "addresses stay readable");
    }

    #[test]
    fn the_same_form_is_the_same_call_and_a_changed_one_another() {
        let asked = asked(BodyKind::Json, false);
        let id = |fields: &[(&str, &str)]| {
            let filled = sent(fields);
            filled.request(SERVICE, &asked, &filled.call(&asked.form).unwrap()).0
        };
        let first = id(&[(NONCE, "1"), ("p.b", "x")]);
        assert_eq!(first, id(&[("p.b", "x"), (NONCE, "1")]));
        assert_ne!(first, id(&[(NONCE, "2"), ("p.b", "x")]));
        assert_ne!(first, id(&[(NONCE, "1"), ("p.b", "y")]));
        assert_ne!(first, id(&[(NONCE, "1"), ("p.b", "x"), (BODY, "{}")]));
    }

    #[test]
    fn no_more_is_paid_than_the_button_said() {
        let asked = asked(BodyKind::Json, false);
        for (price, paid) in [("0.001", "0.001"), ("", "0.002"), ("much", "0.002")] {
            let filled = sent(&[(PRICE, price)]);
            let (_, request) = filled.request(SERVICE, &asked, &filled.call(&asked.form).unwrap());
            let request: Value = serde_json::from_slice(&request).unwrap();
            assert_eq!(request["max_price"], paid, "{price}");
        }
    }

    #[test]
    fn bodies_are_json_or_text_as_the_operation_takes_them() {
        let body =
            |kind, text: &str| sent(&[(BODY, text)]).call(&asked(kind, false).form).map(|call| call.body);
        let json = body(BodyKind::Json, "{\"n\": 12345678901234567890123}").unwrap().unwrap();
        assert_eq!(json.raw.get(), "{\"n\": 12345678901234567890123}", "digit by digit");
        assert!(body(BodyKind::Json, "{").unwrap_err().contains("not JSON"));
        assert!(body(BodyKind::Json, " \r\n").unwrap().is_none());
        let text = body(BodyKind::Text, "a,b\r\n1,2").unwrap().unwrap();
        assert_eq!((text.value, text.content_type.as_deref()), ("a,b\n1,2".into(), Some("text/csv")));
        assert!(body(BodyKind::Any, "{}").unwrap().unwrap().content_type.is_none());
    }

    #[test]
    fn more_parameters_are_lines() {
        let form = asked(BodyKind::Json, true).form;
        let call = sent(&[(EXTRA, "c=1\r\n\r\nd=e=f")]).call(&form).unwrap();
        assert_eq!(call.params.len(), 2);
        assert_eq!(call.params[1], ("d".to_owned(), "e=f".to_owned()));
        assert!(sent(&[(EXTRA, "c")]).call(&form).unwrap_err().contains("“c”"));
        assert!(sent(&[(EXTRA, "b=1"), ("p.b", "2")]).call(&form).unwrap_err().contains("twice"));
    }
}
