//! Changes that clients can make.

#![expect(clippy::needless_pass_by_value, reason = "juniper hands arguments over by value")]

use juniper::{DefaultScalarValue, ID, graphql_object};

use super::Context;
use super::note::Note;
use crate::exoplanets::refusal::Refusal;

#[derive(Debug)]
pub(in crate::exoplanets) struct Mutation;

/// Changes. They are kept in memory, and forgotten when the service is restarted.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Mutation {
    /// Leaves a note on a planet. A planet has at most 20 notes, the service keeps at most 1000.
    fn add_note(
        context: &Context,
        #[graphql(desc = "The planet's exact name, such as `Kepler-22 b`.")] planet: String,
        #[graphql(desc = "What to write, from 1 to 500 characters.")] text: String,
    ) -> Result<Note, Refusal> {
        let record = context.catalog.find(&planet).ok_or_else(|| {
            Refusal::NotFound("there is no planet with that name; `search` finds names".to_owned())
        })?;
        context.notes.add(record, &text)
    }

    /// Removes a note, and answers what it was.
    fn remove_note(
        context: &Context,
        #[graphql(desc = "The note's id, as `addNote` answered it.")] id: ID,
    ) -> Result<Note, Refusal> {
        context.notes.remove(&id)
    }
}
