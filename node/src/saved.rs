//! Requests that the user saved under names of theirs, to be filled in and sent again.
//!
//! In order: name and size are checked, what is secret is left out, the ledger stores the rest, and then it is known here. They
//! are few and bounded, so all of them are in memory.
//!
//! Invariant: no value is kept whose field is named like a secret, and no secret of this node's.

use std::{collections::BTreeMap, sync::Arc};

use farthing_bridge::is_deceptive;
use farthing_control::types::{NewSavedRequest, RequestFields, SavedRequest, SavedTitle, ServiceIdText};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::ServiceId;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// More than a list is looked through for; together with the size of each, 3 MiB of memory.
const ALL_MAX: usize = 200;
/// A long body by hand; what is larger belongs into a file or a program.
const REQUEST_KIB_MAX: usize = 16;
/// A name is a line of a list.
const NAME_CHARS_MAX: usize = 100;
/// Parts of the names of fields that hold secrets, in small letters and without signs.
const SECRET_WORDS: [&str; 9] = [
    "authorization",
    "cookie",
    "apikey",
    "token",
    "secret",
    "password",
    "passphrase",
    "credential",
    "privatekey",
];
/// Beginnings of secrets, wherever they stand: of a header, and of this node's own.
const BEARER: &str = "Bearer ";
const OWN_SECRET: &str = "farthing_sk_";

/// An error that keeps a request from being saved, renamed or found.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    #[error("a saved request needs a name")]
    NoName,
    #[error("the name has more than {NAME_CHARS_MAX} characters")]
    LongName,
    #[error("this service has a saved request “{0}” already")]
    Exists(String),
    #[error("{ALL_MAX} requests are saved already")]
    TooMany,
    #[error("the request has more than {REQUEST_KIB_MAX} KiB")]
    TooLarge,
    #[error("there is no such saved request")]
    NotFound,
    #[error("the ledger could not be written, so nothing was changed")]
    NotStored(#[source] LedgerError),
}

impl SavedError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::NoName => "Give it a name.",
            Self::LongName => "Choose a shorter name.",
            Self::Exists(_) => "Choose another name, or delete that one.",
            Self::TooMany => "Delete one that you do not use any more.",
            Self::TooLarge => "Save it with a shorter body.",
            Self::NotFound => "It may be deleted: look at the list of saved requests.",
            Self::NotStored(error) => error.next_step(),
        }
    }
}

/// The saved requests of this node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SavedRequests(Arc<SavedInner>);

#[derive(Debug)]
struct SavedInner {
    ledger: Ledger,
    all: RwLock<BTreeMap<Uuid, StoredRequest>>,
    /// Changes are made one after the other, so that bounds and names hold.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredRequest {
    name: String,
    service: ServiceIdText,
    operation: String,
    fields: RequestFields,
    left_out: Vec<String>,
    saved_secs: u64,
}

impl StoredRequest {
    /// The title, without the service's name, which others know.
    fn title(&self, id: Uuid) -> SavedTitle {
        SavedTitle {
            id: id.to_string(),
            name: self.name.clone(),
            service: self.service,
            service_name: String::new(),
            operation: self.operation.clone(),
            saved_secs: self.saved_secs,
        }
    }
}

