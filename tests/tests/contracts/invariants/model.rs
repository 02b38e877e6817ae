//! The contract in plain arithmetic, and the random numbers that exercise both.
//!
//! Every function says what must happen: it changes the books and returns whether the contract accepts.

use std::collections::BTreeMap;

use alloy::{primitives::Address, signers::local::PrivateKeySigner};
use farthing_tests::anvil::contracts::PayChannels::Channel;

use crate::world::State;

/// SplitMix64 (Steele, Lea, Flood 2014): a few lines, and the same numbers everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index below a length fits")
    }
}

/// A channel as the model sees it.
pub(crate) struct Modelled {
    pub(crate) terms: Channel,
    pub(crate) signer: PrivateKeySigner,
    pub(crate) state: State,
    /// Everything its signer ever signed, in any order.
    pub(crate) signed: Vec<u128>,
}

impl Modelled {
    pub(crate) fn highest_signed(&self) -> u128 {
        self.signed.iter().copied().max().unwrap_or(0)
    }

    /// What a well-signed claim adds, by the rule of the contract.
    pub(crate) fn due(&self, amount: u128) -> u128 {
        amount.min(self.state.deposited).saturating_sub(self.state.claimed)
    }
}

/// Where all the money is, and who may not move it.
pub(crate) struct Model {
    pub(crate) channels: Vec<Modelled>,
    pub(crate) balances: BTreeMap<Address, u128>,
    pub(crate) blacklisted: Option<Address>,
    pub(crate) escrow: Address,
}

impl Model {
    pub(crate) fn moves(&mut self, from: Address, to: Address, amount: u128) {
        *self.balances.entry(from).or_default() -= amount;
        *self.balances.entry(to).or_default() += amount;
    }

    pub(crate) fn may_move(&self, account: Address) -> bool {
        self.blacklisted != Some(account)
    }

    pub(crate) fn deposit(&mut self, index: usize, amount: u128) -> bool {
        let payer = self.channels[index].terms.payer;
        if amount == 0 || !self.may_move(payer) || self.balances[&payer] < amount {
            return false;
        }
        self.channels[index].state.deposited += amount;
        self.moves(payer, self.escrow, amount);
        true
    }

    /// Books a claim, and returns what it paid.
    pub(crate) fn claim(&mut self, index: usize, amount: u128) -> u128 {
        let due = self.channels[index].due(amount);
        let payee = self.channels[index].terms.payee;
        self.channels[index].state.claimed += due;
        self.moves(self.escrow, payee, due);
        due
    }

    pub(crate) fn close(&mut self, index: usize, amount: u128, time: u64) -> Option<Close> {
        let State { close_at, .. } = self.channels[index].state;
        let paid = self.claim(index, amount);
        let Modelled { terms, state, .. } = &mut self.channels[index];
        let refund = state.deposited - state.claimed;
        if paid == 0 && refund == 0 && close_at == 0 {
            return None;
        }
        let payer = terms.payer;
        if refund > 0 && self.blacklisted == Some(payer) {
            state.close_at = time;
            return Some(Close::Kept);
        }
        *state = State { deposited: state.claimed, claimed: state.claimed, close_at: 0 };
        self.moves(self.escrow, payer, refund);
        Some(Close::Refunded)
    }

    pub(crate) fn request_close(&mut self, index: usize, time: u64) -> bool {
        let Modelled { terms, state, .. } = &mut self.channels[index];
        if state.deposited == state.claimed || state.close_at != 0 {
            return false;
        }
        state.close_at = time + terms.closeDelay.to::<u64>();
        true
    }

    pub(crate) fn withdraw(&mut self, index: usize, time: u64) -> Option<u128> {
        let Modelled { terms, state, .. } = &self.channels[index];
        let (payer, refund) = (terms.payer, state.deposited - state.claimed);
        if state.close_at == 0 || time < state.close_at || (refund > 0 && !self.may_move(payer)) {
            return None;
        }
        let state = &mut self.channels[index].state;
        *state = State { deposited: state.claimed, claimed: state.claimed, close_at: 0 };
        self.moves(self.escrow, payer, refund);
        Some(refund)
    }
}

pub(crate) enum Close {
    Refunded,
    Kept,
}
