//! Prices that were accepted, kept in the ledger: calls that name none may cost so much.
//!
//! An operation's price is accepted when the first call of it is made within the limits, also by a call that names it in
//! `max_price`. From then on a higher one is paid by a call that names it in `max_price`, for that call alone, or after the
//! node's user accepted it for the service. Nothing that a script repeats accepts a price for others. The same holds for what is charged: who began to
//! buy while answers with a status of 400 and above were free is asked before they cost something.
//!
//! Operations have the names that their owner gives them, so a renamed one looks like a new one. Once the price list is
//! not the one of the first purchase any more, an operation that was never called may cost what is accepted for those
//! that its path belonged to before, or, where there is none, for another of the service, and not more.

use bytes::Bytes;
use farthing_bridge::{
    description::Method,
    routing::{Route, Routes},
};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Hash, ServiceId, Usdc, call::ChargePolicy, keccak256};

/// The accepted prices. A cheap handle; reading takes the ledger's last snapshot.
#[derive(Clone, Debug)]
pub struct Prices(Ledger);

impl Prices {
    pub const fn new(ledger: Ledger) -> Self {
        Self(ledger)
    }

    /// Returns what a call of the operation, which has `path`, may cost. `price_list` is the digest of all that the
    /// service offers now, which is asked for only when the operation was never called.
    pub fn accepted(
        &self,
        service: ServiceId,
        (operation, path): (&str, &str),
        price_list: impl FnOnce() -> Hash,
    ) -> Result<AcceptedPrice, LedgerError> {
        let of_service = self.read(&key(service, None))?;
        if let Some(of_operation) = self.read(&key(service, Some(operation)))? {
            return Ok(AcceptedPrice { most: Some(of_operation).max(of_service), is_first: false });
        }
        let changed = self.first_bought(service)?.filter(|first| first.price_list != price_list());
        let most = match changed {
            None => None,
            Some(first) => Some(self.of_path(service, operation, path)?.unwrap_or(first.highest)),
        };
        Ok(AcceptedPrice { most: of_service.max(most), is_first: of_service.is_none() })
    }

    /// The lowest price that was accepted for an operation with the same method to which `path` belongs.
    fn of_path(&self, service: ServiceId, operation: &str, path: &str) -> Result<Option<Usdc>, LedgerError> {
        let Some((method, _)) = operation.split_once(' ') else { return Ok(None) };
        let rows = self.0.list(Namespace::Prices)?.into_iter();
        let of_service = rows.filter(|(key, _)| key.starts_with(service.as_bytes()));
        let accepted = of_service.filter_map(|(_, value)| {
            let (price, begun) = begun(&value)?;
            is_path_of(begun, method, path).then_some(price)
        });
        Ok(accepted.min())
    }

    /// Accepts the price of an operation's first call, durably.
    pub async fn begin(
        &self,
        service: ServiceId,
        operation: &str,
        price: Usdc,
        price_list: Hash,
    ) -> Result<(), LedgerError> {
        let before = self.first_bought(service)?.unwrap_or(FirstBought { price_list, highest: price });
        let now = FirstBought { highest: before.highest.max(price), ..before };
        self.0.put(Namespace::Prices, tagged_key(service, FIRST_BOUGHT), now.to_bytes()).await?;
        let value = [&price.micros().to_be_bytes()[..], operation.as_bytes()].concat();
        self.0.put(Namespace::Prices, key(service, Some(operation)), value).await
    }

    /// Lets every operation of a service cost up to `price`, or what was accepted for it where that is more, whichever
    /// answers are charged.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be stored; nothing is accepted then.
    pub async fn accept(&self, service: ServiceId, price: Usdc) -> Result<(), LedgerError> {
        self.begin_charge(service, ChargePolicy::Answered).await?;
        self.write(key(service, None), price).await
    }

    /// Accepts which answers of a service are charged, durably.
    pub async fn begin_charge(&self, service: ServiceId, charge: ChargePolicy) -> Result<(), LedgerError> {
        let value = vec![u8::from(charge == ChargePolicy::Answered)];
        self.0.put(Namespace::Prices, tagged_key(service, CHARGE), value).await
    }

