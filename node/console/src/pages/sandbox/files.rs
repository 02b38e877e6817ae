//! Bodies with files: what was chosen and typed, and the body that a call carries.
//!
//! A body is known as soon as its files have names, and shown as code then; it can be sent once their contents came.

use bytes::Bytes;
use farthing_bridge::{
    form::{BodyField, FormField, FormInput},
    multipart::{self, NewFile, NewPart},
};
use farthing_sdk::UploadPart;
use farthing_values::limits::REQUEST_BODY_BYTES_MAX;
use serde_json::Value;

use crate::show;

use super::sent::{SentFile, most};

/// The name in code of a file that is not chosen yet.
const UNCHOSEN: &str = "file";
/// Longer lists are not for forms.
const ITEMS_MAX: usize = 200;

#[derive(Debug)]
pub(super) enum FileBody {
    /// The file is all of it.
    Whole { file: ChosenFile, content_type: String, is_required: bool },
    /// `multipart/form-data`
    Parts { parts: Vec<FilePart>, is_required: bool },
}

/// A file that was chosen, or is to be.
#[derive(Debug, Clone)]
pub(super) enum ChosenFile {
    Not,
    /// Its name came alone.
    Named(String),
    Came(SentFile),
}

/// A part of a form.
#[derive(Debug)]
pub(super) struct FilePart {
    pub(super) name: String,
    pub(super) value: PartValue,
}

impl FilePart {
    const fn is_left_out(&self) -> bool {
        matches!(self.value, PartValue::File { file: ChosenFile::Not, .. })
    }
}

#[derive(Debug)]
pub(super) enum PartValue {
    Text(String),
    File { file: ChosenFile, is_required: bool },
}

/// A body as a call carries it.
pub(super) struct WrittenBody {
    /// Empty where the description leaves it open and nobody says it.
    pub(super) content_type: String,
    pub(super) bytes: Bytes,
}

impl FileBody {
    pub(super) fn whole(field: &BodyField, file: ChosenFile) -> Self {
        let given = match &file {
            ChosenFile::Came(file) => file.media_type.as_str(),
            ChosenFile::Not | ChosenFile::Named(_) => "",
        };
        let content_type = field.type_of_file(given).to_owned();
        Self::Whole { file, content_type, is_required: field.required }
    }

    /// The parts of a form, from the texts and files of each of its fields.
    pub(super) fn parts(
        fields: &[FormField],
        is_required: bool,
        texts: impl Fn(&str) -> Vec<String>,
        files: impl Fn(&str) -> Vec<ChosenFile>,
    ) -> Self {
        let mut parts = Vec::new();
        for field in fields {
            let part = |value| FilePart { name: field.name.clone(), value };
            if field.input == FormInput::File {
                let mut chosen = files(&field.name);
                if chosen.is_empty() && field.required {
                    chosen.push(ChosenFile::Not);
                }
                let is_required = field.required;
                parts.extend(chosen.into_iter().map(|file| part(PartValue::File { file, is_required })));
            } else {
                let values = texts(&field.name).into_iter().flat_map(|text| values(field, text));
                parts.extend(values.map(|text| part(PartValue::Text(text))));
            }
        }
        Self::Parts { parts, is_required }
    }

    /// The body to send; `None` where there is none, and none is needed.
    ///
    /// # Errors
    /// What is missing or too large, and what to do, for the person who filled in the form.
    pub(super) fn written(&self, boundary: &str) -> Result<Option<WrittenBody>, String> {
        let written = match self {
            Self::Whole { file, content_type, is_required } => {
                let came = came(file, "the body", *is_required)?;
                came.map(|file| WrittenBody { content_type: content_type.clone(), bytes: bytes(file) })
            }
            Self::Parts { parts, is_required } if !is_required && parts.iter().all(FilePart::is_left_out) => {
                None
            }
            Self::Parts { parts, .. } => Some(form(parts, boundary)?),
        };
        let bytes_all = written.as_ref().map_or(0, |body| body.bytes.len());
        if bytes_all > REQUEST_BODY_BYTES_MAX {
            return Err(format!(
                "The body has {bytes_all} bytes with all of its parts, and a call carries {} ({REQUEST_BODY_BYTES_MAX} \
                 bytes) at most. Choose smaller files.",
                most()
            ));
        }
        Ok(written)
    }

    /// The parts as code shows them.
    pub(super) fn shown_parts(parts: &[FilePart]) -> Vec<UploadPart> {
        let part = |FilePart { name, value }: &FilePart| {
            let (value, is_file) = match value {
                PartValue::Text(text) => (text.clone(), false),
                PartValue::File { file, .. } => (file.name().to_owned(), true),
            };
            UploadPart { name: name.clone(), value, is_file }
        };
        parts.iter().map(part).collect()
    }
}

impl ChosenFile {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Not => UNCHOSEN,
            Self::Named(name) => name,
            Self::Came(file) => &file.name,
        }
    }
}

fn form(parts: &[FilePart], boundary: &str) -> Result<WrittenBody, String> {
    let mut written = Vec::new();
    for FilePart { name, value } in parts {
        match value {
            PartValue::Text(text) => {
                written.push(NewPart { name, file: None, content: text.as_bytes() });
            }
            PartValue::File { file, is_required } => {
                let Some(file) = came(file, &format!("`{}`", show::visible(name)), *is_required)? else {
                    continue;
                };
                let said = NewFile { name: &file.name, media_type: &file.media_type };
                let content = file.content.as_deref().unwrap_or_default();
                written.push(NewPart { name, file: Some(said), content });
            }
        }
    }
    let (content_type, body) = multipart::written(boundary, &written)
        .map_err(|error| format!("The parts cannot be put into one body: {error}. Load the page again."))?;
    Ok(WrittenBody { content_type, bytes: body.into() })
}

/// The file, if its content is here.
fn came<'f>(file: &'f ChosenFile, what: &str, is_required: bool) -> Result<Option<&'f SentFile>, String> {
    match file {
        ChosenFile::Came(file) if file.content.is_some() => Ok(Some(file)),
        ChosenFile::Came(file) => Err(format!(
            "“{}” is too large for {what}: a call carries {} ({REQUEST_BODY_BYTES_MAX} bytes) at most, in all of its files. \
             Choose a smaller one.",
            show::visible(&file.name),
            most()
        )),
        ChosenFile::Named(name) => Err(format!(
            "The content of “{}” did not come with the form. Choose the file for {what} again.",
            show::visible(name)
        )),
        ChosenFile::Not if is_required => Err(format!("This call needs a file for {what}. Choose one.")),
        ChosenFile::Not => Ok(None),
    }
}

fn bytes(file: &SentFile) -> Bytes {
    file.content.clone().unwrap_or_default()
}

/// The parts that a field's text stands for: one, or one for each value of a list.
fn values(field: &FormField, text: String) -> Vec<String> {
    if field.input != FormInput::List {
        return vec![text];
    }
    let plain = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    match serde_json::from_str::<Vec<Value>>(&text) {
        Ok(values) => values.into_iter().take(ITEMS_MAX).map(plain).collect(),
        Err(_) => text.split(',').take(ITEMS_MAX).map(|value| value.trim().to_owned()).collect(),
    }
}
