//! What is different in each version of a service, in sentences for those who call it.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use farthing_bridge::changes::changes;
use farthing_protocol::{Listing, ServiceId, Usdc, call::ChargePolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Known, method_of};
use crate::text::Text;

/// Of one service; the oldest go first.
pub const VERSIONS_KEPT_MAX: usize = 100;
/// Sentences of one version; a new description may change hundreds of operations.
const SENTENCES_MAX: usize = 30;
const SENTENCE_CHARS_MAX: usize = 300;

/// One version of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionNote {
    /// As calls name it.
    pub version: u64,
    /// By the owner's clock, in seconds since the Unix epoch.
    pub published_secs: u64,
    /// Of operations that name none of their own.
    #[schema(value_type = String)]
    pub price: Text<Usdc>,
    /// What is different from the version before, one sentence each; empty where callers see no difference.
    pub what: Vec<String>,
}

impl VersionNote {
    /// The note of `after`, compared with the version before it that is known.
    #[must_use]
    pub fn of(before: Option<&Known>, after: &Known) -> Self {
        let listing = after.listing();
        let mut what =
            before.map_or_else(|| vec!["published".to_owned()], |before| differences(before, after));
        let more = what.len().saturating_sub(SENTENCES_MAX);
        if more > 0 {
            what.truncate(SENTENCES_MAX);
            what.push(format!("and {more} more"));
        }
        Self { version: listing.seq, published_secs: listing.updated_secs, price: listing.price.into(), what }
    }

    /// Puts a note behind those before it, within bounds.
    pub fn add_to(self, notes: &mut Vec<Self>) {
        notes.retain(|note| note.version < self.version);
        notes.push(self);
        let surplus = notes.len().saturating_sub(VERSIONS_KEPT_MAX);
        notes.drain(..surplus);
    }
}

fn differences(before: &Known, after: &Known) -> Vec<String> {
    let (old, new): (&Listing, &Listing) = (before.listing(), after.listing());
    let mut what = Vec::new();
    if old.price != new.price {
        what.push(format!("price {} → {} USDC a call", old.price, new.price));
    }
    what.extend(own_prices(before, after));
    let described = changes(before.api().description(), after.api().description());
    what.extend(described.added.iter().map(|operation| format!("new: {operation}")));
    what.extend(described.removed.iter().map(|operation| format!("gone: {operation}")));
    what.extend(described.changed.iter().map(|one| format!("{}: {}", one.operation, one.what.join("; "))));
    if old.charge_policy != new.charge_policy {
        what.push(match new.charge_policy {
            ChargePolicy::Success => "only answers below status 400 are charged".to_owned(),
            ChargePolicy::Answered => "answers with status 4xx are charged as well".to_owned(),
        });
    }
    if old.name != new.name {
        what.push(format!("called “{}” now", new.name));
    }
    let texts = |listing: &Listing| (listing.summary.clone(), listing.category.clone(), listing.tags.clone());
    let long = |known: &Known| known.api().description().description.clone();
    if texts(old) != texts(new) || long(before) != long(after) {
        what.push("other texts".to_owned());
    }
    if before.details().samples.map(|pin| pin.hash) != after.details().samples.map(|pin| pin.hash) {
        what.push("other samples".to_owned());
    }
    match (old.paused, new.paused) {
        (false, true) => what.push("paused".to_owned()),
        (true, false) => what.push("serves again".to_owned()),
        _ => {}
    }
    if old.network != new.network || old.accepts != new.accepts {
        what.push(format!("listed on the network {}", new.network));
    }
    for sentence in &mut what {
        if sentence.chars().count() > SENTENCE_CHARS_MAX {
            *sentence = sentence.chars().take(SENTENCE_CHARS_MAX).chain(['…']).collect();
        }
    }
    what
}

/// Prices that single operations have, had, or lost.
fn own_prices(before: &Known, after: &Known) -> Vec<String> {
    let own = |known: &Known, like: (&str, &str)| {
        let prices = known.details().prices.iter();
        prices.clone().find(|own| (own.method.as_str(), own.path.as_str()) == like).map(|own| own.price)
    };
    let of_both = after.operations().filter_map(|(operation, price)| {
        let method = method_of(operation);
        let like = (method.as_str(), operation.path.as_str());
        let earlier = before
            .operations()
            .find(|(old, _)| method_of(old) == method && old.path == operation.path)
            .map(|(_, price)| price)?;
        // What follows the service's own price is told with that.
        let follows = own(before, like).is_none() && own(after, like).is_none();
        (earlier != price && !follows)
            .then(|| format!("price of {} {}: {earlier} → {price} USDC", like.0, like.1))
    });
    of_both.collect()
}

/// Services whose versions are remembered; beyond that those noted first are forgotten.
const SERVICES_SEEN_MAX: usize = 500;

/// What this node saw of strangers' services: their owners tell the newest version only.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Noted>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Noted {
    /// In the order in which they were seen first.
    services: VecDeque<(Text<ServiceId>, Vec<VersionNote>)>,
    #[serde(skip)]
    changed: bool,
}

impl Seen {
    /// Notes a version that is new here; `before` is the one that was known until now.
    pub(super) fn note(&self, before: Option<&Known>, after: &Known) {
        let listing = after.listing();
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = Text(listing.service);
        let at = noted.services.iter().position(|(own, _)| *own == id);
        let notes = at.and_then(|at| noted.services.get(at)).map(|(_, notes)| notes.as_slice());
        if notes.and_then(<[_]>::last).is_some_and(|newest| newest.version >= listing.seq) {
            return;
        }
        let mut note = VersionNote::of(before, after);
        if before.is_none() {
            note.what =
                vec![if notes.is_some() { "seen again" } else { "first seen by this node" }.to_owned()];
        }
        let at = at.unwrap_or_else(|| {
            if noted.services.len() >= SERVICES_SEEN_MAX {
                noted.services.pop_front();
            }
            noted.services.push_back((id, Vec::new()));
            noted.services.len() - 1
        });
        if let Some((_, notes)) = noted.services.get_mut(at) {
            note.add_to(notes);
        }
        noted.changed = true;
    }

    /// Of one service, the newest last.
    pub(super) fn of(&self, id: ServiceId) -> Vec<VersionNote> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = noted.services.iter().find(|(own, _)| own.0 == id);
        found.map(|(_, notes)| notes.clone()).unwrap_or_default()
    }

    /// As it is stored, when something was noted since the last time.
    pub(super) fn to_store(&self) -> Option<Vec<u8>> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut noted.changed) {
            return None;
        }
        serde_json::to_vec(&*noted).ok()
    }

    /// Goes on with what was stored. What cannot be read is forgotten: nothing depends on it.
    pub(super) fn restore(&self, stored: &[u8]) {
        if let Ok(noted) = serde_json::from_slice(stored) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        }
    }
}
