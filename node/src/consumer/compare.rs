//! This node's books of what it bought from an owner, held against the owner's, call by call (invariant X1).
//!
//! [`differ`] decides about one call. [`Consumer::compare_calls`] asks for the owner's records page by page, each between
//! two looks into the own ledger, so that calls which go on meanwhile are never taken for differences.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use farthing_ledger::{Promise, Purchase, PurchaseEnd};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, ChannelId, Outcome, RefusalCode, Usdc,
    books::{CallRecord, CallsAsked, CallsPage},
};

use super::Consumer;
use crate::clock;

const PAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// An owner tells so many pages a minute; one that always says "later" is given up.
const WAITS_MAX: usize = 20;
/// More does not help anybody who looks; all are counted.
const LISTED_MAX: usize = 1_000;

/// What this node has of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mine {
    Undecided,
    NotCharged,
    Receipt { outcome: Outcome, charged: Usdc, channel: ChannelId },
}

impl From<&Purchase> for Mine {
    fn from(purchase: &Purchase) -> Self {
        match &purchase.end {
            PurchaseEnd::Released { .. } => Self::NotCharged,
            PurchaseEnd::Acknowledged { outcome, .. } => {
                Self::Receipt { outcome: *outcome, charged: purchase.charged, channel: purchase.channel }
            }
        }
    }
}

/// How two records of one call differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A receipt is here, and its owner has no such call.
    UnknownThere {
        charged: Usdc,
    },
    /// Neither charged nor undecided here, and charged there.
    ChargedThere {
        charged: Usdc,
    },
    /// Charged there, and not in these books at all.
    UnknownHere {
        charged: Usdc,
    },
    Charge {
        here: Usdc,
        there: Usdc,
    },
    Outcome {
        here: Outcome,
        there: Option<Outcome>,
    },
    Channel {
        here: ChannelId,
        there: ChannelId,
    },
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownThere { charged } => {
                write!(f, "you have the receipt of it over {charged} USDC, and its owner has no such call")
            }
            Self::ChargedThere { charged } => {
                write!(f, "your books say that it cost nothing, and its owner charged {charged} USDC")
            }
            Self::UnknownHere { charged } => {
                write!(
                    f,
                    "its owner charged {charged} USDC, and neither call nor adjustment is in your books"
                )
            }
            Self::Charge { here, there } => {
                write!(f, "your receipt says {here} USDC, and its owner's books {there} USDC")
            }
            Self::Outcome { here, there: Some(there) } => {
                write!(f, "your receipt says {here:?}, and its owner's books {there:?}")
            }
            Self::Outcome { here, there: None } => {
                write!(f, "your receipt says {here:?}, and its owner's books have no end of it")
            }
            Self::Channel { here, there } => {
                write!(f, "your receipt names the channel {here}, and its owner's books {there}")
            }
        }
    }
}

/// How both sides' records of one call differ. What neither answered nor cost anything may have been tried several
/// times, and an owner need not have it.
#[must_use]
pub fn differ(mine: Option<Mine>, theirs: Option<&CallRecord>) -> Option<Difference> {
    let charged = theirs.map_or(Usdc::ZERO, |record| record.charged);
    match (mine, theirs) {
        (Some(Mine::Undecided), _) => None,
        (Some(Mine::NotCharged), _) => (!charged.is_zero()).then_some(Difference::ChargedThere { charged }),
        (None, _) => (!charged.is_zero()).then_some(Difference::UnknownHere { charged }),
        (Some(Mine::Receipt { outcome, charged, .. }), None) => {
            let counts = !charged.is_zero() || outcome.is_the_services_answer();
            counts.then_some(Difference::UnknownThere { charged })
        }
        (Some(Mine::Receipt { outcome, charged: here, channel }), Some(record)) => {
            let is_answer = |outcome: Outcome| outcome.is_the_services_answer();
            let tried_again = here.is_zero()
                && charged.is_zero()
                && !is_answer(outcome)
                && !record.outcome.is_some_and(is_answer);
            match () {
                () if tried_again => None,
                () if here != charged => Some(Difference::Charge { here, there: charged }),
                () if record.outcome != Some(outcome) => {
                    Some(Difference::Outcome { here: outcome, there: record.outcome })
                }
                () if record.channel != channel => {
                    Some(Difference::Channel { here: channel, there: record.channel })
                }
                () => None,
            }
        }
    }
}

