//! Payments to x402 servers as the ledger has them: one record for each call, from before it is sent.

use bytes::Bytes;
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Address, CallId, SignedTransfer, wire};
use minicbor::{Decode, Encode};

/// The one payment of a call, with the header that carries it: whatever comes back, no other is signed for this call.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct ForeignPayment {
    #[n(0)]
    pub(super) chain_id: u64,
    #[n(1)]
    pub(super) transfer: SignedTransfer,
    #[n(2)]
    pub(super) header_name: String,
    #[n(3)]
    pub(super) header: String,
    /// No block before this one has it.
    #[n(4)]
    pub(super) since_block: u64,
    /// Seconds since the Unix epoch.
    #[n(5)]
    pub(super) time_secs: u64,
    /// The status of an answer that did not say how the payment ended.
    #[n(6)]
    pub(super) answered: Option<u16>,
    /// The token that takes it; `None` in a record of a version that knew one token: that of the settings.
    #[n(7)]
    pub(super) token: Option<Address>,
}

impl ForeignPayment {
    /// Returns whether it is in this token. No other one says anything of it.
    pub(super) fn is_in(&self, (chain_id, token): (u64, Address)) -> bool {
        self.chain_id == chain_id && self.token.is_none_or(|of| of == token)
    }

    /// Names its token and its chain.
    pub(super) fn place(&self) -> String {
        match self.token {
            Some(token) => format!("the token {token} on chain {}", self.chain_id),
            None => format!("the USDC of chain {}", self.chain_id),
        }
    }
}

/// The payments that the ledger has.
#[derive(Debug)]
pub(super) struct ForeignPayments(pub(super) Ledger);

impl ForeignPayments {
    pub(super) fn find(&self, call_id: CallId) -> Result<Option<ForeignPayment>, LedgerError> {
        self.0.get(Namespace::Payments, call_id.as_bytes())?.map(|bytes| decode(&bytes)).transpose()
    }

    /// Names the token of a call's payment if it is known to be another one than this, or on another chain.
    pub(super) fn elsewhere(&self, call_id: CallId, here: (u64, Address)) -> Option<String> {
        let payment = self.find(call_id).ok().flatten();
        payment.filter(|payment| !payment.is_in(here)).map(|payment| payment.place())
    }

    /// Stores a payment durably.
    pub(super) async fn put(&self, call_id: CallId, payment: &ForeignPayment) -> Result<(), LedgerError> {
        self.0.put(Namespace::Payments, key(call_id), wire::encode(payment)).await
    }

    pub(super) async fn forget(&self, call_id: CallId) -> Result<(), LedgerError> {
        self.0.delete(Namespace::Payments, key(call_id)).await
    }

    /// Lists all that can be read.
    pub(super) fn all(&self) -> Result<Vec<(CallId, ForeignPayment)>, LedgerError> {
        let stored = self.0.list(Namespace::Payments)?;
        let read = stored.into_iter().filter_map(|(key, bytes)| {
            let call_id = CallId::from_bytes(<[u8; 16]>::try_from(&*key).ok()?);
            Some((call_id, decode(&bytes).ok()?))
        });
        Ok(read.collect())
    }
}

fn key(call_id: CallId) -> Bytes {
    Bytes::copy_from_slice(call_id.as_bytes())
}

fn decode(bytes: &[u8]) -> Result<ForeignPayment, LedgerError> {
    let read = minicbor::decode(bytes);
    read.map_err(|error| LedgerError::Damaged { table: "documents", cause: error.to_string() })
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;
    use farthing_protocol::{Signature, TransferAuthorization, Usdc};

    use super::*;

    const TOKEN: Address = Address::from_bytes([3; 20]);

    #[tokio::test]
    async fn a_payment_is_found_after_a_restart_as_it_was_signed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let (one, other) = (CallId::from_bytes([1; 16]), CallId::from_bytes([2; 16]));
        let authorization = TransferAuthorization {
            from: Address::from_bytes([1; 20]),
            to: Address::from_bytes([2; 20]),
            value: Usdc::from_micros(2_000),
            valid_after_secs: 0,
            valid_before_secs: 300,
            nonce: [7; 32],
        };
        let payment = ForeignPayment {
            chain_id: 8_453,
            transfer: SignedTransfer { authorization, signature: Signature::from_bytes([5; 65]) },
            header_name: "payment-signature".to_owned(),
            header: "e30=".to_owned(),
            since_block: 9,
            time_secs: 1,
            answered: None,
            token: Some(TOKEN),
        };
        let payments = ForeignPayments(Ledger::open(&path, OpenMode::Create).unwrap());
        payments.put(one, &payment).await.unwrap();
        drop(payments);
        let payments = ForeignPayments(Ledger::open(&path, OpenMode::Existing).unwrap());
        assert_eq!(
            (payments.find(one).unwrap(), payments.find(other).unwrap()),
            (Some(payment.clone()), None)
        );
        let place = format!("the token {TOKEN} on chain 8453");
        let elsewhere =
            [(one, 8_453), (one, 1), (other, 1)].map(|(id, chain)| payments.elsewhere(id, (chain, TOKEN)));
        assert_eq!(
            elsewhere,
            [None, Some(place.clone()), None],
            "one that is not known counts as one of this chain"
        );
        assert_eq!(payments.elsewhere(one, (8_453, Address::from_bytes([4; 20]))), Some(place));
        let of_before = ForeignPayment { token: None, ..payment.clone() };
        assert!(of_before.is_in((8_453, TOKEN)), "a version that knew one token noted none");
        assert_eq!(of_before.place(), "the USDC of chain 8453");
        assert_eq!(payments.all().unwrap(), [(one, payment)]);
        payments.forget(one).await.unwrap();
        assert!(payments.all().unwrap().is_empty());
    }
}
