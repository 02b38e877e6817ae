//! Forms with files: the key first, then the fields, each read within its bound.

use std::collections::HashMap;

use axum::extract::{
    FromRequest, Multipart, Request,
    multipart::{Field, MultipartError},
};
use http::StatusCode;

use super::{
    ConsoleState,
    failure::Failure,
    form::Gate,
    frame::Visit,
    guard::{not_logged_in, session_of},
};

/// A description, as the bridge reads it at most.
const FILE_BYTES_MAX: usize = farthing_bridge::limits::DOCUMENT_BYTES_MAX;
/// The largest body of such a form: a file and what stands beside it.
pub(super) const UPLOAD_BYTES_MAX: usize = FILE_BYTES_MAX + 512 * 1024;
/// Fields of any form here.
const FIELDS_MAX: usize = 32;

/// A form with files that one of our pages sent for somebody logged in. Its key comes first, so that nothing of a
/// stranger's is ever kept.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) visit: Visit,
    fields: HashMap<String, Typed>,
}

#[derive(Debug)]
struct Typed {
    text: String,
    /// Of a file, as the browser says; a person's text.
    file_name: String,
}

impl Upload {
    /// What was typed, or stands in the file; empty when there is nothing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |field| &field.text)
    }

    /// Takes the content of a field away, and the name of its file.
    pub(super) fn take(&mut self, name: &str) -> (String, String) {
        self.fields.remove(name).map_or_else(Default::default, |field| (field.text, field.file_name))
    }
}

impl FromRequest<ConsoleState> for Upload {
    type Rejection = Failure;

    async fn from_request(request: Request, panel: &ConsoleState) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let session = session_of(panel, &parts.headers).ok_or_else(|| not_logged_in(panel, &parts))?;
        let visit = Visit::new(&parts, panel, session);
        let mut gate = Gate::new(&parts);
        // Each may hold a whole file.
        let _place = panel.upload_place().await?;
        let request = Request::from_parts(parts, body);
        let mut form = Multipart::from_request(request, panel)
            .await
            .map_err(|rejection| Failure::unreadable(rejection.body_text()))?;
        let mut fields = HashMap::new();
        while let Some(mut field) = form.next_field().await.map_err(|error| failure(&error))? {
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().unwrap_or_default().to_owned();
            if gate.took(&visit, &mut field).await? {
                continue;
            }
            let bytes = whole(&mut field, FILE_BYTES_MAX).await?;
            let text = String::from_utf8(bytes).map_err(|_| not_text(&name, &file_name))?;
            if fields.len() >= FIELDS_MAX {
                return Err(Failure::unreadable(format!("The form has more than {FIELDS_MAX} fields.")));
            }
            fields.insert(name, Typed { text, file_name });
        }
        gate.passed()?;
        Ok(Self { visit, fields })
    }
}

/// A field, of which no more is read than it may have.
pub(super) async fn whole(field: &mut Field<'_>, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(part) = field.chunk().await.map_err(|error| failure(&error))? {
        if bytes.len() + part.len() > bytes_max {
            return Err(Failure::too_large());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

pub(super) fn failure(error: &MultipartError) -> Failure {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Failure::too_large(),
        _ => Failure::unreadable(format!("The upload broke off: {}.", error.body_text())),
    }
}

fn not_text(name: &str, file_name: &str) -> Failure {
    let what = if file_name.is_empty() { name } else { file_name };
    Failure::unreadable(format!(
        "“{}” is not text in UTF-8. API descriptions are JSON, YAML or GraphQL's schema language; unpack an archive \
         first.",
        super::show::visible(what)
    ))
}
