//! The channels of a run with their keys, under the shared rules of the contract.
//!
//! Every function says what must happen: it changes the books and returns whether the contract accepts. A
//! refusal changes nothing.

use std::collections::BTreeMap;

use alloy::{primitives::Address, signers::local::PrivateKeySigner};
pub(crate) use farthing_contract_tests::rules::Token;
use farthing_contract_tests::{
    PayChannels::Channel,
    rules::{Parties, Refused, Slot},
};

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
        self.slot().due(amount)
    }

    fn slot(&self) -> Slot {
        let State { deposited, claimed, close_at } = self.state;
        Slot { deposited, claimed, close_at, round: self.round }
    }

    fn put(&mut self, slot: Slot) {
        let Slot { deposited, claimed, close_at, round } = slot;
        self.state = State { deposited, claimed, close_at };
        self.round = round;
    }
}

/// Where all the money is, and who may not move it.
pub(crate) struct Model {
    pub(crate) channels: Vec<Modelled>,
    pub(crate) tokens: BTreeMap<Address, Token>,
    pub(crate) escrow: Address,
}

impl Model {
    pub(crate) fn deposit(&mut self, index: usize, amount: u128) -> bool {
        self.apply(index, |slot, token, parties| slot.deposit(token, parties, amount)).is_ok()
    }

    pub(crate) fn claim(&mut self, index: usize, amount: u128) -> bool {
        self.apply(index, |slot, token, parties| slot.claim(token, parties, amount)).is_ok()
    }

    /// One transfer for all rows, or nothing. Returns how many rows paid.
    pub(crate) fn claim_many(&mut self, rows: &[(usize, u128)]) -> Option<u64> {
        let mut after: BTreeMap<usize, Slot> = BTreeMap::new();
        let (mut total, mut paid) = (0, 0);
        for &(index, amount) in rows {
            let due = after.entry(index).or_insert_with(|| self.channels[index].slot()).settle(amount);
            total += due;
            paid += u64::from(due > 0);
        }
        if let Some(&(index, _)) = rows.first()
            && total > 0
        {
            let pays = |_: &mut Slot, token: &mut Token, Parties { payee, escrow, .. }: Parties| {
                if token.pays(escrow, payee, total) { Ok(()) } else { Err(Refused::TransferFailed) }
            };
            self.apply(index, pays).ok()?;
        }
        for (index, slot) in after {
            self.channels[index].put(slot);
        }
        Some(paid)
    }

    pub(crate) fn close(&mut self, index: usize, amount: u128, time: u64) -> Option<Close> {
        let closed =
            self.apply(index, |slot, token, parties| slot.close(token, parties, amount, time)).ok()?;
        Some(if closed.is_kept { Close::Kept } else { Close::Refunded })
    }

    pub(crate) fn request_close(&mut self, index: usize, time: u64) -> bool {
        let delay_secs = self.channels[index].terms.closeDelay.to::<u64>();
        self.apply(index, |slot, _, _| slot.request_close(delay_secs, time)).is_ok()
    }

    pub(crate) fn withdraw(&mut self, index: usize, time: u64) -> Option<u128> {
        self.apply(index, |slot, token, parties| slot.withdraw(token, parties, time)).ok()
    }

    fn apply<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Slot, &mut Token, Parties) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let channel = &mut self.channels[index];
        let Channel { payer, payee, token, .. } = channel.terms;
        let token = self.tokens.get_mut(&token).expect("every channel's token is known");
        let mut slot = channel.slot();
        let done = change(&mut slot, token, Parties { payer, payee, escrow: self.escrow })?;
        channel.put(slot);
        Ok(done)
    }
}

pub(crate) enum Close {
    Refunded,
    Kept,
}
