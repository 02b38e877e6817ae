//! The contract in plain arithmetic.
//!
//! Every function says what must happen: it changes the books and returns whether the contract accepts. A
//! refusal changes nothing.

use std::collections::BTreeMap;

use alloy::{primitives::Address, signers::local::PrivateKeySigner};
use farthing_contract_tests::PayChannels::Channel;

use crate::world::State;

/// A channel as the model sees it.
pub(crate) struct Modelled {
    pub(crate) terms: Channel,
    pub(crate) payer: PrivateKeySigner,
    pub(crate) payee: PrivateKeySigner,
    pub(crate) signer: PrivateKeySigner,
    pub(crate) state: State,
    pub(crate) round: u32,
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

    fn empty(&mut self) {
        let claimed = self.state.claimed;
        self.state = State { deposited: claimed, claimed, close_at: 0 };
        self.round += 1;
    }
}

/// One token: who has how much of it, and how it misbehaves.
pub(crate) struct Token {
    pub(crate) balances: BTreeMap<Address, u128>,
    /// All there ever was.
    pub(crate) minted: u128,
    /// Kept of every transfer, which must be at least this much.
    pub(crate) fee: u128,
    /// What transfers have cost so far.
    pub(crate) kept: u128,
    /// Who may neither send nor receive.
    pub(crate) barred: Option<Address>,
}

impl Token {
    pub(crate) fn can_move(&self, from: Address, to: Address, amount: u128) -> bool {
        let barred = self.barred.is_some_and(|barred| barred == from || barred == to);
        !barred && amount >= self.fee && self.balances.get(&from).is_some_and(|balance| *balance >= amount)
    }

    pub(crate) fn moves(&mut self, from: Address, to: Address, amount: u128) {
        *self.balances.entry(from).or_default() -= amount;
        *self.balances.entry(to).or_default() += amount - self.fee;
        self.kept += self.fee;
    }
}

/// Where all the money is, and who may not move it.
pub(crate) struct Model {
    pub(crate) channels: Vec<Modelled>,
    pub(crate) tokens: BTreeMap<Address, Token>,
    pub(crate) escrow: Address,
}

impl Model {
    pub(crate) fn token(&mut self, index: usize) -> &mut Token {
        let token = self.channels[index].terms.token;
        self.tokens.get_mut(&token).expect("every channel's token is known")
    }

    pub(crate) fn deposit(&mut self, index: usize, amount: u128) -> bool {
        let (payer, escrow) = (self.channels[index].terms.payer, self.escrow);
        let token = self.token(index);
        if amount <= token.fee || !token.can_move(payer, escrow, amount) {
            return false;
        }
        token.moves(payer, escrow, amount);
        let received = amount - token.fee;
        self.channels[index].state.deposited += received;
        true
    }

    pub(crate) fn claim(&mut self, index: usize, amount: u128) -> bool {
        let due = self.channels[index].due(amount);
        if due == 0 || !self.pays_out(index, self.channels[index].terms.payee, due) {
            return false;
        }
        self.channels[index].state.claimed += due;
        true
    }

    /// One transfer for all rows, or nothing. Returns how many rows paid.
    pub(crate) fn claim_many(&mut self, rows: &[(usize, u128)]) -> Option<u64> {
        let mut after: BTreeMap<usize, u128> = BTreeMap::new();
        let (mut total, mut paid) = (0, 0);
        for &(index, amount) in rows {
            let channel = &self.channels[index];
            let claimed = *after.get(&index).unwrap_or(&channel.state.claimed);
            let due = amount.min(channel.state.deposited).saturating_sub(claimed);
            after.insert(index, claimed + due);
            total += due;
            paid += u64::from(due > 0);
        }
        let first = rows.first().map(|row| row.0);
        if let Some(index) = first
            && total > 0
            && !self.pays_out(index, self.channels[index].terms.payee, total)
        {
            return None;
        }
        for (index, claimed) in after {
            self.channels[index].state.claimed = claimed;
        }
        Some(paid)
    }

    pub(crate) fn close(&mut self, index: usize, amount: u128, time: u64) -> Option<Close> {
        let channel = &self.channels[index];
        let (payer, payee) = (channel.terms.payer, channel.terms.payee);
        let State { deposited, claimed, close_at } = channel.state;
        let paid = channel.due(amount);
        let refund = deposited - claimed - paid;
        if (paid == 0 && refund == 0 && close_at == 0) || (paid > 0 && !self.pays_out(index, payee, paid)) {
            return None;
        }
        self.channels[index].state.claimed += paid;
        if refund > 0 && !self.pays_out(index, payer, refund) {
            self.channels[index].state.close_at = time;
            return Some(Close::Kept);
        }
        self.channels[index].empty();
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
        if state.close_at == 0 || time < state.close_at {
            return None;
        }
        if refund > 0 && !self.pays_out(index, payer, refund) {
            return None;
        }
        self.channels[index].empty();
        Some(refund)
    }

    fn pays_out(&mut self, index: usize, to: Address, amount: u128) -> bool {
        let escrow = self.escrow;
        let token = self.token(index);
        let can = token.can_move(escrow, to, amount);
        if can {
            token.moves(escrow, to, amount);
        }
        can
    }
}

pub(crate) enum Close {
    Refunded,
    Kept,
}
