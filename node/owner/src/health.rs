//! Checks that others have what this owner offers, and that the owner's servers take connections: asked now and then
//! as a stranger would, kept over restarts, and told as an alert when it is bad.
//!
//! Every round looks at the servers; every 20th asks neighbours, one question each for all services. [`NotedHealth::ails`] decides
//! what is bad; what failed once may have been a restart of the server, and is looked at again first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use farthing_control::types::{AlertKind, ListingHealth, Text};
use farthing_discovery::{Catalog, UNSTORED, UNSTORED_NEXT};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Signed,
    info::{InfoRequest, InfoResponse},
    keccak256, limits,
};
use futures::future::join_all;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    registry::{Registered, Registry},
    upstream::{ForbiddenAddress, ResolverError},
};

/// As many neighbours say enough about all.
const ASKED_MAX: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Of those that have the listing, asked for the details.
const DETAILS_ASKED_MAX: usize = 3;
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
const ROUND_EVERY: Duration = Duration::from_secs(15);
/// Rounds from one question to the neighbours to the next: five minutes.
const ASK_EVERY_ROUNDS: u64 = 20;
/// The round of the first question: by then a node has met its neighbours.
const ASK_FIRST_ROUND: u64 = 2;
/// A server that restarts is back by then.
const FAILURES_TOLD: u32 = 2;
/// A listing that was just published is on its way.
const SPREADS_WITHIN_SECS: u64 = 120;
const STORED_KEY: &[u8] = b"services-health";

/// Memory of a service's health, kept over restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct NotedHealth {
    health: ListingHealth,
    /// In a row, of the server.
    failures: u32,
    /// The server's address is one of this node's own.
    #[serde(default)]
    leads_here: bool,
    /// The server that was measured, and the times that its newest answers took, in microseconds.
    upstream: String,
    times_us: Vec<u64>,
}

/// A problem that needs the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthProblem {
    pub kind: AlertKind,
    pub service: ServiceId,
    pub cause: String,
    pub action: String,
}

/// Facts about the node that explain why others lack a listing.
struct Sources<'a> {
    /// This node's catalog could not store the listing, so it told nobody of it.
    is_unstored: bool,
    /// The ports that others connect to.
    ports: &'a BTreeSet<u16>,
}

impl NotedHealth {
    /// Lists the problems of a service that is for sale.
    fn ails(&self, listing: &Listing, sources: &Sources<'_>) -> Vec<HealthProblem> {
        let ailing = |kind, cause: String, action: String| HealthProblem {
            kind,
            service: listing.service,
            cause,
            action,
        };
        let (health, name) = (&self.health, &listing.name);
        let mut ails = Vec::new();
        if listing.paused {
            return ails;
        }
        if self.failures >= FAILURES_TOLD {
            let cause =
                format!("the server of “{name}” {}, so its calls fail and earn nothing", health.upstream);
            let action = if self.leads_here {
                "give the service the address of your own server, or pause it"
            } else {
                "start your server, or pause the service"
            };
            ails.push(ailing(AlertKind::ServerDown, cause, action.to_owned()));
        }
        let heard = health.asked.saturating_sub(health.silent);
        let is_new = health.asked_secs < listing.updated_secs + SPREADS_WITHIN_SECS;
        if heard > 0 && health.current + health.earlier == 0 && !is_new {
            let unseen =
                format!("none of the {heard} nodes that were asked has “{name}”, so nobody can find it");
            let (cause, action) = match sources.is_unstored {
                true => (format!("{unseen}, because {UNSTORED}"), UNSTORED_NEXT.to_owned()),
                false => (unseen, check_reach(sources.ports)),
            };
            ails.push(ailing(AlertKind::ListingUnseen, cause, action));
        }
        ails
    }
}

fn check_reach(ports: &BTreeSet<u16>) -> String {
    let named: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = if named.len() == 1 { "port" } else { "ports" };
    format!("check with `farthing net reach` that others can connect to {ports} {}", named.join(" and "))
}

/// The health of all services. A cheap handle.
#[derive(Debug, Clone)]
pub struct Health(Arc<HealthInner>);

