//! The parts that everything else in the node stands on, and what each half and the rest are made of.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use farthing_bounds::ByteBudget;
use farthing_chain::{Chain, ChainHandle};
use farthing_config::{Config, Rendezvous};
use farthing_discovery::{Catalog, News};
use farthing_ledger::{Ledger, LedgerError};
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle, ReachConfig, RendezvousConfig};
use farthing_os::clock;
use farthing_owner::{
    OwnerParts,
    book::{self, Book},
    health::Health,
    late::ToldFree,
    load::Load,
    node_record,
    registry::Registry,
    running::Calls,
    terms::Terms,
    told::{BooksLimiter, GivenAgain},
    upstream::{OwnPorts, UpstreamOptions},
    x402::Door,
};
use farthing_protocol::{ChannelConfig, ChannelId, Escrow, wire::NetworkName};
use farthing_shared::{call_ends::CallEnds, disk::start_aside, refused::RefusedCalls};
use farthing_wallet::{Signer, Wallet};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    alerts::{AlertsParts, MoneyElsewhere, MoneyLeft},
    backup::{Automatic, Backups},
    chain_spec::chain_spec,
    consumer::{
        Consumer, ConsumerParts,
        accounts::Accounts,
        channels::PayerChannels,
        conduct::Conduct,
        funding::{Funding, FundingParts},
        rules::Rules,
    },
    escrows::Escrows,
    foreign::ForeignParts,
    home,
    journal::LedgerJournal,
    settlement::SettlementParts,
    status::Readiness,
};

use super::{
    refused,
    settings::{
        accept, catalog_options, deposits, flagging, load_limits, policy, purchases, rest_limits,
        spending_limits, terms, upstream_options,
    },
};

/// Settings and wallet, the adapters, the owner's services, and the channels of both sides.
pub(super) struct Foundation {
    pub(super) config: Config,
    pub(super) signer: Signer,
    pub(super) ledger: Ledger,
    pub(super) chain: ChainHandle,
    pub(super) network: NetworkHandle,
    pub(super) network_name: String,
    /// The folder of what was learned of this network.
    pub(super) learned: PathBuf,
    pub(super) registry: Registry,
    pub(super) catalog: Catalog,
    pub(super) channels: Arc<PayerChannels>,
    pub(super) book: Book,
    pub(super) budget: ByteBudget,
    pub(super) upstream: UpstreamOptions,
    terms: Terms,
    escrows: Escrows,
    elsewhere: Vec<MoneyElsewhere>,
    ends: CallEnds,
    pub(super) refused: RefusedCalls,
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
}

impl Foundation {
    /// Starts chain, network and catalog, and brings services and channels into memory.
    pub(super) async fn lay(
        config: Config,
        wallet: &Wallet,
        ledger: Ledger,
    ) -> anyhow::Result<(Self, Inbound, mpsc::Receiver<News>)> {
        let spec = chain_spec(&config)?;
        let terms = terms(&config);
        let signer = wallet.signer(spec.escrow().domain());
        let journal = Arc::new(LedgerJournal(ledger.clone()));
        let chain = Chain::start(spec.clone(), wallet.secret_for_chain(), journal).await?;

        let name = NetworkName::on_chain(config.network.name.as_deref(), spec.chain_id)?;
        let network_name = name.as_str().to_owned();
        let learned = home::network_folder(&config.node.data_dir, &name);
        let budget = ByteBudget::new(config.limits.bodies_bytes_max);
        let own_ports = own_ports(&config);
        let upstream = upstream_options(&config, &budget, &own_ports);
        let registry = Registry::load(
            signer.clone(),
            ledger.clone(),
            network_name.clone(),
            vec![accept(&spec, signer.address(), terms)],
            upstream.clone(),
        )?;
        registry.relist().await?;
        let (network, inbound) = start_network(&config, wallet, name, &learned, &ledger, &budget).await?;
        own_ports.follow(network.status());
        let refused = refused::read(&learned).await;

        let channels = Arc::new(PayerChannels::default());
        let book = Book::new(terms.unsafe_max, terms.without_gas_max);
        restore(&ledger, &spec.escrow(), &channels, &book)?;
        let escrows = Escrows::note(&ledger, spec.escrow(), &home::chains(&config.node.data_dir)).await?;
        let elsewhere = MoneyElsewhere::read(&ledger, &escrows)?;

        let store = open_catalog(&learned, catalog_options(&config, &network_name, signer.address())).await?;
        let (catalog, news) =
            Catalog::new(store, network.clone(), network_name.clone(), Arc::new(registry.clone()));
        catalog.completed_before(&ledger)?;
        let foundation = Self {
            config,
            signer,
            ledger,
            chain,
            network,
            network_name,
            learned,
            registry,
            catalog,
            channels,
            book,
            budget,
            upstream,
            terms,
            escrows,
            elsewhere,
            ends: CallEnds::default(),
            refused,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        };
        Ok((foundation, inbound, news))
    }

