//! The two halves of a node. Each starts from its ledger and from handles on chain and network, and needs nothing of the other:
//! a world of tests starts them one by one, and lets them die one by one ([`Tasks`]).

use std::sync::Arc;

use farthing_bounds::ByteBudget;
use farthing_chain::ChainHandle;
use farthing_config::Config;
use farthing_discovery::Catalog;
use farthing_ledger::{Ledger, LedgerError};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_owner::{
    Owner, OwnerParts,
    book::{self, Book},
    late::ToldFree,
    load::Load,
    registry::Registry,
    running::Calls,
    sponsor::Sponsor,
    told::{BooksLimiter, GivenAgain},
    x402::{Door, X402SaleParts, X402Sales},
};
use farthing_protocol::{ChannelConfig, ChannelId, Escrow};
use farthing_shared::{call_ends::CallEnds, refused::RefusedCalls, tasks::Tasks};
use farthing_wallet::Signer;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::settings::{
    deposits, flagging, load_limits, policy, purchases, rest_limits, spending_limits, sponsor_rules, terms,
};
use crate::{
    consumer::{
        Consumer, ConsumerParts,
        channels::PayerChannels,
        conduct::Conduct,
        funding::{Funding, FundingParts},
        rules::Rules,
    },
    escrows::Escrows,
    settlement::{Settlement, SettlementParts},
};

/// Cooperative closes waiting to be carried out.
const CLOSES_QUEUED_MAX: usize = 256;

/// The ground of a half. In a node, both stand on the same.
#[derive(Clone, Debug)]
pub struct HalfParts {
    pub config: Arc<Config>,
    pub signer: Signer,
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub network: NetworkHandle,
    pub ends: CallEnds,
    pub tasks: Tasks,
    pub stopping: CancellationToken,
}

/// The ground of both, and what each knows besides.
#[derive(Debug)]
pub struct HalvesParts {
    pub half: HalfParts,
    pub catalog: Catalog,
    pub escrows: Escrows,
    pub registry: Registry,
    pub budget: ByteBudget,
    pub refused: RefusedCalls,
}

/// Both halves, and the settlement between them.
#[derive(Debug)]
pub struct Halves {
    pub consumer: ConsumerHalf,
    pub owner: OwnerHalf,
    pub settlement: Settlement,
}

/// The half that buys. Nothing is resolved before [`Consumer::recover`].
#[derive(Debug)]
pub struct ConsumerHalf {
    pub consumer: Consumer,
    pub funding: Funding,
    pub channels: Arc<PayerChannels>,
}

/// The half that sells. Nothing is answered before [`Owner::run`].
#[derive(Debug)]
pub struct OwnerHalf {
    pub owner: Owner,
    pub book: Book,
}

impl Halves {
    /// Starts both, and gives the work of their settlement, which is to begin when the books know of every call.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn start(parts: HalvesParts) -> Result<(Self, impl Future<Output = ()>), LedgerError> {
        let HalvesParts { half, catalog, escrows, registry, budget, refused } = parts;
        let consumer = ConsumerHalf::start(half.clone(), catalog, escrows).await?;
        let (closes, closes_receiver) = mpsc::channel(CLOSES_QUEUED_MAX);
        let owner = OwnerHalf::start(half.clone(), registry, budget, refused, closes)?;
        let (settlement, work) = Settlement::new(SettlementParts {
            signer: half.signer,
            chain: half.chain,
            ledger: half.ledger,
            network: half.network,
            book: owner.book.clone(),
            channels: consumer.channels.clone(),
            funding: consumer.funding.clone(),
            accounts: consumer.consumer.accounts(),
            policy: policy(&half.config),
            terms: terms(&half.config),
            interval: half.config.settlement.interval,
            closes: closes_receiver,
            stopping: half.stopping,
        })?;
        Ok((Self { consumer, owner, settlement }, work))
    }
}

