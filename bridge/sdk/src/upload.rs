//! One upload as code that needs no client: it sends files to the service's own address at the gateway of the caller's node.
//!
//! What HTTP libraries send files with works there as anywhere. Secret and authority come from the environment, as with
//! [`plain`](super::plain()), and texts stand inside of literals. Files are read from where the code runs.

use minijinja::{Value, context};

use super::{Language, Options, SdkError, escape::Foreign, render};

/// The call to show. It is not checked.
#[derive(Debug, Clone, Copy)]
pub struct UploadCall<'a> {
    /// The operation's address at the gateway: `https://localhost:3000/services/{id}/v1/images?size=1`.
    pub address: &'a str,
    pub method: &'a str,
    pub headers: &'a [(String, String)],
    pub body: UploadBody<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum UploadBody<'a> {
    /// A file is all of it.
    File { name: &'a str, content_type: &'a str },
    /// `multipart/form-data`
    Parts(&'a [UploadPart]),
}

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPart {
    pub name: String,
    /// A text, or the name of a file.
    pub value: String,
    pub is_file: bool,
}

/// The upload as code; `None` in a language that is not among [`Language::PLAIN`], and where it has no words for it.
pub fn upload(call: &UploadCall<'_>, language: Language) -> Result<Option<String>, SdkError> {
    let profile = language.profile();
    let Some(plain) = &profile.plain else { return Ok(None) };
    let (file, parts): (Option<Value>, &[UploadPart]) = match call.body {
        UploadBody::File { name, content_type } => (Some(file(name, content_type)), Default::default()),
        UploadBody::Parts(parts) => (None, parts),
    };
    // In curl's words for a part the name ends at the first of these.
    if language == Language::Shell && parts.iter().any(|part| part.name.contains('=')) {
        return Ok(None);
    }
    let context = context! {
        tls => call.address.starts_with("https://"),
        address => Foreign::value(call.address),
        method => Foreign::value(call.method),
        is_post => call.method == "POST",
        headers => call.headers.iter().map(header).collect::<Vec<_>>(),
        file => file,
        is_form => matches!(call.body, UploadBody::Parts(_)),
        parts => parts.iter().map(part).collect::<Vec<_>>(),
    };
    render::one(profile, &plain.upload, &context, &Options::default()).map(Some)
}

fn file(name: &str, content_type: &str) -> Value {
    context! {
        name => Foreign::value(name),
        content_type => Foreign::value(content_type),
        curl_header => Foreign::value(format!("content-type: {content_type}")),
        curl_data => Foreign::value(format!("@{name}")),
    }
}

fn header((name, value): &(String, String)) -> Value {
    context! {
        name => Foreign::value(&**name),
        value => Foreign::value(&**value),
        curl => Foreign::value(format!("{name}: {value}")),
    }
}

fn part(part: &UploadPart) -> Value {
    let value = if part.is_file { format!("@{}", curl_file(&part.value)) } else { part.value.clone() };
    context! {
        name => Foreign::value(&*part.name),
        value => Foreign::value(&*part.value),
        is_file => part.is_file,
        // Whatever a text begins with, it is no file then.
        curl_option => if part.is_file { "-F" } else { "--form-string" },
        curl => Foreign::value(format!("{}={value}", part.name)),
    }
}

/// A file's name in curl's words for a part: in quotes where it would end early.
fn curl_file(name: &str) -> String {
    let is_plain = !name.contains(['"', '\\', ';', ',']) && name.trim() == name;
    if is_plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
