//! A full catalog beside a neighbour that has far more: what the two say to each other while nothing is published.
//!
//! Both open a session every five minutes. The full one has as many listings of each owner, so that no further one of any owner
//! finds room. The clock of the sessions is moved on instead of being waited for.

use std::path::Path;

use anyhow::{Result, ensure};
use farthing_tests::report::{print_promise, rounded};
use serde::Serialize;

use super::{
    catalog::{BATCH, HERE, LISTINGS_MAX, PER_OWNER, open, owner, reconcile, store},
    now_secs,
    traffic::{BYTES_PER_SECOND_MAX, count},
};

/// Places of the full catalog: as many as a node has unless its owner wants more. Beside a small neighbour it has half as many as
/// that.
const PLACES_MAX: usize = 200_000;
/// Between two sessions that one of them opens.
const SESSION_EVERY_SECS: u64 = 300;
/// Each compares everything once in this time.
const HOURS: u64 = 6;

/// What was found. Sizes in KiB, of 1024.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    pub places: usize,
    pub listings_of_neighbour: usize,
    /// By the clock of the sessions.
    pub hours: u64,
    pub sessions: u64,
    pub largest_session_kib: f64,
    /// Listings that the full catalog fetched and had no room for.
    pub refused: usize,
    /// Both ways, in all sessions.
    pub bytes_per_second: f64,
}

impl Section {
    /// Says whether the node of the full catalog is as quiet as it has to be.
    pub fn print_promise(&self) {
        let found = self.bytes_per_second;
        let promise = format!(
            "a full catalog of {} beside one of {} takes at most {BYTES_PER_SECOND_MAX} B/s ({found} B/s)",
            self.places, self.listings_of_neighbour
        );
        print_promise(promise, found <= BYTES_PER_SECOND_MAX);
    }
}

/// Puts a full catalog beside the one that [`super::catalog::measure`] has left in `folder` with `listings`.
pub async fn run(listings: usize, folder: &Path) -> Result<Section> {
    let every = listings.div_ceil(PLACES_MAX).max(2);
    let owners = 0..listings.div_ceil(PER_OWNER);
    let kept = |number: usize| (listings - number * PER_OWNER).min(PER_OWNER).div_ceil(every);
    let places: usize = owners.clone().map(kept).sum();
    let neighbour = open(&folder.join(HERE), LISTINGS_MAX)?;
    let full = open(&folder.join("full"), places)?;
    for first in owners.clone().step_by(BATCH / PER_OWNER) {
        let mut some = Vec::new();
        for number in first..owners.end.min(first + BATCH / PER_OWNER) {
            some.extend(neighbour.by_owner(owner(number).address())?.into_iter().step_by(every));
        }
        store(&full, some).await?;
    }
    full.settled().await?;
    ensure!(full.is_full(), "there is room left: {:?}", full.counts());

    let (began_secs, seconds) = (now_secs(), HOURS * 3600);
    let (mut bytes, mut largest, mut sessions) = (0, 0, 0);
    for turn in 0..seconds / SESSION_EVERY_SECS {
        let at_secs = began_secs + turn * SESSION_EVERY_SECS;
        for (from, with) in [(&full, &neighbour), (&neighbour, &full)] {
            let cost = reconcile(from, with, true, at_secs).await?;
            bytes += cost.bytes as u64;
            largest = cost.bytes.max(largest);
            sessions += 1;
        }
    }
    ensure!(full.counts().listings == places, "some have left: {:?}", full.counts());
    Ok(Section {
        places,
        listings_of_neighbour: neighbour.counts().listings,
        hours: HOURS,
        sessions,
        largest_session_kib: rounded(count(largest as u64) / 1024.0),
        refused: full.counts().refused,
        bytes_per_second: rounded(count(bytes) / count(seconds)),
    })
}
