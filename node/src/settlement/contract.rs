//! The books held against the contract: what it holds covers every channel here (M2), and each channel has been paid
//! and filled there as it is written here (M3).
//!
//! In order: the contract is read; what the chain confirmed meanwhile comes into the books; the books and the contract
//! are read again. Only where the contract said the same both times, and in its newest block, do the books have to say
//! it too: whatever changed in between is waited for and no violation. [`judge`] decides about one channel.

use std::{collections::HashMap, time::Duration};

use farthing_chain::{ChainError, ChannelState, ContractBooks};
use farthing_ledger::{Ledger, LedgerError};
use farthing_protocol::{ChannelId, Escrow, Usdc};
use farthing_shared::{
    blocking::run_blocking,
    chain_view::{self, NotReady},
};

use super::{
    Settlement,
    intake::{CaughtUp, ChainIntake},
};

/// Channels that are looked at; more than a node follows.
const CHANNELS_MAX: usize = 20_000;
/// More does not help anybody who looks; all violations are counted.
const LISTED_MAX: usize = 1_000;
const CHECKED_WITHIN: Duration = Duration::from_secs(60);

/// A channel as this node's books have it, on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booked {
    pub id: ChannelId,
    pub side: Side,
    pub deposited: Usdc,
    pub claimed: Usdc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Payer,
    Payee,
}

/// The verdict on one channel: its books against the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Agrees,
    /// It is under way to the books.
    Waits(String),
    Violates(String),
}

/// The result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub block: u64,
    pub channels: u64,
    /// USDC that the contract holds, and what of it is in the channels here.
    pub escrow: Usdc,
    pub at_stake: Usdc,
    /// At most 1,000 of each.
    pub waiting: Vec<String>,
    pub violations: Vec<String>,
    pub violations_total: u64,
    /// Channels of another contract or token than the settings name, and those beyond the bound.
    pub left_out: u64,
}

impl Checked {
    fn violate(&mut self, violation: String) {
        self.violations_total += 1;
        if self.violations.len() < LISTED_MAX {
            self.violations.push(violation);
        }
    }
}

/// The reason that the contract was not looked at.
#[derive(Debug, thiserror::Error)]
pub enum NotChecked {
    #[error("the chain did not answer within a minute")]
    Late,
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("this node has read the chain up to block {seen}, and it is at {block}")]
    Behind { seen: u64, block: u64 },
    #[error("the state of the chain could not be stored")]
    NotStored,
    #[error("the endpoint shows a change of a channel that counts only after two minutes")]
    NotSure,
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Settlement {
    /// Holds the books against the contract.
    ///
    /// # Errors
    /// Why that was not possible; nothing is said about the books then.
    pub async fn check_contract(&self) -> Result<Checked, NotChecked> {
        let checked = tokio::time::timeout(CHECKED_WITHIN, self.look_at_contract()).await;
        checked.unwrap_or(Err(NotChecked::Late))
    }

    async fn look_at_contract(&self) -> Result<Checked, NotChecked> {
        let (chain, _) = self.intake.parts();
        chain_view::ready(chain)?;
        let (booked, _) = booked(&self.intake).await?;
        let ids = ids_of(&booked);
        let before = chain.read_contract(&ids).await?;
        self.catch_up_to(before.head).await?;
        // Between the two looks at the contract, so that these are never of a later block than it is seen in.
        let (booked, left_out) = self::booked(&self.intake).await?;
        let after = chain.read_contract(&ids).await?;
        Ok(check(&ids, &booked, &before, &after, left_out))
    }

    /// Brings the books up to a block at least.
    async fn catch_up_to(&self, block: u64) -> Result<(), NotChecked> {
        let (chain, _) = self.intake.parts();
        chain.refresh().await?;
        chain_view::ready(chain)?;
        let seen = chain.head().borrow().as_ref().map_or(0, |head| head.number);
        if seen < block {
            return Err(NotChecked::Behind { seen, block });
        }
        why_not(self.intake.catch_up().await).map_or(Ok(()), Err)
    }
}

/// Returns the reason that the books cannot be held against what the chain says now, if there is one.
const fn why_not(done: CaughtUp) -> Option<NotChecked> {
    match done {
        CaughtUp { is_stored: false, .. } => Some(NotChecked::NotStored),
        CaughtUp { is_sure: false, .. } => Some(NotChecked::NotSure),
        CaughtUp { .. } => None,
    }
}