#[derive(Debug)]
struct HealthInner {
    registry: Registry,
    catalog: Catalog,
    network: NetworkHandle,
    ledger: Ledger,
    noted: Mutex<BTreeMap<Text<ServiceId>, NotedHealth>>,
    stored: Mutex<AsStored>,
}

type AsStored = Vec<(Text<ServiceId>, NotedHealth)>;

impl Health {
    /// Goes on with what was known before the last stop.
    pub fn restore(
        registry: Registry,
        catalog: Catalog,
        network: NetworkHandle,
        ledger: Ledger,
    ) -> Result<Self, LedgerError> {
        let stored = ledger.get(Namespace::Settings, STORED_KEY)?;
        // Nothing depends on it: what cannot be read is found out again.
        let stored: AsStored =
            stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        for (id, noted) in &stored {
            if let Some(service) = registry.get(id.0).filter(|own| own.upstream_url() == noted.upstream) {
                service.upstream().remember(&noted.times_us);
            }
        }
        let noted = Mutex::new(stored.iter().cloned().collect());
        let stored = Mutex::new(stored);
        Ok(Self(Arc::new(HealthInner { registry, catalog, network, ledger, noted, stored })))
    }

    /// Returns what was found last; `None` before anything was.
    pub fn last(&self, service: ServiceId) -> Option<ListingHealth> {
        let health = self.0.noted.lock().get(&Text(service)).map(|noted| noted.health.clone());
        health.filter(|health| *health != ListingHealth::default())
    }

    /// Lists the problems that need the owner now.
    pub fn ailing(&self) -> Vec<HealthProblem> {
        let services = self.0.registry.all();
        let ports = self.0.network.status().borrow().ports.clone();
        let unstored = self.0.catalog.storage().unstored;
        let noted = self.0.noted.lock();
        let of = |service: &Arc<Registered>| {
            let listing = service.listing();
            let is_unstored = unstored.contains(&listing.service);
            let sources = Sources { is_unstored, ports: &ports };
            noted.get(&Text(listing.service)).map(|noted| noted.ails(listing, &sources))
        };
        services.iter().filter_map(of).flatten().collect()
    }

    /// Asks neighbours and looks at the server, now.
    pub async fn look(&self, service: &Arc<Registered>) -> ListingHealth {
        let services = [service.clone()];
        tokio::join!(self.ask(&services), self.connect(&services));
        self.last(service.listing().service).unwrap_or_default()
    }

    /// Looks again and again, until it is dropped.
    pub async fn run(self) {
        self.tell_what_leads_here().await;
        for round in 1_u64.. {
            tokio::time::sleep(ROUND_EVERY).await;
            let services = self.0.registry.all();
            self.connect(&services).await;
            if round == ASK_FIRST_ROUND || round.is_multiple_of(ASK_EVERY_ROUNDS) {
                self.ask(&services).await;
            }
            self.store().await;
        }
    }

    /// Stores what was found since the last time; also the last thing before the node stops.
    pub async fn store(&self) {
        let found = self.to_store(&self.0.registry.all());
        if found == *self.0.stored.lock() {
            return;
        }
        let bytes = serde_json::to_vec(&found).expect("texts and numbers are always JSON");
        match self.0.ledger.put(Namespace::Settings, STORED_KEY, bytes).await {
            Ok(()) => *self.0.stored.lock() = found,
            Err(error) => tracing::warn!(%error, "the health of services was not stored"),
        }
    }

    /// Collects what is worth storing: services that are there, with what their servers took.
    fn to_store(&self, services: &[Arc<Registered>]) -> AsStored {
        let mut all = self.0.noted.lock();
        let is_there = |id: &Text<ServiceId>| services.iter().any(|own| own.listing().service == id.0);
        all.retain(|id, _| is_there(id));
        for service in services {
            let noted = all.entry(Text(service.listing().service)).or_default();
            service.upstream_url().clone_into(&mut noted.upstream);
            noted.times_us = service.upstream().newest_us();
        }
        all.iter().map(|(id, noted)| (*id, noted.clone())).collect()
    }

