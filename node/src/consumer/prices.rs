//! What calls of a service may cost without naming a price: what was accepted, kept in the ledger.
//!
//! An operation's price is accepted when the first call of it is made within the limits. From then on a higher one is
//! paid by a call that names it in `max_price`, for that call alone, or after the node's user accepted it for the
//! service. Nothing that a script repeats accepts a price for others.

use bytes::Bytes;
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{ServiceId, Usdc, keccak256};

/// The accepted prices. A cheap handle; reading takes the ledger's last snapshot.
#[derive(Clone, Debug)]
pub struct Prices(Ledger);

impl Prices {
    #[must_use]
    pub const fn new(ledger: Ledger) -> Self {
        Self(ledger)
    }

    /// The most that a call of the operation may cost; `None` before its first call.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger cannot be read.
    pub fn accepted(&self, service: ServiceId, operation: &str) -> Result<Option<Usdc>, LedgerError> {
        let of_operation = self.read(&key(service, Some(operation)))?;
        Ok(of_operation.max(self.read(&key(service, None))?))
    }

    /// Accepts the price of an operation's first call, durably.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be stored.
    pub async fn begin(&self, service: ServiceId, operation: &str, price: Usdc) -> Result<(), LedgerError> {
        self.write(key(service, Some(operation)), price).await
    }

    /// Lets every operation of a service cost up to `price`, or what was accepted for it where that is more.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be stored; nothing is accepted then.
    pub async fn accept(&self, service: ServiceId, price: Usdc) -> Result<(), LedgerError> {
        self.write(key(service, None), price).await
    }

    fn read(&self, key: &Bytes) -> Result<Option<Usdc>, LedgerError> {
        let stored = self.0.get(Namespace::Prices, key)?;
        // What cannot be read was not accepted.
        Ok(stored.and_then(|bytes| Some(Usdc::from_micros(u64::from_be_bytes(bytes[..].try_into().ok()?)))))
    }

    async fn write(&self, key: Bytes, price: Usdc) -> Result<(), LedgerError> {
        self.0.put(Namespace::Prices, key, price.micros().to_be_bytes().to_vec()).await
    }
}

/// Service ‖ hash of the operation's method and path, which may be longer than a key; the service alone for all of
/// its operations.
fn key(service: ServiceId, operation: Option<&str>) -> Bytes {
    let mut key = service.as_bytes().to_vec();
    if let Some(operation) = operation {
        key.extend_from_slice(&keccak256(&[operation.as_bytes()]));
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    const fn usdc(micros: u64) -> Option<Usdc> {
        Some(Usdc::from_micros(micros))
    }

    #[tokio::test]
    async fn what_was_accepted_holds_for_its_service_and_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| Prices::new(Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap());
        let prices = open(OpenMode::Create);
        let [one, two] = [1, 2].map(|n| ServiceId::from_bytes([n; 16]));
        assert_eq!(prices.accepted(one, "GET /a").unwrap(), None, "before the first call");
        prices.begin(one, "GET /a", Usdc::from_micros(5)).await.unwrap();
        assert_eq!(prices.accepted(one, "GET /a").unwrap(), usdc(5));
        assert_eq!(prices.accepted(one, "GET /b").unwrap(), None, "another operation");
        prices.accept(one, Usdc::from_micros(9)).await.unwrap();
        drop(prices);
        let prices = open(OpenMode::Existing);
        assert_eq!(prices.accepted(one, "GET /a").unwrap(), usdc(9));
        assert_eq!(prices.accepted(one, "GET /b").unwrap(), usdc(9), "every operation of the service");
        assert_eq!(prices.accepted(two, "GET /a").unwrap(), None, "another service");
        prices.accept(one, Usdc::from_micros(3)).await.unwrap();
        assert_eq!(prices.accepted(one, "GET /a").unwrap(), usdc(5), "a first call's price stays accepted");
    }
}
