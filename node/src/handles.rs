//! Handles on the parts of a running node, as its commands use them.

use std::sync::Arc;

use farthing_bounds::ByteBudget;
use farthing_chain::ChainHandle;
use farthing_config::{Config, gateway_url};
use farthing_control::types::{Eth, WalletBalance};
use farthing_discovery::Catalog;
use farthing_ledger::Ledger;
use farthing_network::NetworkHandle;
use farthing_owner::{
    Owner, book::Book, health::Health, intake::IntakeOptions, node_record, previews::Previews,
    publish::Reader, registry::Registry, upstream::UpstreamOptions,
};
use farthing_protocol::{Address, Usdc};
use farthing_shared::{chain_view, refused::RefusedCalls};
use tokio::sync::Mutex;

use crate::{
    agent_calls::AgentCalls,
    alerts::Alerts,
    approvals::Approvals,
    backup::{
        Automatic,
        money_at_end::{EarnedOn, MoneyAtEnd},
    },
    consumer::{Consumer, channels::PayerChannels, funding::Funding},
    foreign::ForeignCalls,
    history::{History, log::CallReader, tally::Tally, traffic::TrafficKept},
    petnames::Petnames,
    saved::SavedRequests,
    secrets::Secrets,
    settlement::Settlement,
    starred::Starred,
    status::Readiness,
};

/// The parts of one node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handles {
    pub config: Arc<Config>,
    pub wallet: Address,
    /// The libp2p peer id, which contains the wallet's key.
    pub peer_id: String,
    pub network_name: String,
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub network: NetworkHandle,
    pub registry: Registry,
    pub previews: Previews,
    pub catalog: Catalog,
    pub consumer: Consumer,
    /// Calls of x402 servers.
    pub foreign: ForeignCalls,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub book: Book,
    /// The half that sells, for those who call it in another way than through the network.
    pub owner: Owner,
    pub settlement: Settlement,
    pub saved: SavedRequests,
    pub petnames: Petnames,
    pub starred: Starred,
    pub secrets: Arc<Secrets>,
    pub approvals: Approvals,
    pub agent_calls: AgentCalls,
    pub readiness: Readiness,
    pub alerts: Alerts,
    pub backups: Automatic,
    pub health: Health,
    /// The count of what each service served.
    pub tally: Tally,
    /// Bytes that travelled, over time.
    pub traffic: TrafficKept,
    pub refused: RefusedCalls,
    pub started_secs: u64,
    /// Memory for bodies, shared by network, upstreams and ports.
    pub budget: ByteBudget,
    /// Options for requests to servers of the owner's own.
    pub upstream: UpstreamOptions,
    /// Held while record and listings are published.
    pub publishing: Arc<Mutex<()>>,
}

impl Handles {
    /// Returns the address at which the gateway can be called from this machine.
    pub fn gateway_url(&self) -> String {
        gateway_url(self.config.gateway.listen, self.config.gateway.tls)
    }

    /// Returns the address under which x402 clients reach this node; `None` if it has no port for them.
    pub fn x402_url(&self) -> Option<String> {
        let x402 = &self.config.x402;
        let own = gateway_url(x402.listen?, x402.tls);
        Some(x402.url.as_ref().map_or(own, |url| url.trim_end_matches('/').to_owned()))
    }

    /// Returns the money of this node's wallet, in channels and beside them, as the books and the chain show it now.
    pub fn balance(&self) -> WalletBalance {
        let balances = *self.chain.balances().borrow();
        let sum = |amounts: Vec<Usdc>| amounts.into_iter().fold(Usdc::ZERO, Usdc::saturating_add);
        let unspent = self.channels.all().into_iter();
        let unspent =
            unspent.map(|channel| channel.state.deposited.saturating_sub(channel.state.acknowledged));
        let unclaimed = self.book.all().into_iter().map(|(_, channel)| channel.state.unclaimed());
        WalletBalance {
            stale: chain_view::ready(&self.chain).err().map(|reason| reason.to_string()),
            address: self.wallet.into(),
            usdc: balances.map(|balances| balances.usdc.into()),
            eth: balances.map(|balances| Eth { wei: balances.eth_wei }.into()),
            in_channels: sum(unspent.collect()).into(),
            unclaimed: sum(unclaimed.collect()).into(),
        }
    }

    /// Returns that money with what each channel owes: what the files of this node are to tell once others take their place.
    pub fn money_at_end(&self) -> MoneyAtEnd {
        let owed = self.book.all().into_iter();
        let earned = owed.filter_map(|(id, channel)| EarnedOn::of(id, &channel.state)).collect();
        MoneyAtEnd { balance: self.balance(), earned }
    }

    /// Returns the history of this node.
    pub fn history(&self) -> History {
        let (ledger, registry) = (self.ledger.clone(), self.registry.clone());
        let (refused, awaited) = (self.refused.clone(), self.consumer.awaited());
        let foreign = self.foreign.clone();
        History::new(ledger, registry, self.catalog.clone(), refused, (awaited, foreign))
    }

    /// Returns what the log of calls is read with.
    pub fn call_reader(&self, verifies: bool) -> CallReader {
        let (signer, spec) = (self.readiness.signer.clone(), self.chain.spec());
        CallReader { signer, escrow: spec.escrow(), explorer: spec.explorer.clone(), verifies }
    }

    /// Reads what owners bring.
    pub fn reader(&self) -> Reader {
        let upstream = self.upstream.clone();
        let (own_ports, budget) = (upstream.own_ports.clone(), upstream.budget.clone());
        Reader { intake: IntakeOptions { own_ports, budget, ..IntakeOptions::default() }, upstream }
    }

    /// Publishes the node record and the listings, with what is offered now.
    pub async fn publish(&self) {
        // What was read first must not be told last.
        let _alone = self.publishing.lock().await;
        let told = (self.catalog.keeps_all(), self.config.settlement.sponsor);
        node_record::publish(&self.registry, &self.network, &self.ledger, told).await;
        let overtaken = self.catalog.publish().await;
        if !overtaken.is_empty() {
            self.registry.rise_above(&overtaken).await;
            self.catalog.publish().await;
        }
    }
}