    pub(super) fn funding(&self) -> FundingParts {
        FundingParts {
            wallet: self.signer.address(),
            chain: self.chain.clone(),
            ledger: self.ledger.clone(),
            channels: self.channels.clone(),
            escrows: self.escrows.clone(),
            policy: deposits(&self.config),
            close_delay_max_secs: self.config.spending.close_delay_max_secs,
            rest_limits: rest_limits(&self.config),
            tasks: self.tasks.clone(),
        }
    }

    pub(super) fn consumer(&self, funding: &Funding) -> Result<ConsumerParts, LedgerError> {
        let spending = &self.config.spending;
        Ok(ConsumerParts {
            signer: self.signer.clone(),
            ledger: self.ledger.clone(),
            network: self.network.clone(),
            chain: self.chain.clone(),
            catalog: self.catalog.clone(),
            channels: self.channels.clone(),
            funding: funding.clone(),
            rules: Rules::restore(self.ledger.clone(), spending_limits(&self.config), spending.enabled)?,
            conduct: Conduct::restore(self.ledger.clone(), flagging(&self.config))?,
            settings: purchases(&self.config),
            tasks: self.tasks.clone(),
            stopping: self.stopping.clone(),
            ends: self.ends.clone(),
        })
    }

    pub(super) fn foreign(&self, consumer: &Consumer, funding: &Funding) -> ForeignParts {
        ForeignParts {
            consumer: consumer.clone(),
            funding: funding.clone(),
            signer: self.signer.clone(),
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            upstream: self.upstream.clone(),
            allow_private: self.config.network.allow_private,
            call_deadline: self.config.limits.call_total,
            tasks: self.tasks.clone(),
            stopping: self.stopping.clone(),
        }
    }

    pub(super) fn owner(&self, closes: mpsc::Sender<ChannelId>) -> Result<OwnerParts, LedgerError> {
        Ok(OwnerParts {
            signer: self.signer.clone(),
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            registry: self.registry.clone(),
            book: self.book.clone(),
            calls: Calls::default(),
            told_free: ToldFree::default(),
            load: Load::new(load_limits(&self.config), self.budget.clone()),
            told: BooksLimiter::default(),
            given: GivenAgain::default(),
            closes,
            terms: self.terms,
            tasks: self.tasks.clone(),
            ends: self.ends.clone(),
            refused: self.refused.clone(),
            door: Door::restore(self.ledger.clone())?,
        })
    }

    pub(super) fn settlement(
        &self,
        funding: &Funding,
        accounts: Arc<Accounts>,
        closes: mpsc::Receiver<ChannelId>,
    ) -> SettlementParts {
        SettlementParts {
            signer: self.signer.clone(),
            chain: self.chain.clone(),
            ledger: self.ledger.clone(),
            network: self.network.clone(),
            book: self.book.clone(),
            channels: self.channels.clone(),
            funding: funding.clone(),
            accounts,
            policy: policy(&self.config),
            terms: self.terms,
            interval: self.config.settlement.interval,
            closes,
            stopping: self.stopping.clone(),
        }
    }

    pub(super) fn readiness(&self) -> Readiness {
        Readiness {
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            network: self.network.clone(),
            registry: self.registry.clone(),
            catalog: self.catalog.clone(),
            signer: self.signer.clone(),
            budget: self.budget.clone(),
            ends: self.ends.clone(),
            channels: self.channels.clone(),
            book: self.book.clone(),
            data_dir: self.config.node.data_dir.clone(),
            started_secs: clock::now_secs(),
        }
    }

    pub(super) fn backups(&self) -> Result<Automatic, LedgerError> {
        let node = &self.config.node;
        let wallet = self.signer.address().to_string();
        Automatic::restore(node.data_dir.clone(), Backups::of(node), self.ledger.clone(), wallet)
    }

    pub(super) fn health(&self) -> Result<Health, LedgerError> {
        Health::restore(self.registry.clone(), self.network.clone(), self.ledger.clone())
    }

    pub(super) fn alerts(
        &self,
        readiness: &Readiness,
        consumer: &Consumer,
        funding: &Funding,
        backups: &Automatic,
        health: &Health,
    ) -> AlertsParts {
        AlertsParts {
            wallet: self.signer.address(),
            network_name: self.network_name.clone(),
            ledger: self.ledger.clone(),
            readiness: readiness.clone(),
            consumer: consumer.clone(),
            funding: funding.clone(),
            channels: self.channels.clone(),
            book: self.book.clone(),
            terms: self.terms,
            elsewhere: self.elsewhere.clone(),
            left: MoneyLeft::read(&self.config.node.data_dir, self.signer.address()),
            backups: backups.clone(),
            health: health.clone(),
            data_dir: self.config.node.data_dir.clone(),
            upstream: self.upstream.clone(),
        }
    }
}