    /// Returns the answers of a service that may be charged; `None` before its first call.
    pub fn charge(&self, service: ServiceId) -> Result<Option<ChargePolicy>, LedgerError> {
        let stored = self.0.get(Namespace::Prices, &tagged_key(service, CHARGE))?;
        Ok(stored.map(|value| match value.first() {
            Some(1) => ChargePolicy::Answered,
            _ => ChargePolicy::Success,
        }))
    }

    fn first_bought(&self, service: ServiceId) -> Result<Option<FirstBought>, LedgerError> {
        let stored = self.0.get(Namespace::Prices, &tagged_key(service, FIRST_BOUGHT))?;
        Ok(stored.and_then(|bytes| FirstBought::from_bytes(&bytes)))
    }

    fn read(&self, key: &Bytes) -> Result<Option<Usdc>, LedgerError> {
        let stored = self.0.get(Namespace::Prices, key)?;
        // What cannot be read was not accepted.
        Ok(stored.and_then(|bytes| begun(&bytes).map(|(price, _)| price)))
    }

    async fn write(&self, key: Bytes, price: Usdc) -> Result<(), LedgerError> {
        self.0.put(Namespace::Prices, key, price.micros().to_be_bytes().to_vec()).await
    }
}

/// The most that calls of an operation may cost without naming a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedPrice {
    /// `None` when nothing bounds it but the limits.
    pub most: Option<Usdc>,
    /// The operation was never called, so its price is accepted with the call.
    pub is_first: bool,
}

/// The record of the first purchase of a service: 32 + 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FirstBought {
    /// Digest of the operations and their prices as they were then.
    price_list: Hash,
    /// The highest price that a first call was made at.
    highest: Usdc,
}

impl FirstBought {
    fn to_bytes(self) -> Vec<u8> {
        [&self.price_list[..], &self.highest.micros().to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (price_list, highest) = bytes.split_first_chunk()?;
        let highest = u64::from_be_bytes(highest.try_into().ok()?);
        Some(Self { price_list: *price_list, highest: Usdc::from_micros(highest) })
    }
}

/// A price, and the operation whose first call was made at it; empty where only the price was kept.
fn begun(value: &[u8]) -> Option<(Usdc, &str)> {
    let (price, operation) = value.split_first_chunk()?;
    Some((Usdc::from_micros(u64::from_be_bytes(*price)), std::str::from_utf8(operation).ok()?))
}

/// Tells whether a call of `path` was a call of `operation`, such as `GET /users/{id}`.
fn is_path_of(operation: &str, method: &str, path: &str) -> bool {
    let Some((own_method, template)) = operation.split_once(' ').filter(|(own, _)| *own == method) else {
        return false;
    };
    let Some(own_method) = Method::parse(own_method) else { return false };
    let route = Route { method: own_method, template: template.to_owned(), operation: 0 };
    Routes::new(&[route]).is_ok_and(|routes| routes.find(method, path).is_ok())
}

const FIRST_BOUGHT: u8 = 1;
const CHARGE: u8 = 2;

/// Service ‖ tag, which no key of a price is as long as.
fn tagged_key(service: ServiceId, tag: u8) -> Bytes {
    [service.as_bytes(), &[tag][..]].concat().into()
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

    const LIST: Hash = [1; 32];
    const OTHER_LIST: Hash = [2; 32];

    fn open(folder: &std::path::Path, mode: OpenMode) -> Prices {
        Prices::new(Ledger::open(&folder.join("ledger.redb"), mode).unwrap())
    }

    fn accepted(prices: &Prices, service: ServiceId, operation: &str, list: Hash) -> (Option<Usdc>, bool) {
        let path = operation.split_once(' ').unwrap().1;
        let accepted = prices.accepted(service, (operation, path), || list).unwrap();
        (accepted.most, accepted.is_first)
    }

    #[tokio::test]
    async fn what_was_accepted_holds_for_its_service_and_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let prices = open(folder.path(), OpenMode::Create);
        let [one, two] = [1, 2].map(|n| ServiceId::from_bytes([n; 16]));
        assert_eq!(accepted(&prices, one, "GET /a", LIST), (None, true), "before the first call");
        prices.begin(one, "GET /a", Usdc::from_micros(5), LIST).await.unwrap();
        assert_eq!(accepted(&prices, one, "GET /a", LIST), (usdc(5), false));
        assert_eq!(accepted(&prices, one, "GET /b", LIST), (None, true), "another operation");
        prices.accept(one, Usdc::from_micros(9)).await.unwrap();
        drop(prices);
        let prices = open(folder.path(), OpenMode::Existing);
        assert_eq!(accepted(&prices, one, "GET /a", LIST), (usdc(9), false));
        assert_eq!(
            accepted(&prices, one, "GET /b", LIST),
            (usdc(9), false),
            "every operation of the service"
        );
        assert_eq!(accepted(&prices, two, "GET /a", LIST), (None, true), "another service");
        prices.accept(one, Usdc::from_micros(3)).await.unwrap();
        assert_eq!(
            accepted(&prices, one, "GET /a", LIST),
            (usdc(5), false),
            "a first call's price stays accepted"
        );
    }

