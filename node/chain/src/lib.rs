//! Everything that touches a chain: a public handle, and two private tasks behind it.
//!
//! [`Chain::start`] starts the *watcher*, which keeps status, head, channels and balances in memory, and the
//! *writer*, the only one that signs this wallet's transactions. [`ChainHandle`] reads the watcher's views
//! without a request and asks the writer for everything that moves money. No chain request is made on the
//! path of a call; [`ChainHandle::request_counts`] shows it.
//!
//! Reading order: [`spec`] → `contracts`, `token` → `rpc`, `reader` → `watcher` → `intent`, `entry`, `writer` → `handle` →
//! [`deploy`]; `heard` lends the readers to tests, and `played` lets tests play the endpoints.

mod backoff;
mod contracts;
pub mod deploy;
mod entry;
mod error;
mod fees;
mod handle;
#[doc(hidden)]
pub mod heard;
mod intent;
mod journal;
#[cfg(feature = "played")]
pub mod played;
mod probe;
mod reader;
mod rpc;
pub mod spec;
mod store;
mod token;
mod verify;
mod views;
mod watcher;
mod writer;

pub use contracts::{call_data, pay_channels_address};
pub use error::{ChainError, eth};
pub use fees::gas_limit;
pub use handle::{
    Chain, ChainHandle, ClaimReport, ContractBooks, ContractFound, DeploymentCost, Landed, PaymentState,
    SponsorTrial, TransferState, TxReport,
};
pub use intent::ClaimRow;
pub use journal::{
    ENTRY_BYTES_MAX, Journal, JournalError, MemoryJournal, Mined, Record, TransactionPurpose, TxHash,
};
pub use probe::{EndpointHead, EndpointProbe, probe};
pub use reader::{Balances, ChannelState};
pub use rpc::RequestCounts;
pub use spec::{ChainKind, ChainSpec, custom, local, preset, preset_names};
pub use verify::ContractCode;
pub use views::{
    BaseFee, ChainStatus, ChannelView, ChannelViews, Head, L1Fee, LogsFailing, LogsView, Role, UnderWay,
    view_age_max,
};
pub use writer::{AUTHORIZATION_SECS, CLAIM_ROWS_MAX, DepositUnderWay};
