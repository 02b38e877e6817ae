//! The sandbox's form, filled in: between the fields that a browser sends and the call that the node makes.
//!
//! Parameters travel in fields named `p.` and the parameter's name, percent-encoded: names are strangers'. Parts of the
//! body are named `b.` and theirs, and a file that is the whole body is named `file`. An empty field is left out. The call's id follows from the form's own random number and from everything that is
//! asked: sending the same form again is the same call, paid once, and sending a changed one is another.

use std::collections::BTreeMap;

use farthing_bridge::form::{BodyField, BodyInput, Form, FormField, FormInput};
use farthing_control::{
    encoded::to_text,
    types::{CallForm, RequestFields, RequestPart, UsdcText},
};
use farthing_values::{CallId, ServiceId, Usdc};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{page::encoded, show};

use super::{
    files::{ChosenFile, FileBody},
    sent::SentFile,
};

const PARAMETER: &str = "p.";
const PART: &str = "b.";
/// A file that is the whole body.
pub(super) const FILE: &str = "file";
const BODY: &str = "body";
const EXTRA: &str = "extra";
const NONCE: &str = "nonce";
const PRICE: &str = "price";
const DEPOSIT: &str = "deposit";

/// Input of the form, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FilledForm {
    /// By parameter.
    values: BTreeMap<String, String>,
    /// Undeclared parameters, one `name=value` a line.
    pub(super) extra: String,
    pub(super) body: String,
    /// Texts of the body's parts, and names of chosen files, by the part.
    parts: Vec<(String, String)>,
    /// The name of the file that is the body.
    file: String,
    files: Vec<SentFile>,
    nonce: String,
    /// The price that the button carried.
    agreed: Option<Usdc>,
    /// The deposit that the button named; `None` where the page could not know it.
    deposit: Option<Usdc>,
}

/// A call, ready to be sent or shown as code.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) params: Vec<(String, String)>,
    pub(super) body: Option<CallBody>,
}

#[derive(Debug)]
pub(super) enum CallBody {
    Typed(TypedBody),
    Files(FileBody),
}

#[derive(Debug)]
pub(super) struct TypedBody {
    /// JSON as it was typed, or a text as JSON.
    raw: Box<RawValue>,
    pub(super) value: Value,
    /// Of a text.
    pub(super) content_type: Option<String>,
}

impl TypedBody {
    /// As it is sent: JSON as it was typed, or the text itself.
    pub(super) fn text(&self) -> &str {
        match &self.value {
            Value::String(text) if self.content_type.is_some() => text,
            _ => self.raw.get(),
        }
    }
}

