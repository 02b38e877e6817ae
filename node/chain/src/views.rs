//! Views that the rest of the node reads from memory: status, head, channels, balances, fees.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc, time::Duration};

use farthing_os::clock;
use farthing_values::{Address, ChannelConfig, ChannelId, Usdc};
use tokio::{sync::watch, time::Instant};

use crate::{reader::Balances, spec::ChainKind};

/// The state of the chain: whether it can be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainStatus {
    /// No answer yet.
    Connecting,
    /// Chain id, token and contract are what they should be.
    Ready,
    /// Everything is right but nobody has deployed `PayChannels` on this chain yet;
    /// [`crate::ChainHandle::deploy_contract`] does.
    ContractMissing { contract: Address },
    /// No endpoint answers. The connection is tried again by itself.
    Unreachable { reason: String },
    /// The chain is not the one it should be; nothing is signed for it. Checked again now and then.
    Refused { reason: String },
}

/// The newest block whose contents have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub number: u64,
    /// The newest block that counts: the balances are those of this block, or of a later one.
    pub confirmed: u64,
    pub timestamp_secs: u64,
    pub base_fee_wei: u128,
    /// The time at which this node last learned that this is the chain's head.
    pub seen_at: Instant,
    pub(crate) kind: ChainKind,
    /// The number of times that the chain took back blocks since the start.
    pub reorganisations: u64,
}

impl Head {
    /// Returns whether the view of the chain is at most `max_age` old.
    pub fn is_fresh(&self, max_age: Duration) -> bool {
        self.age() <= max_age
    }

    /// Computes the age of the view of the chain. On a public chain the block's own time counts as well, so that an
    /// endpoint stuck in the past does not pass for a quiet chain; a local chain may rest, and a poll that finds the
    /// same head is enough.
    pub fn age(&self) -> Duration {
        self.age_at(Instant::now(), clock::now_secs())
    }

    fn age_at(&self, now: Instant, now_secs: u64) -> Duration {
        let unseen = now.saturating_duration_since(self.seen_at);
        if self.kind == ChainKind::Local {
            return unseen;
        }
        unseen.max(Duration::from_secs(now_secs.saturating_sub(self.timestamp_secs)))
    }
}

/// Computes the greatest age of the view of the chain at which a channel still takes new value: a quarter of the
/// time the payee has to answer a close, at most ten minutes.
pub fn view_age_max(close_delay_secs: u64) -> Duration {
    Duration::from_secs((close_delay_secs / 4).min(600))
}

/// The wallet's side of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Payer,
    Payee,
}

/// One channel of this wallet, as the chain confirms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelView {
    pub id: ChannelId,
    pub config: ChannelConfig,
    /// Payer when the wallet is both.
    pub role: Role,
    /// Confirmed, and never more than what the newest block says.
    pub deposited: Usdc,
    /// The part of `deposited` that no reorganisation of a layer 2 takes back, because its layer 1 holds it
    /// (block tag `safe`). On chains without that, see [`crate::ChainSpec::safe_tag`], all that is confirmed.
    pub safe_deposited: Usdc,
    pub claimed: Usdc,
    /// A close is pending, also when only the newest block says so: from this second on (the chain's clock)
    /// the rest may be withdrawn.
    pub close_at_secs: Option<u64>,
    /// The number of times that the channel was emptied; signed closes and requests to close are bound to it.
    pub round: u32,
    /// The same as no reorganisation of a layer 2 takes it back, see `safe_deposited`.
    pub safe_round: u32,
}

/// Progress in reading the contract's events. Only the discovery of new channels depends on it: known ones are
/// read by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsView {
    /// A first round was tried, whatever came of it.
    pub(crate) tried: bool,
    /// The last block whose events were read.
    pub read_to: Option<u64>,
    /// Events cannot be read now.
    pub failing: Option<LogsFailing>,
    /// Blocks whose events could not be read, the newest last, while those of others could. A channel that was
    /// opened in one of them is unknown unless somebody names it.
    pub skipped: Vec<u64>,
}

/// Since when and why events cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogsFailing {
    pub since: Instant,
    pub reason: String,
}

/// More than these are not listed one by one.
const SKIPPED_MAX: usize = 64;

impl LogsView {
    pub(crate) fn skip(&mut self, block: u64) {
        if !self.skipped.contains(&block) {
            self.skipped.push(block);
        }
        if self.skipped.len() > SKIPPED_MAX {
            self.skipped.remove(0);
        }
    }