/// The ports that are this node's own, which no upstream may be at.
fn own_ports(config: &Config) -> OwnPorts {
    let Config { gateway, panel, x402, .. } = config;
    let listens = [Some(gateway.listen), Some(panel.listen), gateway.plain, x402.listen];
    OwnPorts::new(listens.into_iter().flatten().map(|address| address.port()))
}

/// Opens the listings of the network. Whatever is wrong with them, the network has them too.
async fn open_catalog(
    folder: &Path,
    options: farthing_catalog::Options,
) -> anyhow::Result<farthing_catalog::Catalog> {
    let folder = folder.to_owned();
    let opening = start_aside(move || farthing_catalog::Catalog::open(&folder, options));
    let (catalog, opened) = opening.await?.context("the catalog in the data folder cannot be opened")?;
    for notice in &opened.notices {
        tracing::warn!("{notice}");
    }
    Ok(catalog)
}

async fn start_network(
    config: &Config,
    wallet: &Wallet,
    name: NetworkName,
    learned: &Path,
    ledger: &Ledger,
    budget: &ByteBudget,
) -> anyhow::Result<(NetworkHandle, Inbound)> {
    let mut network = NetworkConfig::new(wallet.secret_for_network(), name);
    network.listen.clone_from(&config.network.listen);
    network.announce.clone_from(&config.network.announce);
    network.bootstrap.clone_from(&config.network.bootstrap);
    network.allow_private = config.network.allow_private;
    network.gossip = config.network.gossip;
    network.mdns = config.network.mdns;
    network.rendezvous = (config.network.rendezvous == Rendezvous::Ipfs)
        .then(|| RendezvousConfig::new(config.network.rendezvous_entrance.clone()));
    network.budget = budget.clone();
    network.state_dir = Some(learned.to_owned());
    network.reach = ReachConfig {
        upnp: config.network.upnp,
        first: config.network.reach_first,
        interval: config.network.reach_interval,
        asker_interval: config.network.reach_peer_interval,
        ..ReachConfig::default()
    };
    network.relay.serves = config.network.relay;
    network.relay.used = config.network.use_relays;
    let last = node_record::last_seq(ledger)?;
    // The clock keeps the sequence rising even when the ledger was lost.
    network.record_seq_start = (last + 1).max(clock::now_secs());
    Ok(Network::start(network).await?)
}

/// Brings the ledger's channels into memory, and tells both halves which of them lie elsewhere. Calls that were in progress were
/// neither charged nor answered.
fn restore(ledger: &Ledger, escrow: &Escrow, channels: &PayerChannels, book: &Book) -> anyhow::Result<()> {
    let is_elsewhere = |id, config: &ChannelConfig| !escrow.holds(id, config);
    for row in ledger.payer_channels()? {
        channels.restore(&row, is_elsewhere(row.id, &row.config));
    }
    for row in ledger.payee_channels()? {
        book.restore(&row, book::proof(&row, &escrow.domain()), is_elsewhere(row.id, &row.config));
    }
    for settlement in ledger.settlements_under_way()? {
        tracing::info!(
            id = settlement.id,
            "a claim was under way at the last stop; the chain decides how it ends"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{PayeeChannelFacts, PayerChannelFacts};
    use farthing_protocol::{Address, Usdc};
    use redb::backends::InMemoryBackend;

    use super::*;

    #[tokio::test]
    async fn both_halves_know_which_channels_lie_elsewhere_than_the_settings_name() {
        let [payer, payee, contract, token, other] = [1, 2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
        let escrow = Escrow { chain_id: 1, contract, token };
        let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        let (id, deposited, claimed) = (config.id(&escrow.domain()), Usdc::from_micros(1), Usdc::ZERO);
        let facts = PayerChannelFacts { id, config, deposited, claimed, round: Some(0), stopped: false };
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        ledger.put_payer_channel(facts).await.unwrap();
        let facts = PayeeChannelFacts { id, config, deposited, claimed, closing: false };
        ledger.put_payee_channel(facts).await.unwrap();
        for settings in [
            escrow,
            Escrow { chain_id: 2, ..escrow },
            Escrow { contract: other, ..escrow },
            Escrow { token: other, ..escrow },
        ] {
            let (channels, book) = (PayerChannels::default(), Book::with_places(1));
            restore(&ledger, &settings, &channels, &book).unwrap();
            let in_use = (settings == escrow).then_some(id);
            assert_eq!(channels.in_use(payee).map(|channel| channel.id), in_use, "{settings:?}");
            assert_eq!(book.get(id).unwrap().is_elsewhere, settings != escrow, "{settings:?}");
        }
    }
}
