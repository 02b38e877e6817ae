//! Which channels this wallet has, and what the chain says about each.
//!
//! Channels are found in the contract's events, whose topics name payer and payee, and remembered in the
//! journal. A block range is always read with some overlap, because an endpoint may answer a query for its
//! newest block before it has indexed that block's events.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy::sol_types::SolEvent as _;
use farthing_protocol::{Address, ChannelConfig, ChannelId, Domain};

use crate::{
    contracts::{PayChannels, from_eth},
    reader::{At, ChannelState, Log, Reader},
    rpc::RpcError,
    spec::LOOKBACK_BLOCKS,
    store::{Remembered, Store},
    views::{ChannelView, ChannelViews, Role},
};

/// Deposits of one micro are nearly free on some chains; strangers must not fill this node's memory.
const CHANNELS_MAX: usize = 10_000;
/// How far a reorganisation may reach back; the deepest on record for these chains are far shorter.
const REORG_BLOCKS_MAX: u64 = 64;
/// Beyond the confirmations: how late an endpoint may index a block's events.
const OVERLAP_BLOCKS: u64 = 4;
/// No endpoint refuses as few blocks as this for their number.
const RANGE_BLOCKS_MIN: u64 = 50;
/// The cursor is a hint that saves work after a restart; it need not be durable at every block.
const CURSOR_EVERY_BLOCKS: u64 = 500;

/// Which channels are read besides those that events touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Touched,
    /// Those that hold money.
    Active,
    All,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    config: ChannelConfig,
    confirmed: ChannelState,
    newest: ChannelState,
}

pub(super) struct Channels {
    reader: Reader,
    wallet: Address,
    domain: Domain,
    store: Store,
    known: BTreeMap<ChannelId, Known>,
    /// Named by events and not read since.
    touched: BTreeSet<ChannelId>,
    /// The last block whose events were read.
    cursor: Option<u64>,
    stored_cursor: u64,
    /// Blocks in one query, as many as the endpoints take.
    range_blocks: u64,
}

impl Channels {
    pub(super) fn new(reader: Reader, wallet: Address, store: Store, remembered: &Remembered) -> Self {
        let domain = Domain::new(reader.spec.chain_id, reader.spec.contract);
        let cursor = remembered.cursor;
        let stored_cursor = cursor.unwrap_or_default();
        let range_blocks = reader.spec.logs_range_blocks.max(1);
        let (known, touched) = Default::default();
        let mut channels =
            Self { reader, wallet, domain, store, known, touched, cursor, stored_cursor, range_blocks };
        for config in &remembered.channels {
            channels.learn(*config);
        }
        channels
    }

    /// Follows a channel somebody else knows of.
    pub(super) async fn track(&mut self, config: ChannelConfig) {
        if let Some(id) = self.learn(config) {
            self.remember(id, &config).await;
        }
    }

    /// The next read starts before any block that may have been replaced.
    pub(super) fn step_back(&mut self) {
        self.cursor = self.cursor.map(|block| block.saturating_sub(REORG_BLOCKS_MAX));
    }

    /// Reads events up to `head`, the channels they touched and those in `scope`. `None` when nothing changed.
    pub(super) async fn read(&mut self, head: u64, scope: Scope) -> Result<Option<ChannelViews>, RpcError> {
        self.read_events(head).await?;
        let in_scope = |known: &Known| match scope {
            Scope::Touched => false,
            Scope::Active => !(known.confirmed.is_empty() && known.newest.is_empty()),
            Scope::All => true,
        };
        let is_due = |id: &ChannelId, known: &Known| self.touched.contains(id) || in_scope(known);
        let due = self.known.iter().filter(|(id, known)| is_due(id, known)).map(|(id, _)| *id);
        let ids: Vec<ChannelId> = due.collect();
        let changed = self.read_states(&ids, head).await?;
        self.touched.clear();
        Ok((changed || scope == Scope::All).then(|| self.views()))
    }

