//! Differences in each version of a service, in sentences for those who call it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use farthing_bridge::{changes::changes, description::Operation};
use farthing_control::types::{Text, VersionNote};
use farthing_protocol::{Listing, ServiceId, call::ChargePolicy, limits, plain::Line};
use farthing_shared::blocking::start_blocking;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{KnownService, method_of};

/// Of one service; the oldest go first.
const VERSIONS_KEPT_MAX: usize = 100;
/// Sentences of one version; a new description may change hundreds of operations.
const SENTENCES_MAX: usize = 30;
const SENTENCE_CHARS_MAX: usize = 300;

/// The note of `after`, compared with the version before it that is known.
pub fn note_of(before: Option<&KnownService>, after: &KnownService) -> VersionNote {
    let listing = after.listing();
    let mut what = before.map_or_else(|| vec!["published".to_owned()], |before| differences(before, after));
    let more = what.len().saturating_sub(SENTENCES_MAX);
    if more > 0 {
        what.truncate(SENTENCES_MAX);
        what.push(format!("and {more} more"));
    }
    VersionNote {
        version: listing.seq,
        published_secs: listing.updated_secs,
        price: listing.price.into(),
        what,
        seen_here: false,
    }
}

/// Puts a note behind those before it, within bounds.
pub fn add_note(note: VersionNote, notes: &mut Vec<VersionNote>) {
    notes.retain(|earlier| earlier.version < note.version);
    notes.push(note);
    let surplus = notes.len().saturating_sub(VERSIONS_KEPT_MAX);
    notes.drain(..surplus);
}

/// The document that an owner's listing pins: the newest versions, as many as fit, the newest last.
pub fn told(notes: &[VersionNote]) -> Vec<u8> {
    // Brackets and commas included.
    let mut bytes = 2;
    let newest_first = notes.iter().rev().take_while(|note| {
        bytes += serde_json::to_vec(note).map_or(usize::MAX / 2, |json| json.len() + 1);
        bytes <= limits::HISTORY_BYTES_MAX
    });
    let count = newest_first.count();
    serde_json::to_vec(&notes[notes.len() - count..]).unwrap_or_else(|_| b"[]".to_vec())
}

