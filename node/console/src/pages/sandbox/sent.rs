//! The sandbox's form as it comes: fields alone, or fields and files.
//!
//! Files come with the button that pays. Their form's key comes first, before which nothing is read, and a file that no call
//! can carry is read to its end and dropped, so that what was typed behind it is kept all the same.
//!
//! Invariant: the files of a form have no more bytes in all than the body of a call.

use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, multipart::Field};
use bytes::Bytes;
use farthing_bridge::media::without_parameters;
use farthing_values::limits::REQUEST_BODY_BYTES_MAX;
use http::{HeaderMap, StatusCode, header};

use crate::{
    ConsoleState,
    failure::Failure,
    form::{
        HarmlessForm, unread,
        upload::{self, Gate},
    },
    frame::Visit,
    guard::session_of,
    show,
};

use super::{FORM_BYTES_MAX, Fields, saving::SAVE};

/// The largest form that is read at all.
pub(in crate::pages) const FILES_FORM_BYTES_MAX: usize = 4 * REQUEST_BODY_BYTES_MAX;
/// Fields of a form: parameters, parts of a body, and those of every form here.
const FIELDS_MAX: usize = 2_000;

/// A form that somebody logged in sent; one that buys or saves brought the session's key or the password.
#[derive(Debug)]
pub(in crate::pages) struct SandboxForm {
    pub(super) visit: Visit,
    /// Of a file that was chosen, its name.
    pub(super) fields: Fields,
    pub(super) files: Vec<SentFile>,
}

/// A file of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentFile {
    pub(super) field: String,
    /// As the browser says; a person's text.
    pub(super) name: String,
    /// As the browser says; it may say nothing.
    pub(super) media_type: String,
    /// `None` of a file that is larger than a call carries.
    pub(super) content: Option<Bytes>,
}

impl FromRequest<ConsoleState> for SandboxForm {
    type Rejection = Failure;

    async fn from_request(mut request: Request, panel: &ConsoleState) -> Result<Self, Failure> {
        if has_files(request.headers()) {
            return with_files(request, panel).await;
        }
        DefaultBodyLimit::max(FORM_BYTES_MAX).apply(&mut request);
        let sent = <HarmlessForm<Fields> as FromRequest<ConsoleState>>::from_request(request, panel).await?;
        let changes =
            |(name, value): &(String, String)| name == "act" && matches!(value.as_str(), "live" | SAVE);
        let is_change = sent.fields.iter().any(changes);
        let HarmlessForm { visit, fields, .. } = if is_change { sent.proven()?.into() } else { sent };
        Ok(Self { visit, fields, files: Vec::new() })
    }
}

fn has_files(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    kind.is_some_and(|kind| kind.starts_with(b"multipart/form-data"))
}

async fn with_files(request: Request, panel: &ConsoleState) -> Result<SandboxForm, Failure> {
    let (parts, body) = request.into_parts();
    let session = session_of(panel, &parts.headers).ok_or_else(|| unread(panel, &parts))?;
    let visit = Visit::new(&parts, panel, session);
    let mut gate = Gate::new(&parts);
    // Each may hold the body of a call.
    let _place = panel.upload_place().await?;
    let mut form = Multipart::from_request(Request::from_parts(parts, body), panel)
        .await
        .map_err(|rejection| Failure::unreadable(rejection.body_text()))?;
    let (mut fields, mut files) = (Fields::new(), Vec::new());
    let (mut room_of_texts, mut room_of_files) = (FORM_BYTES_MAX, REQUEST_BODY_BYTES_MAX);
    while let Some(mut field) = form.next_field().await.map_err(|error| upload::failure(&error))? {
        if gate.took(&visit, &mut field).await? {
            continue;
        }
        if fields.len() + files.len() >= FIELDS_MAX {
            return Err(Failure::unreadable(format!("The form has more than {FIELDS_MAX} fields.")));
        }
        let own = field.name().unwrap_or_default().to_owned();
        let Some(name) = field.file_name().map(ToOwned::to_owned) else {
            let text = upload::whole(&mut field, room_of_texts).await?;
            room_of_texts -= text.len();
            let text = String::from_utf8(text).map_err(|_| {
                Failure::unreadable(format!("The field “{}” is not text in UTF-8.", show::visible(&own)))
            })?;
            fields.push((own, text));
            continue;
        };
        let media_type = without_parameters(field.content_type().unwrap_or_default()).to_owned();
        let content = content(&mut field, &name, room_of_files).await?;
        room_of_files -= content.as_ref().map_or(0, Bytes::len);
        // Browsers send an empty file without a name where none was chosen.
        if !name.is_empty() {
            fields.push((own.clone(), name.clone()));
            files.push(SentFile { field: own, name, media_type, content });
        }
    }
    gate.passed()?;
    Ok(SandboxForm { visit, fields, files })
}

/// The content of a file; `None`, read to its end, of one that is larger than `bytes_max`.
async fn content(field: &mut Field<'_>, name: &str, bytes_max: usize) -> Result<Option<Bytes>, Failure> {
    let mut content = Some(Vec::<u8>::new());
    loop {
        let part = match field.chunk().await {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(content.map(Bytes::from)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => return Err(too_large(name)),
            Err(error) => return Err(upload::failure(&error)),
        };
        content = content.filter(|content| content.len() + part.len() <= bytes_max);
        if let Some(content) = &mut content {
            content.extend_from_slice(&part);
        }
    }
}

/// Refuses a form that is so large that not even the rest of it is read.
fn too_large(name: &str) -> Failure {
    let detail = format!(
        "“{}” is far larger than the {} that a call carries. Nothing was sent, and you were not charged.",
        show::visible(name),
        most(),
    );
    let next = "Go back and choose a smaller file. Upload larger files to a store, and send their address in the call.";
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "The file is too large", detail, next)
}

/// The most that the body of a call has, in words.
pub(super) fn most() -> String {
    show::size(REQUEST_BODY_BYTES_MAX as u64)
}
