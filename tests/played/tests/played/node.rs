//! The node's own watcher and writer over a played chain, and what tests wait for. Time is tokio's, and paused: it passes when nobody
//! has anything to do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use alloy::primitives::{Address, B256};
use farthing_chain::{
    Chain, ChainHandle, ChainKind, ChainSpec, ClaimRow, MemoryJournal, custom,
    played::{PlayedAnswer, PlayedEndpoint},
};
use farthing_contract_tests::{CHAIN_ID, pay_channels_address, rules::Slot};
use farthing_played_chain::{Books, Genesis, PlayedChain, Said};
use farthing_values::{ChannelConfig, SecretKey, Usdc, Voucher};
use tokio::{sync::watch, task::JoinHandle};

use crate::people::{key, protocol_address, secret};

const ETH: u128 = 1_000_000_000_000_000_000;
pub(crate) const WEALTH: u128 = 100_000_000;
const BLOCK_SECS: u64 = 2;
/// Of the played time, which passes at once; only a failing test waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3_600);

/// A chain with two endpoints that makes a block every two seconds, and the keys of two wallets with ETH. The payer has 100 USDC.
pub(crate) struct World {
    pub chain: PlayedChain,
    pub payer: SecretKey,
    pub payee: SecretKey,
    usdc: Address,
    miner: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.miner.abort();
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let (payer, payee, usdc) = (key("payer 0"), key("payee 0"), Address::repeat_byte(0x7c));
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            number: 1_000,
            // Long ago: no block is of the future by any machine's clock.
            timestamp_secs: 1_700_000_000,
            usdc,
            minter: key("minter").address(),
            accounts: BTreeMap::from([(payer.address(), (ETH, WEALTH)), (payee.address(), (ETH, 0))]),
        };
        let chain = PlayedChain::new(&genesis, 2);
        let miner = tokio::spawn(mine(chain.clone()));
        Self { chain, payer: secret(&payer), payee: secret(&payee), usdc, miner }
    }

    fn spec(&self) -> ChainSpec {
        let token = protocol_address(self.usdc);
        let spec = custom("http://127.0.0.1:1", CHAIN_ID, ChainKind::Testnet, token);
        // A channel is followed whatever is left in it, so that both wallets can be compared with the chain.
        ChainSpec { channel_min: Usdc::ZERO, ..spec }
    }

    pub(crate) async fn start(&self, key: &SecretKey) -> ChainHandle {
        let endpoints = (0..2).map(|index| endpoint(&self.chain, index)).collect();
        let journal = Arc::new(MemoryJournal::default());
        Chain::start_played(self.spec(), key.clone(), journal, endpoints).await.expect("a chain starts")
    }

    /// Terms between payer and payee; each salt is another channel.
    pub(crate) fn terms(&self, salt: u8) -> ChannelConfig {
        ChannelConfig {
            payer: self.payer.address(),
            payee: self.payee.address(),
            token: protocol_address(self.usdc),
            signer: self.payer.address(),
            close_delay_secs: 3_600,
            salt: [salt; 32],
        }
    }

    /// A claim of everything that a voucher for `micros` promises.
    pub(crate) fn row(&self, chain: &ChainHandle, config: ChannelConfig, micros: u64) -> ClaimRow {
        let domain = chain.domain();
        let voucher = Voucher { channel: config.id(&domain), cumulative: usdc(micros) };
        let signature = voucher.sign(&domain, &self.payer);
        ClaimRow { config, cumulative: usdc(micros), amount: usdc(micros), signature }
    }

    /// Looks at the newest block.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&Books) -> T) -> T {
        self.chain.with(|machine| at(&machine.head().books))
    }

    pub(crate) fn slot(&self, chain: &ChainHandle, config: ChannelConfig) -> Slot {
        let id = B256::from(*config.id(&chain.domain()).as_bytes());
        self.look(|books| books.slot(id))
    }

    pub(crate) fn usdc_of(&self, key: &SecretKey) -> u128 {
        self.look(|books| books.usdc(Address::from(*key.address().as_bytes())))
    }

    /// The number of transactions of a wallet that are in a block.
    pub(crate) fn nonce_of(&self, key: &SecretKey) -> u64 {
        self.look(|books| books.nonce(Address::from(*key.address().as_bytes())))
    }

    /// The number of transactions that wait for a block.
    pub(crate) fn waiting(&self) -> usize {
        self.chain.with(|machine| machine.pool().len())
    }

    /// M1 and M2, in the newest block.
    pub(crate) fn check_money(&self) {
        let (minted, of_all) = self.look(|books| (books.minted(), books.usdc_of_all()));
        assert_eq!(minted, of_all, "M1");
        let (held, owed) = self.look(|books| (books.usdc(pay_channels_address()), books.in_channels()));
        assert_eq!(held, owed, "M2: nobody gives to the escrow here");
    }

    /// Waits until the views of a wallet are what the chain says of it.
    pub(crate) async fn until_seen(&self, chain: &ChainHandle, key: &SecretKey, config: ChannelConfig) {
        let id = config.id(&chain.domain());
        let agrees = || {
            let slot = self.slot(chain, config);
            let shown = chain.channel(&id).map(|view| {
                let close_at_secs = view.close_at_secs.unwrap_or_default();
                let (deposited, claimed) = (view.deposited.into(), view.claimed.into());
                Slot { deposited, claimed, close_at: close_at_secs, round: view.round }
            });
            let balances = *chain.balances().borrow();
            let wei = self.look(|books| books.wei(Address::from(*key.address().as_bytes())));
            let is_balance = balances.is_some_and(|balances| {
                u128::from(balances.usdc) == self.usdc_of(key) && balances.eth_wei == wei
            });
            // A wallet that hears of a channel once it is empty again follows it for nothing.
            let is_channel = shown.map_or(slot.deposited == slot.claimed, |shown| shown == slot);
            is_balance && is_channel
        };
        let seen = async {
            while !agrees() {
                tokio::time::sleep(Duration::from_secs(BLOCK_SECS)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, seen).await;
        assert!(in_time.is_ok(), "{:?}, and on the chain {:?}", chain.channel(&id), self.slot(chain, config));
    }
}

/// Makes a block every two seconds, for ever.
async fn mine(chain: PlayedChain) {
    loop {
        tokio::time::sleep(Duration::from_secs(BLOCK_SECS)).await;
        chain.with(|machine| {
            let next = machine.head().timestamp_secs + BLOCK_SECS;
            machine.mine(next);
        });
    }
}

fn endpoint(chain: &PlayedChain, index: usize) -> PlayedEndpoint {
    let chain = chain.clone();
    PlayedEndpoint::new(move |request: String| -> PlayedAnswer {
        let Said { after, body } = chain.ask(index, &request);
        Box::pin(async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            body
        })
    })
}

/// Waits until a view is as wanted.
pub(crate) async fn until<T: std::fmt::Debug>(mut view: watch::Receiver<T>, wanted: impl FnMut(&T) -> bool) {
    let found = tokio::time::timeout(PATIENCE, view.wait_for(wanted)).await.map(|found| found.is_ok());
    assert_eq!(found, Ok(true), "it never came; the last value was {:?}", view.borrow());
}

pub(crate) const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}
