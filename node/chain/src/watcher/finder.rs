//! Finds this wallet's channels in the contract's events: a task of its own, because it may wait for long.
//!
//! In order: a block range is asked for, about the chain's token alone; what comes back is checked again and
//! handed to the watcher, which believes only what the contract's state confirms; the cursor advances. A range
//! that fails, by its size, by time or by refusal, is halved down to one block. A single block that fails
//! while another is answered is skipped and told; while none is answered the finder waits and asks again.
//!
//! Nothing else waits for it: channels that are known are read by their ids. Ranges overlap a little, because
//! an endpoint may answer for its newest block before it has indexed that block's events; and now and then the last
//! hour is read again, for endpoints that are later than that, from each endpoint in turn: one may tell of nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use alloy::{primitives::B256, sol_types::SolEvent as _};
use farthing_values::{Address, ChannelConfig, ChannelId};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    backoff::Backoff,
    contracts::{PayChannels, from_eth},
    reader::{Log, Reader},
    rpc::RpcError,
    spec::LOOKBACK_BLOCKS,
    store::Store,
    views::{Head, LogsFailing, Views},
};

/// Channels that events named, each with its terms where a deposit told them.
pub(super) type Found = Vec<(ChannelId, Option<ChannelConfig>)>;

/// Channels handed over at once: as many as are read in a few requests.
pub(super) const FOUND_MAX: usize = 200;
/// The most blocks that a reorganisation may reach back; the deepest on record for these chains are far shorter.
const REORG_BLOCKS_MAX: u64 = 64;
/// Beyond the confirmations: how late an endpoint may index a block's events, in blocks and in seconds.
const OVERLAP_BLOCKS: u64 = 4;
const OVERLAP_SECS: u64 = 8;
/// The blocks and the seconds that are read again now and then, whichever is longer.
const AGAIN_BLOCKS: u64 = 1_800;
const AGAIN_SECS: u64 = 3_600;
/// The time that a node without records looks back.
const LOOKBACK_SECS: u64 = 7 * 86_400;
/// A head that stays is asked about again after this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The cursor is a hint that saves work after a restart; it need not be durable at every block.
const CURSOR_EVERY_BLOCKS: u64 = 500;

pub(super) struct Finder {
    reader: Reader,
    wallet: Address,
    store: Store,
    views: Arc<Views>,
    found: mpsc::Sender<Found>,
    /// The last block whose events were read.
    cursor: Option<u64>,
    stored_cursor: u64,
    /// Blocks in one query, as many as the endpoints take.
    range_blocks: u64,
    reorganisations: u64,
    /// The number of times that the last hour was read again.
    again: usize,
}

/// Identifies a head among all: two with the same number are told apart by what was replaced before them.
const fn place(head: &Head) -> (u64, u64) {
    (head.number, head.reorganisations)
}

impl Finder {
    pub(super) fn new(
        reader: Reader,
        wallet: Address,
        store: Store,
        views: Arc<Views>,
        found: mpsc::Sender<Found>,
        cursor: Option<u64>,
    ) -> Self {
        let range_blocks = reader.spec.logs_range_blocks.max(1);
        let stored_cursor = cursor.unwrap_or_default();
        let (reorganisations, again) = Default::default();
        Self {
            reader,
            wallet,
            store,
            views,
            found,
            cursor,
            stored_cursor,
            range_blocks,
            reorganisations,
            again,
        }
    }

