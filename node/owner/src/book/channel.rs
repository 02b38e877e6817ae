//! One channel that this node is paid with, and what the chain and the ledger say of it.

use std::time::Duration;

use farthing_ledger::{Ending, PayeeChannelRow};
use farthing_protocol::{ChannelConfig, ChannelId, Usdc, Verified, Voucher, channel::PayeeState};
use tokio::time::Instant;

/// The most looks in a minute at what a payer shows of a channel: a proof costs two signatures, as a call does.
const LOOKS_PER_MINUTE: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);
/// The time that a channel is kept quiet for whoever waits for its calls to end, who comes again several times meanwhile.
const QUIET_FOR: Duration = Duration::from_secs(15);

/// One channel as the owner sees it.
#[derive(Clone, Debug)]
pub struct PayeeChannel {
    pub config: ChannelConfig,
    /// True if it is on another chain, in another contract or of another token than the settings name: this chain tells nothing
    /// of it, neither what was paid nor, by its clock, what is void.
    pub is_elsewhere: bool,
    pub state: PayeeState,
    /// The highest one of these books.
    pub best_voucher: Option<Verified<Voucher>>,
    /// The time of the oldest unclaimed charge.
    pub unclaimed_since_secs: Option<u64>,
    /// `None` before the chain was read since the start.
    pub view: Option<View>,
    /// The step towards the channel's end that this node has taken on; nothing is served until it is done.
    pub ending: Ending,
    /// Since when every reading of the chain has shown that the step is done.
    closed_since: Option<Instant>,
    /// The signed close that the chain has shown as brought: until its term is over it closes the channel again where a block
    /// takes that back.
    brought: Option<Ending>,
    /// True once this node took on to send a close itself that it has signed.
    is_taken_up: bool,
    /// The round in which it was taken on, as far as the chain was read; a later one is closed by nobody's word.
    ends_in: Option<u32>,
    /// The part of what is spent that the ledger has carried over and no call explains.
    opening: Usdc,
    opening_version: u64,
    /// The number of looks, and the time since when they are counted.
    looks: Option<(u32, Instant)>,
    /// True while this node looks at what the payer shows, or takes over what the chain does, so the total may rise.
    pub(super) is_looked_at: bool,
    /// No call begins until then, so that those in progress end.
    quiet_until: Option<Instant>,
}

/// The facts of a channel that the chain alone tells, and no ledger keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The part of the deposit that the chain does not take back any more.
    pub safe_deposited: Usdc,
    /// The payer started the delay after which it may withdraw, which ends then.
    pub close_at_secs: Option<u64>,
    /// The number of times that the channel was emptied.
    pub round: u32,
    /// The same as the chain does not take it back any more.
    pub safe_round: u32,
}

/// A close that this node has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedAway {
    pub channel: ChannelId,
    /// It counts until then, on the chain's clock.
    pub until_secs: u64,
    /// The time for which every reading of the chain has shown that it is done.
    pub done_for: Option<Duration>,
}

impl PayeeChannel {
    /// A channel as the ledger has it, on which no call runs.
    pub(super) fn new(row: &PayeeChannelRow, proof: Option<Verified<Voucher>>) -> Self {
        Self {
            config: row.config,
            is_elsewhere: false,
            state: row.state(),
            best_voucher: proof,
            unclaimed_since_secs: (!row.state().unclaimed().is_zero()).then(farthing_os::clock::now_secs),
            view: None,
            ending: row.ending,
            closed_since: None,
            brought: row.brought,
            is_taken_up: false,
            ends_in: if let Ending::Closes { round } = row.ending { round } else { None },
            opening: row.opening,
            opening_version: row.opening_version,
            looks: None,
            is_looked_at: false,
            quiet_until: None,
        }
    }

