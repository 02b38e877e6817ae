//! The registry as the catalog asks it.

use std::sync::Arc;

use farthing_control::types::VersionNote;
use farthing_discovery::{KnownService, OwnService, OwnServices};
use farthing_ledger::{LedgerError, Namespace};
use farthing_protocol::{Hash, Listing, ServiceId, Signed, wire};

use super::{Registered, Registry};

impl OwnService for Registered {
    fn known(&self) -> &KnownService {
        self.known()
    }

    fn versions(&self) -> Vec<VersionNote> {
        self.versions()
    }
}

impl OwnServices for Registry {
    fn service(&self, id: ServiceId) -> Option<Arc<dyn OwnService>> {
        Some(self.get(id)?)
    }

    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        let services = self.0.services.read();
        services.values().find_map(|service| {
            if service.listing().details_hash == *hash {
                return Some(service.stored.details.clone());
            }
            if service.listing().history.is_some_and(|pin| pin.hash == *hash) {
                return Some(service.stored.history.clone());
            }
            let samples = service.known.details().samples?;
            (samples.hash == *hash).then(|| service.stored.samples.clone())
        })
    }

    fn listings(&self) -> Result<Vec<Signed<Listing>>, LedgerError> {
        let retired = self.0.ledger.list(Namespace::Retired)?;
        let retired = retired.into_iter().filter_map(|(_, bytes)| wire::decode(&bytes).ok());
        Ok(self.all().iter().map(|service| service.listing().to_signed()).chain(retired).collect())
    }
}
