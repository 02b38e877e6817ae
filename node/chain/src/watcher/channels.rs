//! Each channel of this wallet, as the chain tells it.
//!
//! Channels come from the journal, from others of this node who know one, and from events. What an event
//! names is a *candidate* until the contract's state shows money in it; only then is it remembered. All of
//! them are read by their ids.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use farthing_values::{Address, ChannelConfig, ChannelId, Domain, Usdc};
use tokio::time::Instant;

use super::finder::Found;
use crate::{
    reader::{At, ChannelState, Reader},
    rpc::RpcError,
    store::{Remembered, Store},
    views::{ChannelView, ChannelViews, Role},
};

/// The channels that are read besides those that events touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Touched,
    /// Those that hold money.
    Active,
    All,
}

/// The time after which channels that were empty are read again.
const ALL_EVERY: Duration = Duration::from_secs(600);

impl Scope {
    /// Returns what has to be read without an event to ask for it, so long after all were read and those with money were.
    pub(super) fn due(is_reorganised: bool, [all, active]: [Duration; 2], active_every: Duration) -> Self {
        // An endpoint that told of a channel as empty for a moment would otherwise be asked about it no more.
        if is_reorganised || all >= ALL_EVERY {
            return Self::All;
        }
        if active >= active_every { Self::Active } else { Self::Touched }
    }
}

#[derive(Clone, Copy, Debug)]
struct FollowedChannel {
    config: ChannelConfig,
    /// Somebody here has a use for it: it never makes room.
    kept: bool,
    confirmed: ChannelState,
    newest: ChannelState,
    /// The part of the deposit that cannot be taken back, and of which round.
    safe: ChannelState,
    /// The confirmed block at which the present deposit was first read.
    seen_in: u64,
    /// Since when every reading has shown that the contract never had it: a deposit leaves a trace there for good.
    absent_since: Option<Instant>,
}

impl FollowedChannel {
    fn new(config: ChannelConfig) -> Self {
        let (kept, confirmed, newest, safe, seen_in, absent_since) = Default::default();
        Self { config, kept, confirmed, newest, safe, seen_in, absent_since }
    }

    fn observe(&mut self, confirmed: ChannelState, newest: ChannelState, block: u64) -> bool {
        let changed = (self.confirmed, self.newest) != (confirmed, newest);
        let deposit = |state: &ChannelState| (state.deposited, state.round);
        if deposit(&self.confirmed) != deposit(&confirmed) {
            self.seen_in = block;
        }
        (self.confirmed, self.newest) = (confirmed, newest);
        let is_absent = [confirmed, newest] == [ChannelState::default(); 2];
        self.absent_since = is_absent.then(|| self.absent_since.unwrap_or_else(Instant::now));
        // What was told to be safe and is not there was never safe.
        self.safe.deposited = self.safe.deposited.min(confirmed.deposited);
        changed
    }

    fn deposited(&self) -> Usdc {
        self.confirmed.deposited.min(self.newest.deposited)
    }

    /// A deposit of an earlier round was emptied since: of it, what was claimed is left.
    fn safe_deposited(&self) -> Usdc {
        let safe = if self.safe.round == self.newest.round { self.safe.deposited } else { Usdc::ZERO };
        self.deposited().min(safe.max(self.newest.claimed))
    }

    /// Tells whether a layer 2 may yet take back a part of its deposit, or its last close.
    fn is_unsafe(&self) -> bool {
        self.safe_deposited() < self.deposited() || self.safe.round != self.newest.round
    }

    fn is_empty(&self) -> bool {
        self.confirmed.is_empty() && self.newest.is_empty()
    }

    /// Returns what it holds, if it may make room: it was read, nobody has a use for it, and it is empty or never paid.
    fn standing(&self) -> Option<Usdc> {
        let may_go = !self.kept && self.seen_in > 0 && (self.is_empty() || self.confirmed.claimed.is_zero());
        may_go.then(|| self.newest.deposited.saturating_sub(self.newest.claimed))
    }
}

pub(super) struct Channels {
    reader: Reader,
    wallet: Address,
    domain: Domain,
    store: Store,
    known: BTreeMap<ChannelId, FollowedChannel>,
    /// Named by events, and not yet confirmed by the contract's state.
    candidates: BTreeMap<ChannelId, ChannelConfig>,
    /// Named by events and not read since.
    touched: BTreeSet<ChannelId>,
    /// The safe block that was looked at last.
    safe_block: Option<u64>,
}

impl Channels {
    pub(super) fn new(reader: Reader, wallet: Address, store: Store, remembered: &Remembered) -> Self {
        let domain = Domain::new(reader.spec.chain_id, reader.spec.contract);
        let (known, candidates, touched, safe_block) = Default::default();
        let mut channels = Self { reader, wallet, domain, store, known, candidates, touched, safe_block };
        for config in &remembered.channels {
            let id = config.id(&channels.domain);
            if channels.is_ours(config) {
                channels.known.insert(id, FollowedChannel::new(*config));
            }
        }
        // The deposit may yet come.
        for (config, ..) in remembered.entries.iter().filter_map(|entry| entry.intent.deposit()) {
            if let Some(known) = channels.known.get_mut(&config.id(&channels.domain)) {
                known.kept = true;
            }
        }
        channels
    }