impl ConsumerHalf {
    /// Brings its channels into memory, and starts it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn start(parts: HalfParts, catalog: Catalog, escrows: Escrows) -> Result<Self, LedgerError> {
        let HalfParts { config, signer, ledger, chain, network, ends, tasks, stopping } = parts;
        let channels = Arc::new(PayerChannels::default());
        restore_channels(&ledger, &chain.spec().escrow(), &channels)?;
        let funding = Funding::restore(FundingParts {
            wallet: signer.address(),
            signer: signer.clone(),
            network: Some(network.clone()),
            chain: chain.clone(),
            ledger: ledger.clone(),
            channels: channels.clone(),
            escrows,
            policy: deposits(&config),
            close_delay_max_secs: config.spending.close_delay_max_secs,
            rest_limits: rest_limits(&config),
            tasks: tasks.clone(),
        })
        .await?;
        let rules = Rules::restore(ledger.clone(), spending_limits(&config), config.spending.enabled)?;
        let conduct = Conduct::restore(ledger.clone(), flagging(&config))?;
        let consumer = Consumer::new(ConsumerParts {
            signer,
            ledger,
            network,
            chain,
            catalog,
            channels: channels.clone(),
            funding: funding.clone(),
            rules,
            conduct,
            settings: purchases(&config),
            tasks,
            stopping,
            ends,
        });
        Ok(Self { consumer, funding, channels })
    }
}

impl OwnerHalf {
    /// Brings its channels into memory, and starts it. Through `closes` it asks for what its payers want closed.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn start(
        parts: HalfParts,
        registry: Registry,
        budget: ByteBudget,
        refused: RefusedCalls,
        closes: mpsc::Sender<ChannelId>,
    ) -> Result<Self, LedgerError> {
        let HalfParts { config, signer, ledger, chain, ends, tasks, .. } = parts;
        let terms = terms(&config);
        let book = Book::new(terms.unsafe_max, terms.without_gas_max);
        restore_book(&ledger, &chain.spec().escrow(), &book)?;
        let sponsor = Sponsor::restore(sponsor_rules(&config), &ledger, signer.address(), clock::now_secs())?;
        let load = Arc::new(Load::new(load_limits(&config), budget));
        let x402 = X402Sales::new(X402SaleParts {
            signer: signer.clone(),
            ledger: ledger.clone(),
            chain: chain.clone(),
            registry: registry.clone(),
            book: book.clone(),
            load: load.clone(),
            tasks: tasks.clone(),
            ends: ends.clone(),
            refused: refused.clone(),
            door: Door::restore(ledger.clone())?,
        });
        let owner = Owner::new(OwnerParts {
            signer,
            sponsor,
            x402,
            ledger,
            chain,
            registry,
            book: book.clone(),
            calls: Calls::default(),
            told_free: ToldFree::default(),
            load,
            told: BooksLimiter::default(),
            given: GivenAgain::default(),
            closes,
            terms,
            tasks,
            ends,
            refused,
        });
        Ok(Self { owner, book })
    }
}

/// Brings the payer's channels into memory, and tells which of them lie elsewhere.
fn restore_channels(ledger: &Ledger, escrow: &Escrow, channels: &PayerChannels) -> Result<(), LedgerError> {
    for row in ledger.payer_channels()? {
        channels.restore(&row, is_elsewhere(escrow, row.id, &row.config));
    }
    Ok(())
}

/// The same of the payee's. Calls that were in progress were neither charged nor answered.
fn restore_book(ledger: &Ledger, escrow: &Escrow, book: &Book) -> Result<(), LedgerError> {
    for row in ledger.payee_channels()? {
        let proof = book::proof(&row, &escrow.domain());
        book.restore(&row, proof, is_elsewhere(escrow, row.id, &row.config));
    }
    for settlement in ledger.settlements_under_way()? {
        tracing::info!(
            id = settlement.id,
            "a claim was under way at the last stop; the chain decides how it ends"
        );
    }
    Ok(())
}

fn is_elsewhere(escrow: &Escrow, id: ChannelId, config: &ChannelConfig) -> bool {
    !escrow.holds(id, config)
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
            restore_channels(&ledger, &settings, &channels).unwrap();
            restore_book(&ledger, &settings, &book).unwrap();
            let in_use = (settings == escrow).then_some(id);
            assert_eq!(channels.in_use(payee).map(|channel| channel.id), in_use, "{settings:?}");
            assert_eq!(book.get(id).unwrap().is_elsewhere, settings != escrow, "{settings:?}");
        }
    }
}
