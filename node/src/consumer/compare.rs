//! This node's books of what it bought from an owner, held against the owner's: call by call (invariant X1), and in the
//! total of each channel (M4).
//!
//! [`differ`] decides about one call, [`channels::judge`] about one channel. `BookComparer` asks for the
//! owner's records page by page, each between two looks into the own ledger, so that calls which go on meanwhile are
//! never taken for differences. Whatever the owner says is bounded in number, in order and in time.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use farthing_control::counted;
use farthing_ledger::{Ledger, LedgerError, Promise, Purchase, PurchaseEnd, Side};
use farthing_network::{CallFailure, NetworkHandle};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, ChannelId, Outcome, RefusalCode, Usdc,
    books::{CALLS_PAGE_MAX, CallRecord, CallsAsked, CallsPage},
};
use farthing_shared::blocking::run_blocking;
use farthing_wallet::Signer;

use super::{BadPage, BooksError, NotTold, channels::PayerChannels};

pub mod channels;

use channels::ChannelComparison;
use farthing_os::clock;

const PAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// An owner tells so many pages a minute; one that always says "later" is given up.
const WAITS_MAX: usize = 20;
/// Two million calls, more than can be told in the time.
const PAGES_MAX: usize = 8_192;
/// An honest owner's pages are full, but for the last.
const SHORT_PAGES_MAX: usize = 64;
/// Shorter than `farthing audit` waits for its node.
const COMPARED_WITHIN: Duration = Duration::from_secs(480);
/// As the ledger of any owner keeps its calls.
const KEPT_SECS_MIN: u64 = 7 * 86_400;
/// More does not help anybody who looks; all are counted.
const LISTED_MAX: usize = 1_000;

/// This node's record of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mine {
    Undecided,
    NotCharged,
    Receipt { outcome: Outcome, charged: Usdc, channel: ChannelId },
}

impl From<&Purchase> for Mine {
    fn from(purchase: &Purchase) -> Self {
        match &purchase.end {
            // Of a transfer no owner knows: a promise over a channel is compared.
            PurchaseEnd::Released { .. } | PurchaseEnd::Transferred { .. } => Self::NotCharged,
            PurchaseEnd::Acknowledged { outcome, .. } => {
                Self::Receipt { outcome: *outcome, charged: purchase.charged, channel: purchase.channel }
            }
        }
    }
}

/// A difference between two records of one call.
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

impl Difference {
    /// Returns the side on which the call is unknown or free, as in a ledger that was put back, and the charge that this side
    /// lacks: its adjustments may count it.
    fn lacking(self) -> Option<(Side, Usdc)> {
        match self {
            Self::UnknownHere { charged } | Self::ChargedThere { charged } => Some((Side::Payer, charged)),
            Self::Charge { here, there } if here.is_zero() => Some((Side::Payer, there)),
            Self::UnknownThere { charged } => Some((Side::Payee, charged)),
            Self::Charge { here, there } if there.is_zero() => Some((Side::Payee, here)),
            Self::Charge { .. } | Self::Outcome { .. } | Self::Channel { .. } => None,
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownThere { charged } => {
                write!(f, "you have a receipt for {charged} USDC, but the owner has no such call")
            }
            Self::ChargedThere { charged } => {
                write!(f, "your ledger says that it was free, but the owner charged {charged} USDC")
            }
            Self::UnknownHere { charged } => {
                write!(
                    f,
                    "the owner charged {charged} USDC, but your ledger has neither the call nor an adjustment; if your ledger \
                     came from a backup, the first call to this owner brings the books together"
                )
            }
            Self::Charge { here, there } => {
                write!(f, "your receipt says {here} USDC, but the owner's ledger {there} USDC")
            }
            Self::Outcome { here, there: Some(there) } => {
                write!(f, "your receipt says {here:?}, but the owner's ledger {there:?}")
            }
            Self::Outcome { here, there: None } => {
                write!(f, "your receipt says {here:?}, but the owner's ledger does not say how it ended")
            }
            Self::Channel { here, there } => {
                write!(f, "your receipt has the channel {here}, but the owner's ledger {there}")
            }
        }
    }
}