    /// An endpoint that was late has caught up. Whether anything changed.
    pub(crate) fn unskip(&mut self, read: RangeInclusive<u64>) -> bool {
        let before = self.skipped.len();
        self.skipped.retain(|block| !read.contains(block));
        self.skipped.len() != before
    }
}

/// Every known channel by its id. One that holds nothing was closed, or is not opened yet.
pub type ChannelViews = Arc<HashMap<ChannelId, ChannelView>>;

/// The price of gas, for the decision when to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseFee {
    pub current_wei: u128,
    /// Over what this process has seen of the last seven days.
    pub median_wei: u128,
    /// The tip that miners and sequencers usually get on top.
    pub tip_wei: u128,
    /// The most that a transaction sent now offers for each unit of gas, its tip included: a wallet has to hold that
    /// for all of its limit. The cap where gas costs more.
    pub bid_wei: u128,
    /// The fee that layer 1 charges for a claim's data, where there is a layer 1.
    pub l1: L1Fee,
}

/// A layer 2's fee for putting a claim's data on its layer 1, in wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L1Fee {
    /// A claim transaction before its first row.
    pub base_wei: u128,
    /// Each row.
    pub row_wei: u128,
}

/// The transaction of this wallet that is under way. Whatever else is due waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub what: &'static str,
    /// Since when this process follows it.
    pub since: Instant,
}

/// The sending halves, held by the watcher and the writer.
#[derive(Debug)]
pub(crate) struct Views {
    pub status: watch::Sender<ChainStatus>,
    pub head: watch::Sender<Option<Head>>,
    pub channels: watch::Sender<ChannelViews>,
    pub balances: watch::Sender<Option<Balances>>,
    pub base_fee: watch::Sender<Option<BaseFee>>,
    pub logs: watch::Sender<LogsView>,
    pub under_way: watch::Sender<Option<UnderWay>>,
}

impl Views {
    pub(crate) fn new() -> Self {
        Self {
            status: watch::Sender::new(ChainStatus::Connecting),
            head: watch::Sender::new(None),
            channels: watch::Sender::new(ChannelViews::default()),
            balances: watch::Sender::new(None),
            base_fee: watch::Sender::new(None),
            logs: watch::Sender::new(LogsView::default()),
            under_way: watch::Sender::new(None),
        }
    }

    /// Tells the status if it changed; the first reason why a chain is unreachable stays.
    pub(crate) fn set_status(&self, status: ChainStatus) {
        self.status.send_if_modified(|current| match (&*current, &status) {
            (ChainStatus::Unreachable { .. }, ChainStatus::Unreachable { .. }) => false,
            (current, new) if *current == *new => false,
            _ => {
                *current = status;
                true
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: ChainKind, seen_at: Instant) -> Head {
        let (number, confirmed, reorganisations) = (1, 1, 0);
        Head { number, confirmed, timestamp_secs: 1_000, base_fee_wei: 7, seen_at, kind, reorganisations }
    }

    #[test]
    fn a_head_is_fresh_up_to_its_age_limit_and_not_beyond() {
        let seen_at = Instant::now();
        let max = Duration::from_secs(600);
        for (age_ms, fresh) in [(0, true), (599_999, true), (600_000, true), (600_001, false)] {
            let now = seen_at + Duration::from_millis(age_ms);
            assert_eq!(head(ChainKind::Mainnet, seen_at).age_at(now, 1_000) <= max, fresh, "{age_ms}");
        }
    }

    #[test]
    fn a_public_endpoint_that_shows_an_old_block_is_not_fresh_but_a_resting_local_chain_is() {
        let seen_at = Instant::now();
        for (kind, age_secs) in [(ChainKind::Mainnet, 601), (ChainKind::Testnet, 601), (ChainKind::Local, 0)]
        {
            let age = head(kind, seen_at).age_at(seen_at, 1_601);
            assert_eq!(age, Duration::from_secs(age_secs), "{kind}");
        }
    }

    #[test]
    fn the_view_may_be_a_quarter_of_the_delay_old_at_most_ten_minutes() {
        for (delay_secs, age_secs) in [(1_200, 300), (2_396, 599), (2_400, 600), (86_400, 600)] {
            assert_eq!(view_age_max(delay_secs), Duration::from_secs(age_secs));
        }
    }
}
