//! The history of everything that moved or earned money: stepped through, added up by day, and settlements with their
//! calls.
//!
//! Five records are read side by side and merged by time ([`place`]). The log of calls ([`log`]) is read in the same way: the
//! calls of the ledger, those that are under way, and those that were refused.

mod claims;
pub mod log;
mod outcome;
mod place;
mod read;
mod series;
mod settlement;
pub mod tally;
pub mod traffic;

use std::collections::{BTreeSet, HashMap};

use farthing_control::types::{
    DayTotals, HistoryEntry, HistoryKind, HistoryPage, HistoryState, Series, SeriesRange, ServedCall,
    ServiceCalls, SettlementShown,
};
use farthing_discovery::Catalog;
use farthing_ledger::{CallRow, Ledger, LedgerError};
use farthing_os::clock;
use farthing_owner::registry::Registry;
use farthing_protocol::{Address, ServiceId};
use farthing_shared::{blocking::run_blocking, refused::RefusedCalls};

use crate::foreign::ForeignCalls;

pub use self::{
    outcome::of_purchase as outcome_of_purchase,
    place::Place,
    read::{HistoryPosition, status_and_reason},
    series::SeriesOf,
};
use crate::consumer::awaited::AwaitedCalls;

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
    refused: RefusedCalls,
    awaited: AwaitedCalls,
    foreign: ForeignCalls,
}

/// The entries that are looked for.
#[derive(Clone, Debug)]
pub struct HistoryFilter {
    pub kinds: BTreeSet<HistoryKind>,
    pub state: Option<HistoryState>,
    pub service: Option<ServiceId>,
    /// The other side's wallet.
    pub peer: Option<Address>,
    pub from_secs: u64,
    pub before: HistoryPosition,
}

impl HistoryFilter {
    fn keeps(&self, state: HistoryState, service: Option<ServiceId>, peer: Option<Address>) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
            && self.service.is_none_or(|wanted| service == Some(wanted))
            && self.peer.is_none_or(|wanted| peer == Some(wanted))
    }
}

impl History {
    pub fn new(
        ledger: Ledger,
        registry: Registry,
        catalog: Catalog,
        refused: RefusedCalls,
        (awaited, foreign): (AwaitedCalls, ForeignCalls),
    ) -> Self {
        Self { ledger, registry, catalog, refused, awaited, foreign }
    }

    /// Reads up to `limit` entries, the newest first, and where to go on.
    pub async fn step(&self, filter: HistoryFilter, limit: usize) -> Result<HistoryPage, LedgerError> {
        // Who has bought something wants to see it.
        self.ledger.catch_up().await;
        let (entries, next) = self.entries(filter, limit).await?;
        Ok(HistoryPage { entries, next: next.map(|place| place.to_string()) })
    }

    /// Reads everything that fits into an export, the newest first. Where few entries fit the filter, this looks through all that are
    /// kept, step by step, and no further once nobody waits any more.
    pub async fn export(&self, mut filter: HistoryFilter) -> Result<Vec<HistoryEntry>, LedgerError> {
        self.ledger.catch_up().await;
        let mut all = Vec::new();
        loop {
            let limit = (EXPORTED_MAX - all.len()).min(STEP_MAX);
            let (entries, next) = self.entries(filter.clone(), limit).await?;
            all.extend(entries);
            match next {
                Some(next) if all.len() < EXPORTED_MAX => filter.before = next,
                _ => return Ok(all),
            }
        }
    }

    /// Reads up to `limit` entries, and where to go on.
    async fn entries(
        &self,
        filter: HistoryFilter,
        limit: usize,
    ) -> Result<(Vec<HistoryEntry>, Option<HistoryPosition>), LedgerError> {
        let history = self.clone();
        run_blocking(move || {
            let names = history.names();
            let (entries, next) = read::step(&history.ledger, &filter, limit)?;
            Ok((entries.into_iter().map(|entry| entry.shown(&names)).collect(), next))
        })
        .await
    }

    /// Adds up what each day from `first` to `last` came to, in days since the Unix epoch.
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

    /// Adds up calls and money over a time that ends now.
    pub async fn series(&self, range: SeriesRange, asked: SeriesOf) -> Result<Series, LedgerError> {
        self.ledger.catch_up().await;
        let ledger = self.ledger.clone();
        run_blocking(move || series::read(&ledger, range, asked, clock::now_secs())).await
    }

    /// Counts what each of the owner's services served over such a time.
    pub async fn served_series(&self, range: SeriesRange) -> Result<Vec<ServiceCalls>, LedgerError> {
        let ledger = self.ledger.clone();
        run_blocking(move || series::served(&ledger, range, clock::now_secs())).await
    }

    /// Reads a settlement with the calls that it paid for; `None` when there is none with this number.
    pub async fn settlement(&self, id: u64) -> Result<Option<SettlementShown>, LedgerError> {
        let history = self.clone();
        run_blocking(move || settlement::shown(&history.ledger, &history.names(), id)).await
    }

    /// Names of services, as this node knows them now.
    pub fn names(&self) -> ServiceNames {
        let own = self.registry.all();
        let own = own.iter().map(|own| (own.listing().service, own.listing().name.clone()));
        let foreign = self.foreign.servers().into_iter().map(|server| (server.id, server.name()));
        let own = own.chain(foreign).collect();
        ServiceNames { own, catalog: self.catalog.clone() }
    }
}

/// Names of services: those of the owner's own and of x402 servers first, then those of the catalog.
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

pub fn served_call(row: &CallRow, names: &ServiceNames) -> ServedCall {
    ServedCall {
        call_id: row.call.call_id.into(),
        service: row.call.service.into(),
        name: names.of(row.call.service),
        payer: row.payer.into(),
        operation: format!("{} {}", row.call.method, row.call.path),
        time_secs: row.call.time_secs,
        outcome: outcome::of(row.call.outcome),
        status: row.call.status,
        charged: row.earned().into(),
    }
}