    /// A node may have been told to listen where one of its services' servers was.
    async fn tell_what_leads_here(&self) {
        let services = self.0.registry.all();
        let lead_here = join_all(services.iter().map(|service| service.upstream().leads_here())).await;
        let lead_here = services.into_iter().zip(lead_here).filter_map(|(own, leads)| leads.then_some(own));
        let lead_here: Vec<_> = lead_here.collect();
        for service in &lead_here {
            let (name, upstream) = (&service.listing().name, service.upstream_url());
            tracing::warn!(
                service = %service.listing().service, name, upstream,
                "a service's server is a port of this node, so its calls are not served; give the service the address \
                 of your own server, or change this node's port"
            );
        }
        self.connect(&lead_here).await;
    }

    async fn connect(&self, services: &[Arc<Registered>]) {
        let found = join_all(services.iter().map(|service| connect(service))).await;
        let mut all = self.0.noted.lock();
        for (service, found) in services.iter().zip(found) {
            let noted = all.entry(Text(service.listing().service)).or_default();
            noted.leads_here = found.as_ref().is_err_and(|failed| failed.leads_here);
            noted.failures = match &found {
                Ok(_) => 0,
                // That does not mend itself.
                Err(_) if noted.leads_here => FAILURES_TOLD.max(noted.failures),
                Err(_) => noted.failures.saturating_add(1),
            };
            noted.health.upstream_good = found.is_ok();
            noted.health.upstream = found.unwrap_or_else(|failed| failed.words);
        }
    }

    async fn ask(&self, services: &[Arc<Registered>]) {
        if services.is_empty() {
            return;
        }
        let mut peers = self.0.network.connected_peers().await;
        peers.truncate(ASKED_MAX);
        let answers = join_all(peers.iter().map(|peer| self.0.listings_of(*peer, services))).await;
        for service in services {
            let has: Vec<Has> = answers.iter().map(|answer| has(answer.as_deref(), service)).collect();
            let count = |wanted: Has| has.iter().filter(|has| **has == wanted).count() as u64;
            let holders = peers.iter().zip(&has).filter(|(_, has)| **has == Has::Current);
            let holders: Vec<Address> = holders.map(|(peer, _)| *peer).take(DETAILS_ASKED_MAX).collect();
            let details_served = self.0.served(service.listing().details_hash, &holders).await;
            let mut all = self.0.noted.lock();
            let noted = all.entry(Text(service.listing().service)).or_default();
            noted.health = ListingHealth {
                asked_secs: clock::now_secs(),
                asked: has.len() as u64,
                current: count(Has::Current),
                earlier: count(Has::Earlier),
                missing: count(Has::Nothing),
                silent: count(Has::Silent),
                details_served,
                ..noted.health.clone()
            };
        }
    }
}

