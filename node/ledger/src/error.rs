//! Reasons why the ledger cannot be opened, and why it refuses or fails an operation.
//!
//! Refusals leave everything as it was and say which rule of money they keep. Failures of storage close the
//! ledger: see [`Closed`].

use std::{path::PathBuf, sync::Arc};

use farthing_values::{Address, CallId, ChannelId, Usdc};

/// The result of every operation.
pub type Result<T, E = LedgerError> = std::result::Result<T, E>;

/// Money in channels of an earlier contract, as the ledger last knew it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierMoney {
    /// Channels on which this node earned what it has not claimed, and the sum.
    pub unclaimed: (usize, Usdc),
    /// Channels in which this node still has a deposit, and the sum.
    pub deposited: (usize, Usdc),
    /// Transactions whose end is not known.
    pub under_way: usize,
}

impl EarlierMoney {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for EarlierMoney {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unclaimed, deposited) = (self.unclaimed, self.deposited);
        write!(
            f,
            "{} USDC earned and not claimed on {} channels, {} USDC deposited in {} channels, \
             {} transactions under way",
            unclaimed.1, unclaimed.0, deposited.1, deposited.0, self.under_way
        )
    }
}

/// An error that keeps a ledger from opening.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the ledger at {path} is missing; a new one would not know what was promised and earned")]
    Missing { path: PathBuf },
    #[error("the ledger is open in another process")]
    InUse,
    #[error("the ledger has schema {found} and this program knows schema {supported}")]
    NewerSchema { found: u64, supported: u64 },
    #[error("the ledger has schema {found}, which cannot be changed to schema {supported}")]
    NoMigration { found: u64, supported: u64 },
    #[error(
        "an earlier version of the program wrote the ledger, and its channels are in a contract that this version does \
         not use: {0}. Nothing was changed"
    )]
    EarlierContract(EarlierMoney),
    #[error("the ledger's {table} holds an entry that cannot be read ({cause})")]
    Damaged { table: &'static str, cause: String },
    #[error("the ledger at {path} cannot be created or read")]
    File { path: PathBuf, source: std::io::Error },
    #[error("the ledger's storage failed while opening")]
    Storage(#[source] Arc<redb::Error>),
    #[error("the ledger's writer thread could not be started")]
    Thread(#[source] std::io::Error),
}

impl OpenError {
    pub const fn next_step(&self) -> Option<&'static str> {
        Some(match self {
            Self::Missing { .. } => {
                "restore a backup; without one, start again in an empty folder with `farthing wallet import` and the \
                 wallet's words (`farthing wallet export` prints them). To start again with a wallet file of another \
                 program, use the file as that program wrote it, without `x-farthing`"
            }
            Self::NoMigration { .. } | Self::Damaged { .. } => "restore a backup",
            Self::InUse => "stop that process first",
            Self::NewerSchema { .. } => "use the newer version of the program that wrote it",
            Self::EarlierContract(_) => {
                "Start the version that wrote it, run `farthing settle`, and close every channel of `farthing channel \
                 list` with `farthing channel close`. When the list shows no more money, stop it and start this \
                 version. Others can take back their own deposits."
            }
            Self::File { .. } => "check the folder's permissions and free space",
            Self::Storage(_) => "check the disk, then restore a backup if it persists",
            Self::Thread(_) => return None,
        })
    }
}

impl<E: Into<redb::Error>> From<E> for OpenError {
    fn from(error: E) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Storage(Arc::new(other)),
        }
    }
}

/// Writing failed: nothing of the failed group counts, no further write is tried, and what was committed
/// before stays readable.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the ledger could not store an operation and accepts no more; free disk space or check the disk, then restart"
)]
pub struct Closed {
    #[source]
    pub cause: Arc<dyn std::error::Error + Send + Sync>,
}

/// The reason that an operation did not happen.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error("the ledger cannot be read; check the disk, then restart")]
    Storage(#[source] Arc<redb::Error>),
    #[error(
        "the ledger's {table} holds an entry that cannot be read ({cause}); run the audit, then restore a backup"
    )]
    Damaged { table: &'static str, cause: String },

    #[error("channel {0} is not in the ledger; record it first")]
    UnknownChannel(ChannelId),
    #[error("channel {channel} does not belong to {address}")]
    WrongParty { channel: ChannelId, address: Address },
    #[error("channel {0} was recorded with different terms")]
    ChannelConflict(ChannelId),

    #[error("call {0} is already finished; answer from its record")]
    AlreadyServed(CallId),
    #[error("the node is stopping, so it buys nothing more")]
    Ending,
    #[error("no finished call {0} is in the ledger")]
    NotServed(CallId),
    #[error("call {0} was sent to its service earlier and may have run; it is not run again")]
    MayHaveRun(CallId),
    #[error("call {0} has an effect and was not recorded before it ran; accept it first")]
    NotAccepted(CallId),
    #[error("call {0} was used with another request; use a new call id")]
    CallIdConflict(CallId),
    #[error("a charge of {charged} USDC breaks the terms of call {call_id}: {rule}")]
    ChargeNotAllowed { call_id: CallId, charged: Usdc, rule: &'static str },
    #[error("a voucher for {cumulative} USDC exceeds the deposit of {deposited} USDC")]
    VoucherAboveDeposit { cumulative: Usdc, deposited: Usdc },
    #[error("{spent} USDC spent and {charged} USDC more exceed the {covered} USDC that can be claimed")]
    Overdrawn { spent: Usdc, charged: Usdc, covered: Usdc },
    #[error("a claim up to {claimed} USDC on channel {channel} exceeds the {spent} USDC charged")]
    ClaimAboveSpent { channel: ChannelId, claimed: Usdc, spent: Usdc },
    #[error("settlement {0} is not in the ledger")]
    UnknownSettlement(u64),
    #[error("settlement {0} is confirmed and cannot change")]
    SettlementFinal(u64),

    #[error("channel {0} is stopped; nothing more is bought on it")]
    ChannelStopped(ChannelId),
    #[error("call {0} was answered already; answer from its record")]
    AlreadyBought(CallId),
    #[error("call {0} has no open promise")]
    NotPromised(CallId),
    #[error("the receipt does not fit the promise of call {call_id}: {rule}")]
    ReceiptMismatch { call_id: CallId, rule: &'static str },

    #[error("{what} has {bytes} bytes, at most {bytes_max} are stored")]
    TooLarge { what: &'static str, bytes: usize, bytes_max: usize },
}

impl LedgerError {
    /// Returns whether the storage failed, as opposed to a rule being kept.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Closed(_) | Self::Storage(_) | Self::Damaged { .. })
    }

    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Closed(_) | Self::Storage(_) => {
                "Free disk space or repair the disk, then restart the node."
            }
            Self::Ending => "Repeat it when the node runs again.",
            _ => "`farthing doctor` checks the ledger.",
        }
    }
}

impl<E: Into<redb::Error>> From<E> for LedgerError {
    fn from(error: E) -> Self {
        Self::Storage(Arc::new(error.into()))
    }
}

pub(crate) fn within(what: &'static str, bytes: usize, bytes_max: usize) -> Result<()> {
    if bytes > bytes_max { Err(LedgerError::TooLarge { what, bytes, bytes_max }) } else { Ok(()) }
}
