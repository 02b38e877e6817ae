//! The chain of one history, which goes on by itself: its blocks, its forks, transactions that it forgets, and two endpoints for each
//! node, of which one is always well. The other one also lies, for a moment, in ways that a node promises to withstand.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use farthing_chain::played::{PlayedAnswer, PlayedEndpoint};
use farthing_os::clock;
use farthing_played_chain::{Faults, Genesis, Machine, PlayedChain, Said, account, slot_id};
use farthing_protocol::{Address, ChannelId, Usdc};
use tokio::time::sleep;

use super::ground::Ground;
use crate::halves::state::State;

/// Of the consumer; the owner begins with nothing.
pub const WEALTH: Usdc = Usdc::from_micros(100_000_000);
/// Each wallet's, which is never used up.
const ETH_WEI: u128 = 1_000_000_000_000_000_000;
/// Endpoints of one node.
const ENDPOINTS: usize = 2;
/// The deepest fork, so that no block that is safe is taken back.
pub const FORK_DEPTH_MAX: usize = 3;
/// An answer of an endpoint takes its time, so that a node can die between what it has stored and what it sends.
const WELL: Faults = Faults { late: Duration::from_millis(37), ..Faults::NONE };
const SLOW_BLOCK: Duration = Duration::from_secs(60);

/// A cheap handle.
#[derive(Clone)]
pub struct Blocks {
    state: State,
    chain: PlayedChain,
    escrow: Address,
    /// Blocks are a minute apart, for hours in which nothing is to happen but time.
    is_slow: Arc<AtomicBool>,
}

impl Blocks {
    /// The chain before anybody has done anything on it.
    pub fn begin(ground: &Ground, state: &State) -> Self {
        let accounts = [(&ground.consumer, WEALTH), (&ground.owner, Usdc::ZERO)];
        let accounts = accounts.map(|(party, usdc)| (account(party.wallet()), (ETH_WEI, u128::from(usdc))));
        let genesis = Genesis {
            chain_id: ground.spec.chain_id,
            number: 1_000,
            timestamp_secs: clock::now_secs(),
            usdc: account(ground.spec.token),
            minter: account(Address::from_bytes([0x99; 20])),
            accounts: BTreeMap::from(accounts),
        };
        let chain = PlayedChain::new(&genesis, 2 * ENDPOINTS);
        chain.with(|machine| machine.set_safe_behind(FORK_DEPTH_MAX as u64));
        let (escrow, is_slow) = (ground.spec.contract, Arc::default());
        let blocks = Self { state: state.clone(), chain, escrow, is_slow };
        blocks.heal();
        tokio::spawn(blocks.clone().go_on());
        blocks
    }

    /// Makes blocks for ever.
    async fn go_on(self) {
        loop {
            let pause = match self.is_slow.load(Ordering::Relaxed) {
                true => SLOW_BLOCK,
                false => self.state.lock().millis(2_000, 6_000),
            };
            sleep(pause).await;
            self.mine();
        }
    }

    /// Makes a block now.
    pub fn mine(&self) {
        let (number, succeeded) = self.chain.with(|machine| {
            let block = machine.mine(clock::now_secs());
            let succeeded: Vec<bool> = block.mined.iter().map(|mined| mined.succeeded).collect();
            (block.number, succeeded)
        });
        if !succeeded.is_empty() {
            self.state.tell(format!("block {number}, with transactions that succeed: {succeeded:?}"));
        }
    }

    /// Replaces the newest blocks by one more. Their transactions wait again, and are in the first of the new ones.
    pub fn fork(&self, depth: usize) {
        self.chain.with(|machine| machine.take_back(depth, true));
        self.state.tell(format!("a fork takes back {depth}"));
        for _ in 0..=depth {
            self.mine();
        }
    }

    /// Forgets the transactions that wait. Who signed them brings them again.
    pub fn lose_waiting(&self) {
        let lost = self.chain.with(Machine::lose_waiting);
        self.state.tell(format!("{lost} transactions that wait are forgotten"));
    }

    /// Has the next block take the transactions of this wallet first that wait.
    pub fn take_first(&self, wallet: Address) {
        self.chain.with(|machine| machine.take_first(account(wallet)));
        self.state.tell(format!("the transactions of {wallet} come first"));
    }

