//! Forms with files: the key first, then the fields, each read within its bound.

use std::{collections::HashMap, net::IpAddr};

use axum::extract::{
    FromRequest, Multipart, Request,
    multipart::{Field, MultipartError},
};
use farthing_control::types::{SourceFile, SourceKind};
use farthing_os::clock;
use http::request::Parts;

use super::{GUEST_BYTES_MAX, KEY_FIELD, PASSWORD_FIELD, Proof, confirm, from, rejected, unread};
use crate::{ConsoleState, access::Reauthenticated, failure::Failure, frame::Visit, guard::session_of, show};

/// A description, as the bridge reads it at most.
const FILE_BYTES_MAX: usize = farthing_bridge::limits::DOCUMENT_BYTES_MAX;
/// The largest body of such a form: a file and what stands beside it.
pub(crate) const UPLOAD_BYTES_MAX: usize = FILE_BYTES_MAX + 512 * 1024;
/// Fields of any form here.
const FIELDS_MAX: usize = 32;

/// The first fields of a form with files: the key, and the password where there is no key. Nothing of a form is kept
/// before they were right.
#[derive(Debug)]
pub(crate) struct Gate {
    from: IpAddr,
    proof: Proof,
}

impl Gate {
    pub(crate) fn new(parts: &Parts) -> Self {
        Self { from: from(parts), proof: Proof::Nothing }
    }

    /// Takes the next field when it is one of the gate's own; whether it was.
    ///
    /// # Errors
    /// A wrong password; and before any other field is read, one of the two must have been right.
    pub(crate) async fn took(&mut self, visit: &Visit, field: &mut Field<'_>) -> Result<bool, Failure> {
        let is_password = match field.name() {
            Some(KEY_FIELD) => false,
            Some(PASSWORD_FIELD) => true,
            _ => return self.passed().map(|()| false),
        };
        let text = whole(field, GUEST_BYTES_MAX).await?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if is_password {
            if !text.is_empty() {
                let has_key = matches!(self.proof, Proof::Key);
                let confirmed = confirm(visit, text, self.from, has_key).await;
                self.proof =
                    Proof::Password(confirmed.map_err(|refused| Failure::password_refused(&refused))?);
            }
        } else if visit.session.has_key(&text) && matches!(self.proof, Proof::Nothing) {
            self.proof = Proof::Key;
        }
        Ok(true)
    }

    /// # Errors
    /// Neither was right.
    pub(crate) fn passed(&self) -> Result<(), Failure> {
        match self.proof {
            Proof::Nothing => Err(Failure::no_key()),
            Proof::Key | Proof::Password(_) => Ok(()),
        }
    }

    /// As [`Form::reauthenticated`].
    ///
    /// # Errors
    /// The password must be typed into the form.
    pub(crate) fn reauthenticated(&self, visit: &Visit) -> Result<Reauthenticated, Failure> {
        match self.proof {
            Proof::Password(confirmed) => Ok(confirmed.into()),
            Proof::Nothing => Err(Failure::no_key()),
            Proof::Key => {
                visit.session.reauthenticated(clock::now_secs()).ok_or_else(Failure::password_in_the_form)
            }
        }
    }
}

/// A form with files that one of our pages sent for somebody logged in. Its key comes first, so that nothing of a
/// stranger's is ever kept.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) visit: Visit,
    gate: Gate,
    fields: HashMap<String, UploadField>,
}

#[derive(Debug)]
struct UploadField {
    text: String,
    /// Of a file, as the browser says; a person's text.
    file_name: String,
}

impl Upload {
    /// As [`Form::reauthenticated`].
    ///
    /// # Errors
    /// The password must be typed into the form.
    pub(crate) fn reauthenticated(&self) -> Result<Reauthenticated, Failure> {
        self.gate.reauthenticated(&self.visit)
    }

    /// Returns the text that was typed, or stands in the file; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |field| &field.text)
    }

    /// Takes the content of a field away, and the name of its file.
    pub(crate) fn take(&mut self, name: &str) -> (String, String) {
        self.fields.remove(name).map_or_else(Default::default, |field| (field.text, field.file_name))
    }

    /// The description of an API in the form's file, where one was chosen.
    pub(crate) fn source(&mut self) -> Option<SourceFile> {
        let (file, name) = self.take("file");
        (!file.trim().is_empty()).then(|| document(file, show::visible(&name)))
    }
}

impl FromRequest<ConsoleState> for Upload {
    type Rejection = Failure;

    async fn from_request(request: Request, panel: &ConsoleState) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let session = session_of(panel, &parts.headers).ok_or_else(|| unread(panel, &parts))?;
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
            fields.insert(name, UploadField { text, file_name });
        }
        gate.passed()?;
        Ok(Self { visit, gate, fields })
    }
}

/// A field, of which no more is read than it may have.
pub(crate) async fn whole(field: &mut Field<'_>, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(part) = field.chunk().await.map_err(|error| failure(&error))? {
        if bytes.len() + part.len() > bytes_max {
            return Err(Failure::too_large());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

pub(crate) fn failure(error: &MultipartError) -> Failure {
    rejected(error.status(), format!("The upload stopped: {}.", error.body_text()))
}

/// A description that was given as text; what kind it is, the node finds out.
pub(crate) const fn document(text: String, file: String) -> SourceFile {
    SourceFile::given(SourceKind::Openapi, text, file)
}

fn not_text(name: &str, file_name: &str) -> Failure {
    let what = if file_name.is_empty() { name } else { file_name };
    Failure::unreadable(format!(
        "“{}” is not text in UTF-8. API descriptions are JSON, YAML or GraphQL's schema language; unpack an archive \
         first.",
        show::visible(what)
    ))
}