impl HealthInner {
    async fn question(&self, peer: Address, request: InfoRequest) -> Option<InfoResponse> {
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.network.ask(peer, request)).await;
        asked.ok().and_then(Result::ok)
    }

    async fn listings_of(&self, peer: Address, services: &[Arc<Registered>]) -> Option<Vec<Signed<Listing>>> {
        let ids: Vec<ServiceId> = services.iter().map(|service| service.listing().service).collect();
        let mut listings = Vec::new();
        for ids in ids.chunks(limits::INFO_ITEMS_MAX) {
            match self.question(peer, InfoRequest::Services(ids.to_vec())).await? {
                InfoResponse::Listings(more) => listings.extend(more),
                _ => return None,
            }
        }
        Some(listings)
    }

    /// Asks those who have the listing whether one of them gives out what it pins.
    async fn served(&self, hash: Hash, holders: &[Address]) -> Option<bool> {
        if holders.is_empty() {
            return None;
        }
        for holder in holders {
            if let Some(InfoResponse::Blob(Some(content))) =
                self.question(*holder, InfoRequest::Blob(hash)).await
                && keccak256(&[&content]) == hash
            {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// The version of a service that one neighbour has, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    Current,
    Earlier,
    Nothing,
    Silent,
}

fn has(answer: Option<&[Signed<Listing>]>, service: &Registered) -> Has {
    let Some(listings) = answer else { return Has::Silent };
    let own = service.listing();
    let is_of = |theirs: &&Signed<Listing>| {
        theirs.claimed().is_ok_and(|listing: Listing| listing.service == own.service)
    };
    let is_current = |theirs: &Signed<Listing>| theirs.content_hash() == own.to_signed().content_hash();
    match listings.iter().filter(is_of).map(is_current).max() {
        Some(true) => Has::Current,
        Some(false) => Has::Earlier,
        None => Has::Nothing,
    }
}

/// The reason that the owner's server is not reached.
struct Away {
    words: String,
    leads_here: bool,
}

/// Checks that something listens where the owner's server should be. No request is sent: it might cost the owner.
async fn connect(service: &Registered) -> Result<String, Away> {
    let away =
        |words: String, leads_here| Away { words: format!("accepts no connection{words}"), leads_here };
    let connecting = async {
        let addresses = service.upstream().addresses().await.map_err(|error| {
            let leads_here = matches!(error, ResolverError::Forbidden(ForbiddenAddress::Own));
            away(format!(": {error}"), leads_here)
        })?;
        let began = tokio::time::Instant::now();
        let connected = tokio::net::TcpStream::connect(addresses.as_slice()).await;
        connected.map_err(|error| away(format!(": {error}"), false))?;
        Ok(began.elapsed())
    };
    let took = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
    let took = took.map_err(|_| away(format!(" within {} s", CONNECT_WITHIN.as_secs()), false))??;
    Ok(format!("accepts connections, in {} ms", took.as_millis().max(1)))
}

#[cfg(test)]
mod tests {
    use farthing_protocol::ServiceNonce;

    use super::*;

    fn listing(paused: bool) -> Listing {
        Listing {
            service: ServiceId::from_bytes([1; 16]),
            name: "Earthquakes".to_owned(),
            operations_count: 1,
            paused,
            ..Listing::first("local", Address::from_bytes([1; 20]), ServiceNonce::from_bytes([1; 16]), 1_000)
        }
    }

    fn sources(is_unstored: bool, ports: &BTreeSet<u16>) -> Sources<'_> {
        Sources { is_unstored, ports }
    }

    fn noted(failures: u32, current: u64, asked: u64, silent: u64, asked_secs: u64) -> NotedHealth {
        let health = ListingHealth { asked_secs, asked, current, silent, ..ListingHealth::default() };
        NotedHealth { health, failures, ..NotedHealth::default() }
    }

    #[test]
    fn a_server_that_stays_away_and_a_listing_that_nobody_has_are_told() {
        let late = 1_000 + SPREADS_WITHIN_SECS;
        for (noted, told) in [
            (noted(0, 7, 8, 0, late), &[][..]),
            (noted(1, 7, 8, 0, late), &[]),
            (noted(2, 7, 8, 0, late), &["server-down"]),
            (noted(0, 1, 8, 0, late), &[]),
            (noted(0, 0, 8, 0, late), &["listing-unseen"]),
            (noted(0, 0, 8, 0, late - 1), &[]),
            (noted(0, 0, 8, 8, late), &[]),
            (noted(0, 0, 0, 0, late), &[]),
            (noted(3, 0, 1, 0, late), &["server-down", "listing-unseen"]),
        ] {
            let ails = |paused| noted.ails(&listing(paused), &sources(false, &[3001].into()));
            let kinds: Vec<&str> = ails(false).iter().map(|one| one.kind.name()).collect();
            assert_eq!(kinds, told, "{noted:?}");
            assert_eq!(ails(true), [], "what rests ails nothing");
        }
    }

    #[test]
    fn a_listing_that_nobody_has_is_told_with_its_cause_and_this_node_s_ports() {
        let unseen = noted(0, 0, 8, 0, 1_000 + SPREADS_WITHIN_SECS);
        let told = |is_unstored, ports: &BTreeSet<u16>| {
            let problem = unseen.ails(&listing(false), &sources(is_unstored, ports)).remove(0);
            (problem.cause.contains(UNSTORED), problem.action)
        };
        let (is_of_catalog, action) = told(false, &[3101].into());
        assert!(!is_of_catalog && action.ends_with("connect to port 3101"), "{action}");
        assert!(told(false, &[3101, 4101].into()).1.ends_with("connect to ports 3101 and 4101"));
        assert_eq!(told(true, &[3101].into()), (true, UNSTORED_NEXT.to_owned()));
    }
}
