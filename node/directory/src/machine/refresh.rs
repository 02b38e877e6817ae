//! Looking around in all parts of the table, a few look-ups at a time.

use super::{Directory, OWN_JOBS_MAX};
use crate::{
    Key, Now,
    job::{Job, Work},
    lookup::LookupPurpose,
    records::Verifier,
    wire::Name,
};

/// Look-ups of a refresh under way at once.
const TOGETHER: usize = 2;
/// Names that are tried for a bucket each. Buckets that none of them falls into are so near that the look-up of our own
/// place fills them.
const NAMES_TRIED: usize = 1024;

impl<V: Verifier> Directory<V> {
    /// Plans a look-up of our own place, and of one in each bucket in use and the first empty one.
    pub(super) fn refresh(&mut self, now: Now) {
        self.records.remove_expired(now.unix_secs);
        if !self.refreshes.is_empty() {
            return;
        }
        self.refreshes.push_back(self.config.own_id.as_slice().into());
        let mut missing: Vec<bool> = vec![true; self.table.depth() + 1];
        for _ in 0..NAMES_TRIED {
            let name: Name = self.dice.throw().to_be_bytes().as_slice().into();
            let shared = self.own.distance(Key::of(&name)).shared_bits();
            let bucket = usize::try_from(shared).ok().and_then(|shared| missing.get_mut(shared));
            if bucket.is_some_and(std::mem::take) {
                self.refreshes.push_back(name);
            }
        }
    }

    /// Begins the next look-up of a refresh; returns whether one was begun.
    pub(super) fn refresh_next(&mut self, now: Now) -> bool {
        if self.refreshes.is_empty() || self.jobs.len() >= OWN_JOBS_MAX {
            return false;
        }
        let under_way = self.jobs.values().filter(|job| Job::is_refresh(job)).count();
        if under_way >= TOGETHER || self.table.len() == 0 {
            return false;
        }
        let Some(name) = self.refreshes.pop_front() else { return false };
        let lookup = self.lookup(now, name, LookupPurpose::Peers, None);
        self.begin_own(Work::Lookup(Box::new(lookup), None));
        true
    }
}
