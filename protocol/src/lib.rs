//! The agreement between two Farthing nodes: money, identities, signed documents,
//! messages, and the rules by which a payment is accepted.
//!
//! Everything here is pure. There is no clock, socket, file or task: functions
//! take what they need as arguments and return what they decided. That is what
//! lets both ends of a call, the tests and an offline audit share one opinion.
//!
//! Reading order: [`money`], [`identity`], [`id`] → [`signature`], [`signed`] →
//! `method`, `outcome`, [`plain`], [`listing`], [`shards`], [`refusal`], [`record`], [`channel`], [`consent`],
//! [`authorization`], [`sponsor`], [`books`] → [`call`],
//! [`call_stream`], [`info`], [`reconciliation`], [`sync`], [`agreement`], [`reach`], [`resolution`] → [`wire`], [`limits`].

pub mod agreement;
pub mod authorization;
pub mod books;
mod bytes;
pub mod call;
pub mod call_stream;
pub mod channel;
pub mod consent;
mod eip712;
pub mod id;
pub mod identity;
pub mod info;
pub mod limits;
pub mod listing;
mod method;
pub mod money;
mod outcome;
pub mod plain;
pub mod reach;
pub mod reconciliation;
pub mod record;
pub mod refusal;
pub mod resolution;
pub mod shards;
pub mod signature;
pub mod signed;
pub mod sponsor;
pub mod sync;
pub mod wire;

pub use authorization::{SignedTransfer, TokenDomain, TransferAuthorization};
pub use call::{CallMessage, CallReply, CallRequest, CallResponse};
pub use channel::{ChannelConfig, ChannelId, Escrow, Receipt, Voucher};
pub use consent::{CloseConsent, CloseRequest, SignedClose};
pub use eip712::Domain;
pub use id::{CallId, ServiceId, ServiceNonce};
pub use identity::{Address, PublicKey};
pub use listing::Listing;
pub use money::Usdc;
pub use outcome::Outcome;
pub use record::NodeRecord;
pub use refusal::{Refusal, RefusalCode};
pub use signature::{SecretKey, Signature};
pub use signed::{Packed, Signed, Verified};
pub use sponsor::{DepositAuthorization, SignedDeposit};

/// A 32-byte Keccak-256 hash.
pub type Hash = [u8; 32];

/// Keccak-256 over the concatenation of `parts`, the hash of Ethereum.
pub fn keccak256(parts: &[&[u8]]) -> Hash {
    use sha3::Digest;
    let mut hasher = sha3::Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