fn ids_of(booked: &[Booked]) -> Vec<ChannelId> {
    let mut ids: Vec<ChannelId> = booked.iter().map(|channel| channel.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The channels of this contract and token, and how many are left out.
async fn booked(intake: &ChainIntake) -> Result<(Vec<Booked>, u64), LedgerError> {
    let (chain, ledger) = intake.parts();
    let (escrow, ledger) = (chain.spec().escrow(), ledger.clone());
    run_blocking(move || booked_in(&ledger, &escrow)).await
}

fn booked_in(ledger: &Ledger, escrow: &Escrow) -> Result<(Vec<Booked>, u64), LedgerError> {
    let paying = ledger.payer_channels()?.into_iter().map(|row| {
        (row.config, Booked { id: row.id, side: Side::Payer, deposited: row.deposited, claimed: row.claimed })
    });
    let paid = ledger.payee_channels()?.into_iter().map(|row| {
        (row.config, Booked { id: row.id, side: Side::Payee, deposited: row.deposited, claimed: row.claimed })
    });
    let all: Vec<_> = paying.chain(paid).collect();
    let total = all.len();
    let here = all.into_iter().filter(|(config, channel)| escrow.holds(channel.id, config));
    let mut booked: Vec<Booked> = here.map(|(_, channel)| channel).collect();
    // Those that hold money come first, should there be more than are looked at.
    booked.sort_by_key(|channel| (channel.deposited <= channel.claimed, channel.id));
    booked.truncate(CHANNELS_MAX);
    let left_out = u64::try_from(total.saturating_sub(booked.len())).unwrap_or(u64::MAX);
    Ok((booked, left_out))
}

/// Holds the books against what the contract said before and after they were brought up to date.
fn check(
    ids: &[ChannelId],
    booked: &[Booked],
    before: &ContractBooks,
    after: &ContractBooks,
    left_out: u64,
) -> Checked {
    let states = ids.iter().zip(&before.confirmed).zip(after.confirmed.iter().zip(&after.newest));
    let states: HashMap<ChannelId, ContractView> = states
        .map(|((id, before), (confirmed, newest))| {
            (*id, ContractView { before: *before, confirmed: *confirmed, newest: *newest })
        })
        .collect();
    let held = states.values().map(|seen| seen.confirmed.deposited.saturating_sub(seen.confirmed.claimed));
    let at_stake = held.fold(Usdc::ZERO, Usdc::saturating_add);
    let mut checked =
        Checked { block: after.block, escrow: after.escrow, at_stake, left_out, ..Checked::default() };
    if after.escrow < at_stake {
        let block = after.block;
        checked.violate(format!(
            "M2 the contract: it holds {} USDC in block {block}, and the channels here {at_stake}",
            after.escrow
        ));
    }
    for channel in booked {
        // A channel that came while this looked is for the next time.
        let Some(seen) = states.get(&channel.id) else { continue };
        checked.channels += 1;
        match judge(channel, seen) {
            Verdict::Agrees => {}
            Verdict::Waits(told) if checked.waiting.len() < LISTED_MAX => {
                checked.waiting.push(format!("channel {}: {told}", channel.id));
            }
            Verdict::Waits(_) => {}
            Verdict::Violates(told) => checked.violate(format!("M3 {}: {told}", channel.id)),
        }
    }
    checked
}

/// The contract's word on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractView {
    /// Confirmed, before the books were brought up to date.
    pub before: ChannelState,
    /// Confirmed, afterwards.
    pub confirmed: ChannelState,
    pub newest: ChannelState,
}

/// Judges whether a channel's books are what the contract says, or can still become it.
#[must_use]
pub fn judge(booked: &Booked, seen: &ContractView) -> Verdict {
    let ContractView { before, confirmed, newest } = *seen;
    let sums = |state: &ChannelState| (state.deposited, state.claimed);
    let told = |state: &ChannelState| format!("{} deposited and {} claimed", state.deposited, state.claimed);
    let books = format!("the books say {} USDC deposited and {} claimed", booked.deposited, booked.claimed);
    if [before, confirmed, newest].iter().any(|state| state.claimed > state.deposited) {
        return Verdict::Violates(format!("the contract paid out more than it got: {}", told(&confirmed)));
    }
    let most_claimed = confirmed.claimed.max(newest.claimed);
    if booked.claimed > most_claimed {
        return Verdict::Violates(format!("{books}, and the contract paid {most_claimed}"));
    }
    let is_at_rest = sums(&before) == sums(&confirmed) && sums(&confirmed) == sums(&newest);
    if is_at_rest {
        if (booked.deposited, booked.claimed) == sums(&confirmed) {
            return Verdict::Agrees;
        }
        // What a payer adds below the least that an owner serves on is its own affair.
        let is_less_than_there = booked.side == Side::Payee
            && booked.claimed == confirmed.claimed
            && booked.deposited < confirmed.deposited;
        if is_less_than_there {
            return Verdict::Waits(format!("{books}, and {} are in the contract", confirmed.deposited));
        }
        return Verdict::Violates(format!("{books}, the contract {}", told(&confirmed)));
    }
    let deposits = [before.deposited, confirmed.deposited, newest.deposited];
    let claims = [before.claimed, confirmed.claimed, newest.claimed];
    let lies_within =
        |value: Usdc, seen: [Usdc; 3]| seen.iter().min() <= Some(&value) && Some(&value) <= seen.iter().max();
    if lies_within(booked.deposited, deposits) && lies_within(booked.claimed, claims) {
        let (confirmed, newest) = (told(&confirmed), told(&newest));
        return Verdict::Waits(format!(
            "{books}; confirmed are {confirmed}, and {newest} are in the newest block"
        ));
    }
    Verdict::Violates(format!(
        "{books}, the contract {} and not yet confirmed {}",
        told(&confirmed),
        told(&newest)
    ))
}

#[cfg(test)]
mod tests;
