//! Settings that are read again while a node runs: some hold at once, the others from the next start on.

use super::{Config, Loaded, settings::KEYS};

/// Settings that hold at once.
const AT_ONCE: [&str; 5] =
    ["log.filter", "spending.enabled", "spending.per_day", "spending.per_secret_day", "spending.price_max"];

/// The names of settings that differ from those that the node runs with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedSettings {
    /// They hold now.
    pub taken: Vec<&'static str>,
    /// They hold from the next start on.
    pub waiting: Vec<&'static str>,
}

impl Loaded {
    /// Takes over what holds at once of settings that were read later. What waits is named again the next time.
    pub fn take_over(&mut self, newer: &Self) -> ChangedSettings {
        let changed = KEYS.iter().map(|key| key.name);
        let changed = changed.filter(|name| self.raw.values(name) != newer.raw.values(name));
        let (taken, waiting): (Vec<_>, Vec<_>) = changed.partition(|name| AT_ONCE.contains(name));
        let values = taken.iter().filter_map(|name| Some((*name, newer.raw.settings.get(name)?.clone())));
        self.raw.settings.extend(values);
        // Both were read in their forms before.
        if let Ok(config) = Config::read(&self.raw) {
            self.config = config;
        }
        ChangedSettings { taken, waiting }
    }
}
