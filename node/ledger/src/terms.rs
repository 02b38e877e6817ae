//! The stored form of a channel's fixed terms, which both halves keep.

use farthing_protocol::{Address, ChannelConfig};
use minicbor::{Decode, Encode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredTerms {
    #[n(0)]
    payer: Address,
    #[n(1)]
    payee: Address,
    #[n(2)]
    token: Address,
    #[n(3)]
    signer: Address,
    #[n(4)]
    close_delay_secs: u64,
    #[cbor(n(5), with = "minicbor::bytes")]
    salt: [u8; 32],
}

impl From<&ChannelConfig> for StoredTerms {
    fn from(config: &ChannelConfig) -> Self {
        let ChannelConfig { payer, payee, token, signer, close_delay_secs, salt } = *config;
        Self { payer, payee, token, signer, close_delay_secs, salt }
    }
}

impl From<StoredTerms> for ChannelConfig {
    fn from(terms: StoredTerms) -> Self {
        let StoredTerms { payer, payee, token, signer, close_delay_secs, salt } = terms;
        Self { payer, payee, token, signer, close_delay_secs, salt }
    }
}