/// Compares both sides' records of one call. An owner need not have kept what cost nothing, and what was not answered
/// either may have been tried several times.
#[must_use]
pub fn differ(mine: Option<Mine>, theirs: Option<&CallRecord>) -> Option<Difference> {
    let charged = theirs.map_or(Usdc::ZERO, |record| record.charged);
    match (mine, theirs) {
        (Some(Mine::Undecided), _) => None,
        (Some(Mine::NotCharged), _) => (!charged.is_zero()).then_some(Difference::ChargedThere { charged }),
        (None, _) => (!charged.is_zero()).then_some(Difference::UnknownHere { charged }),
        (Some(Mine::Receipt { charged, .. }), None) => {
            (!charged.is_zero()).then_some(Difference::UnknownThere { charged })
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

/// The result of comparing the books with an owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookComparison {
    pub calls: u64,
    /// Not decided here yet.
    pub undecided: u64,
    /// Older than what the owner keeps, and not told.
    pub not_kept: u64,
    /// Charged there and not in these books, as far as adjustments count them.
    pub adjusted: Usdc,
    /// Charged here and not in the owner's books, as far as adjustments of theirs count them. They are the owner's word:
    /// what proves it is that its total of each channel is the one here.
    pub adjusted_there: Usdc,
    pub channels: ChannelComparison,
    /// At most 1,000, each with its call or channel.
    pub differences: Vec<String>,
    pub differences_total: u64,
}

impl BookComparison {
    fn add(&mut self, subject: impl std::fmt::Display, difference: impl std::fmt::Display) {
        self.differences_total += 1;
        if self.differences.len() < LISTED_MAX {
            self.differences.push(format!("{subject}: {difference}"));
        }
    }
}

/// Charges that are on one side alone. Adjustments of the other count them, and which one each counts nobody knows.
#[derive(Debug, Default)]
struct OneSidedCalls {
    sum: Usdc,
    total: u64,
    /// The first ones.
    calls: Vec<(CallId, Difference)>,
}

/// By the side that does not have them.
#[derive(Debug, Default)]
struct Sides {
    here: OneSidedCalls,
    there: OneSidedCalls,
}

impl OneSidedCalls {
    fn add(&mut self, call_id: CallId, charged: Usdc, difference: Difference) {
        self.sum = self.sum.saturating_add(charged);
        self.total += 1;
        if self.calls.len() < LISTED_MAX {
            self.calls.push((call_id, difference));
        }
    }

    /// Adds what `adjustments` do not stand for as differences, and returns what they stand for. Where they stand for a
    /// part, the rest is one difference: nobody knows which call each of them counts.
    fn weigh(
        self,
        adjustments: Usdc,
        compared: &mut BookComparison,
        difference: impl Fn(Usdc) -> Difference,
    ) -> Usdc {
        let explained = adjustments.min(self.sum);
        if explained == self.sum {
            return explained;
        }
        if !explained.is_zero() {
            let rest = self.sum.saturating_sub(explained);
            let subject = format!(
                "{} over {} USDC, of which adjustments explain {explained}",
                counted(self.total, "call"),
                self.sum
            );
            compared.add(subject, difference(rest));
            return explained;
        }
        let unlisted = self.total - u64::try_from(self.calls.len()).unwrap_or(self.total);
        for (call_id, difference) in self.calls {
            compared.add(format_args!("call {call_id}"), difference);
        }
        compared.differences_total += unlisted;
        explained
    }
}

/// Takes a page only when it answers what was asked: its calls behind the last one, in order, each once, and no more
/// than fit a page.
pub fn check_page(after: Option<CallId>, page: &CallsPage) -> Result<(), BadPage> {
    if page.records.len() > CALLS_PAGE_MAX {
        return Err(BadPage::TooMany(page.records.len()));
    }
    let mut last = after;
    for record in &page.records {
        if last >= Some(record.call_id) {
            return Err(BadPage::OutOfOrder(record.call_id));
        }
        last = Some(record.call_id);
    }
    match page.next {
        Some(next) if Some(next) <= after => Err(BadPage::NoProgress),
        Some(next) if last > Some(next) => Err(BadPage::BeyondItsEnd),
        _ => Ok(()),
    }
}

/// Tells whether an owner may have forgotten a call by its age. Every owner keeps a week, whatever it says.
pub fn may_be_forgotten(promised_secs: u64, kept_since_secs: u64, now_secs: u64) -> bool {
    promised_secs <= kept_since_secs.min(now_secs.saturating_sub(KEPT_SECS_MIN))
}

/// The own books, and the way to the owners whose books they are compared with.
#[derive(Debug)]
pub(super) struct BookComparer<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) channels: &'a PayerChannels,
    pub(super) signer: &'a Signer,
    pub(super) network: &'a NetworkHandle,
}