    /// Reads events as blocks come, until the watcher is gone.
    pub(super) async fn run(mut self) {
        let mut heads = self.views.head.subscribe();
        let mut backoff = Backoff::default();
        let again = Duration::from_millis(self.reader.spec.logs_again_ms);
        let mut again_at = Instant::now() + again;
        loop {
            if Instant::now() >= again_at {
                again_at = Instant::now() + again;
                if let Err(EarlyEnd::NoWatcher) = self.read_again().await {
                    return;
                }
            }
            match self.catch_up().await {
                Ok(read) => {
                    backoff.reset();
                    self.tell_working();
                    // The same head, looked at again, has nothing new; but for events that came late.
                    let is_new = |head: &Option<Head>| head.is_some_and(|head| place(&head) != read);
                    let _ = tokio::time::timeout(PATIENCE.min(again), heads.wait_for(is_new)).await;
                }
                Err(EarlyEnd::NoWatcher) => return,
                Err(EarlyEnd::Failing(reason)) => {
                    self.turn_to_next();
                    self.tell_failing(reason);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// Reads the last hour again, from the next endpoint each time.
    async fn read_again(&mut self) -> Result<(), EarlyEnd> {
        let (cursor, usual) = (self.cursor, self.reader.rpc.events_from());
        self.again = self.again.wrapping_add(1);
        let again = self.reader.spec.blocks_in(AGAIN_SECS).max(AGAIN_BLOCKS);
        self.cursor = cursor.map(|block| block.saturating_sub(again));
        self.reader.rpc.read_events_from(usual.wrapping_add(self.again));
        let read = self.catch_up().await.map(drop);
        self.reader.rpc.read_events_from(usual);
        // What came meanwhile is read from the usual one as well.
        self.cursor = cursor;
        read
    }

    fn turn_to_next(&self) {
        self.reader.rpc.read_events_from(self.reader.rpc.events_from() + 1);
    }

    /// The place of the head up to which all was read.
    async fn catch_up(&mut self) -> Result<(u64, u64), EarlyEnd> {
        let seen = *self.views.head.borrow();
        let (head, reorganisations) = match seen {
            Some(head) => place(&head),
            None => (self.reader.head().await.map_err(failing)?.number(), 0),
        };
        if reorganisations != self.reorganisations {
            self.reorganisations = reorganisations;
            self.cursor = self.cursor.map(|block| block.saturating_sub(REORG_BLOCKS_MAX));
        }
        let mut from = self.first_block(head);
        // A head that was taken back meanwhile, or never was one, is not read up to.
        let stands = |now: &Head| now.number >= head && now.reorganisations == reorganisations;
        while from <= head && self.views.head.borrow().as_ref().is_none_or(stands) {
            let to = head.min(from.saturating_add(self.range_blocks - 1));
            match self.reader.logs(self.wallet, from, to).await {
                Ok(logs) => {
                    self.hand_over(&logs).await?;
                    self.views.logs.send_if_modified(|view| view.unskip(from..=to));
                    // A hard stretch does not slow down what follows it.
                    let most = self.reader.spec.logs_range_blocks.max(1);
                    self.range_blocks = self.range_blocks.saturating_mul(2).min(most);
                }
                Err(error) if to > from => {
                    self.range_blocks = (to - from + 1).div_ceil(2);
                    tracing::debug!(%error, blocks = self.range_blocks, "asking for fewer blocks at once");
                    continue;
                }
                Err(error) => self.skip(from, head, error).await?,
            }
            self.cursor = Some(to);
            from = to + 1;
            self.store_cursor(to).await;
        }
        Ok((head, reorganisations))
    }

    fn first_block(&self, head: u64) -> u64 {
        let spec = &self.reader.spec;
        let overlap = spec.confirmations + spec.blocks_in(OVERLAP_SECS).max(OVERLAP_BLOCKS);
        // A cursor far above the head belongs to a local chain that was started afresh.
        let is_this_chains = |cursor: &u64| *cursor <= head.saturating_add(REORG_BLOCKS_MAX);
        let cursor = self.cursor.filter(is_this_chains).map(|cursor| cursor.min(head));
        match (cursor, spec.first_block) {
            (Some(cursor), _) => (cursor + 1).saturating_sub(overlap),
            (None, Some(first)) => first.min(head),
            (None, None) => head.saturating_sub(spec.blocks_in(LOOKBACK_SECS).max(LOOKBACK_BLOCKS)),
        }
    }

    /// Gives up on one block if the endpoints answer about another one. If they do not, logs are away, and
    /// nothing is skipped for that.
    async fn skip(&mut self, block: u64, head: u64, error: RpcError) -> Result<(), EarlyEnd> {
        let other = if block == head { block.saturating_sub(1) } else { head };
        if other == block || self.reader.logs(self.wallet, other, other).await.is_err() {
            return Err(failing(error));
        }
        // They may have come back between the two questions, and another may tell of the block.
        self.turn_to_next();
        let error = match self.reader.logs(self.wallet, block, block).await {
            Ok(logs) => return self.hand_over(&logs).await,
            Err(error) => error,
        };
        tracing::error!(
            block, %error,
            "the events of a block cannot be read; this node may not know channels that were opened in it"
        );
        self.views.logs.send_modify(|logs| logs.skip(block));
        Ok(())
    }

    async fn hand_over(&self, logs: &[Log]) -> Result<(), EarlyEnd> {
        let mut named: BTreeMap<ChannelId, Option<ChannelConfig>> = BTreeMap::new();
        for (id, config) in logs.iter().filter_map(|log| self.named(log)) {
            let known = named.entry(id).or_default();
            *known = known.or(config);
        }
        let named: Found = named.into_iter().collect();
        for part in named.chunks(FOUND_MAX) {
            self.found.send(part.to_vec()).await.map_err(|_| EarlyEnd::NoWatcher)?;
        }
        Ok(())
    }

    fn named(&self, log: &Log) -> Option<(ChannelId, Option<ChannelConfig>)> {
        channel_of(log, self.wallet, self.reader.spec.token)
    }

    async fn store_cursor(&mut self, block: u64) {
        if block.abs_diff(self.stored_cursor) < CURSOR_EVERY_BLOCKS {
            return;
        }
        match self.store.put_cursor(block).await {
            Ok(()) => self.stored_cursor = block,
            Err(error) => tracing::warn!(%error, "the watcher's progress is not stored"),
        }
    }

    fn tell_working(&self) {
        let read_to = self.cursor;
        self.views.logs.send_modify(|logs| {
            (logs.tried, logs.read_to, logs.failing) = (true, read_to, None);
        });
    }

    fn tell_failing(&self, reason: String) {
        let (chain, read_to) = (&self.reader.spec.name, self.cursor);
        tracing::warn!(chain, reason, "events cannot be read; known channels are followed without them");
        self.views.logs.send_modify(|logs| {
            let since = logs.failing.as_ref().map_or_else(Instant::now, |failing| failing.since);
            (logs.tried, logs.read_to) = (true, read_to);
            logs.failing = Some(LogsFailing { since, reason });
        });
    }
}

/// The channel that an event is about, with its terms where it tells them. An endpoint that does not keep
/// to the question is not believed.
pub(crate) fn channel_of(
    log: &Log,
    wallet: Address,
    of_token: Address,
) -> Option<(ChannelId, Option<ChannelConfig>)> {
    let [kind, payer, payee, token] = log.topics.as_slice() else { return None };
    let is_ours = address_in(payer) == wallet || address_in(payee) == wallet;
    if !is_ours || address_in(token) != of_token {
        return None;
    }
    let id = ChannelId::from_bytes(log.data.get(..32)?.try_into().ok()?);
    if *kind != PayChannels::Deposited::SIGNATURE_HASH {
        return Some((id, None));
    }
    let event = PayChannels::Deposited::decode_raw_log(log.topics.iter().copied(), &log.data).ok()?;
    let config = ChannelConfig {
        payer: from_eth(event.payer),
        payee: from_eth(event.payee),
        token: from_eth(event.token),
        signer: from_eth(event.signer),
        close_delay_secs: event.closeDelay.to(),
        salt: event.salt.0,
    };
    Some((id, Some(config)))
}

pub(crate) fn address_in(topic: &B256) -> Address {
    Address::from_bytes(topic.0[12..].try_into().unwrap_or_default())
}

/// The reason that a round ended early.
enum EarlyEnd {
    Failing(String),
    NoWatcher,
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error")]
fn failing(error: RpcError) -> EarlyEnd {
    EarlyEnd::Failing(error.to_string())
}
