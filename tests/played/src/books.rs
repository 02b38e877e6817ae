//! The state after a block, accounts and contracts; and what a transaction makes of it.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256, Bytes, Log};
use farthing_contract_tests::{
    PayChannels::{self, Channel},
    rules::Slot,
};

use crate::{
    escrow::{Contracts, escrow_address},
    signed::Transaction,
    token::{Frame, Revert, TestToken},
};

/// Of every transaction, as on any chain.
const TRANSACTION_GAS: u64 = 21_000;
const BYTE_GAS: u64 = 16;
/// Of a call, whatever it does, and for each 320 bytes of its data: a row of a claim.
const CALL_GAS: u64 = 100_000;
const ROW_GAS: u64 = 30_000;
const ROW_BYTES: usize = 320;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    wei: u128,
    nonce: u64,
}

/// The state after a block.
#[derive(Clone, Debug)]
pub struct Books {
    accounts: BTreeMap<Address, Account>,
    contracts: Contracts,
}

/// A call: of a contract, or with no data and some value a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub from: Address,
    pub to: Option<Address>,
    pub value_wei: u128,
    pub data: Bytes,
}

/// The result of a call that did not revert.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    pub output: Bytes,
    pub logs: Vec<Log>,
}

/// The result of a transaction in its block.
pub(crate) struct Executed {
    pub gas_used: u64,
    pub succeeded: bool,
    pub logs: Vec<Log>,
}

impl Books {
    pub(crate) fn new(usdc: Address, minter: Address, chain_id: u64) -> Self {
        let token = TestToken::new(usdc, "USDC", minter, chain_id);
        Self { accounts: BTreeMap::new(), contracts: Contracts::new(token, chain_id) }
    }

    pub fn wei(&self, account: Address) -> u128 {
        self.account(account).wei
    }

    /// The number of transactions that an account has sent.
    pub fn nonce(&self, account: Address) -> u64 {
        self.account(account).nonce
    }

    pub fn usdc(&self, account: Address) -> u128 {
        self.contracts.token.books.balance(account)
    }

    /// All the USDC that was ever made.
    pub const fn minted(&self) -> u128 {
        self.contracts.token.books.minted
    }

    /// Everything that accounts hold of it.
    pub fn usdc_of_all(&self) -> u128 {
        self.contracts.token.books.balances.values().sum()
    }

    /// The escrow's record of a channel; one that it never had is empty.
    pub fn slot(&self, id: B256) -> Slot {
        self.contracts.slot(id)
    }

    /// Everything that the channels still hold.
    pub fn in_channels(&self) -> u128 {
        self.contracts.slots().values().map(|slot| slot.deposited - slot.claimed).sum()
    }

    pub fn channel_id(&self, channel: &Channel) -> B256 {
        self.contracts.id(channel)
    }

    /// Gives an account ETH and USDC out of nothing, before the first block.
    pub(crate) fn give(&mut self, account: Address, wei: u128, usdc: u128) {
        self.accounts.entry(account).or_default().wei += wei;
        let books = &mut self.contracts.token.books;
        *books.balances.entry(account).or_default() += usdc;
        books.minted += usdc;
    }

    /// The code at an address. Of the token nodes ask no more than that it has some.
    pub(crate) fn code(&self, address: Address) -> Bytes {
        match address {
            escrow if escrow == escrow_address() => PayChannels::DEPLOYED_BYTECODE.clone(),
            token if token == self.contracts.token.address => Bytes::from_static(&[0xfe]),
            _ => Bytes::new(),
        }
    }

    /// Returns what a call would do; nothing changes.
    pub(crate) fn call(&self, message: &Message, now_secs: u64) -> Result<Returned, Revert> {
        self.clone().run(message, now_secs)
    }

    /// Computes the gas that a message takes when nothing goes wrong.
    pub(crate) fn gas(&self, message: &Message) -> u64 {
        let bytes = message.data.len();
        let of_bytes = BYTE_GAS * bytes as u64;
        let is_call = message.to.is_some_and(|to| !self.code(to).is_empty());
        let of_call = if is_call { CALL_GAS + ROW_GAS * (bytes / ROW_BYTES) as u64 } else { 0 };
        TRANSACTION_GAS + of_bytes + of_call
    }

    /// Tells whether a block takes this transaction next.
    pub(crate) fn is_next(&self, transaction: &Transaction, base_fee_wei: u128) -> bool {
        let account = self.account(transaction.from);
        transaction.nonce == account.nonce
            && transaction.price_wei(base_fee_wei).is_some()
            && account.wei >= transaction.cost_max_wei()
    }

    /// Carries out a transaction that is next. Whatever becomes of it, it counts, and its gas is paid for.
    pub(crate) fn include(
        &mut self,
        transaction: &Transaction,
        price_wei: u128,
        now_secs: u64,
        gas_extra: u64,
    ) -> Executed {
        let Transaction { from, to, value_wei, gas_limit, .. } = *transaction;
        let message = Message { from, to, value_wei, data: transaction.data.clone() };
        let needed = self.gas(&message).saturating_add(gas_extra);
        let mut after = self.clone();
        let returned = match needed <= gas_limit {
            true => after.run(&message, now_secs).ok(),
            false => None,
        };
        if returned.is_some() {
            *self = after;
        }
        let gas_used = needed.min(gas_limit);
        let account = self.accounts.entry(from).or_default();
        account.nonce += 1;
        account.wei = account.wei.saturating_sub(price_wei.saturating_mul(u128::from(gas_used)));
        let succeeded = returned.is_some();
        Executed { gas_used, succeeded, logs: returned.unwrap_or_default().logs }
    }

    fn run(&mut self, message: &Message, now_secs: u64) -> Result<Returned, Revert> {
        // Nobody creates a contract here.
        let Some(to) = message.to else { return Err(Revert::new()) };
        let frame = Frame { caller: message.from, now_secs };
        let mut logs = Vec::new();
        let is_escrow = to == escrow_address();
        let is_token = to == self.contracts.token.address;
        if !is_escrow && !is_token {
            self.pay(message.from, to, message.value_wei)?;
            return Ok(Returned::default());
        }
        if message.value_wei > 0 {
            return Err(Revert::new());
        }
        let output = match is_escrow {
            true => self.contracts.call(frame, &message.data, &mut logs)?,
            false => self.contracts.token.call(frame, &message.data, &mut logs)?,
        };
        Ok(Returned { output, logs })
    }

    fn pay(&mut self, from: Address, to: Address, wei: u128) -> Result<(), Revert> {
        let payer = self.accounts.entry(from).or_default();
        payer.wei = payer.wei.checked_sub(wei).ok_or_else(Revert::new)?;
        self.accounts.entry(to).or_default().wei += wei;
        Ok(())
    }

    fn account(&self, account: Address) -> Account {
        self.accounts.get(&account).copied().unwrap_or_default()
    }
}
