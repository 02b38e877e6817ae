//! Deposits among the money at rest, in the ledger: those of a channel are one document, so that a restart frees none of
//! their places.

use std::collections::HashSet;

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Address, ChannelConfig, ChannelId, Escrow, Usdc, wire};
use minicbor::{Decode, Encode};
use tokio::sync::Mutex;

use super::{ChannelSum, ROUND_OF_BEFORE, RestingPlace};

/// A deposit that has a place, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct PlacedDeposit {
    #[n(0)]
    pub round: u32,
    #[n(1)]
    pub deposited: Usdc,
    #[n(2)]
    pub amount: Usdc,
    #[n(3)]
    pub rest_before: Usdc,
    #[n(4)]
    pub paid_before: Usdc,
    #[n(5)]
    pub begun_secs: u64,
    #[n(6)]
    pub lapses_secs: u64,
    /// Its transaction is on the chain; `None` before that was noted.
    #[n(7)]
    pub is_made: Option<bool>,
}

impl PlacedDeposit {
    /// Tells whether the books may lack it, if they show the channel to hold so much: it was decided on no earlier.
    pub fn may_lack(&self, shown: ChannelSum) -> bool {
        self.round != ROUND_OF_BEFORE && ChannelSum { round: self.round, deposited: self.deposited } >= shown
    }
}

/// The deposits of a channel, as they are stored.
#[derive(Clone, Debug)]
pub struct StoredPlaces {
    pub at: RestingPlace,
    /// `None` in documents of before.
    pub terms: Option<ChannelConfig>,
    pub deposits: Vec<PlacedDeposit>,
}

#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct PlacesOfChannel {
    #[n(0)]
    owner: Address,
    #[n(1)]
    deposits: Vec<PlacedDeposit>,
    /// With them the channel is found where the settings name another place; `None` before they were noted.
    #[n(2)]
    terms: Option<ChannelConfig>,
}

/// The documents of all channels: each deposit cost gas, so they are few.
#[derive(Debug)]
pub struct PlacedDeposits {
    ledger: Ledger,
    /// Held while a document is written, so that an older one never follows a newer one.
    writing: Mutex<()>,
}