    /// Begins a look at what its payer shows; false when none may begin now. Calls in progress rely on what is promised
    /// beyond the total as it is, so none runs meanwhile.
    pub(super) fn begin_look(&mut self) -> bool {
        if self.is_looked_at || !self.state.reserved.is_zero() {
            return false;
        }
        let lately = self.looks.filter(|(_, since)| since.elapsed() < MINUTE);
        let (looks, since) = lately.unwrap_or_else(|| (0, Instant::now()));
        self.looks = Some((looks.saturating_add(1), since));
        self.is_looked_at = looks < LOOKS_PER_MINUTE;
        self.is_looked_at
    }

    /// Begins to take over a total of the chain's; false while a call runs, and then none begins for a while.
    pub(super) fn begin_quiet(&mut self) -> bool {
        let is_idle = !self.is_looked_at && self.state.reserved.is_zero();
        self.quiet_until = (!is_idle).then(|| Instant::now() + QUIET_FOR);
        self.is_looked_at |= is_idle;
        is_idle
    }

    /// Tells whether no call may begin.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_looked_at || self.quiet_until.is_some_and(|until| Instant::now() < until)
    }

    /// Takes over what the ledger has learned of the chain.
    pub(super) fn follow(&mut self, row: &PayeeChannelRow, proof: Option<Verified<Voucher>>, view: View) {
        // A ledger of before does not say in which round: where it shows nothing left, that was done before this one.
        let was_emptied = self.state.deposited <= self.state.claimed;
        self.ends_in.get_or_insert(view.round.saturating_sub(u32::from(was_emptied)));
        self.state.deposited = row.deposited;
        self.state.claimed = row.claimed;
        self.carry(row, proof);
        self.view = Some(view);
        if self.ending == Ending::None
            && let Some(Ending::SignedAway { until_secs, round }) = self.brought
            && view.round <= round
        {
            self.set_ending(Ending::SignedAway { until_secs, round });
        }
        let is_done = match self.ending {
            Ending::None => false,
            Ending::Closes { .. } => !self.is_to_be_closed(),
            // A newest block that shows it brought may be taken back, and then the same words close the channel again: only
            // a later round that stays shows that it is done.
            Ending::SignedAway { round, .. } => view.round.min(view.safe_round) > round,
        };
        self.closed_since = is_done.then(|| self.closed_since.unwrap_or_else(Instant::now));
        self.state.closing = self.is_closing();
        if self.state.unclaimed().is_zero() {
            self.unclaimed_since_secs = None;
        }
    }

    /// Takes over what the ledger counts and no call here explains. Its total is not compared with the one here, because
    /// it counts calls whose commits are under way, which count themselves here at their end: how the opening balance
    /// changed is added. A row that was read before the last one here changes nothing.
    pub(super) fn carry(&mut self, row: &PayeeChannelRow, proof: Option<Verified<Voucher>>) {
        let promised =
            |voucher: &Option<Verified<Voucher>>| voucher.as_ref().map(|voucher| voucher.cumulative);
        if promised(&proof) > promised(&self.best_voucher) {
            self.best_voucher = proof;
        }
        let proven = promised(&self.best_voucher).unwrap_or_default().max(self.state.claimed);
        if row.opening_version > self.opening_version {
            let let_go = self.opening.saturating_sub(row.opening);
            if !let_go.is_zero() {
                self.state.let_go(let_go, proven);
            }
            self.state.carry(row.opening.saturating_sub(self.opening), proven);
            (self.opening, self.opening_version) = (row.opening, row.opening_version);
        }
        self.state.best = self.state.best.max(proven).max(row.best);
        if !self.state.unclaimed().is_zero() {
            self.unclaimed_since_secs.get_or_insert_with(farthing_os::clock::now_secs);
        }
    }

    /// The voucher that proves what is charged; `None` where that was paid out on one that these books lack.
    pub fn proof(&self) -> Option<&Verified<Voucher>> {
        self.best_voucher.as_ref().filter(|voucher| voucher.cumulative >= self.state.spent)
    }

    /// Takes on a step towards the channel's end, or ends it.
    pub(super) fn set_ending(&mut self, ending: Ending) {
        if let Ending::SignedAway { .. } = self.ending {
            // Without a view that shows it as brought, it is void.
            self.brought = self.closed_since.map(|_| self.ending);
        }
        let round = self.view.map(|view| view.round);
        let ending = if let Ending::Closes { .. } = ending { Ending::Closes { round } } else { ending };
        (self.ending, self.closed_since, self.ends_in) = (ending, None, round);
        self.is_taken_up = false;
        self.state.closing = self.is_closing();
    }

    /// Tells whether this node has still to close the channel, as far as the chain was read.
    pub fn is_to_be_closed(&self) -> bool {
        let left = self.state.deposited.saturating_sub(self.state.claimed);
        matches!(self.ending, Ending::Closes { .. })
            && !self.is_emptied(left, self.view.map(|view| view.round))
    }

    /// Tells whether nobody has brought the close that this node signed, as far as the chain was read. Whoever closes the channel
    /// in this round, at what is charged, makes the signed one void.
    pub fn is_to_be_sent(&self) -> bool {
        let is_of_now = |signed: u32| self.view.is_some_and(|view| view.round == signed);
        matches!(self.ending, Ending::SignedAway { round, .. } if is_of_now(round))
            && self.state.deposited > self.state.claimed
    }

    /// Takes on to send a close that this node signed. Tells whether that is new; `None` where none is signed.
    pub(super) fn take_up_signed(&mut self) -> Option<bool> {
        let is_signed = matches!(self.ending, Ending::SignedAway { .. });
        is_signed.then(|| !std::mem::replace(&mut self.is_taken_up, true))
    }

    /// Tells whether a channel that holds `left` in this round was emptied since its end was taken on.
    pub fn is_emptied(&self, left: Usdc, round: Option<u32>) -> bool {
        left.is_zero() || round.zip(self.ends_in).is_some_and(|(round, ends_in)| round > ends_in)
    }

    /// The time for which every reading of the chain has shown that this node closed the channel, as it took on.
    pub(super) fn closed_for(&self) -> Option<Duration> {
        self.closed_since
            .filter(|_| matches!(self.ending, Ending::Closes { .. }))
            .map(|since| since.elapsed())
    }

    /// The close that this node has signed.
    pub(super) fn signed_close(&self, channel: ChannelId) -> Option<SignedAway> {
        let Ending::SignedAway { until_secs, .. } = self.ending else { return None };
        Some(SignedAway { channel, until_secs, done_for: self.closed_since.map(|since| since.elapsed()) })
    }

    /// Returns the sum that is served, calls in progress included, and not claimed.
    pub(super) fn due(&self) -> Usdc {
        self.state.unclaimed().saturating_add(self.state.reserved)
    }

    pub(super) fn is_closing(&self) -> bool {
        let ends = match self.ending {
            Ending::None => false,
            Ending::Closes { .. } => self.is_to_be_closed(),
            Ending::SignedAway { .. } => true,
        };
        ends || self.close_at_secs().is_some()
    }

    /// From this second on the payer may withdraw.
    pub fn close_at_secs(&self) -> Option<u64> {
        self.view.and_then(|view| view.close_at_secs)
    }

    /// Computes what is served, with `price` added, against a deposit that the chain may still take back.
    pub(super) fn at_risk(&self, price: Usdc) -> Usdc {
        let served = self.state.spent.saturating_add(self.state.reserved).saturating_add(price);
        let safe_deposited = self.view.map_or(self.state.claimed, |view| view.safe_deposited);
        served.min(self.state.deposited).saturating_sub(safe_deposited)
    }

    /// Returns how much it matters to keep a place for this channel; `None` when it must be kept.
    pub(super) fn standing(&self) -> Option<Usdc> {
        let left = self.state.deposited.saturating_sub(self.state.claimed);
        let pays = !self.state.spent.is_zero() && !left.is_zero();
        let is_busy = !self.state.reserved.is_zero() || !self.state.unclaimed().is_zero();
        (!pays && !is_busy).then_some(left)
    }
}