impl BookComparer<'_> {
    /// Compares every call bought from `owner`, and every channel with it, with what it says of them.
    ///
    /// # Errors
    /// [`BooksError`] when the owner's books or the own ones cannot be seen.
    pub(super) async fn compare_with(&self, owner: Address) -> Result<BookComparison, BooksError> {
        let compared = async {
            let mut compared = BookComparison::default();
            // First: an owner that lost records takes over what it is shown of them.
            self.compare_channels(owner, &mut compared).await?;
            self.compare_calls(owner, &mut compared).await?;
            Ok(compared)
        };
        let late = |_| Err(BooksError::NotToldInTime);
        tokio::time::timeout(COMPARED_WITHIN, compared).await.unwrap_or_else(late)
    }

    async fn compare_calls(&self, owner: Address, compared: &mut BookComparison) -> Result<(), BooksError> {
        let mut unknown = Sides::default();
        let (mut after, mut short_pages) = (None, 0);
        for _ in 0..PAGES_MAX {
            let open = self.open_with(owner)?;
            let asked_secs = clock::now_secs();
            let page = self.page_of(owner, CallsAsked { after, since_secs: 0 }).await?;
            check_page(after, &page)?;
            short_pages += usize::from(page.records.len() < CALLS_PAGE_MAX);
            if short_pages > SHORT_PAGES_MAX {
                return Err(BooksError::ShortPages);
            }
            let (ledger, until) = (self.ledger.clone(), page.next);
            let mine = run_blocking(move || ledger.purchases_from(owner, after, until)).await?;
            self.compare_page((asked_secs, &open), &mine, &page, compared, &mut unknown)?;
            match page.next {
                Some(next) => after = Some(next),
                None => {
                    let (here, there) = (self.adjusted_with(owner)?, page.adjusted.unwrap_or_default());
                    let unknown_here = |charged| Difference::UnknownHere { charged };
                    compared.adjusted = unknown.here.weigh(here, compared, unknown_here);
                    let unknown_there = |charged| Difference::UnknownThere { charged };
                    compared.adjusted_there = unknown.there.weigh(there, compared, unknown_there);
                    return Ok(());
                }
            }
        }
        Err(BooksError::EndlessPages)
    }

    /// Compares the calls of one page with the own ones of the same stretch of ids.
    fn compare_page(
        &self,
        (asked_secs, open): (u64, &HashSet<CallId>),
        mine: &[Purchase],
        page: &CallsPage,
        compared: &mut BookComparison,
        unknown: &mut Sides,
    ) -> Result<(), LedgerError> {
        let mut theirs: BTreeMap<CallId, CallRecord> =
            page.records.iter().map(|record| (record.call_id, *record)).collect();
        for purchase in mine {
            let record = theirs.remove(&purchase.call_id);
            if record.is_none() && purchase.closed_secs >= asked_secs {
                // It may have ended after the owner was asked.
                continue;
            }
            if record.is_none() && may_be_forgotten(purchase.promised_secs, page.kept_since_secs, asked_secs)
            {
                compared.not_kept += 1;
                continue;
            }
            compared.calls += 1;
            let Some(difference) = differ(Some(purchase.into()), record.as_ref()) else { continue };
            match difference.lacking() {
                Some((Side::Payer, charged)) => unknown.here.add(purchase.call_id, charged, difference),
                Some((Side::Payee, charged)) => unknown.there.add(purchase.call_id, charged, difference),
                None => compared.add(format_args!("call {}", purchase.call_id), difference),
            }
        }
        for (call_id, record) in theirs {
            compared.calls += 1;
            if open.contains(&call_id) || self.is_open(call_id)? {
                compared.undecided += 1;
            } else if let Some(difference @ Difference::UnknownHere { charged }) = differ(None, Some(&record))
            {
                unknown.here.add(call_id, charged, difference);
            }
        }
        Ok(())
    }

    fn open_with(&self, owner: Address) -> Result<HashSet<CallId>, LedgerError> {
        let open: Vec<Promise> = self.ledger.unresolved()?;
        let of_owner = open.into_iter().filter(|promise| promise.owner == owner);
        Ok(of_owner.map(|promise| promise.request.call_id).collect())
    }

    fn is_open(&self, call_id: CallId) -> Result<bool, LedgerError> {
        Ok(self.ledger.promise_of(call_id)?.is_some())
    }

    fn adjusted_with(&self, owner: Address) -> Result<Usdc, LedgerError> {
        self.ledger.adjusted_with(Side::Payer, owner)
    }

    async fn page_of(&self, owner: Address, asked: CallsAsked) -> Result<CallsPage, BooksError> {
        for _ in 0..WAITS_MAX {
            match self.put_question(owner, CallMessage::Calls(asked), PAGE_TIMEOUT).await? {
                CallReply::Calls(page) => return Ok(page),
                CallReply::Refused(refusal) if refusal.code == RefusalCode::RateLimited => {
                    let wait = refusal.retry_after_ms.unwrap_or(1_000).clamp(100, 60_000);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                }
                CallReply::Refused(refusal) => return Err(refusal.into()),
                _ => return Err(NotTold::AnotherAnswer.into()),
            }
        }
        Err(BooksError::NoMoreForNow)
    }

    async fn put_question(
        &self,
        owner: Address,
        question: CallMessage,
        within: Duration,
    ) -> Result<CallReply, CallFailure> {
        let (reply, ..) = self.network.call(owner, question, bytes::Bytes::new(), within).await?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests;
