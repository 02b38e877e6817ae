//! Checks every invariant that this ledger can show, over all of it, as one consistent snapshot.
//!
//! The order is: each channel of the owner's half against its calls, each call against its indexes, then the
//! same for the consumer's half, then settlements, then the figures against the calls that are here. It reads everything and changes nothing, so it can run
//! beside a working node or on a stopped one.
//!
//! With the domain of the node's contract it also verifies the signatures that the money rests on. What it cannot see
//! is in the chain (M1, M2, and M3 as the contract has it) and in the other side's books (X1, M4 over both sides, and
//! O3 as the payer sees it).

mod consumer;
mod figures;
mod owner;

use std::collections::HashMap;

use farthing_values::{Address, CallId, ChannelId, Domain, Usdc};
use redb::{ReadTransaction, ReadableTable};

use self::figures::Recount;
use crate::{
    Ledger,
    adjustment::Adjustment,
    error::Result,
    rows::Side,
    tables::{self, ADJUSTMENTS},
};

/// Violations listed; more are only counted. One is already a reason to stop.
const VIOLATIONS_LISTED_MAX: usize = 1_000;

/// The counts of what an audit looked at, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    pub payee_channels: u64,
    pub calls: u64,
    pub payer_channels: u64,
    pub promises: u64,
    pub purchases: u64,
    pub settlements: u64,
    pub adjustments: u64,
    /// Days on which something was bought before this ledger noted what the limits allowed.
    pub days_of_unknown_limits: u64,
    /// At most 1,000 of them.
    pub violations: Vec<Violation>,
    pub violations_total: u64,
}

impl Audit {
    fn require(
        &mut self,
        holds: bool,
        invariant: &'static str,
        violation: impl FnOnce() -> (String, String),
    ) {
        if holds {
            return;
        }
        self.violations_total += 1;
        if self.violations.len() < VIOLATIONS_LISTED_MAX {
            let (subject, detail) = violation();
            self.violations.push(Violation { invariant, subject, detail });
        }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The id used in code, documentation and tests, such as `O1`; `index` for the ledger's own bookkeeping.
    pub invariant: &'static str,
    /// The channel, call or day concerned.
    pub subject: String,
    /// The state that was found instead.
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.invariant, self.subject, self.detail)
    }
}

impl Ledger {
    /// Checks every invariant; with the `domain` of the contract also every signature that money rests on, which takes
    /// about a tenth of a millisecond for each charged purchase. Takes time in proportion to the ledger: run it off the
    /// async threads.
    ///
    /// # Errors
    /// Only when the ledger cannot be read; what it says wrongly is in [`Audit::violations`].
    pub fn audit(&self, domain: Option<&Domain>) -> Result<Audit> {
        self.read(|tx| {
            let (mut audit, mut recount) = (Audit::default(), Recount::default());
            let adjusted = adjustments(tx, &mut audit)?;
            let charges = owner::calls(tx, &mut audit, &mut recount, &adjusted)?;
            owner::channels(tx, &mut audit, charges, &adjusted, domain)?;
            let bought = consumer::purchases(tx, &mut audit, &adjusted, &mut recount, domain)?;
            let promised = consumer::promises(tx, &mut audit)?;
            consumer::channels(tx, &mut audit, &bought, &promised, &adjusted)?;
            owner::settlements(tx, &mut audit)?;
            recount.compare(tx, &mut audit)?;
            Ok(audit)
        })
    }
}

/// Amounts that adjustments explain: per side and channel, and per day and secret.
#[derive(Debug, Default)]
struct AdjustmentSums {
    by_channel: HashMap<(Side, ChannelId), Usdc>,
    by_budget: HashMap<(u32, &'static str), u64>,
}

impl AdjustmentSums {
    fn of(&self, side: Side, id: ChannelId) -> Usdc {
        self.by_channel.get(&(side, id)).copied().unwrap_or_default()
    }
}

fn adjustments(tx: &ReadTransaction, audit: &mut Audit) -> Result<AdjustmentSums> {
    let mut adjusted = AdjustmentSums::default();
    for entry in tx.open_table(ADJUSTMENTS)?.iter()? {
        let row: Adjustment = tables::decode("adjustments", entry?.1.value())?;
        audit.adjustments += 1;
        let sum = adjusted.by_channel.entry((row.side, row.channel)).or_default();
        *sum = sum.saturating_add(row.amount);
        // A row whose calls were found has nothing left, and no total of its own.
        if let Some(budget) = row.budget().filter(|_| !row.amount.is_zero()) {
            *adjusted.by_budget.entry(budget).or_default() += row.amount.micros();
        }
    }
    Ok(adjusted)
}

fn call_name((payer, call_id): (Address, CallId)) -> String {
    format!("call {call_id} of {payer}")
}

#[cfg(test)]
mod tests;
