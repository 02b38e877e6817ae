//! The node's durable record of money and calls, for both halves: what it served and is paid for, what it
//! promised and bought, and what was settled on chain.
//!
//! Reading order: `ledger` (the handle), `opening` → `writer` (group commit), `group`, `latest` → `payee`, `payer`, `settlement`
//! (the rules) → `adjustment`, `allowed`, `documents`, `history`, `figures`, `retention`, `audit` → `rows`, `backend`, `tables`, `schema`,
//! `error`. Tables and forms are listed in `docs/ledger.md`.
//!
//! # Durability
//!
//! One redb file, written by one thread, in transactions that are committed in two phases: data, sync, the
//! byte that activates it, sync. An operation's future resolves after the second sync. Reads see only what is
//! committed. The file is locked while it is open.
//!
//! What the disk must keep: a byte is written whole or not at all; what was written before a successful sync
//! survives a power cut; writing a range changes nothing outside it. Writes between two syncs may reach the
//! disk in any order, in part, or not at all. A disk that acknowledges a sync and loses the data breaks the
//! second rule, and no database can help: the audit finds what it broke.
//!
//! # Failing
//!
//! When a write fails, its whole group fails, the file is left as it is and the ledger takes no more: see
//! [`Closed`]. Reading goes on. An operation whose commit failed may still be found after a restart, when the
//! failure came after the activating byte; calls are resolved by their ids for that reason.

mod adjustment;
mod allowed;
mod audit;
mod backend;
mod copy;
mod documents;
mod earlier;
mod error;
mod figures;
mod group;
mod history;
mod latest;
mod ledger;
mod opening;
mod payee;
mod payer;
mod retention;
mod rows;
mod schema;
mod settlement;
mod tables;
mod writer;

pub use adjustment::{Adjustment, Cause};
pub use audit::{Audit, Violation};
pub use documents::{DOCUMENT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX, Document, Namespace};
pub use error::{Closed, EarlierMoney, LedgerError, OpenError, Result};
pub use history::{DayFigures, Position, Standing, Stretch, Transaction, Window};
pub use latest::LATEST_PART_SECS;
pub use ledger::Ledger;
pub use opening::OpenMode;
pub use payee::{Recorded, Served};
pub use payer::{PromiseProof, SECRET_NAME_BYTES_MAX};
pub use retention::{PrunedCounts, Retention};
pub use rows::{
    Side,
    figures::{CallFigures, Latencies, Subject},
    payee::{
        AcceptedCall, BODY_BYTES_MAX, Call, CallRow, Ending, PayeeChannelFacts, PayeeChannelRow, ServedRow,
    },
    payer::{
        Acknowledgement, ChannelChange, DayLimits, PayerChannelFacts, PayerChannelRow, Promise, Purchase,
        PurchaseEnd, Timing, TransferEnd, Uncharged, day_of,
    },
};
pub use settlement::{SETTLEMENT_ROWS_MAX, Settlement, SettlementRow, SettlementState};
pub use writer::{GROUP_OPERATIONS_MAX, Pending, QUEUE_OPERATIONS_MAX, Stats, UnderWay};
