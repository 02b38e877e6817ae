//! Browsers and programs that logged in here before, each known by the hash of a key of its own.
//!
//! The key opens nothing. It gives tries of the password that nobody else's wrong ones use up, so that another program
//! which guesses all the time keeps no browser out that has been in. Only a log-in makes one, and it outlives sessions.

use std::io;

use farthing_os::secret::SecretText;
use serde::{Deserialize, Serialize};

use super::secret_hash::{SecretHash, random_text};

pub const DEVICES_MAX: usize = 64;

/// The secret that a browser keeps from one log-in to the next.
#[derive(Debug)]
pub struct DeviceKey(SecretText);

impl DeviceKey {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        random_text().map(Self)
    }

    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    fn id(presented: &str) -> DeviceId {
        DeviceId(SecretHash::of(b"farthing console device\0", presented))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(SecretHash);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceEntry {
    id: DeviceId,
    seen_secs: u64,
    /// Its key was presented: there is somebody who keeps it.
    came_back: bool,
}

/// Every one that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Devices(Vec<DeviceEntry>);

impl Devices {
    /// The one whose key is presented.
    pub fn find(&self, presented: &str) -> Option<DeviceId> {
        let id = DeviceKey::id(presented);
        self.0.iter().any(|entry| entry.id == id).then_some(id)
    }

    /// Remembers a new one. When there are too many, the one seen longest ago is forgotten, and first of all those that
    /// never came back: a program that keeps no key takes the place of none that does.
    pub fn add(&mut self, key: &DeviceKey, now_secs: u64) -> DeviceId {
        if self.0.len() >= DEVICES_MAX {
            let rank = |index: &usize| (self.0[*index].came_back, self.0[*index].seen_secs);
            if let Some(least) = (0..self.0.len()).min_by_key(rank) {
                self.0.remove(least);
            }
        }
        let id = DeviceKey::id(key.expose());
        self.0.push(DeviceEntry { id, seen_secs: now_secs, came_back: false });
        id
    }

    /// It logged in again.
    pub fn seen(&mut self, id: DeviceId, now_secs: u64) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.id == id) {
            (entry.seen_secs, entry.came_back) = (entry.seen_secs.max(now_secs), true);
        }
    }

    /// Forgets all others.
    pub fn keep(&mut self, kept: Option<DeviceId>) {
        self.0.retain(|entry| Some(entry.id) == kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_made_here_are_known_and_only_their_hashes_are_stored() {
        let (mut devices, key) = (Devices::default(), DeviceKey::generate().unwrap());
        let id = devices.add(&key, 1);
        assert_eq!(devices.find(key.expose()), Some(id));
        for wrong in ["", "0", &"0".repeat(64), &key.expose()[1..]] {
            assert_eq!(devices.find(wrong), None, "{wrong}");
        }
        let stored = serde_json::to_string(&devices).unwrap();
        assert!(!stored.contains(key.expose()), "{stored}");
        let mut restored: Devices = serde_json::from_str(&stored).unwrap();
        assert_eq!(restored.find(key.expose()), Some(id), "after a restart, too");
        restored.keep(None);
        assert_eq!(restored.find(key.expose()), None);
    }

    #[test]
    fn a_program_that_keeps_no_key_pushes_out_no_browser_that_came_back() {
        let (mut devices, key) = (Devices::default(), DeviceKey::generate().unwrap());
        let browser = devices.add(&key, 1);
        devices.seen(browser, 2);
        for now_secs in 3..500 {
            devices.add(&DeviceKey::generate().unwrap(), now_secs);
        }
        assert_eq!(devices.find(key.expose()), Some(browser));
        assert_eq!(devices.0.len(), DEVICES_MAX);
    }
}
