//! Names that the user gave to owners, so that an owner is known again by more than the digits of a wallet.
//!
//! In order: the name is checked, the ledger stores it, and then it is known here. They are few and bounded, so all of them are in
//! memory.
//!
//! Invariant: no two wallets have the same name, in any case of letters. Nobody but the user gives one.

use std::{collections::BTreeMap, sync::Arc};

use farthing_control::types::Petname;
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::Address;
use parking_lot::RwLock;

use crate::saved::line_of;

/// More than a person tells from one another; together 100 KiB of memory.
const ALL_MAX: usize = 500;
/// A name stands on a card beside the price.
const NAME_CHARS_MAX: usize = 40;

/// An error that keeps an owner from being named.
#[derive(Debug, thiserror::Error)]
pub enum PetnameError {
    #[error("the name has more than {NAME_CHARS_MAX} characters")]
    LongName,
    #[error("you gave the name “{name}” to {wallet} already")]
    Taken { name: String, wallet: Address },
    #[error("{ALL_MAX} owners have names already")]
    TooMany,
    #[error("the ledger could not be written, so nothing was changed")]
    NotStored(#[source] LedgerError),
}

impl PetnameError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::LongName => "Choose a shorter name.",
            Self::Taken { .. } => "Choose another name, or remove the name of that owner.",
            Self::TooMany => "Remove a name that you do not use any more.",
            Self::NotStored(error) => error.next_step(),
        }
    }
}

/// The names of owners. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Petnames(Arc<PetnamesInner>);

#[derive(Debug)]
struct PetnamesInner {
    ledger: Ledger,
    all: RwLock<BTreeMap<Address, String>>,
    /// Changes are made one after the other, so that bounds and names hold.
    changing: tokio::sync::Mutex<()>,
}

impl Petnames {
    /// Reads the names that were given before.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let mut all = BTreeMap::new();
        for (key, bytes) in ledger.list(Namespace::Petnames)? {
            match (<[u8; 20]>::try_from(&key[..]), std::str::from_utf8(&bytes)) {
                (Ok(wallet), Ok(name)) => drop(all.insert(Address::from_bytes(wallet), name.to_owned())),
                _ => tracing::warn!("a name of an owner cannot be read, and is not shown"),
            }
        }
        let changing = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(PetnamesInner { ledger, all: RwLock::new(all), changing })))
    }

    /// Returns the name of an owner, if the user gave one.
    pub fn of(&self, wallet: Address) -> Option<String> {
        self.0.all.read().get(&wallet).cloned()
    }

    /// Returns all, by name.
    pub fn all(&self) -> Vec<Petname> {
        let all = self.0.all.read();
        let mut all: Vec<Petname> = all.iter().map(|(wallet, name)| shown(*wallet, name)).collect();
        all.sort_by_cached_key(|petname| petname.name.to_lowercase());
        all
    }

    /// Names an owner, durably. An empty name removes the one that the owner has.
    ///
    /// # Errors
    /// [`PetnameError`]; the owner keeps the name then.
    pub async fn give(&self, wallet: Address, name: &str) -> Result<Petname, PetnameError> {
        let name = line_of(name);
        let _alone = self.0.changing.lock().await;
        let key = wallet.as_bytes().to_vec();
        if name.is_empty() {
            let deleted = self.0.ledger.delete(Namespace::Petnames, key).await;
            deleted.map_err(PetnameError::NotStored)?;
            self.0.all.write().remove(&wallet);
        } else {
            self.check(wallet, &name)?;
            let stored = self.0.ledger.put(Namespace::Petnames, key, name.clone().into_bytes()).await;
            stored.map_err(PetnameError::NotStored)?;
            self.0.all.write().insert(wallet, name.clone());
        }
        Ok(shown(wallet, &name))
    }

    fn check(&self, wallet: Address, name: &str) -> Result<(), PetnameError> {
        if name.chars().count() > NAME_CHARS_MAX {
            return Err(PetnameError::LongName);
        }
        let all = self.0.all.read();
        let is_same = |(other, theirs): &(&Address, &String)| {
            **other != wallet && theirs.to_lowercase() == name.to_lowercase()
        };
        if let Some((other, theirs)) = all.iter().find(is_same) {
            return Err(PetnameError::Taken { name: theirs.clone(), wallet: *other });
        }
        if all.len() >= ALL_MAX && !all.contains_key(&wallet) { Err(PetnameError::TooMany) } else { Ok(()) }
    }
}

fn shown(wallet: Address, name: &str) -> Petname {
    Petname { wallet: wallet.into(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    const ONE: Address = Address::from_bytes([1; 20]);
    const OTHER: Address = Address::from_bytes([2; 20]);

    fn opened(folder: &tempfile::TempDir, mode: OpenMode) -> Petnames {
        Petnames::restore(Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn an_owner_has_its_name_after_a_restart_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let petnames = opened(&folder, OpenMode::Create);
        let given = petnames.give(ONE, " Tides\u{202e} of שלום 🪐\n").await.unwrap();
        assert_eq!(given.name, "Tides of שלום 🪐");
        drop(petnames);
        let petnames = opened(&folder, OpenMode::Existing);
        assert_eq!(petnames.of(ONE), Some(given.name.clone()));
        assert_eq!((petnames.of(OTHER), petnames.all()), (None, vec![given]));
        assert_eq!(petnames.give(ONE, " ").await.unwrap().name, "");
        assert_eq!((petnames.of(ONE), petnames.all()), (None, Vec::new()));
    }

    #[tokio::test]
    async fn no_two_owners_have_one_name_and_names_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let petnames = opened(&folder, OpenMode::Create);
        petnames.give(ONE, "Tides").await.unwrap();
        let taken = petnames.give(OTHER, "tIDES").await;
        assert!(matches!(taken, Err(PetnameError::Taken { wallet: ONE, .. })), "{taken:?}");
        petnames.give(ONE, "TIDES").await.unwrap();
        let long = petnames.give(OTHER, &"x".repeat(NAME_CHARS_MAX + 1)).await;
        assert!(matches!(long, Err(PetnameError::LongName)), "{long:?}");
        petnames.give(OTHER, &"x".repeat(NAME_CHARS_MAX)).await.unwrap();
        assert_eq!(petnames.all().len(), 2);
    }
}
