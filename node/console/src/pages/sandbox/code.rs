//! The call as code: without a client in every language that has such code, and with the service's own.

use farthing_bridge::{description::Place, form::Form};
use farthing_control::types::{CallForm, sdk::Snippet};
use farthing_sdk::{Language, PlainCall, UploadBody, UploadCall, plain, upload};

use crate::page::encoded;

use super::{
    files::FileBody,
    filled::{Call, CallBody, FilledForm, TypedBody},
};

/// A longer body is left out of the code.
const CODE_BODY_BYTES_MAX: usize = 4 * 1024;

/// A page has no more of the code that uses the client; all of it is on the page of the client code.
const CLIENTS_BYTES_MAX: usize = 15 * 1024;

/// The call as code in every language, of which one is looked at.
pub(in crate::pages) struct CodeTabs {
    /// A word about it.
    pub(in crate::pages) note: Option<&'static str>,
    pub(in crate::pages) plain: Vec<Code>,
    /// With the service's client.
    pub(in crate::pages) clients: Vec<Code>,
    /// The language that is looked at.
    pub(in crate::pages) chosen: String,
}

/// The call in one language.
pub(in crate::pages) struct Code {
    /// `python`, or `client-python` where it uses the client.
    pub(in crate::pages) language: String,
    pub(in crate::pages) title: String,
    pub(in crate::pages) text: String,
}

impl CodeTabs {
    /// `asked`: the language to look at, if there is code in it.
    pub(super) fn new(
        form: &CallForm,
        filled: &FilledForm,
        (gateway, service): (&str, &str),
        snippets: Vec<Snippet>,
        asked: &str,
    ) -> Self {
        let (plain, note) = code(form, filled, gateway, service);
        let mut bytes_left = CLIENTS_BYTES_MAX;
        let has_room = |snippet: &Snippet| {
            let left = bytes_left.checked_sub(snippet.text.len());
            bytes_left = left.unwrap_or_default();
            left.is_some()
        };
        let client = |snippet: Snippet| Code {
            language: format!("client-{}", snippet.language),
            title: format!("{} client", snippet.title),
            text: snippet.text,
        };
        let clients: Vec<Code> = snippets.into_iter().filter(has_room).map(client).collect();
        let is_asked = |code: &&Code| code.language == asked;
        let chosen = plain.iter().chain(&clients).find(is_asked).or(plain.first());
        let chosen = chosen.map(|code| code.language.clone()).unwrap_or_default();
        Self { note, plain, clients, chosen }
    }

    /// Returns the code of the language that is looked at.
    pub(in crate::pages) fn shown(&self) -> Option<&Code> {
        self.plain.iter().chain(&self.clients).find(|code| code.language == self.chosen)
    }
}

/// The call in every language, and what is to be said about it.
fn code(
    form: &CallForm,
    filled: &FilledForm,
    gateway: &str,
    service: &str,
) -> (Vec<Code>, Option<&'static str>) {
    let Ok(call) = filled.call(&form.form) else {
        return (Vec::new(), Some("The code appears when the form is valid."));
    };
    match &call.body {
        Some(CallBody::Files(body)) => {
            let texts = uploaded(form, &call, body, gateway, service);
            (texts, Some("The code reads the files from the folder in which it runs."))
        }
        Some(CallBody::Typed(body)) if filled.body.len() > CODE_BODY_BYTES_MAX => {
            let note = "The body is too long to show, so the code has “…” in its place. Read it from a file instead.";
            (typed(form, &call, Some((body, true)), gateway, service), Some(note))
        }
        Some(CallBody::Typed(body)) => (typed(form, &call, Some((body, false)), gateway, service), None),
        None => (typed(form, &call, None, gateway, service), None),
    }
}

/// `body`: and whether it is too long to stand there.
fn typed(
    form: &CallForm,
    call: &Call,
    body: Option<(&TypedBody, bool)>,
    gateway: &str,
    service: &str,
) -> Vec<Code> {
    let method = form.method.to_string();
    let shown = PlainCall {
        gateway,
        service,
        method: &method,
        path: &form.path,
        params: &call.params,
        body: body.map(|(body, is_long)| if is_long { "…".into() } else { body.value.clone() }),
        content_type: body.and_then(|(body, _)| body.content_type.as_deref()),
    };
    in_all_languages(|language| plain(&shown, language).ok().flatten())
}

fn uploaded(form: &CallForm, call: &Call, body: &FileBody, gateway: &str, service: &str) -> Vec<Code> {
    let method = form.method.to_string();
    let at = format!("{gateway}/services/{service}");
    let (address, headers) = addressed(&at, &form.path, &form.form, &call.params);
    let parts = match body {
        FileBody::Parts { parts, .. } => FileBody::shown_parts(parts),
        FileBody::Whole { .. } => Vec::new(),
    };
    let body = match body {
        FileBody::Whole { file, content_type, .. } => UploadBody::File { name: file.name(), content_type },
        FileBody::Parts { .. } => UploadBody::Parts(&parts),
    };
    let shown = UploadCall { address: &address, method: &method, headers: &headers, body };
    in_all_languages(|language| upload(&shown, language).ok().flatten())
}

/// A template of ours that fails shows nothing.
fn in_all_languages(write: impl Fn(Language) -> Option<String>) -> Vec<Code> {
    let code = |language: Language| {
        let text = write(language)?;
        let title = if language == Language::Shell { "curl" } else { language.title() };
        Some(Code { language: language.name().to_owned(), title: title.to_owned(), text })
    };
    Language::PLAIN.into_iter().filter_map(code).collect()
}

/// The address below `at` of a call with these parameters, and its headers.
fn addressed(
    at: &str,
    path: &str,
    form: &Form,
    params: &[(String, String)],
) -> (String, Vec<(String, String)>) {
    let (mut path, mut query, mut headers) = (path.to_owned(), Vec::new(), Vec::new());
    for (name, value) in params {
        let field = form.fields.iter().find(|field| field.name == *name);
        match field.and_then(|field| field.place) {
            Some(Place::Path) => path = path.replace(&format!("{{{name}}}"), &segment(value)),
            Some(Place::Header) => headers.push((name.clone(), value.clone())),
            Some(Place::Query) | None => query.push(format!("{}={}", segment(name), segment(value))),
        }
    }
    let mark = if query.is_empty() { "" } else { "?" };
    (format!("{at}{path}{mark}{}", query.join("&")), headers)
}

/// A text as a part of an address that is read the same in its path and in its query.
fn segment(text: &str) -> String {
    encoded(text).replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_stand_where_the_description_has_them() {
        let field =
            |name: &str, place: &str| json!({ "name": name, "in": place, "type": "string", "input": "text" });
        let fields = [field("id", "path"), field("size", "query"), field("x-tenant", "header")];
        let form = Form { fields: serde_json::from_value(json!(fields)).unwrap(), ..Form::default() };
        let params = [("id", "a/b c"), ("size", "1&2+"), ("x-tenant", "blue"), ("other", "7")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (address, headers) =
            addressed("https://localhost:3000/services/7", "/things/{id}", &form, &params);
        assert_eq!(address, "https://localhost:3000/services/7/things/a%2Fb%20c?size=1%262%2B&other=7");
        assert_eq!(headers, [("x-tenant".to_owned(), "blue".to_owned())]);
        assert_eq!(addressed("", "/a", &form, &[]), ("/a".to_owned(), Vec::new()));
    }
}
