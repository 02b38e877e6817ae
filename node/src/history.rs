//! The history of everything that moved or earned money: stepped through, added up by day, and settlements with their
//! calls.
//!
//! Five records are read side by side, each backwards and only so far per step, and merged by time. A cursor is the
//! place of the last entry in the order (time, kind, key), so a step begins exactly where the one before ended,
//! whatever was added meanwhile.

mod claims;
mod read;
mod settlement;
pub mod tally;

use std::collections::{BTreeSet, HashMap};

use farthing_control::types::{
    DayTotals, HistoryEntry, HistoryKind, HistoryPage, HistoryState, ServedCall, SettlementShown,
};
use farthing_discovery::Catalog;
use farthing_ledger::{CallRow, Ledger, LedgerError};
use farthing_os::clock;
use farthing_owner::registry::Registry;
use farthing_protocol::ServiceId;
use farthing_shared::disk::aside;

pub use read::HistoryPosition;

/// Entries of one step at most.
pub const STEP_MAX: usize = 500;
/// Some 4 MB of CSV.
const EXPORTED_MAX: usize = 20_000;
/// Rows looked at for one step, of each kind: some 50 ms of one core.
const SCANNED_MAX: usize = 20_000;

/// The history of one node. Cheap to clone; reads apart from those who answer calls.
#[derive(Clone, Debug)]
pub struct History {
    ledger: Ledger,
    registry: Registry,
    catalog: Catalog,
}

/// The entries that are looked for.
#[derive(Debug)]
pub struct HistoryFilter {
    pub kinds: BTreeSet<HistoryKind>,
    pub state: Option<HistoryState>,
    pub service: Option<ServiceId>,
    pub from_secs: u64,
    pub before: HistoryPosition,
}

impl HistoryFilter {
    fn keeps(&self, state: HistoryState, service: Option<ServiceId>) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
            && self.service.is_none_or(|wanted| service == Some(wanted))
    }
}

impl History {
    pub const fn new(ledger: Ledger, registry: Registry, catalog: Catalog) -> Self {
        Self { ledger, registry, catalog }
    }

    /// Reads up to `limit` entries, the newest first, and where to go on.
    ///
    /// # Errors
    /// Only failures of storage.
    pub async fn step(&self, filter: HistoryFilter, limit: usize) -> Result<HistoryPage, LedgerError> {
        // Who has bought something wants to see it.
        self.ledger.catch_up().await;
        let history = self.clone();
        aside(move || {
            let names = history.names();
            let (entries, next) = read::step(&history.ledger, &filter, limit)?;
            let entries = entries.into_iter().map(|entry| entry.shown(&names)).collect();
            Ok(HistoryPage { entries, next: next.map(|place| place.to_string()) })
        })
        .await
    }

    /// Reads everything that fits into an export, the newest first.
    ///
    /// # Errors
    /// Only failures of storage.
    pub async fn export(&self, mut filter: HistoryFilter) -> Result<Vec<HistoryEntry>, LedgerError> {
        self.ledger.catch_up().await;
        let history = self.clone();
        aside(move || {
            let (names, mut all) = (history.names(), Vec::new());
            loop {
                let limit = (EXPORTED_MAX - all.len()).min(STEP_MAX);
                let (entries, next) = read::step(&history.ledger, &filter, limit)?;
                all.extend(entries.into_iter().map(|entry| entry.shown(&names)));
                match next {
                    Some(next) if all.len() < EXPORTED_MAX => filter.before = next,
                    _ => return Ok(all),
                }
            }
        })
        .await
    }

    /// Adds up what each day from `first` to `last` came to, in days since the Unix epoch.
    ///
    /// # Errors
    /// Only failures of storage.
    pub fn days(&self, first: u32, last: u32) -> Result<Vec<DayTotals>, LedgerError> {
        let mut figures: HashMap<u32, _> = self.ledger.day_figures(first, last)?.into_iter().collect();
        let totals = (first..=last).map(|day| {
            let figures = figures.remove(&day).unwrap_or_default();
            DayTotals {
                date: clock::date(u64::from(day) * 86_400),
                bought: figures.bought,
                spent: figures.spent.into(),
                served: figures.served,
                earned: figures.earned.into(),
            }
        });
        Ok(totals.collect())
    }

    /// Reads a settlement with the calls that it paid for; `None` when there is none with this number.
    ///
    /// # Errors
    /// Only failures of storage.
    pub async fn settlement(&self, id: u64) -> Result<Option<SettlementShown>, LedgerError> {
        let history = self.clone();
        aside(move || settlement::shown(&history.ledger, &history.names(), id)).await
    }

    /// Names of services, as this node knows them now.
    pub fn names(&self) -> ServiceNames {
        let own = self.registry.all();
        let own = own.iter().map(|own| (own.listing().service, own.listing().name.clone())).collect();
        ServiceNames { own, catalog: self.catalog.clone() }
    }
}

/// Names of services: those of the owner's own first, then those of the catalog.
#[derive(Debug)]
pub struct ServiceNames {
    own: HashMap<ServiceId, String>,
    catalog: Catalog,
}

impl ServiceNames {
    /// Returns the name of a service; empty when it is not known.
    pub fn of(&self, service: ServiceId) -> String {
        let own = self.own.get(&service).cloned();
        own.or_else(|| self.catalog.name(service)).unwrap_or_default()
    }
}

/// A call that was served.
pub fn served_call(row: &CallRow, names: &ServiceNames) -> ServedCall {
    ServedCall {
        call_id: row.call.call_id.into(),
        service: row.call.service.into(),
        name: names.of(row.call.service),
        payer: row.payer.into(),
        operation: format!("{} {}", row.call.method, row.call.path),
        time_secs: row.call.time_secs,
        status: row.call.status,
        charged: row.call.charged.into(),
    }
}
