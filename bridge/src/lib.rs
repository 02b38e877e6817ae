//! API descriptions in; requests out. Pure: no sockets, files, tasks or clocks.
//!
//! Readers turn what an owner brings into an [`ApiDescription`](description::ApiDescription). [`Api::new`] checks
//! and indexes it once; [`Api::plan`] turns a [`Call`] into a [`Request`] or says, naming the nearest right thing,
//! why it cannot: *a bad request costs nothing*. The same code runs on the consumer's node before a call is priced
//! and on the owner's before the upstream is reached.
//!
//! Reading order: [`description`] → [`api`] → [`routing`] → parameters → body → [`request`] → [`headers`].

pub mod api;
mod body;
pub mod changes;
mod cut;
pub mod description;
pub mod document;
mod error;
mod escape;
mod fits;
pub mod form;
mod formats;
pub mod graphql;
pub mod headers;
mod json;
pub mod limits;
pub mod media;
pub mod multipart;
mod names;
pub mod openapi;
pub mod outline;
mod parameters;
pub mod pretty;
pub mod problem;
pub mod promised;
pub mod read;
pub mod report;
pub mod request;
pub mod routing;
pub mod samples;
pub mod share;
mod steps;
#[cfg(test)]
mod testing;
mod values;
pub mod walk;

pub use api::{Api, Call, Planned, Request};
pub use error::ApiError;
pub use media::is_json;
pub use parameters::style::base_name;
pub use problem::{PlanError, Problem};
pub use read::read;
pub use request::{HttpRequest, Payload};
pub use routing::{Route, RouteError, Routes};

/// Characters that are compared with each other to say what may have been meant: some 5 ms. A hint is not worth more
/// of an owner's time, and strangers choose both texts.
pub(crate) const CELLS_MAX: usize = 1_000_000;

/// The candidate most like `name`, if any is alike enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const BYTES_MAX: usize = 256;
    if name.len() > BYTES_MAX {
        return None;
    }
    let (length, mut cells_left) = (name.chars().count(), CELLS_MAX);
    let distance_max = length / 3 + 1;
    candidates
        .filter(|candidate| candidate.len() <= BYTES_MAX)
        // Texts are as far apart as their lengths at least.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= distance_max)
        .take_while(|candidate| {
            cells_left = cells_left.saturating_sub(name.len() * candidate.len());
            cells_left > 0
        })
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Text that is looked at to show its beginning: a stranger's may be megabytes of what is not shown.
pub(crate) const SHOWN_BYTES_MAX: usize = 512;

/// A stranger's text, shortened and without control characters, for repeating it in an error.
pub fn shown(text: &str) -> String {
    let beginning = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    beginning.chars().filter(|c| !is_deceptive(*c)).take(80).collect()
}

/// Characters that move a cursor, reorder text or hide in it: no text of a stranger is shown with them.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
