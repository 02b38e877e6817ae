//! Blocks, one after the other, each with the state that it leaves behind; and the transactions that wait for one.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256, Log, keccak256};

use crate::{
    books::{Books, Executed},
    signed::Transaction,
};

/// The first block: what is there before anything happens.
#[derive(Clone, Debug)]
pub struct Genesis {
    pub chain_id: u64,
    pub number: u64,
    pub timestamp_secs: u64,
    pub usdc: Address,
    pub minter: Address,
    /// ETH in wei, and millionths of a USDC.
    pub accounts: BTreeMap<Address, (u128, u128)>,
}

/// A transaction in a block.
#[derive(Clone, Debug)]
pub struct Mined {
    pub transaction: Transaction,
    pub gas_used: u64,
    pub price_wei: u128,
    pub succeeded: bool,
    pub logs: Vec<Log>,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    pub timestamp_secs: u64,
    pub base_fee_wei: u128,
    pub mined: Vec<Mined>,
    /// The state after it.
    pub books: Books,
}

/// The reason that a transaction does not wait for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    Malformed,
    OtherChain,
    NonceTooLow,
    Known,
    /// A tenth more on both fees replaces one that waits.
    Underpriced,
    NoFunds,
}

impl NotTaken {
    /// The words in which nodes of the chain say it.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Malformed => "failed to decode signed transaction",
            Self::OtherChain => "invalid chain id for signer",
            Self::NonceTooLow => "nonce too low",
            Self::Known => "already known",
            Self::Underpriced => "replacement transaction underpriced",
            Self::NoFunds => "insufficient funds for gas * price + value",
        }
    }
}

/// A chain that does what it is told.
#[derive(Clone, Debug)]
pub struct Machine {
    chain_id: u64,
    /// Never empty: the first one stays.
    blocks: Vec<Block>,
    pool: Vec<Transaction>,
    /// Of the blocks to come.
    base_fee_wei: u128,
    tip_wei: u128,
    /// Gas that transactions take beyond what an estimate says.
    gas_extra: u64,
    /// The number of blocks behind the newest one at which the block `safe` is.
    safe_behind: u64,
    /// The number of times that blocks were taken back: the same block made again is another one.
    branch: u64,
}

/// A tenth more, as nodes of the chain ask for.
const fn replaces(new_wei: u128, old_wei: u128) -> bool {
    new_wei.saturating_mul(10) >= old_wei.saturating_mul(11)
}

impl Machine {
    pub fn new(genesis: &Genesis) -> Self {
        let &Genesis { chain_id, number, timestamp_secs, usdc, minter, .. } = genesis;
        let mut books = Books::new(usdc, minter, chain_id);
        for (account, (wei, usdc)) in &genesis.accounts {
            books.give(*account, *wei, *usdc);
        }
        let first = Block {
            number,
            hash: keccak256(number.to_be_bytes()),
            parent: B256::ZERO,
            timestamp_secs,
            base_fee_wei: 1_000_000,
            mined: Vec::new(),
            books,
        };
        Self {
            chain_id,
            blocks: vec![first],
            pool: Vec::new(),
            base_fee_wei: 1_000_000,
            tip_wei: 1_000_000,
            gas_extra: 0,
            safe_behind: 0,
            branch: 0,
        }
    }

    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    pub const fn tip_wei(&self) -> u128 {
        self.tip_wei
    }

    pub const fn safe_behind(&self) -> u64 {
        self.safe_behind
    }

    pub const fn set_base_fee_wei(&mut self, wei: u128) {
        self.base_fee_wei = wei;
    }

    pub const fn set_gas_extra(&mut self, gas: u64) {
        self.gas_extra = gas;
    }

    pub const fn set_safe_behind(&mut self, blocks: u64) {
        self.safe_behind = blocks;
    }

    /// The newest block.
    pub fn head(&self) -> &Block {
        &self.blocks[self.blocks.len() - 1]
    }

    /// The first block.
    pub fn first(&self) -> &Block {
        &self.blocks[0]
    }

    pub fn block(&self, number: u64) -> Option<&Block> {
        let index = number.checked_sub(self.blocks[0].number)?;
        self.blocks.get(usize::try_from(index).ok()?)
    }

    /// The transactions that wait, in the order in which they came.
    pub fn pool(&self) -> &[Transaction] {
        &self.pool
    }