    /// Follows a channel that somebody here has a use for, however many there are.
    pub(super) async fn track(&mut self, config: ChannelConfig) {
        if !self.is_ours(&config) {
            return;
        }
        let id = config.id(&self.domain);
        let is_new = !self.known.contains_key(&id);
        self.known.entry(id).or_insert_with(|| FollowedChannel::new(config)).kept = true;
        self.touched.insert(id);
        if is_new {
            self.remember(id, &config).await;
        }
    }

    /// Reads a channel with the next poll, if it is followed.
    pub(super) fn touch(&mut self, id: ChannelId) {
        if self.known.contains_key(&id) {
            self.touched.insert(id);
        }
    }

    /// Takes in what events named; the next read decides what of it is true.
    pub(super) fn consider(&mut self, found: Found) {
        for (id, config) in found {
            if self.known.contains_key(&id) {
                self.touched.insert(id);
            } else if let Some(config) = config
                && self.is_ours(&config)
                && config.id(&self.domain) == id
            {
                self.candidates.insert(id, config);
            }
        }
    }

    /// Counts the channels that wait for the contract's word.
    pub(super) fn candidates(&self) -> usize {
        self.candidates.len()
    }

    pub(super) fn has_news(&self) -> bool {
        !(self.touched.is_empty() && self.candidates.is_empty())
    }

    /// After a reorganisation a deposit may be in a later block than it was.
    pub(super) fn reorganised(&mut self, confirmed_block: u64) {
        for known in self.known.values_mut() {
            known.seen_in = confirmed_block;
        }
    }

    /// Reads the channels that events touched and those in `scope`. `None` when nothing changed.
    pub(super) async fn read(&mut self, head: u64, scope: Scope) -> Result<Option<ChannelViews>, RpcError> {
        let admitted = self.admit_candidates(head).await?;
        let in_scope = |known: &FollowedChannel| match scope {
            Scope::Touched => false,
            Scope::Active => !known.is_empty(),
            Scope::All => true,
        };
        let is_due = |id: &ChannelId, known: &FollowedChannel| self.touched.contains(id) || in_scope(known);
        let due = self.known.iter().filter(|(id, known)| is_due(id, known)).map(|(id, _)| *id);
        let ids: Vec<ChannelId> = due.collect();
        let changed = self.read_states(&ids, head).await?;
        self.touched.clear();
        if scope == Scope::All {
            self.forget_absent().await;
        }
        let safer = self.read_safe(head).await?;
        Ok((admitted || changed || safer || scope == Scope::All).then(|| self.views()))
    }

    /// Takes in candidates in which the newest block shows money, as far as there is room; the rest is forgotten.
    async fn admit_candidates(&mut self, head: u64) -> Result<bool, RpcError> {
        let ids: Vec<ChannelId> = self.candidates.keys().copied().collect();
        let states = self.reader.channels(&ids, At::Block(head)).await?;
        let candidates = std::mem::take(&mut self.candidates);
        let mut admitted = false;
        for ((id, config), state) in candidates.into_iter().zip(states) {
            let held = state.deposited.saturating_sub(state.claimed);
            let is_dust = config.payer != self.wallet && held < self.reader.spec.channel_min;
            if state.deposited.is_zero() || is_dust || !self.has_room(&config, held).await {
                continue;
            }
            admitted = true;
            self.known.insert(id, FollowedChannel { newest: state, ..FollowedChannel::new(config) });
            self.touched.insert(id);
            self.remember(id, &config).await;
        }
        Ok(admitted)
    }

    /// A channel that this wallet fills and another key signs for pays whomever that key chooses: an endpoint that tells
    /// of one wants it filled.
    fn is_ours(&self, config: &ChannelConfig) -> bool {
        let is_party = match config.payer == self.wallet {
            true => config.signer == self.wallet,
            false => config.payee == self.wallet,
        };
        is_party && config.token == self.reader.spec.token
    }

    /// Tells whether a channel that holds so much may be followed. This wallet's own deposits always may; among those
    /// of others the one that holds least makes room for one that holds more.
    async fn has_room(&mut self, config: &ChannelConfig, held: Usdc) -> bool {
        if self.known.len() < self.reader.spec.channels_max || config.payer == self.wallet {
            return true;
        }
        let of_others = self.known.iter().filter(|(_, known)| known.config.payer != self.wallet);
        let least = of_others.filter_map(|(id, known)| Some((known.standing()?, *id))).min();
        let Some((_, id)) = least.filter(|(least, _)| *least < held) else {
            tracing::debug!(payer = %config.payer, "this wallet has too many channels; a new one is not followed");
            return false;
        };
        self.forget(id).await;
        true
    }