/// What came of comparing the books with an owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub calls: u64,
    /// Not decided here yet.
    pub undecided: u64,
    /// Charged there and not in these books, as far as adjustments count them.
    pub adjusted: Usdc,
    /// At most 1,000.
    pub differences: Vec<(CallId, Difference)>,
    pub differences_total: u64,
}

impl Compared {
    fn add(&mut self, call_id: CallId, difference: Difference) {
        self.differences_total += 1;
        if self.differences.len() < LISTED_MAX {
            self.differences.push((call_id, difference));
        }
    }
}

impl Consumer {
    /// Compares every call bought from `owner` with what it says of them.
    ///
    /// # Errors
    /// Why the owner's books or the own ones cannot be seen.
    pub async fn compare_calls(&self, owner: Address) -> Result<Compared, String> {
        let mut compared = Compared::default();
        // Calls of theirs that nothing here knows: adjustments count them, and which one each counts nobody knows.
        let mut unknown: Vec<(CallId, Usdc)> = Vec::new();
        let mut after = None;
        loop {
            let open = self.open_with(owner)?;
            let asked_secs = clock::now_secs();
            let page = self.page_of(owner, CallsAsked { after, since_secs: 0 }).await?;
            let mine = self.ended_with(owner, after, page.next).await?;
            let mut theirs: BTreeMap<CallId, CallRecord> =
                page.records.iter().map(|record| (record.call_id, *record)).collect();
            for purchase in &mine {
                let record = theirs.remove(&purchase.call_id);
                // It may have ended after the owner was asked, or be older than what the owner keeps.
                let is_of_now = purchase.closed_secs >= asked_secs;
                let is_pruned = purchase.promised_secs <= page.kept_since_secs;
                if record.is_none() && (is_of_now || is_pruned) {
                    continue;
                }
                compared.calls += 1;
                if let Some(difference) = differ(Some(purchase.into()), record.as_ref()) {
                    compared.add(purchase.call_id, difference);
                }
            }
            for (call_id, record) in theirs {
                compared.calls += 1;
                if open.contains(&call_id) || self.is_open(call_id)? {
                    compared.undecided += 1;
                } else if let Some(Difference::UnknownHere { charged }) = differ(None, Some(&record)) {
                    unknown.push((call_id, charged));
                }
            }
            match page.next {
                Some(next) if after < Some(next) => after = Some(next),
                Some(_) => return Err("the owner's pages do not go on".to_owned()),
                None => break,
            }
        }
        let unknown_sum = unknown.iter().fold(Usdc::ZERO, |sum, (_, charged)| sum.saturating_add(*charged));
        compared.adjusted = self.adjusted_with(owner)?.min(unknown_sum);
        if compared.adjusted < unknown_sum {
            for (call_id, charged) in unknown {
                compared.add(call_id, Difference::UnknownHere { charged });
            }
        }
        Ok(compared)
    }

    fn open_with(&self, owner: Address) -> Result<HashSet<CallId>, String> {
        let open: Vec<Promise> = self.0.ledger.unresolved().map_err(|error| error.to_string())?;
        let of_owner = open.into_iter().filter(|promise| promise.owner == owner);
        Ok(of_owner.map(|promise| promise.request.call_id).collect())
    }

    fn is_open(&self, call_id: CallId) -> Result<bool, String> {
        let promise = self.0.ledger.promise_of(call_id).map_err(|error| error.to_string())?;
        Ok(promise.is_some())
    }