impl SavedRequests {
    /// Reads what was saved before.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let mut all: BTreeMap<Uuid, StoredRequest> = BTreeMap::new();
        for (key, bytes) in ledger.list(Namespace::Requests)? {
            match (Uuid::from_slice(&key), serde_json::from_slice(&bytes)) {
                (Ok(id), Ok(stored)) => drop(all.insert(id, stored)),
                _ => tracing::warn!("a saved request cannot be read, and is not listed"),
            }
        }
        let changing = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(SavedInner { ledger, all: RwLock::new(all), changing })))
    }

    /// Returns the titles of all, or of one service's, by name.
    pub fn titles(&self, of: Option<ServiceId>) -> Vec<SavedTitle> {
        let all = self.0.all.read();
        let asked = all.iter().filter(|(_, stored)| of.is_none_or(|service| stored.service.0 == service));
        let mut titles: Vec<SavedTitle> = asked.map(|(id, stored)| stored.title(*id)).collect();
        titles.sort_by_cached_key(|title| title.name.to_lowercase());
        titles
    }

    /// Returns one with what it asks.
    ///
    /// # Errors
    /// [`SavedError::NotFound`].
    pub fn get(&self, id: &str) -> Result<SavedRequest, SavedError> {
        let id = read(id)?;
        let all = self.0.all.read();
        let stored = all.get(&id).ok_or(SavedError::NotFound)?;
        Ok(shown(id, stored))
    }

    /// Saves a request, durably.
    ///
    /// # Errors
    /// [`SavedError`]; nothing was saved then.
    pub async fn save(&self, new: NewSavedRequest) -> Result<SavedRequest, SavedError> {
        let NewSavedRequest { name, service, operation, fields } = new;
        let name = checked(&name)?;
        if bytes_of(&operation, &fields) > REQUEST_KIB_MAX * 1024 {
            return Err(SavedError::TooLarge);
        }
        let (fields, left_out) = without_secrets(fields);
        let saved_secs = clock::now_secs();
        let stored = StoredRequest { name, service, operation, fields, left_out, saved_secs };
        let _alone = self.0.changing.lock().await;
        self.check_room(&stored)?;
        let id = Uuid::new_v4();
        let saved = shown(id, &stored);
        self.store(id, stored).await?;
        Ok(saved)
    }

    fn check_room(&self, new: &StoredRequest) -> Result<(), SavedError> {
        let all = self.0.all.read();
        check_free(&all, new.service.0, &new.name, None)?;
        if all.len() >= ALL_MAX { Err(SavedError::TooMany) } else { Ok(()) }
    }

    /// Renames one, durably.
    ///
    /// # Errors
    /// [`SavedError`]; it keeps its name then.
    pub async fn rename(&self, id: &str, name: &str) -> Result<SavedTitle, SavedError> {
        let (id, name) = (read(id)?, checked(name)?);
        let _alone = self.0.changing.lock().await;
        let renamed = self.with_name(id, name)?;
        let title = renamed.title(id);
        self.store(id, renamed).await?;
        Ok(title)
    }

    fn with_name(&self, id: Uuid, name: String) -> Result<StoredRequest, SavedError> {
        let all = self.0.all.read();
        let stored = all.get(&id).ok_or(SavedError::NotFound)?;
        check_free(&all, stored.service.0, &name, Some(id))?;
        Ok(StoredRequest { name, ..stored.clone() })
    }

    /// Deletes one, durably.
    ///
    /// # Errors
    /// [`SavedError`]; it stays then.
    pub async fn remove(&self, id: &str) -> Result<SavedTitle, SavedError> {
        let id = read(id)?;
        let _alone = self.0.changing.lock().await;
        let title = self.0.all.read().get(&id).map(|stored| stored.title(id));
        let title = title.ok_or(SavedError::NotFound)?;
        let deleted = self.0.ledger.delete(Namespace::Requests, id.as_bytes().to_vec()).await;
        deleted.map_err(SavedError::NotStored)?;
        self.0.all.write().remove(&id);
        Ok(title)
    }

    async fn store(&self, id: Uuid, request: StoredRequest) -> Result<(), SavedError> {
        let bytes = serde_json::to_vec(&request).expect("texts and numbers are always JSON");
        let stored = self.0.ledger.put(Namespace::Requests, id.as_bytes().to_vec(), bytes).await;
        stored.map_err(SavedError::NotStored)?;
        self.0.all.write().insert(id, request);
        Ok(())
    }
}

fn shown(id: Uuid, stored: &StoredRequest) -> SavedRequest {
    SavedRequest { title: stored.title(id), fields: stored.fields.clone(), left_out: stored.left_out.clone() }
}

fn read(id: &str) -> Result<Uuid, SavedError> {
    Uuid::parse_str(id).map_err(|_| SavedError::NotFound)
}

/// A name as it is kept: one line, without what cannot be seen, so that no two look the same.
pub(crate) fn line_of(name: &str) -> String {
    let line = name.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let seen: String = line.filter(|c| !is_deceptive(*c)).collect();
    seen.trim().to_owned()
}

fn checked(name: &str) -> Result<String, SavedError> {
    let name = line_of(name);
    match name.chars().count() {
        0 => Err(SavedError::NoName),
        1..=NAME_CHARS_MAX => Ok(name),
        _ => Err(SavedError::LongName),
    }
}

/// Checks that no other request of the service has the name.
fn check_free(
    all: &BTreeMap<Uuid, StoredRequest>,
    service: ServiceId,
    name: &str,
    own: Option<Uuid>,
) -> Result<(), SavedError> {
    let has_it = |(id, other): (&Uuid, &StoredRequest)| {
        other.service.0 == service && other.name == name && Some(*id) != own
    };
    if all.iter().any(has_it) { Err(SavedError::Exists(name.to_owned())) } else { Ok(()) }
}

fn bytes_of(operation: &str, fields: &RequestFields) -> usize {
    let RequestFields { parameters, extra, body, parts, file } = fields;
    let parameters = parameters.iter().map(|(name, value)| name.len() + value.len());
    let parts = parts.iter().map(|part| part.name.len() + part.value.len());
    operation.len() + extra.len() + body.len() + file.len() + parameters.chain(parts).sum::<usize>()
}

/// The fields without those that hold secrets, and the names of these.
fn without_secrets(mut fields: RequestFields) -> (RequestFields, Vec<String>) {
    let mut left_out = Vec::new();
    let mut is_kept = |name: &str, value: &str| {
        let is_kept = !is_secret(name, value);
        if !is_kept {
            left_out.push(name.to_owned());
        }
        is_kept
    };
    fields.parameters.retain(|name, value| is_kept(name, value.as_str()));
    fields.parts.retain(|part| is_kept(&part.name, &part.value));
    let lines = fields.extra.lines().filter(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        is_kept(name.trim(), value)
    });
    let extra = lines.collect::<Vec<_>>().join("\n");
    fields.extra = extra;
    if fields.body.contains(OWN_SECRET) {
        fields.body.clear();
        left_out.push("body".to_owned());
    }
    (fields, left_out)
}

fn is_secret(name: &str, value: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| plain.contains(word))
        || value.trim_start().starts_with(BEARER)
        || value.contains(OWN_SECRET)
}

#[cfg(test)]
mod tests;