impl FilledForm {
    /// The form as it is first shown: required fields have an example, the rest is empty.
    pub(super) fn start(form: &Form) -> Self {
        // Examples are strangers' texts.
        let harmless = |text: &str| text.chars().filter(|c| !show::is_invisible(*c)).collect::<String>();
        let fields = form.fields.iter().filter(|field| !field.start().is_empty());
        let example = form.body.as_ref().and_then(|body| body.example.as_deref());
        let parts = match form.body.as_ref().map(|body| &body.input) {
            Some(BodyInput::Parts(parts)) => &parts[..],
            _ => &[],
        };
        let typed = |part: &&FormField| part.input != FormInput::File && !part.start().is_empty();
        Self {
            parts: parts
                .iter()
                .filter(typed)
                .map(|part| (part.name.clone(), harmless(part.start())))
                .collect(),
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
        let parts = fields.iter().filter_map(|(name, value)| {
            let name = decoded(name.strip_prefix(PART)?);
            (!value.is_empty()).then(|| (name, value.replace("\r\n", "\n")))
        });
        Self {
            values: values.collect(),
            extra: one(EXTRA),
            body: one(BODY),
            parts: parts.collect(),
            file: one(FILE),
            files: Vec::new(),
            nonce: one(NONCE),
            agreed: one(PRICE).parse().ok(),
            deposit: one(DEPOSIT).parse().ok(),
        }
    }

    /// The form as it was saved.
    pub(super) fn saved(fields: &RequestFields) -> Self {
        let parts = fields.parts.iter().map(|part| (part.name.clone(), part.value.clone()));
        Self {
            values: fields.parameters.clone(),
            extra: fields.extra.clone(),
            body: fields.body.clone(),
            parts: parts.collect(),
            file: fields.file.clone(),
            ..Self::default()
        }
    }

    /// The form to be saved; of files their names.
    pub(super) fn to_save(&self) -> RequestFields {
        let part =
            |(name, value): &(String, String)| RequestPart { name: name.clone(), value: value.clone() };
        RequestFields {
            parameters: self.values.clone(),
            extra: self.extra.clone(),
            body: self.body.clone(),
            parts: self.parts.iter().map(part).collect(),
            file: self.file.clone(),
        }
    }

    /// The same with the files that came with it.
    pub(super) fn with(self, files: Vec<SentFile>) -> Self {
        Self { files, ..self }
    }

    /// Returns whether the form came with the price that the button carried.
    pub(super) const fn has_price(&self) -> bool {
        self.agreed.is_some()
    }

    /// Tells whether the button named less than the deposit that the call would make now.
    pub(super) fn names_less_than(&self, deposit: Option<&UsdcText>) -> bool {
        let named = self.deposit;
        deposit.is_some_and(|now| named.is_some_and(|named| named < now.0))
    }

    pub(super) fn value(&self, parameter: &str) -> &str {
        self.values.get(parameter).map_or("", String::as_str)
    }

    /// Returns the text of a part, or the name of the file that was chosen for it.
    pub(super) fn part(&self, part: &str) -> &str {
        self.parts.iter().find(|(name, _)| name == part).map_or("", |(_, value)| value)
    }

    /// Returns the name of the file that was chosen as the body.
    pub(super) fn file(&self) -> &str {
        &self.file
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
                return Err(format!("The line “{line}” is not a parameter. Write one name=value per line."));
            };
            if params.iter().any(|(own, _)| own == name) {
                return Err(format!("The parameter “{name}” is given twice. Remove one."));
            }
            params.push((name.to_owned(), value.to_owned()));
        }
        let body = form.body.as_ref().map(|field| self.body(field)).transpose()?.flatten();
        Ok(Call { params, body })
    }

    fn body(&self, field: &BodyField) -> Result<Option<CallBody>, String> {
        match &field.input {
            BodyInput::Text => Ok(self.typed(field)?.map(CallBody::Typed)),
            BodyInput::File => {
                let file = self.chosen(FILE, &self.file, 0);
                Ok(Some(CallBody::Files(FileBody::whole(field, file))))
            }
            BodyInput::Parts(parts) if parts.is_empty() && !field.required => Ok(None),
            BodyInput::Parts(parts) if parts.is_empty() => Err(format!(
                "The description does not name the parts of the body, so this form cannot have them. Send it from your own \
                 code, as `{}`.",
                show::visible(&field.media_type)
            )),
            BodyInput::Parts(parts) => {
                let given = |part: &str| {
                    let own = self.parts.iter().filter(move |(name, _)| name == part);
                    own.map(|(_, value)| value.clone()).collect::<Vec<_>>()
                };
                let files = |part: &str| {
                    let (field, names) = (part_name(part), given(part));
                    let chosen = |(at, name): (usize, &String)| {
                        // Phones call several pictures by one name.
                        let before = names[..at].iter().filter(|earlier| *earlier == name).count();
                        self.chosen(&field, name, before)
                    };
                    names.iter().enumerate().map(chosen).collect::<Vec<_>>()
                };
                Ok(Some(CallBody::Files(FileBody::parts(parts, field.required, given, files))))
            }
        }
    }

    /// The file of this name that a field brought, after so many others of that name.
    fn chosen(&self, field: &str, name: &str, before: usize) -> ChosenFile {
        let mut came = self.files.iter().filter(|file| file.field == field && file.name == name);
        match came.nth(before) {
            Some(file) => ChosenFile::Came(file.clone()),
            None if name.is_empty() => ChosenFile::Not,
            None => ChosenFile::Named(name.to_owned()),
        }
    }

    fn typed(&self, field: &BodyField) -> Result<Option<TypedBody>, String> {
        if self.body.trim().is_empty() {
            return if field.required { Err("This call needs a body.".to_owned()) } else { Ok(None) };
        }
        let raw = RawValue::from_string(self.body.trim().to_owned());
        let value = serde_json::from_str::<Value>(&self.body);
        match (raw, value) {
            (Ok(raw), Ok(value)) if field.is_json() || value.is_object() || value.is_array() => {
                Ok(Some(TypedBody { raw, value, content_type: None }))
            }
            (Err(error), _) | (_, Err(error)) if field.is_json() => {
                Err(format!("The body is not JSON: {error}."))
            }
            _ => {
                let value = Value::from(self.body.as_str());
                let raw = serde_json::value::to_raw_value(&value).map_err(|error| error.to_string())?;
                let content_type = Some(field.media_type.clone()).filter(|kind| !kind.contains('*'));
                Ok(Some(TypedBody { raw, value, content_type }))
            }
        }
    }

    /// The request for the node, and its id.
    ///
    /// # Errors
    /// What keeps a body with files from being sent, for the person who chose them.
    pub(super) fn request(
        &self,
        service: ServiceId,
        asked: &CallForm,
        call: &Call,
    ) -> Result<(CallId, Vec<u8>), String> {
        let (typed, written) = match &call.body {
            None => (None, None),
            Some(CallBody::Typed(body)) => (Some(body), None),
            Some(CallBody::Files(body)) => (None, body.written(&self.boundary())?),
        };
        let content_type = typed.and_then(|body| body.content_type.as_deref());
        let content_type = content_type.or(written.as_ref().map(|body| body.content_type.as_str()));
        let params = call.params.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let mut request = Request {
            api_id_public: service.to_string(),
            method: asked.method.to_string(),
            path: &asked.path,
            params: params.collect(),
            body: typed.map(|body| &*body.raw),
            body_base64: written.as_ref().map(|body| to_text(&body.bytes)),
            headers: content_type
                .filter(|kind| !kind.is_empty())
                .map(|kind| ("content-type".to_owned(), Value::from(kind)))
                .into_iter()
                .collect(),
            max_price: self.agreed.unwrap_or(asked.price.0).to_string(),
            call_id: self.nonce.clone(),
        };
        let text = |request: &Request<'_>| serde_json::to_string(request).unwrap_or_default();
        let call_id = CallId::from_idempotency_key(&format!("console {}", text(&request)));
        request.call_id = call_id.to_string();
        Ok((call_id, text(&request).into_bytes()))
    }

    /// A boundary that nobody who made a file could know: the form's own random number.
    fn boundary(&self) -> String {
        let number = self.nonce.chars().filter(char::is_ascii_alphanumeric).take(32);
        format!("farthing-{}", number.collect::<String>())
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
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    max_price: String,
    call_id: String,
}