    async fn read_events(&mut self, head: u64) -> Result<(), RpcError> {
        let overlap = self.reader.spec.confirmations + OVERLAP_BLOCKS;
        // A cursor far above the head belongs to a local chain that was started afresh.
        let is_this_chains = |cursor: &u64| *cursor <= head.saturating_add(REORG_BLOCKS_MAX);
        let cursor = self.cursor.filter(is_this_chains).map(|cursor| cursor.min(head));
        let mut from = match (cursor, self.reader.spec.first_block) {
            (Some(cursor), _) => (cursor + 1).saturating_sub(overlap),
            (None, Some(first)) => first.min(head),
            (None, None) => head.saturating_sub(LOOKBACK_BLOCKS),
        };
        while from <= head {
            let to = head.min(from.saturating_add(self.range_blocks - 1));
            let logs = match self.reader.logs(self.wallet, from, to).await {
                Ok(logs) => logs,
                Err(RpcError::Refused(refusal)) if self.range_blocks > RANGE_BLOCKS_MIN => {
                    self.range_blocks = (self.range_blocks / 2).max(RANGE_BLOCKS_MIN);
                    tracing::debug!(%refusal, blocks = self.range_blocks, "asking for fewer blocks at once");
                    continue;
                }
                Err(error) => return Err(error),
            };
            for log in logs {
                let named = self.take_in(&log).await;
                self.touched.extend(named);
            }
            self.cursor = Some(to);
            from = to + 1;
        }
        self.store_cursor(head).await;
        Ok(())
    }

    /// The channel an event is about, learnt if it was unknown.
    async fn take_in(&mut self, log: &Log) -> Option<ChannelId> {
        let id = ChannelId::from_bytes(log.data.get(..32)?.try_into().ok()?);
        if log.topics.first() == Some(&PayChannels::Deposited::SIGNATURE_HASH)
            && !self.known.contains_key(&id)
        {
            let event = PayChannels::Deposited::decode_raw_log(log.topics.iter().copied(), &log.data).ok()?;
            let config = ChannelConfig {
                payer: from_eth(event.payer),
                payee: from_eth(event.payee),
                token: from_eth(event.token),
                signer: from_eth(event.signer),
                close_delay_secs: event.closeDelay.to(),
                salt: event.salt.0,
            };
            if self.learn(config)? != id {
                tracing::warn!(%id, "an event names a channel whose terms lead to another id");
                return None;
            }
            self.remember(id, &config).await;
        }
        Some(id)
    }

    /// `None` for channels that are not this wallet's, of another token, or too many.
    fn learn(&mut self, config: ChannelConfig) -> Option<ChannelId> {
        let is_ours = config.payer == self.wallet || config.payee == self.wallet;
        if !is_ours || config.token != self.reader.spec.token {
            return None;
        }
        let id = config.id(&self.domain);
        if self.known.len() >= CHANNELS_MAX && !self.known.contains_key(&id) {
            tracing::warn!(%id, "this wallet has too many channels; a new one is not followed");
            return None;
        }
        let (confirmed, newest) = Default::default();
        self.known.entry(id).or_insert(Known { config, confirmed, newest });
        Some(id)
    }

    async fn remember(&self, id: ChannelId, config: &ChannelConfig) {
        if let Err(error) = self.store.put_channel(id, config).await {
            tracing::error!(%error, "a channel will have to be found again after a restart");
        }
    }

    async fn store_cursor(&mut self, head: u64) {
        if head.abs_diff(self.stored_cursor) < CURSOR_EVERY_BLOCKS {
            return;
        }
        match self.store.put_cursor(head).await {
            Ok(()) => self.stored_cursor = head,
            Err(error) => tracing::warn!(%error, "the watcher's progress is not stored"),
        }
    }

    async fn read_states(&mut self, ids: &[ChannelId], head: u64) -> Result<bool, RpcError> {
        let confirmed_block = self.reader.confirmed(head);
        let confirmed = self.reader.channels(ids, At::Block(confirmed_block)).await?;
        let newest = if confirmed_block == head {
            confirmed.clone()
        } else {
            self.reader.channels(ids, At::Block(head)).await?
        };
        let mut changed = false;
        for ((id, confirmed), newest) in ids.iter().zip(confirmed).zip(newest) {
            let Some(known) = self.known.get_mut(id) else { continue };
            changed |= (known.confirmed, known.newest) != (confirmed, newest);
            (known.confirmed, known.newest) = (confirmed, newest);
        }
        Ok(changed)
    }

    fn views(&self) -> ChannelViews {
        let views: HashMap<_, _> =
            self.known.iter().map(|(id, known)| (*id, self.view(*id, known))).collect();
        views.into()
    }

    /// Money counts when it is confirmed, a danger as soon as it is seen.
    fn view(&self, id: ChannelId, known: &Known) -> ChannelView {
        let Known { config, confirmed, newest } = *known;
        let deposited = confirmed.deposited.min(newest.deposited);
        ChannelView {
            id,
            config,
            role: if config.payer == self.wallet { Role::Payer } else { Role::Payee },
            deposited,
            safe_deposited: deposited,
            claimed: confirmed.claimed,
            close_at_secs: confirmed.close_at_secs.or(newest.close_at_secs),
            round: newest.round,
        }
    }
}