    /// A transaction with its block and its place in it, up to the block `head`.
    pub fn mined(&self, hash: B256, head: u64) -> Option<(&Block, usize)> {
        self.blocks.iter().take_while(|block| block.number <= head).find_map(|block| {
            let at = block.mined.iter().position(|mined| mined.transaction.hash == hash)?;
            Some((block, at))
        })
    }

    /// Lets signed bytes wait for a block.
    ///
    /// # Errors
    /// [`NotTaken`], as nodes of the chain refuse.
    pub fn send(&mut self, raw: &[u8]) -> Result<B256, NotTaken> {
        let transaction = Transaction::decode(raw).ok_or(NotTaken::Malformed)?;
        let books = &self.head().books;
        let rival = self
            .pool
            .iter()
            .position(|other| (other.from, other.nonce) == (transaction.from, transaction.nonce));
        let refusal = match () {
            () if transaction.chain_id != self.chain_id => Some(NotTaken::OtherChain),
            () if rival.is_some_and(|at| self.pool[at].hash == transaction.hash) => Some(NotTaken::Known),
            () if transaction.nonce < books.nonce(transaction.from) => Some(NotTaken::NonceTooLow),
            () if books.wei(transaction.from) < transaction.cost_max_wei() => Some(NotTaken::NoFunds),
            () if rival.is_some_and(|at| !outbids(&transaction, &self.pool[at])) => {
                Some(NotTaken::Underpriced)
            }
            () => None,
        };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let hash = transaction.hash;
        match rival {
            Some(at) => self.pool[at] = transaction,
            None => self.pool.push(transaction),
        }
        Ok(hash)
    }

    /// Makes a block of everything that can be in it. It is later than the last one, whatever time is given.
    pub fn mine(&mut self, timestamp_secs: u64) -> &Block {
        let (number, parent) = (self.head().number + 1, self.head().hash);
        let timestamp_secs = timestamp_secs.max(self.head().timestamp_secs + 1);
        let mut books = self.head().books.clone();
        let base_fee_wei = self.base_fee_wei;
        let mut mined = Vec::new();
        while let Some(at) = self.pool.iter().position(|waiting| books.is_next(waiting, base_fee_wei)) {
            let transaction = self.pool.remove(at);
            let price_wei = transaction.price_wei(base_fee_wei).unwrap_or_default();
            let executed = books.include(&transaction, price_wei, timestamp_secs, self.gas_extra);
            let Executed { gas_used, succeeded, logs } = executed;
            mined.push(Mined { transaction, gas_used, price_wei, succeeded, logs });
        }
        self.pool.retain(|waiting| waiting.nonce >= books.nonce(waiting.from));
        let numbers = [number, timestamp_secs, self.branch].map(u64::to_be_bytes).concat();
        let hashes: Vec<u8> = mined.iter().flat_map(|mined: &Mined| mined.transaction.hash.0).collect();
        let hash = keccak256([parent.as_slice(), &numbers, &hashes].concat());
        self.blocks.push(Block { number, hash, parent, timestamp_secs, base_fee_wei, mined, books });
        self.head()
    }

    /// Forgets the transactions that wait, as nodes of a chain do when there are too many. Returns how many.
    pub fn lose_waiting(&mut self) -> usize {
        std::mem::take(&mut self.pool).len()
    }

    /// Moves the waiting transactions of an account before those of others, as a miner may.
    pub fn take_first(&mut self, account: Address) {
        self.pool.sort_by_key(|transaction| transaction.from != account);
    }

    /// Takes back the newest blocks. Their transactions wait again, or are forgotten.
    pub fn take_back(&mut self, blocks: usize, are_kept: bool) {
        let left = self.blocks.len().saturating_sub(blocks).max(1);
        let gone = self.blocks.split_off(left);
        self.branch += 1;
        if are_kept {
            let again = gone.into_iter().flat_map(|block| block.mined).map(|mined| mined.transaction);
            let waiting = std::mem::take(&mut self.pool);
            self.pool = again.chain(waiting).collect();
        }
    }
}

/// Tells whether a transaction takes the place of one that waits.
fn outbids(new: &Transaction, old: &Transaction) -> bool {
    replaces(new.max_fee_wei, old.max_fee_wei) && replaces(new.tip_wei, old.tip_wei)
}
