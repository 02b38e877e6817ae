//! Services that the user starred, to be found again without a search.
//!
//! Invariant: a star is in the ledger before it is known here.

use std::{collections::BTreeSet, sync::Arc};

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::ServiceId;
use parking_lot::RwLock;

/// All of them are on one page.
const ALL_MAX: usize = 100;

/// An error that keeps a service from being starred.
#[derive(Debug, thiserror::Error)]
pub enum StarError {
    #[error("{ALL_MAX} services are starred already")]
    TooMany,
    #[error("the ledger could not be written, so nothing was changed")]
    NotStored(#[source] LedgerError),
}

impl StarError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::TooMany => "Remove the star of a service that you do not use any more.",
            Self::NotStored(error) => error.next_step(),
        }
    }
}

/// The starred services of this node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Starred(Arc<StarredInner>);

#[derive(Debug)]
struct StarredInner {
    ledger: Ledger,
    all: RwLock<BTreeSet<ServiceId>>,
    /// Changes are made one after the other, so that the bound holds.
    changing: tokio::sync::Mutex<()>,
}

impl Starred {
    /// Reads the stars that were set before.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let documents = ledger.list(Namespace::Starred)?;
        let ids = documents.iter().filter_map(|(key, _)| <[u8; 16]>::try_from(&key[..]).ok());
        let all = RwLock::new(ids.map(ServiceId::from_bytes).collect());
        Ok(Self(Arc::new(StarredInner { ledger, all, changing: tokio::sync::Mutex::new(()) })))
    }

    /// Returns all, in the order of their ids.
    pub fn all(&self) -> Vec<ServiceId> {
        self.0.all.read().iter().copied().collect()
    }

    /// Sets or removes the star of a service, durably.
    ///
    /// # Errors
    /// [`StarError`]; nothing changes then.
    pub async fn set(&self, service: ServiceId, is_starred: bool) -> Result<(), StarError> {
        let _alone = self.0.changing.lock().await;
        let key = service.as_bytes().to_vec();
        if is_starred {
            self.check_room(service)?;
            let stored = self.0.ledger.put(Namespace::Starred, key, vec![1]).await;
            stored.map_err(StarError::NotStored)?;
            self.0.all.write().insert(service);
        } else {
            let deleted = self.0.ledger.delete(Namespace::Starred, key).await;
            deleted.map_err(StarError::NotStored)?;
            self.0.all.write().remove(&service);
        }
        Ok(())
    }

    fn check_room(&self, service: ServiceId) -> Result<(), StarError> {
        let all = self.0.all.read();
        if all.len() >= ALL_MAX && !all.contains(&service) { Err(StarError::TooMany) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    fn service(number: usize) -> ServiceId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
        ServiceId::from_bytes(bytes)
    }

    #[tokio::test]
    async fn stars_are_there_after_a_restart_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ledger.redb");
        let starred = Starred::restore(Ledger::open(&file, OpenMode::Create).unwrap()).unwrap();
        for number in 0..ALL_MAX {
            starred.set(service(number), true).await.unwrap();
        }
        starred.set(service(0), true).await.unwrap();
        let more = starred.set(service(ALL_MAX), true).await;
        assert!(matches!(more, Err(StarError::TooMany)), "{more:?}");
        for number in 2..ALL_MAX {
            starred.set(service(number), false).await.unwrap();
        }
        drop(starred);
        let starred = Starred::restore(Ledger::open(&file, OpenMode::Existing).unwrap()).unwrap();
        assert_eq!(starred.all(), [service(0), service(1)]);
    }
}