impl PlacedDeposits {
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, writing: Mutex::default() }
    }

    /// Lists all that are stored, those that have lapsed as well.
    pub fn all(&self) -> Result<Vec<(RestingPlace, PlacedDeposit)>, LedgerError> {
        let stored = self.by_channel()?.into_iter();
        let all = stored.flat_map(|StoredPlaces { at, deposits, .. }| {
            deposits.into_iter().map(move |deposit| (at, deposit))
        });
        Ok(all.collect())
    }

    /// The same by channel, with the terms.
    pub fn by_channel(&self) -> Result<Vec<StoredPlaces>, LedgerError> {
        let mut all = Vec::new();
        for (key, bytes) in self.ledger.list(Namespace::Deposits)? {
            let Ok(channel) = <[u8; 32]>::try_from(&key[..]) else { continue };
            let channel = ChannelId::from_bytes(channel);
            match minicbor::decode(&bytes) {
                Ok(PlacesOfChannel { owner, deposits, terms }) => {
                    all.push(StoredPlaces { at: RestingPlace { owner, channel }, terms, deposits });
                }
                Err(error) => tracing::error!(%channel, %error, "its deposits of the last day are not known"),
            }
        }
        Ok(all)
    }

    /// Lists the channels of another place than the settings name, of those whose terms are stored.
    pub fn elsewhere(&self, configured: Escrow) -> Result<HashSet<ChannelId>, LedgerError> {
        let ids = self.by_channel()?.into_iter().filter_map(|StoredPlaces { at, terms, .. }| {
            let is_elsewhere = terms.is_some_and(|terms| !configured.holds(at.channel, &terms));
            is_elsewhere.then_some(at.channel)
        });
        Ok(ids.collect())
    }

    /// Stores the deposits of a channel as they are once it is their turn, in place of those before. The terms stay as they are
    /// stored.
    pub async fn put(
        &self,
        at: RestingPlace,
        deposits: impl FnOnce() -> Vec<PlacedDeposit>,
    ) -> Result<(), LedgerError> {
        self.write(at, None, deposits).await
    }

    /// The same with the terms of the channel.
    pub async fn put_of(
        &self,
        at: RestingPlace,
        terms: ChannelConfig,
        deposits: impl FnOnce() -> Vec<PlacedDeposit>,
    ) -> Result<(), LedgerError> {
        self.write(at, Some(terms), deposits).await
    }

    async fn write(
        &self,
        at: RestingPlace,
        terms: Option<ChannelConfig>,
        deposits: impl FnOnce() -> Vec<PlacedDeposit>,
    ) -> Result<(), LedgerError> {
        let _turn = self.writing.lock().await;
        let (key, deposits) = (at.channel.as_bytes().to_vec(), deposits());
        if deposits.is_empty() {
            return self.ledger.delete(Namespace::Deposits, key).await;
        }
        let terms = match terms {
            Some(_) => terms,
            None => {
                let before = self.ledger.get(Namespace::Deposits, &key)?;
                before.and_then(|bytes| minicbor::decode::<PlacesOfChannel>(&bytes).ok()?.terms)
            }
        };
        let document = PlacesOfChannel { owner: at.owner, deposits, terms };
        self.ledger.put(Namespace::Deposits, key, wire::encode(&document)).await
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::consumer::channels::tests::terms;

    #[tokio::test]
    async fn deposits_of_a_channel_are_stored_over_restarts_until_it_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let open = || PlacedDeposits::new(Ledger::open(&path, OpenMode::Create).unwrap());
        let deposit = |round| PlacedDeposit {
            round,
            deposited: Usdc::from_micros(1),
            amount: Usdc::from_micros(2),
            rest_before: Usdc::from_micros(3),
            paid_before: Usdc::from_micros(4),
            begun_secs: 5,
            lapses_secs: 6,
            is_made: (round > 0).then_some(round > 1),
        };
        let [one, other] = [1, 2].map(|n| RestingPlace {
            owner: Address::from_bytes([n; 20]),
            channel: ChannelId::from_bytes([n; 32]),
        });
        open().put(one, || vec![deposit(0), deposit(1)]).await.unwrap();
        open().put(other, || vec![deposit(2)]).await.unwrap();
        assert_eq!(open().all().unwrap(), [(one, deposit(0)), (one, deposit(1)), (other, deposit(2))]);
        let documents = || open().ledger.list(Namespace::Deposits).unwrap().len();
        assert_eq!(documents(), 2);
        open().put(one, Vec::new).await.unwrap();
        assert_eq!(documents(), 1, "nothing stays of a channel without any");
        assert_eq!(open().all().unwrap(), [(other, deposit(2))]);
    }

    #[tokio::test]
    async fn the_terms_of_a_channel_stay_with_its_deposits_and_tell_whether_it_is_elsewhere() {
        let placed = PlacedDeposits::new(Ledger::with_backend(InMemoryBackend::new()).unwrap());
        let [contract, later, payee] = [1, 2, 3].map(|n| Address::from_bytes([n; 20]));
        let config = terms(Address::ZERO, payee);
        let here = Escrow { chain_id: 1, contract, token: config.token };
        let at = RestingPlace { owner: payee, channel: config.id(&here.domain()) };
        let deposit = PlacedDeposit {
            round: 1,
            deposited: Usdc::from_micros(5),
            amount: Usdc::from_micros(2),
            rest_before: Usdc::ZERO,
            paid_before: Usdc::ZERO,
            begun_secs: 5,
            lapses_secs: 6,
            is_made: None,
        };
        placed.put(at, || vec![deposit]).await.unwrap();
        let moved = Escrow { contract: later, ..here };
        assert_eq!(placed.elsewhere(moved).unwrap(), HashSet::new(), "nothing tells its place");
        placed.put_of(at, config, || vec![deposit]).await.unwrap();
        placed.put(at, || vec![deposit, deposit]).await.unwrap();
        let stored = placed.by_channel().unwrap();
        assert_eq!((stored.len(), stored[0].terms, stored[0].deposits.len()), (1, Some(config), 2));
        assert_eq!(placed.elsewhere(here).unwrap(), HashSet::new());
        assert_eq!(placed.elsewhere(moved).unwrap(), HashSet::from([at.channel]));
        for (round, deposited, lacks) in [(1, 5, true), (1, 7, false), (2, 0, false), (0, 9, true)] {
            let shown = ChannelSum { round, deposited: Usdc::from_micros(deposited) };
            assert_eq!(deposit.may_lack(shown), lacks, "{shown:?}");
        }
    }
}
