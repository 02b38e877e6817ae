//! Notes on planets: kept in memory, bounded in number and length.

use std::collections::VecDeque;
use std::sync::Arc;

use juniper::{DefaultScalarValue, ID, graphql_object};
use parking_lot::Mutex;

use super::{Context, Planet};
use crate::exoplanets::catalog::Record;
use crate::exoplanets::refusal::Refusal;

/// A paragraph.
const TEXT_CHARS_MAX: usize = 500;
/// A page of paragraphs for each planet.
const NOTES_PER_PLANET_MAX: usize = 20;
/// At most 2 MB of text, at four bytes a character.
const NOTES_MAX: usize = 1_000;

/// All notes, oldest first.
#[derive(Debug, Default)]
pub(in crate::exoplanets) struct Notes(Mutex<StoredNotes>);

#[derive(Debug, Default)]
struct StoredNotes {
    notes: VecDeque<Note>,
    /// Never given twice, also not after a removal.
    next_number: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Note {
    number: u64,
    planet: Arc<Record>,
    text: Arc<str>,
}

impl Notes {
    pub(super) fn of(&self, planet: &Record) -> Vec<Note> {
        self.0.lock().notes.iter().filter(|note| note.planet.row == planet.row).cloned().collect()
    }

    pub(super) fn add(&self, planet: &Arc<Record>, text: &str) -> Result<Note, Refusal> {
        let text = text.trim();
        if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
            let expected = format!("from 1 to {TEXT_CHARS_MAX} characters that are not all spaces");
            return Err(Refusal::BadInput(format!("`text` must have {expected}")));
        }
        let mut kept = self.0.lock();
        let on_planet = kept.notes.iter().filter(|note| note.planet.row == planet.row).count();
        if on_planet >= NOTES_PER_PLANET_MAX {
            let name = &planet.name;
            let detail = format!("{name} already has {NOTES_PER_PLANET_MAX} notes; remove one first");
            return Err(Refusal::Conflict(detail));
        }
        if kept.notes.len() >= NOTES_MAX {
            let detail = format!("this service already keeps {NOTES_MAX} notes; remove one first");
            return Err(Refusal::Conflict(detail));
        }
        let note = Note { number: kept.next_number, planet: Arc::clone(planet), text: text.into() };
        kept.next_number += 1;
        kept.notes.push_back(note.clone());
        Ok(note)
    }

    pub(super) fn remove(&self, id: &ID) -> Result<Note, Refusal> {
        let mut kept = self.0.lock();
        let place = kept.notes.iter().position(|note| note.id() == *id);
        place
            .and_then(|place| kept.notes.remove(place))
            .ok_or_else(|| Refusal::NotFound("there is no note with that `id`".to_owned()))
    }
}

impl Note {
    fn id(&self) -> ID {
        format!("note:{}", self.number).into()
    }
}

/// What a user of this service wrote about a planet.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Note {
    /// `note:` before a number; never given to another note.
    #[graphql(name = "id")]
    fn graphql_id(&self) -> ID {
        self.id()
    }

    /// The planet it is about.
    fn planet(&self) -> Planet {
        Planet::new(&self.planet)
    }

    /// What was written, without space before or after it.
    fn text(&self) -> &str {
        &self.text
    }
}