/// Reads such a document of a stranger, for the version `newest` of its service: within bounds, in order, and nothing
/// in it that hides or reorders text.
pub(super) fn read_told(document: &[u8], newest: u64) -> Vec<VersionNote> {
    if document.len() > limits::HISTORY_BYTES_MAX {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let mut told: Vec<VersionNote> = serde_json::from_slice(document).unwrap_or_default();
    told.retain(|note| note.version <= newest);
    told.sort_by_key(|note| note.version);
    for mut note in told {
        note.what.truncate(SENTENCES_MAX + 1);
        for sentence in &mut note.what {
            *sentence = Line::Prose.of(sentence).chars().take(SENTENCE_CHARS_MAX + 1).collect();
        }
        note.seen_here = false;
        add_note(note, &mut notes);
    }
    notes
}

/// Joins what the owner tells with what this node saw and the owner omits or tells otherwise; the newest last.
pub(super) fn joined(mut told: Vec<VersionNote>, seen: Vec<VersionNote>) -> Vec<VersionNote> {
    for own in seen {
        match told.iter_mut().find(|note| note.version == own.version) {
            None => told.push(VersionNote { seen_here: true, ..own }),
            Some(note) if note.price != own.price => {
                note.what.push(format!("your node saw a price of {} USDC per call", own.price));
            }
            Some(_) => {}
        }
    }
    told.sort_by_key(|note| note.version);
    told
}

fn differences(before: &KnownService, after: &KnownService) -> Vec<String> {
    let (old, new): (&Listing, &Listing) = (before.listing(), after.listing());
    let mut what = Vec::new();
    if old.price != new.price {
        what.push(format!("price: {} → {} USDC per call", old.price, new.price));
    }
    what.extend(own_prices(before, after));
    let described = changes(before.api().description(), after.api().description());
    what.extend(described.added.iter().map(|operation| format!("added: {operation}")));
    what.extend(described.removed.iter().map(|operation| format!("removed: {operation}")));
    what.extend(described.changed.iter().map(|one| format!("{}: {}", one.operation, one.what.join("; "))));
    if old.charge_policy != new.charge_policy {
        what.push(match new.charge_policy {
            ChargePolicy::Success => "only answers below status 400 are charged".to_owned(),
            ChargePolicy::Answered => "answers with status 4xx are charged as well".to_owned(),
        });
    }
    if old.name != new.name {
        what.push(format!("renamed to “{}”", new.name));
    }
    let texts = |listing: &Listing| (listing.summary.clone(), listing.category.clone(), listing.tags.clone());
    let long = |known: &KnownService| known.api().description().description.clone();
    if texts(old) != texts(new) || long(before) != long(after) {
        what.push("summary, description, category or tags changed".to_owned());
    }
    if before.details().samples.map(|pin| pin.hash) != after.details().samples.map(|pin| pin.hash) {
        what.push("free samples changed".to_owned());
    }
    match (old.paused, new.paused) {
        (false, true) => what.push("paused".to_owned()),
        (true, false) => what.push("resumed".to_owned()),
        _ => {}
    }
    if old.network != new.network || old.accepts != new.accepts {
        what.push(format!("payment terms or network changed (network {})", new.network));
    }
    for sentence in &mut what {
        if sentence.chars().count() > SENTENCE_CHARS_MAX {
            *sentence = sentence.chars().take(SENTENCE_CHARS_MAX).chain(['…']).collect();
        }
    }
    what
}

/// Prices that single operations have, had, or lost.
fn own_prices(before: &KnownService, after: &KnownService) -> Vec<String> {
    let own = [before, after].map(|known| {
        let prices = known.details().prices.iter();
        prices.map(|own| (own.method.as_str(), own.path.as_str())).collect::<HashSet<_>>()
    });
    let earlier: HashMap<_, _> = before.operations().map(|(old, price)| (named(old), price)).collect();
    let of_both = after.operations().filter_map(|(operation, price)| {
        let (method, path) = named(operation);
        let earlier = *earlier.get(&(method, path))?;
        // What follows the service's own price is told with that.
        let follows = !own.iter().any(|own| own.contains(&(method, path)));
        (earlier != price && !follows).then(|| format!("price of {method} {path}: {earlier} → {price} USDC"))
    });
    of_both.collect()
}

fn named(operation: &Operation) -> (&'static str, &str) {
    (method_of(operation).as_str(), &operation.path)
}

/// Services whose versions are remembered; beyond that those noted first are forgotten.
const SERVICES_SEEN_MAX: usize = 500;

/// The versions that this node saw of strangers' services: their owners tell the newest version only.
#[derive(Debug, Default)]
pub(super) struct SeenVersions(Mutex<NotedVersions>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct NotedVersions {
    /// In the order in which they were seen first.
    services: VecDeque<(Text<ServiceId>, Vec<VersionNote>)>,
    #[serde(skip)]
    changed: bool,
}

impl SeenVersions {
    /// Notes a version that is new here; `before` is the one that was known until now.
    ///
    /// A stranger decides how much there is to compare: that is done aside, and nobody waits for it but the one who
    /// met the new version.
    pub(super) async fn note(self: &Arc<Self>, before: Option<Arc<KnownService>>, after: Arc<KnownService>) {
        if !self.is_new(after.listing()) {
            return;
        }
        let seen = self.clone();
        let noted = start_blocking(move || {
            let note = note_of(before.as_deref(), &after);
            seen.add(Text(after.listing().service), note, before.is_none());
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "a version cannot be compared with the one before it");
        }
    }

    fn is_new(&self, listing: &Listing) -> bool {
        let noted = self.0.lock();
        let notes = noted.services.iter().find(|(own, _)| own.0 == listing.service);
        notes.and_then(|(_, notes)| notes.last()).is_none_or(|newest| newest.version < listing.seq)
    }

    /// `is_first`: nothing of the service was in use here before.
    fn add(&self, id: Text<ServiceId>, mut note: VersionNote, is_first: bool) {
        let mut noted = self.0.lock();
        let at = noted.services.iter().position(|(own, _)| *own == id);
        if is_first {
            note.what = vec![
                if at.is_some() { "seen again by your node" } else { "first seen by your node" }.to_owned(),
            ];
        }
        let at = at.unwrap_or_else(|| {
            if noted.services.len() >= SERVICES_SEEN_MAX {
                noted.services.pop_front();
            }
            noted.services.push_back((id, Vec::new()));
            noted.services.len() - 1
        });
        if let Some((_, notes)) = noted.services.get_mut(at)
            && notes.last().is_none_or(|newest| newest.version < note.version)
        {
            add_note(note, notes);
            noted.changed = true;
        }
    }

    /// Of one service, the newest last.
    pub(super) fn of(&self, id: ServiceId) -> Vec<VersionNote> {
        let noted = self.0.lock();
        let found = noted.services.iter().find(|(own, _)| own.0 == id);
        found.map(|(_, notes)| notes.clone()).unwrap_or_default()
    }

    /// As it is stored, when something was noted since the last time.
    pub(super) fn to_store(&self) -> Option<Vec<u8>> {
        let mut noted = self.0.lock();
        if !std::mem::take(&mut noted.changed) {
            return None;
        }
        serde_json::to_vec(&*noted).ok()
    }

    /// Goes on with what was stored. What cannot be read is forgotten: nothing depends on it.
    pub(super) fn restore(&self, stored: &[u8]) {
        if let Ok(noted) = serde_json::from_slice(stored) {
            *self.0.lock() = noted;
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Usdc;

    use super::*;

    fn note(version: u64, micros: u64, what: &str) -> VersionNote {
        VersionNote {
            version,
            published_secs: 1_000 + version,
            price: Usdc::from_micros(micros).into(),
            what: vec![what.to_owned()],
            seen_here: false,
        }
    }

    fn versions(notes: &[VersionNote]) -> Vec<(u64, bool)> {
        notes.iter().map(|note| (note.version, note.seen_here)).collect()
    }

    #[test]
    fn an_owner_tells_as_many_versions_as_fit_and_the_newest_of_them() {
        let few: Vec<_> = (1..=3).map(|version| note(version, 5, "published")).collect();
        assert_eq!(read_told(&told(&few), 3), few);
        let many: Vec<_> = (1..=100).map(|version| note(version, 5, &"x".repeat(3_000))).collect();
        let document = told(&many);
        assert!(document.len() <= limits::HISTORY_BYTES_MAX, "{}", document.len());
        let read = read_told(&document, 100);
        assert_eq!(read.last().map(|note| note.version), Some(100));
        assert_eq!(read.len(), 10);
        assert_eq!(told(&[]), b"[]");
    }

    #[test]
    fn a_stranger_s_history_is_bounded_ordered_and_plain() {
        let hostile = vec![
            note(9, 1, "of a version that is not published yet"),
            note(2, 4, "told twice"),
            note(1, 3, &"long ".repeat(200)),
            note(2, 2, "price\u{202e} down\u{200b}"),
        ];
        let read = read_told(&serde_json::to_vec(&hostile).unwrap(), 3);
        assert_eq!(versions(&read), [(1, false), (2, false)]);
        assert_eq!(read[1].what, ["price down"]);
        assert!(read[0].what[0].chars().count() <= SENTENCE_CHARS_MAX + 1);
        for broken in [&b"{}"[..], b"", b"[1]", &vec![b' '; limits::HISTORY_BYTES_MAX + 1]] {
            assert!(read_told(broken, 3).is_empty());
        }
    }

    #[test]
    fn what_the_owner_leaves_out_or_tells_otherwise_is_added_from_what_this_node_saw() {
        let told = vec![note(1, 5, "published"), note(3, 5, "free samples changed")];
        let seen = vec![note(1, 5, "first seen by your node"), note(2, 9, "price"), note(3, 7, "price")];
        let joined = joined(told, seen);
        assert_eq!(versions(&joined), [(1, false), (2, true), (3, false)]);
        assert_eq!(joined[0].what, ["published"]);
        assert_eq!(
            joined[2].what,
            ["free samples changed", "your node saw a price of 0.000007 USDC per call"]
        );
    }
}
