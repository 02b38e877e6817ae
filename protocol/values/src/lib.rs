//! The values of the agreement between two Farthing nodes: money, identities, signed documents, promises of payment, and the
//! rules by which they are accepted.
//!
//! Parts of a node that exchange no messages need these alone; `farthing-protocol` passes them on beside the messages.
//! Everything here is pure.
//!
//! Reading order: [`money`], [`identity`], [`id`] → [`signature`], [`signed`] → `method`, `outcome`, [`plain`], [`listing`],
//! [`shards`], [`refusal`], [`record`], [`channel`], [`consent`], [`authorization`], [`sponsor`], [`request`] → [`wire`], [`limits`].

pub mod authorization;
mod bytes;
pub mod channel;
pub mod consent;
mod eip712;
pub mod hashed;
pub mod id;
pub mod identity;
pub mod limits;
pub mod listing;
mod method;
pub mod money;
mod outcome;
pub mod plain;
pub mod record;
pub mod refusal;
pub mod request;
pub mod shards;
pub mod signature;
pub mod signed;
pub mod sponsor;
pub mod wire;

pub use authorization::{SignedTransfer, TokenDomain, TransferAuthorization};
pub use channel::{ChannelConfig, ChannelId, Escrow, Receipt, Voucher};
pub use consent::{CloseConsent, CloseRequest, SignedClose};
pub use eip712::Domain;
pub use id::{CallId, ServiceId, ServiceNonce};
pub use identity::{Address, PublicKey};
pub use listing::Listing;
pub use method::{Method, ParseMethodError};
pub use money::Usdc;
pub use outcome::{ChargePolicy, Outcome};
pub use record::NodeRecord;
pub use refusal::{Refusal, RefusalCode};
pub use request::{CallRequest, Payment};
pub use signature::{SecretKey, Signature};
pub use signed::{Packed, Signed, Verified};
pub use sponsor::{DepositAuthorization, SignedDeposit};

/// A 32-byte Keccak-256 hash.
pub type Hash = [u8; 32];

/// Keccak-256 over the concatenation of `parts`, the hash of Ethereum.
pub fn keccak256(parts: &[&[u8]]) -> Hash {
    use sha3::Digest;
    if cfg!(debug_assertions) {
        hashed::count(parts);
    }
    let mut hasher = sha3::Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