    async fn ended_with(
        &self,
        owner: Address,
        after: Option<CallId>,
        until: Option<CallId>,
    ) -> Result<Vec<Purchase>, String> {
        let ledger = self.0.ledger.clone();
        let read = tokio::task::spawn_blocking(move || ledger.purchases_from(owner, after, until));
        match read.await {
            Ok(purchases) => purchases.map_err(|error| error.to_string()),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    fn adjusted_with(&self, owner: Address) -> Result<Usdc, String> {
        self.0.ledger.adjusted_with(owner).map_err(|error| error.to_string())
    }

    async fn page_of(&self, owner: Address, asked: CallsAsked) -> Result<CallsPage, String> {
        for _ in 0..WAITS_MAX {
            let question = CallMessage::Calls(asked);
            match self.0.network.call(owner, question, bytes::Bytes::new(), PAGE_TIMEOUT).await {
                Ok((CallReply::Calls(page), ..)) => return Ok(page),
                Ok((CallReply::Refused(refusal), ..)) if refusal.code == RefusalCode::RateLimited => {
                    let wait = refusal.retry_after_ms.unwrap_or(1_000).clamp(100, 60_000);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                }
                Ok((CallReply::Refused(refusal), ..)) => {
                    return Err(format!("{}: {}", refusal.code.name(), refusal.detail));
                }
                Ok(_) => return Err("the owner's node gave an answer to another question".to_owned()),
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Err("the owner tells no more of its books for now; ask again later".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CallId = CallId::from_bytes([7; 16]);
    const CHANNEL: ChannelId = ChannelId::from_bytes([3; 32]);

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    fn theirs(outcome: Option<Outcome>, charged: u64) -> CallRecord {
        let charged = usdc(charged);
        CallRecord { call_id: ID, channel: CHANNEL, outcome, price: usdc(5), charged, time_secs: 1 }
    }

    fn mine(outcome: Outcome, charged: u64) -> Option<Mine> {
        Some(Mine::Receipt { outcome, charged: usdc(charged), channel: CHANNEL })
    }

    #[test]
    fn each_kind_of_difference_has_its_word() {
        let paid = theirs(Some(Outcome::Answered), 5);
        let elsewhere = CallRecord { channel: ChannelId::NONE, ..paid };
        for (here, there, word) in [
            (mine(Outcome::Answered, 5), None, "its owner has no such call"),
            (mine(Outcome::Answered, 0), None, "its owner has no such call"),
            (Some(Mine::NotCharged), Some(paid), "cost nothing, and its owner charged 0.000005"),
            (None, Some(paid), "neither call nor adjustment"),
            (mine(Outcome::Answered, 4), Some(paid), "says 0.000004 USDC, and its owner's books 0.000005"),
            (mine(Outcome::Declined, 5), Some(paid), "says Declined, and its owner's books Answered"),
            (mine(Outcome::Answered, 0), Some(theirs(None, 0)), "no end of it"),
            (mine(Outcome::Answered, 5), Some(elsewhere), "names the channel"),
        ] {
            let difference = differ(here, there.as_ref()).unwrap_or_else(|| panic!("{here:?} {there:?}"));
            assert!(difference.to_string().contains(word), "{difference}");
        }
    }

    #[test]
    fn what_agrees_or_is_not_decided_yet_is_no_difference() {
        let paid = theirs(Some(Outcome::Answered), 5);
        for (here, there) in [
            (mine(Outcome::Answered, 5), Some(paid)),
            (mine(Outcome::TimedOut, 0), Some(theirs(Some(Outcome::Unreachable), 0))),
            (mine(Outcome::TimedOut, 0), None),
            (Some(Mine::NotCharged), None),
            (Some(Mine::NotCharged), Some(theirs(None, 0))),
            (Some(Mine::Undecided), Some(paid)),
            (None, Some(theirs(Some(Outcome::TimedOut), 0))),
            (None, None),
        ] {
            assert_eq!(differ(here, there.as_ref()), None, "{here:?} {there:?}");
        }
    }
}
