//! The signing policy in front of the key: only known kinds of promises, only for our own contract.
//!
//! A [`Signer`] belongs to one domain (contract and chain). It has a method per kind of statement and none for
//! raw digests, so code that holds it cannot be talked into signing anything else.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use farthing_protocol::{
    Address, CloseConsent, Domain, Receipt, SecretKey, Signature, Signed, SignedClose, Usdc, Voucher,
    signed::{Document, DocumentError},
};

/// The reason that a statement is not signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("a voucher for {cumulative} USDC exceeds the channel's deposit of {deposited} USDC")]
    VoucherAboveDeposit { cumulative: Usdc, deposited: Usdc },
    #[error("a close with {amount} USDC exceeds the channel's deposit of {deposited} USDC")]
    CloseAboveDeposit { amount: Usdc, deposited: Usdc },
    #[error("a receipt that charges {charged} USDC cannot total {spent_total} USDC")]
    ReceiptAboveTotal { charged: Usdc, spent_total: Usdc },
}

/// Signs for one contract on one chain.
#[derive(Debug, Clone)]
pub struct Signer {
    key: Arc<SecretKey>,
    address: Address,
    domain: Domain,
    signed: Arc<AtomicU64>,
}

impl Signer {
    pub(super) fn new(key: Arc<SecretKey>, domain: Domain) -> Self {
        let address = key.address();
        Self { key, address, domain, signed: Arc::default() }
    }

    /// Vouchers, receipts and closes signed since the start.
    pub fn signed(&self) -> u64 {
        self.signed.load(Ordering::Relaxed)
    }

    pub const fn address(&self) -> Address {
        self.address
    }

    pub const fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Promises `voucher.cumulative` of a channel that holds `deposited`.
    ///
    /// # Errors
    /// [`PolicyError::VoucherAboveDeposit`]: no honest step promises what the channel does not hold.
    pub fn sign_voucher(&self, voucher: &Voucher, deposited: Usdc) -> Result<Signature, PolicyError> {
        let cumulative = voucher.cumulative;
        if cumulative > deposited {
            return Err(PolicyError::VoucherAboveDeposit { cumulative, deposited });
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(voucher.sign(&self.domain, &self.key))
    }

    /// Confirms what was served and charged.
    ///
    /// # Errors
    /// [`PolicyError::ReceiptAboveTotal`] when the charge is not part of its total.
    pub fn sign_receipt(&self, receipt: &Receipt) -> Result<Signature, PolicyError> {
        let Receipt { charged, spent_total, .. } = *receipt;
        if charged > spent_total {
            return Err(PolicyError::ReceiptAboveTotal { charged, spent_total });
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(receipt.sign(&self.domain, &self.key))
    }

    /// Consents to the end of a channel on which this wallet is paid.
    ///
    /// # Errors
    /// [`PolicyError::CloseAboveDeposit`]: the contract would not take it.
    pub fn sign_close(&self, consent: CloseConsent) -> Result<SignedClose, PolicyError> {
        let CloseConsent { amount, deposited, .. } = consent;
        if amount > deposited {
            return Err(PolicyError::CloseAboveDeposit { amount, deposited });
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(SignedClose { consent, signature: consent.sign(&self.domain, &self.key) })
    }

    /// Publishes a statement about this node.
    ///
    /// # Errors
    /// [`DocumentError`] when it breaks its own rules or speaks for another wallet.
    pub fn sign_document<T: Document>(&self, document: &T) -> Result<Signed<T>, DocumentError> {
        Signed::sign(document, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farthing_protocol::{CallId, ChannelId};

    fn signer() -> Signer {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        Signer::new(Arc::new(key), Domain::new(31337, Address::from_bytes([1; 20])))
    }

    #[test]
    fn a_voucher_is_signed_up_to_the_deposit_and_no_further() {
        let signer = signer();
        let voucher = |micros| Voucher { channel: ChannelId::NONE, cumulative: Usdc::from_micros(micros) };
        let deposited = Usdc::from_micros(100);
        for micros in [99, 100] {
            let signature = signer.sign_voucher(&voucher(micros), deposited).unwrap();
            assert!(voucher(micros).verify(signer.domain(), signature, signer.address()).is_ok());
        }
        assert!(signer.sign_voucher(&voucher(101), deposited).is_err());
    }

    #[test]
    fn a_close_is_signed_up_to_the_deposit_and_no_further() {
        let signer = signer();
        let consent = |micros| CloseConsent {
            channel: ChannelId::NONE,
            amount: Usdc::from_micros(micros),
            deposited: Usdc::from_micros(100),
            round: 1,
            deadline_secs: 1,
        };
        let SignedClose { consent: signed, signature } = signer.sign_close(consent(100)).unwrap();
        assert!(signed.verify(signer.domain(), signature, signer.address()).is_ok());
        assert!(signer.sign_close(consent(101)).is_err());
    }

    #[test]
    fn a_receipt_must_add_up() {
        let signer = signer();
        let receipt = |charged| Receipt {
            channel: ChannelId::NONE,
            call_id: CallId::from_bytes([1; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: 0,
            charged: Usdc::from_micros(charged),
            spent_total: Usdc::from_micros(10),
            time_secs: 1,
        };
        assert!(signer.sign_receipt(&receipt(10)).is_ok());
        assert!(signer.sign_receipt(&receipt(11)).is_err());
    }
}
