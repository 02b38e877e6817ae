//! Deposits among the money at rest, in the ledger: those of a channel are one document, so that a restart frees none of
//! their places.

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Address, ChannelId, Usdc, wire};
use minicbor::{Decode, Encode};
use tokio::sync::Mutex;

use super::RestingPlace;

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

#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct PlacesOfChannel {
    #[n(0)]
    owner: Address,
    #[n(1)]
    deposits: Vec<PlacedDeposit>,
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
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn all(&self) -> Result<Vec<(RestingPlace, PlacedDeposit)>, LedgerError> {
        let mut all = Vec::new();
        for (key, bytes) in self.ledger.list(Namespace::Deposits)? {
            let Ok(channel) = <[u8; 32]>::try_from(&key[..]) else { continue };
            let channel = ChannelId::from_bytes(channel);
            match minicbor::decode(&bytes) {
                Ok(PlacesOfChannel { owner, deposits }) => {
                    let at = RestingPlace { owner, channel };
                    all.extend(deposits.into_iter().map(|deposit| (at, deposit)));
                }
                Err(error) => tracing::error!(%channel, %error, "its deposits of the last day are not known"),
            }
        }
        Ok(all)
    }

    /// Stores the deposits of a channel as they are once it is their turn, in place of those before.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn put(
        &self,
        at: RestingPlace,
        deposits: impl FnOnce() -> Vec<PlacedDeposit>,
    ) -> Result<(), LedgerError> {
        let _turn = self.writing.lock().await;
        let (key, deposits) = (at.channel.as_bytes().to_vec(), deposits());
        if deposits.is_empty() {
            return self.ledger.delete(Namespace::Deposits, key).await;
        }
        let document = PlacesOfChannel { owner: at.owner, deposits };
        self.ledger.put(Namespace::Deposits, key, wire::encode(&document)).await
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

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
}