    /// Lets time pass, and nothing else. All endpoints are well meanwhile.
    pub async fn wait(&self, time: Duration) {
        self.heal();
        self.is_slow.store(true, Ordering::Relaxed);
        self.state.tell(format!("{} s pass", time.as_secs()));
        sleep(time).await;
        self.is_slow.store(false, Ordering::Relaxed);
        self.mine();
    }

    /// Changes what is wrong with an endpoint. Its neighbour is well, so that each node has one to ask.
    pub fn disturb(&self) {
        let (endpoint, kind, amount) = {
            let mut shared = self.state.lock();
            let choices = &mut shared.choices;
            (choices.below(2 * ENDPOINTS), choices.below(8), 1 + choices.u64_below(3))
        };
        let neighbour = endpoint ^ 1;
        self.chain.change_faults(neighbour, |faults| *faults = WELL);
        let (faults, what) = match kind {
            0 => (Faults { late: Duration::from_secs(amount), ..WELL }, "is late"),
            1 => (Faults { lag_blocks: amount, ..WELL }, "lags"),
            2 => (Faults { unanswered_broadcasts: 1, ..WELL }, "takes a transaction without a word"),
            3 => (Faults { is_down: true, ..WELL }, "is away"),
            4 => (Faults { kept_broadcasts: 1, ..WELL }, "takes a transaction and keeps it to itself"),
            // Once: a node compares two answers before it signs, and a lie in both costs it minutes.
            5 => (Faults { false_nonces: 1, ..WELL }, "says once that many more transactions were mined"),
            _ => (WELL, "is well"),
        };
        self.chain.change_faults(endpoint, |own| *own = faults);
        self.state.tell(format!("endpoint {endpoint} {what}"));
    }

    /// From now on, requests are answered at once and a transaction is mined within a millisecond, as by a chain on the same machine.
    pub fn hurry(&self) {
        for endpoint in 0..2 * ENDPOINTS {
            self.chain.change_faults(endpoint, |faults| *faults = Faults { late: Duration::ZERO, ..WELL });
        }
        let blocks = self.clone();
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                if blocks.has_waiting() {
                    blocks.mine();
                }
            }
        });
    }

    /// Nothing is wrong any more.
    pub fn heal(&self) {
        for endpoint in 0..2 * ENDPOINTS {
            self.chain.change_faults(endpoint, |faults| *faults = WELL);
        }
    }

    /// The endpoints of a node, which hear nothing of it once it is no longer alive.
    pub fn endpoints(&self, node: usize, is_alive: &Arc<AtomicBool>) -> Vec<PlayedEndpoint> {
        (0..ENDPOINTS).map(|index| self.endpoint(node * ENDPOINTS + index, Arc::clone(is_alive))).collect()
    }

    fn endpoint(&self, index: usize, is_alive: Arc<AtomicBool>) -> PlayedEndpoint {
        let chain = self.chain.clone();
        PlayedEndpoint::new(move |request: String| -> PlayedAnswer {
            let said = is_alive.load(Ordering::Relaxed).then(|| chain.ask(index, &request));
            Box::pin(async move {
                let Said { after, body } = said?;
                if !after.is_zero() {
                    sleep(after).await;
                }
                body
            })
        })
    }

    /// What was ever deposited in a channel, without what came back, and what of it is paid out.
    pub fn slot(&self, channel: ChannelId) -> (Usdc, Usdc) {
        let slot = self.chain.with(|machine| machine.head().books.slot(slot_id(channel)));
        (usdc(slot.deposited), usdc(slot.claimed))
    }

    pub fn usdc_of(&self, wallet: Address) -> Usdc {
        usdc(self.chain.with(|machine| machine.head().books.usdc(account(wallet))))
    }

    /// Whether a transaction waits for a block.
    pub fn has_waiting(&self) -> bool {
        self.chain.with(|machine| !machine.pool().is_empty())
    }

    /// M1 and M2, in the newest block.
    pub fn check_money(&self) {
        let (minted, of_all, held, owed) = self.chain.with(|machine| {
            let books = &machine.head().books;
            let held = books.usdc(account(self.escrow));
            (books.minted(), books.usdc_of_all(), held, books.in_channels())
        });
        assert_eq!(minted, of_all, "M1: no money appears or disappears");
        assert_eq!(held, owed, "M2: the contract holds what its channels hold");
    }
}

fn usdc(amount: u128) -> Usdc {
    Usdc::try_from(amount).expect("no more than what was made")
}
