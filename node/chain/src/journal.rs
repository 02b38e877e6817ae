//! A journal of transactions and of the watcher's progress, so that a crash at any instruction loses
//! nothing. The node implements [`Journal`] with its ledger; [`MemoryJournal`] serves tests.
//!
//! Invariant: `put` has returned before the bytes it stores have any effect outside this process.

use std::{collections::BTreeMap, fmt};

use farthing_values::{Address, ChannelId, Usdc};
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// A name and its record.
pub type Record = (String, Vec<u8>);

/// Records by name. Names are short ASCII texts that start with chain id and wallet address, so one journal
/// may serve several wallets and chains. Values are at most [`ENTRY_BYTES_MAX`] long.
pub trait Journal: Send + Sync {
    /// Stores a record durably, replacing an earlier one of the same name.
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Every record, in any order.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>>;
    /// Removes a record durably; removing a missing one is no error.
    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Keeps a transaction for people to look at. It may come twice when a crash falls between this and what
    /// follows. Nothing depends on it, so whoever does not want it leaves it out.
    fn mined(&self, _mined: Mined) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A transaction's hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxHash(pub [u8; 32]);

impl fmt::Display for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPurpose {
    Deposit,
    Claim,
    Close,
    RequestClose,
    Withdrawal,
    Transfer,
    Deployment,
    /// Of an x402 client.
    Payment,
    /// A payer's deposit, whose gas this wallet paid.
    SponsoredDeposit,
    /// A payer's request to close, whose gas this wallet paid.
    SponsoredRequest,
}

impl TransactionPurpose {
    /// The words by which ledgers keep it and people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Claim => "claim",
            Self::Close => "close",
            Self::RequestClose => "request to close",
            Self::Withdrawal => "withdrawal",
            Self::Transfer => "transfer",
            Self::Deployment => "deployment",
            Self::Payment => "payment",
            Self::SponsoredDeposit => "sponsored deposit",
            Self::SponsoredRequest => "sponsored request to close",
        }
    }
}

/// A transaction of this wallet that is in a block, and did what it was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mined {
    /// Of the chain whose block it is in.
    pub chain_id: u64,
    pub hash: TxHash,
    pub block: u64,
    pub purpose: TransactionPurpose,
    /// The channel it concerns, when it is one.
    pub channel: Option<ChannelId>,
    /// The first of the channels that it claims on.
    pub claims_on: Option<ChannelId>,
    /// The other side of that channel, or who was sent something.
    pub peer: Option<Address>,
    /// USDC that it moved out of the wallet; zero for what it earned or gave back of a deposit, which settlements tell.
    pub amount: Usdc,
    /// ETH that it moved out of the wallet, beside the fee.
    pub wei: u128,
    pub fee_wei: u128,
}

/// A transaction that claims on [`crate::CLAIM_ROWS_MAX`] channels, with its rows, has half this size.
pub const ENTRY_BYTES_MAX: usize = 128 * 1024;

/// The journal could not store or read. Nothing is sent to the chain without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A refusal to take a record: no restart finds it.
    #[error("the transaction journal cannot store anything, so nothing was sent: {0}")]
    Refused(String),
    /// A failure to store a record, which may be found after a restart all the same.
    #[error("the transaction journal failed, so nothing is sent until the node is restarted: {0}")]
    Failed(String),
}

/// A journal that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal(Mutex<BTreeMap<String, Vec<u8>>>);

impl Journal for MemoryJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().insert(id, bytes);
        Box::pin(async { Ok(()) })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
        let records = self.0.lock().clone();
        Box::pin(async { Ok(records.into_iter().collect()) })
    }

    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().remove(&id);
        Box::pin(async { Ok(()) })
    }
}
