//! Is the node ready, and what does it count? Answered from memory for probes and metrics.

use farthing_chain::ChainHandle;
use farthing_ledger::Ledger;
use farthing_network::NetworkHandle;

use crate::{
    catalog::{Catalog, WayCounts},
    chain_view,
    owner::registry::Registry,
    wallet::Signer,
};

/// What health checks and metrics read.
#[derive(Clone, Debug)]
pub struct Readiness {
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub network: NetworkHandle,
    pub registry: Registry,
    pub catalog: Catalog,
    pub signer: Signer,
}

impl Readiness {
    /// What the node still waits for before it can buy and sell; nothing when it is ready.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        let mut waiting_for = Vec::new();
        if let Some(closed) = self.ledger.closed() {
            waiting_for.push(format!("ledger: {closed}"));
        }
        if let Err(reason) = chain_view::ready(&self.chain) {
            waiting_for.push(format!("chain: {reason}"));
        }
        if self.network.status().borrow().listening.is_empty() {
            waiting_for.push("network: not listening yet".to_owned());
        }
        waiting_for
    }

    /// Name, help and value of everything counted.
    #[must_use]
    pub fn metrics(&self) -> Vec<(&'static str, &'static str, u64)> {
        let ledger = self.ledger.stats();
        let network = self.network.status().borrow().clone();
        let requests = self.chain.request_counts();
        let WayCounts { gossiped, comparisons, comparisons_fruitful } = self.catalog.ways();
        vec![
            ("farthing_ready", "1 when the node can buy and sell.", u64::from(self.waiting_for().is_empty())),
            ("farthing_ledger_commits_total", "Durable commits.", ledger.commits),
            ("farthing_ledger_operations_total", "Operations in those commits.", ledger.operations),
            ("farthing_signatures_total", "Vouchers and receipts signed.", self.signer.signed()),
            ("farthing_network_connections", "Open connections.", network.connections as u64),
            ("farthing_chain_requests_watch_total", "Chain requests in the background.", requests.watch),
            ("farthing_chain_requests_write_total", "Chain requests of transactions.", requests.write),
            (
                "farthing_chain_requests_on_demand_total",
                "Chain requests someone waited for.",
                requests.on_demand,
            ),
            (
                "farthing_catalog_listings",
                "Services known, of the whole network.",
                self.catalog.counts().listings as u64,
            ),
            (
                "farthing_catalog_gossiped_total",
                "Listings that were new when a neighbour told of them unasked.",
                gossiped,
            ),
            (
                "farthing_catalog_comparisons_total",
                "Comparisons of catalogs with neighbours that came to their end.",
                comparisons,
            ),
            (
                "farthing_catalog_comparisons_fruitful_total",
                "Comparisons of catalogs that brought something new.",
                comparisons_fruitful,
            ),
            ("farthing_services", "Services offered.", self.registry.all().len() as u64),
        ]
    }
}