    /// Follows no more what an endpoint alone has told of. What somebody here has a use for stays.
    async fn forget_absent(&mut self) {
        let after = Duration::from_millis(self.reader.spec.absent_forgotten_ms);
        let mut gone = Vec::new();
        for (id, known) in self.known.iter().filter(|(_, known)| known.config.payer == self.wallet) {
            let is_gone = known.absent_since.is_some_and(|since| since.elapsed() >= after);
            gone.extend(Some(*id).filter(|_| is_gone && !known.kept));
        }
        for id in gone {
            self.forget(id).await;
        }
    }

    async fn forget(&mut self, id: ChannelId) {
        self.known.remove(&id);
        if let Err(error) = self.store.delete_channel(id).await {
            tracing::warn!(%id, %error, "a channel that is no longer followed will be found again after a restart");
        }
    }

    async fn remember(&self, id: ChannelId, config: &ChannelConfig) {
        if let Err(error) = self.store.put_channel(id, config).await {
            tracing::error!(%error, "a channel will have to be found again after a restart");
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
            changed |= known.observe(confirmed, newest, confirmed_block);
        }
        Ok(changed)
    }

    /// Reads what a layer 2 cannot take back any more. A deposit or a close counts once the safe block has reached the block in
    /// which it was first read. Right after a start that block is unknown, so the safe block's state is asked.
    async fn read_safe(&mut self, head: u64) -> Result<bool, RpcError> {
        let waiting: Vec<ChannelId> =
            self.known.iter().filter(|(_, known)| known.is_unsafe()).map(|(id, _)| *id).collect();
        if waiting.is_empty() {
            return Ok(false);
        }
        let confirmed = self.reader.confirmed(head);
        let Some(safe_block) = self.reader.safe_block().await?.map(|block| block.min(confirmed)) else {
            return Ok(false);
        };
        let mut changed = false;
        if self.safe_block.is_none() {
            // Nodes that keep no state of that block refuse; then the deposits wait for the next safe blocks.
            if let Ok(states) = self.reader.channels(&waiting, At::Block(safe_block)).await {
                for (id, state) in waiting.iter().zip(states) {
                    if let Some(known) = self.known.get_mut(id) {
                        known.safe = state;
                    }
                }
                changed = true;
            }
        }
        self.safe_block = Some(safe_block);
        for id in waiting {
            let Some(known) = self.known.get_mut(&id) else { continue };
            if known.seen_in <= safe_block && known.safe != known.confirmed {
                known.safe = known.confirmed;
                changed = true;
            }
        }
        Ok(changed)
    }

    fn views(&self) -> ChannelViews {
        let views: HashMap<_, _> =
            self.known.iter().map(|(id, known)| (*id, self.view(*id, known))).collect();
        views.into()
    }

    /// Money counts when it is confirmed, a danger as soon as it is seen.
    fn view(&self, id: ChannelId, known: &FollowedChannel) -> ChannelView {
        let FollowedChannel { config, confirmed, newest, .. } = *known;
        ChannelView {
            id,
            config,
            role: if config.payer == self.wallet { Role::Payer } else { Role::Payee },
            deposited: known.deposited(),
            safe_deposited: known.safe_deposited(),
            claimed: confirmed.claimed,
            close_at_secs: confirmed.close_at_secs.or(newest.close_at_secs),
            round: newest.round,
            safe_round: known.safe.round,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_was_said_to_be_empty_is_read_again_without_an_event() {
        let due = |is_reorganised, ages: [u64; 2]| {
            Scope::due(is_reorganised, ages.map(Duration::from_secs), Duration::from_secs(60))
        };
        for (is_reorganised, ages, expected) in [
            (false, [599, 59], Scope::Touched),
            (false, [599, 60], Scope::Active),
            (false, [600, 0], Scope::All),
            (true, [0, 0], Scope::All),
        ] {
            assert_eq!(due(is_reorganised, ages), expected, "{is_reorganised} {ages:?}");
        }
    }

    #[test]
    fn a_deposit_that_was_said_to_be_safe_and_is_not_there_makes_no_later_one_safe() {
        let state =
            |deposited| ChannelState { deposited: Usdc::from_micros(deposited), ..Default::default() };
        let [payer, payee] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        let config =
            ChannelConfig { payer, payee, token: payer, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        let mut channel = FollowedChannel::new(config);
        channel.observe(state(10), state(10), 7);
        channel.safe = channel.confirmed;
        channel.observe(state(1), state(1), 8);
        channel.observe(state(10), state(10), 9);
        assert_eq!(channel.safe_deposited(), Usdc::from_micros(1));
    }

    #[test]
    fn a_deposit_of_an_earlier_round_is_safe_no_more() {
        let state = |deposited, claimed, round| ChannelState {
            deposited: Usdc::from_micros(deposited),
            claimed: Usdc::from_micros(claimed),
            close_at_secs: None,
            round,
        };
        let [payer, payee] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        let config =
            ChannelConfig { payer, payee, token: payer, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        for (safe_round, safe) in [(2, 9), (1, 4)] {
            let mut channel = FollowedChannel::new(config);
            channel.observe(state(10, 4, 2), state(10, 4, 2), 7);
            channel.safe = state(9, 0, safe_round);
            assert_eq!(channel.safe_deposited(), Usdc::from_micros(safe), "of round {safe_round}");
        }
    }
}