    #[tokio::test]
    async fn what_is_charged_is_accepted_with_the_first_call_or_by_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let prices = open(folder.path(), OpenMode::Create);
        let service = ServiceId::from_bytes([1; 16]);
        let charge = |prices: &Prices| prices.charge(service).unwrap();
        assert_eq!(charge(&prices), None);
        prices.begin(service, "GET /a", Usdc::from_micros(5), LIST).await.unwrap();
        prices.begin_charge(service, ChargePolicy::Success).await.unwrap();
        drop(prices);
        let prices = open(folder.path(), OpenMode::Existing);
        assert_eq!(charge(&prices), Some(ChargePolicy::Success));
        assert_eq!(accepted(&prices, service, "GET /b", OTHER_LIST), (usdc(5), true), "it is no price");
        prices.accept(service, Usdc::from_micros(5)).await.unwrap();
        assert_eq!(charge(&prices), Some(ChargePolicy::Answered));
    }

    #[tokio::test]
    async fn an_operation_of_a_changed_price_list_costs_no_more_than_what_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let prices = open(folder.path(), OpenMode::Create);
        let service = ServiceId::from_bytes([1; 16]);
        // The dearest of them is neither the first nor the last.
        for (operation, micros) in [("GET /cheap", 2), ("GET /{id}", 5), ("GET /cheaper", 1)] {
            prices.begin(service, operation, Usdc::from_micros(micros), LIST).await.unwrap();
        }
        drop(prices);
        let prices = open(folder.path(), OpenMode::Existing);
        assert_eq!(
            accepted(&prices, service, "GET /{key}", LIST),
            (None, true),
            "the list of the first purchase"
        );
        assert_eq!(accepted(&prices, service, "GET /{key}", OTHER_LIST), (usdc(5), true));
        let elsewhere = accepted(&prices, service, "GET /a/b", OTHER_LIST);
        assert_eq!(elsewhere, (usdc(5), true), "the dearest, where the path belonged to none of them");
        prices.begin(service, "GET /{key}", Usdc::from_micros(4), OTHER_LIST).await.unwrap();
        assert_eq!(
            accepted(&prices, service, "GET /{key}", OTHER_LIST),
            (usdc(4), false),
            "its own from then on"
        );
        assert_eq!(
            accepted(&prices, service, "GET /7", OTHER_LIST),
            (usdc(4), true),
            "the list stays the first, and the path belonged to both"
        );
    }

    #[tokio::test]
    async fn a_dear_operation_raises_no_price_of_a_cheap_one_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let prices = open(folder.path(), OpenMode::Create);
        let service = ServiceId::from_bytes([1; 16]);
        prices.begin(service, "GET /cheap/{id}", Usdc::from_micros(200), LIST).await.unwrap();
        prices.begin(service, "GET /big", Usdc::from_micros(10_000), LIST).await.unwrap();
        drop(prices);
        let prices = open(folder.path(), OpenMode::Existing);
        let most = |operation: &str, path: &str| {
            prices.accepted(service, (operation, path), || OTHER_LIST).unwrap().most
        };
        assert_eq!(most("GET /cheap/{key}", "/cheap/7"), usdc(200));
        assert_eq!(most("GET /cheap/7", "/cheap/7"), usdc(200));
        assert_eq!(most("GET /{a}/{b}", "/cheap/7"), usdc(200));
        assert_eq!(
            most("POST /cheap/{key}", "/cheap/7"),
            usdc(10_000),
            "another method is another operation"
        );
        assert_eq!(most("GET /other", "/other"), usdc(10_000));
    }
}
