//! The signing policy in front of the key: only known kinds of promises, only for our own contract.
//!
//! A [`Signer`] belongs to one domain (contract and chain). It has a method per kind of statement and none for
//! raw digests, so code that holds it cannot be talked into signing anything else.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use farthing_values::{
    Address, CloseConsent, CloseRequest, DepositAuthorization, Domain, Receipt, SecretKey, Signature, Signed,
    SignedClose, SignedDeposit, SignedTransfer, TokenDomain, TransferAuthorization, Usdc, Voucher,
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
    #[error("the deposit is not from this wallet, or not into the contract of the settings")]
    OtherDeposit,
    #[error("a transfer of {value} USDC exceeds the {agreed} USDC that were agreed to")]
    TransferAboveAgreed { value: Usdc, agreed: Usdc },
    #[error("a transfer must be from this wallet to another one")]
    TransferElsewhere,
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

    /// Vouchers, receipts, closes, deposits and transfers signed since the start.
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

    /// Asks for the end of a channel that this wallet pays on. What is left of its own money comes back.
    pub fn sign_close_request(&self, request: &CloseRequest) -> Signature {
        self.signed.fetch_add(1, Ordering::Relaxed);
        request.sign(&self.domain, &self.key)
    }

    /// Allows whoever brings it to move this wallet's USDC into one of its channels. `token` is as the chain has proven it.
    ///
    /// # Errors
    /// [`PolicyError::OtherDeposit`]: money of this wallet goes into channels of its own in the configured contract alone.
    pub fn sign_deposit(
        &self,
        deposit: DepositAuthorization,
        token: &TokenDomain,
        contract: Address,
    ) -> Result<SignedDeposit, PolicyError> {
        let config = &deposit.config;
        let is_own = [config.payer, config.signer] == [self.address; 2] && config.token == token.token;
        if !is_own || Domain::new(token.chain_id, contract) != self.domain {
            return Err(PolicyError::OtherDeposit);
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(deposit.sign(token, contract, &self.key))
    }

    /// Pays one call by a transfer of at most what was agreed to. The chain has confirmed the token's domain.
    ///
    /// # Errors
    /// [`PolicyError::TransferAboveAgreed`] or [`PolicyError::TransferElsewhere`].
    pub fn sign_transfer(
        &self,
        transfer: TransferAuthorization,
        token: &TokenDomain,
        agreed: Usdc,
    ) -> Result<SignedTransfer, PolicyError> {
        let TransferAuthorization { from, to, value, .. } = transfer;
        if value > agreed {
            return Err(PolicyError::TransferAboveAgreed { value, agreed });
        }
        if from != self.address || to == self.address {
            return Err(PolicyError::TransferElsewhere);
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(transfer.sign(token, &self.key))
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
    use farthing_values::{CallId, ChannelConfig, ChannelId};

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
    fn a_deposit_is_signed_from_this_wallet_into_the_contract_of_the_settings_and_nowhere_else() {
        let signer = signer();
        let [contract, other] = [1, 9].map(|n| Address::from_bytes([n; 20]));
        let token = TokenDomain {
            name: "USD Coin".to_owned(),
            version: "2".to_owned(),
            chain_id: 31_337,
            token: Address::from_bytes([3; 20]),
        };
        let config = ChannelConfig {
            payer: signer.address(),
            payee: other,
            token: token.token,
            signer: signer.address(),
            close_delay_secs: 3_600,
            salt: [0; 32],
        };
        let deposit = |config| DepositAuthorization {
            config,
            amount: Usdc::from_micros(1),
            valid_before_secs: 1,
            salt: [2; 32],
        };
        let signed = signer.sign_deposit(deposit(config), &token, contract).unwrap();
        assert!(signed.verify(&token, contract).is_ok());
        for config in [
            ChannelConfig { payer: other, ..config },
            ChannelConfig { signer: other, ..config },
            ChannelConfig { token: other, ..config },
        ] {
            assert!(signer.sign_deposit(deposit(config), &token, contract).is_err(), "{config:?}");
        }
        assert!(signer.sign_deposit(deposit(config), &token, other).is_err(), "another contract");
        let chain = TokenDomain { chain_id: 1, ..token };
        assert!(signer.sign_deposit(deposit(config), &chain, contract).is_err(), "another chain");
    }

    #[test]
    fn a_transfer_is_signed_up_to_what_was_agreed_to_and_from_this_wallet_alone() {
        let signer = signer();
        let token = TokenDomain {
            name: "USDC".to_owned(),
            version: "2".to_owned(),
            chain_id: 31337,
            token: Address::from_bytes([3; 20]),
        };
        let transfer = |micros| TransferAuthorization {
            from: signer.address(),
            to: Address::from_bytes([2; 20]),
            value: Usdc::from_micros(micros),
            valid_after_secs: 0,
            valid_before_secs: 9,
            nonce: [4; 32],
        };
        let agreed = Usdc::from_micros(100);
        let signed = signer.sign_transfer(transfer(100), &token, agreed).unwrap();
        assert!(signed.verify(&token).is_ok());
        assert!(signer.sign_transfer(transfer(101), &token, agreed).is_err());
        let of_another = TransferAuthorization { from: Address::from_bytes([5; 20]), ..transfer(1) };
        let to_itself = TransferAuthorization { to: signer.address(), ..transfer(1) };
        for refused in [of_another, to_itself] {
            let signed = signer.sign_transfer(refused, &token, agreed);
            assert_eq!(signed, Err(PolicyError::TransferElsewhere), "{refused:?}");
        }
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