pub(super) fn field_name(parameter: &str) -> String {
    format!("{PARAMETER}{}", encoded(parameter))
}

/// The field of a part of the body.
pub(super) fn part_name(part: &str) -> String {
    format!("{PART}{}", encoded(part))
}

/// An operation's name where a browser sends it back: as it is, unless something in it cannot be seen.
pub(super) fn operation_value(operation: &str) -> String {
    let is_plain = !operation.starts_with('~') && show::visible(operation) == operation;
    if is_plain { operation.to_owned() } else { format!("~{}", encoded(operation)) }
}

pub(super) fn read_operation(value: &str) -> String {
    value.strip_prefix('~').map_or_else(|| value.to_owned(), decoded)
}

/// Returns the name of a parameter or a part from that of its field; others are as they are.
pub(in crate::pages) fn shown_name(field: &str) -> String {
    let name = [PARAMETER, PART].into_iter().find_map(|prefix| field.strip_prefix(prefix));
    name.map_or_else(|| field.to_owned(), decoded)
}

fn decoded(text: &str) -> String {
    let replaced = text.replace('=', "%3D").replace('&', "%26");
    url::form_urlencoded::parse(replaced.as_bytes())
        .next()
        .map_or_else(String::new, |(name, _)| name.into_owned())
}

#[cfg(test)]
mod tests;
