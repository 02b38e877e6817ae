//! The rules of `PayChannels` in plain arithmetic, without keys and without a chain.
//!
//! The random operations of `tests/contracts/tests/contracts/invariants.rs` compare them with the contract on anvil, step by step;
//! whoever plays the contract takes them from here. A refusal changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::Address;

/// The most that the contract counts as a channel's deposits: 96 bits.
const DEPOSITED_MAX: u128 = (1 << 96) - 1;
/// The count of a channel's rounds has 24 bits, and begins again after that.
const ROUNDS: u32 = 1 << 24;

/// The contract's record of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    pub deposited: u128,
    pub claimed: u128,
    /// 0 when no close is pending.
    pub close_at: u64,
    /// The number of times that the channel was emptied.
    pub round: u32,
}

/// The three accounts that the money of a channel moves between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    pub payer: Address,
    pub payee: Address,
    pub escrow: Address,
}

/// The contract's reason to refuse, where it depends on books and time and not on who signed what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    NothingReceived,
    DepositTooLarge,
    NothingToClaim,
    NotOpen,
    CloseAlreadyRequested,
    TooEarly,
    TransferFailed,
}

/// The money that a close moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub paid: u128,
    pub refund: u128,
    /// The token refused the refund, which may be withdrawn from now on.
    pub is_kept: bool,
}

impl Slot {
    /// Computes what a claim of `amount` adds.
    pub fn due(&self, amount: u128) -> u128 {
        amount.min(self.deposited).saturating_sub(self.claimed)
    }

    /// Tells whether all that was deposited is claimed.
    pub const fn is_drained(&self) -> bool {
        self.deposited == self.claimed
    }

    /// Counts what has arrived, and returns all that was ever deposited.
    ///
    /// # Errors
    /// [`Refused::NothingReceived`] and [`Refused::DepositTooLarge`].
    pub fn credit(&mut self, received: u128) -> Result<u128, Refused> {
        if received == 0 {
            return Err(Refused::NothingReceived);
        }
        let deposited = self.deposited.checked_add(received).filter(|deposited| *deposited <= DEPOSITED_MAX);
        self.deposited = deposited.ok_or(Refused::DepositTooLarge)?;
        Ok(self.deposited)
    }

    /// Returns what arrived.
    ///
    /// # Errors
    /// As [`Slot::credit`], and [`Refused::TransferFailed`].
    pub fn deposit(&mut self, token: &mut Token, parties: Parties, amount: u128) -> Result<u128, Refused> {
        let Parties { payer, escrow, .. } = parties;
        if !token.can_move(payer, escrow, amount) {
            return Err(Refused::TransferFailed);
        }
        let received = amount - token.fee;
        self.credit(received)?;
        token.moves(payer, escrow, amount);
        Ok(received)
    }

    /// Books a claim, whose money goes out with that of other claims. Returns what it adds.
    pub fn settle(&mut self, amount: u128) -> u128 {
        let paid = self.due(amount);
        self.claimed += paid;
        paid
    }

    /// Returns what the payee got.
    ///
    /// # Errors
    /// [`Refused::NothingToClaim`] and [`Refused::TransferFailed`].
    pub fn claim(&mut self, token: &mut Token, parties: Parties, amount: u128) -> Result<u128, Refused> {
        let paid = self.due(amount);
        if paid == 0 {
            return Err(Refused::NothingToClaim);
        }
        if !token.pays(parties.escrow, parties.payee, paid) {
            return Err(Refused::TransferFailed);
        }
        Ok(self.settle(amount))
    }

    /// Pays the payee, and gives the rest back.
    ///
    /// # Errors
    /// [`Refused::NotOpen`] and [`Refused::TransferFailed`].
    pub fn close(
        &mut self,
        token: &mut Token,
        parties: Parties,
        amount: u128,
        now_secs: u64,
    ) -> Result<Closed, Refused> {
        let paid = self.due(amount);
        let refund = self.deposited - self.claimed - paid;
        if paid == 0 && refund == 0 && self.close_at == 0 {
            return Err(Refused::NotOpen);
        }
        if paid > 0 && !token.pays(parties.escrow, parties.payee, paid) {
            return Err(Refused::TransferFailed);
        }
        self.claimed += paid;
        let is_kept = refund > 0 && !token.pays(parties.escrow, parties.payer, refund);
        if is_kept {
            self.close_at = now_secs;
        } else {
            self.empty();
        }
        Ok(Closed { paid, refund, is_kept })
    }

    /// Returns the second from which the rest may be withdrawn.
    ///
    /// # Errors
    /// [`Refused::NotOpen`] and [`Refused::CloseAlreadyRequested`].
    pub fn request_close(&mut self, delay_secs: u64, now_secs: u64) -> Result<u64, Refused> {
        if self.is_drained() {
            return Err(Refused::NotOpen);
        }
        if self.close_at != 0 {
            return Err(Refused::CloseAlreadyRequested);
        }
        self.close_at = now_secs + delay_secs;
        Ok(self.close_at)
    }

    /// Returns what the payer got back.
    ///
    /// # Errors
    /// [`Refused::NotOpen`], [`Refused::TooEarly`] and [`Refused::TransferFailed`].
    pub fn withdraw(&mut self, token: &mut Token, parties: Parties, now_secs: u64) -> Result<u128, Refused> {
        let refund = self.deposited - self.claimed;
        if self.close_at == 0 {
            return Err(Refused::NotOpen);
        }
        if now_secs < self.close_at {
            return Err(Refused::TooEarly);
        }
        if refund > 0 && !token.pays(parties.escrow, parties.payer, refund) {
            return Err(Refused::TransferFailed);
        }
        self.empty();
        Ok(refund)
    }

    const fn empty(&mut self) {
        let (claimed, round) = (self.claimed, (self.round + 1) % ROUNDS);
        *self = Self { deposited: claimed, claimed, close_at: 0, round };
    }
}

/// One token: who has how much of it, and how it misbehaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    pub balances: BTreeMap<Address, u128>,
    /// All there ever was.
    pub minted: u128,
    /// Kept of every transfer, which must be at least this much.
    pub fee: u128,
    /// The cost of all transfers so far.
    pub kept: u128,
    /// Accounts that may neither send nor receive.
    pub barred: BTreeSet<Address>,
}

impl Token {
    pub fn balance(&self, account: Address) -> u128 {
        self.balances.get(&account).copied().unwrap_or_default()
    }

    /// Tells whether the token carries out such a transfer.
    pub fn can_move(&self, from: Address, to: Address, amount: u128) -> bool {
        let is_barred = [from, to].iter().any(|account| self.barred.contains(account));
        !is_barred && amount >= self.fee && self.balance(from) >= amount
    }

    /// Carries out a transfer that [`Token::can_move`] allows.
    pub fn moves(&mut self, from: Address, to: Address, amount: u128) {
        *self.balances.entry(from).or_default() -= amount;
        *self.balances.entry(to).or_default() += amount - self.fee;
        self.kept += self.fee;
    }

    /// Carries out a transfer if the token does; whether it did.
    pub fn pays(&mut self, from: Address, to: Address, amount: u128) -> bool {
        let can = self.can_move(from, to, amount);
        if can {
            self.moves(from, to, amount);
        }
        can
    }
}
