//! Claims what this node earned, and closes the channels whose end it has taken on.
//!
//! Transactions of one wallet are one after the other, so this task carries out one at a time: claims of channels
//! whose payers are about to withdraw first, before each further step; then closes, where one that fails leaves the
//! others in the queue; then what [`super::worth`] finds worth its gas.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use farthing_chain::{CLAIM_ROWS_MAX, ChainError, ChainHandle, ChainKind, ClaimRow};
use farthing_ledger::{Ending, Ledger, SettlementRow, SettlementState};
use farthing_os::{clock, killpoint};
use farthing_owner::book::{Book, PayeeChannel};
use farthing_protocol::{ChannelId, Signature, Usdc};
use farthing_shared::chain_view::{self, is_believed};
use tokio::{sync::mpsc, time::Instant};

use super::{
    Claimed, SettlementError, SettlementRequest,
    intake::ChainIntake,
    policy::Policy,
    shown::is_void,
    worth::{Claim, ClaimReason, Row},
};

mod interrupted;

/// Calls on a channel end soon; a chain that refuses a close does not change its mind at once.
const RETRY_BUSY_EVERY: Duration = Duration::from_millis(500);
const RETRY_FAILED_AFTER: Duration = Duration::from_secs(5);
/// The pause after a refusal: it seldom changes, and asking again costs the endpoints a question for each channel.
const RETRY_REFUSED_AFTER: Duration = Duration::from_secs(300);
/// An endpoint that stands still shows no claim as paid, and each costs gas.
const RETRY_UNSHOWN_AFTER: Duration = Duration::from_secs(60);
/// So many of the refused are asked about, the dearest.
const PROBED_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Payee {
    pub chain: ChainHandle,
    pub ledger: Ledger,
    pub book: Book,
    pub intake: ChainIntake,
    pub policy: Policy,
    /// Channels to close as soon as no call runs on them and what is due pays for it.
    pub closing: BTreeSet<ChannelId>,
    /// Those of them that the user of this node closes, whatever it costs.
    pub ordered: BTreeSet<ChannelId>,
    /// Channels that the chain's watcher was asked to keep, and those from elsewhere that it is not asked to.
    pub kept: HashSet<ChannelId>,
    /// The time to ask the contract again about what it refused.
    pub retry_refused: Instant,
    /// The last claim before the start failed, and by whom is not known any more.
    pub is_probe_due: bool,
    /// Channels whose claims were mined and are not shown as paid, and when they are claimed on again.
    pub unshown: HashMap<ChannelId, Instant>,
}

impl Payee {
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<SettlementRequest>,
        mut closes: mpsc::Receiver<ChannelId>,
        interval: Duration,
    ) {
        self.closing.extend(self.book.closing());
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut retry_closes = tokio::time::interval(RETRY_BUSY_EVERY);
        retry_closes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut views = self.chain.channels();
        // The chain may have shown before this task began to listen that a close is done, and say nothing new for long.
        views.mark_changed();
        loop {
            tokio::select! {
                Some(request) = requests.recv() => self.carry_out(request).await,
                Some(channel) = closes.recv() => self.take_on(channel).await,
                changed = views.changed() => {
                    if changed.is_err() { return; }
                    views.mark_unchanged();
                    self.intake.catch_up().await;
                    // A close that was shown as done, and is not.
                    self.closing.extend(self.book.closing());
                    self.serve_again().await;
                    self.forget_closed().await;
                    self.conclude_paid().await;
                    self.claim_pending().await;
                }
                _ = tick.tick() => {
                    self.keep_what_pays().await;
                    self.probe_refused().await;
                    self.settle_by_policy().await;
                    self.take_up_signed();
                    self.serve_again().await;
                    self.forget_closed().await;
                }
                () = tokio::time::sleep_until(self.looked_at_again()), if !self.unshown.is_empty() => {
                    self.unshown.retain(|_, again| Instant::now() < *again);
                    self.claim_pending().await;
                }
                _ = retry_closes.tick(), if !self.closing.is_empty() => {
                    if !self.close_idle().await {
                        retry_closes.reset_after(RETRY_FAILED_AFTER);
                    }
                }
            }
        }
    }

    /// Carries out what was asked, even if whoever asked has gone away.
    async fn carry_out(&mut self, request: SettlementRequest) {
        match request {
            SettlementRequest::Claim(answer) => {
                let due = self.rows(true).into_iter().filter(|row| !row.due.is_zero());
                let mut due: Vec<Row> = due.collect();
                due.sort_by_key(|row| (row.close_at_secs.unwrap_or(u64::MAX), Reverse(row.due)));
                let channels = due.iter().map(|row| row.channel).collect();
                let claim = Claim { reason: ClaimReason::Requested, channels };
                let _ = answer.send(self.claim(&claim).await);
            }
            SettlementRequest::Close(channel, answer) => {
                self.ordered.insert(channel);
                self.start_closing(channel).await;
                let _ = self.close_idle().await;
                let _ = answer.send(Ok(()));
            }
        }
    }

    async fn settle_by_policy(&mut self) {
        let Some(gas) = chain_view::gas(&self.chain, self.policy.gas_price_factor_max) else { return };
        if let Some(claim) = self.policy.claim(&self.rows(false), gas) {
            self.try_claim(&claim).await;
        }
    }

    /// Claims what a payer is about to withdraw. It takes precedence over everything else.
    async fn claim_pending(&mut self) {
        let Some(gas) = chain_view::gas(&self.chain, self.policy.gas_price_factor_max) else { return };
        if let Some(claim) = self.policy.claim_pending(&self.rows(false), gas) {
            self.try_claim(&claim).await;
        }
    }

    async fn try_claim(&mut self, claim: &Claim) {
        let reason = claim.reason;
        match self.claim(claim).await {
            Ok(claimed) => {
                tracing::info!(?reason, amount = %claimed.amount, channels = claimed.paid.len(), "claimed");
            }
            Err(error) => tracing::warn!(?reason, %error, "the claim failed and is tried again"),
        }
    }

    /// Every channel with a voucher to claim by, as the chain has been read, which shows none from elsewhere; without those
    /// whose claims were refused, but for what is about to be withdrawn, unless all are asked for.
    fn rows(&self, all: bool) -> Vec<Row> {
        let now_secs = clock::now_secs();
        let (refused, now) = (self.book.claims().refused, Instant::now());
        let is_unshown = |channel: &ChannelId| self.unshown.get(channel).is_some_and(|again| now < *again);
        let with_voucher = |(channel, entry): (ChannelId, PayeeChannel)| {
            let is_wanted = all || entry.close_at_secs().is_some() || !refused.contains_key(&channel);
            entry.proof().filter(|_| is_wanted && (all || !is_unshown(&channel)) && entry.view.is_some())?;
            Some(row(channel, &entry, now_secs))
        };
        self.book.all().into_iter().filter_map(with_voucher).collect()
    }

    /// Returns the time of the next look at a channel whose claims are not shown as paid.
    fn looked_at_again(&self) -> Instant {
        self.unshown.values().min().copied().unwrap_or_else(Instant::now)
    }

    /// Asks now and then whether the contract still refuses what it refused, whatever a claim of it is worth: until it is
    /// known to pay again, nobody is served on that.
    async fn probe_refused(&mut self) {
        let mut refused: Vec<(ChannelId, PayeeChannel)> =
            self.book.claims().refused.into_keys().filter_map(|id| Some((id, self.book.get(id)?))).collect();
        if std::mem::take(&mut self.is_probe_due) {
            refused = self.book.all();
        } else if Instant::now() < self.retry_refused {
            return;
        }
        refused.retain(|(_, entry)| !entry.is_elsewhere && entry.proof().is_some());
        refused.retain(|(_, entry)| !entry.state.unclaimed().is_zero());
        refused.sort_by_key(|(_, entry)| Reverse(entry.state.unclaimed()));
        refused.truncate(PROBED_MAX);
        if refused.is_empty() {
            return;
        }
        self.retry_refused = Instant::now() + RETRY_REFUSED_AFTER;
        let rows: Vec<ClaimRow> = refused.iter().map(|(_, entry)| claim_row(entry)).collect();
        match self.chain.refused_claims(&rows).await {
            Ok(still) => {
                let is_still = |id: &ChannelId| still.iter().any(|(other, _)| other == id);
                let good: Vec<ChannelId> =
                    refused.iter().map(|(id, _)| *id).filter(|id| !is_still(id)).collect();
                self.book.note_claims(&good, still);
            }
            Err(error) => tracing::debug!(%error, "it is not known whether claims are still refused"),
        }
    }

    /// Claims the named channels in their order, a batch at a time; where the wallet's ETH does not pay for all of them,
    /// the dearest of them first. The ledger knows of a claim before the chain does, and the books have its result before
    /// anyone is told. A batch that fails does not keep back the next, unless the wallet has no ETH for either.
    async fn claim(&mut self, claim: &Claim) -> Result<Claimed, SettlementError> {
        tracing::debug!(reason = ?claim.reason, channels = claim.channels.len(), "claiming");
        self.give_up_interrupted().await;
        let mut claimed = Claimed::default();
        let mut failed = None;
        let due =
            |channel: &ChannelId| self.book.get(*channel).map_or(Usdc::ZERO, |entry| entry.state.unclaimed());
        let (paid, unpaid) = chain_view::means(&self.chain).divide(&claim.channels, due);
        for batch in paid.chunks(CLAIM_ROWS_MAX).chain(unpaid.chunks(CLAIM_ROWS_MAX)) {
            let Err(error) = self.claim_batch(batch, &mut claimed).await else { continue };
            let is_poor = matches!(&error, SettlementError::Chain(ChainError::InsufficientEth { .. }));
            failed.get_or_insert(error);
            if is_poor {
                break;
            }
        }
        self.book.note_claims(&claimed.paid, claimed.refused.clone());
        self.unshown.extend(claimed.unshown.drain(..).map(|id| (id, Instant::now() + RETRY_UNSHOWN_AFTER)));
        if !claimed.refused.is_empty() {
            self.retry_refused = Instant::now() + RETRY_REFUSED_AFTER;
        }
        let refused = || {
            let (_, reason) = claimed.refused.first().filter(|_| claimed.paid.is_empty())?;
            Some(SettlementError::Refused { channels: claimed.refused.len(), reason: reason.clone() })
        };
        let Some(error) = failed.or_else(refused) else { return Ok(claimed) };
        if !claimed.amount.is_zero() {
            tracing::info!(amount = %claimed.amount, channels = claimed.paid.len(), "a part was claimed");
        }
        Err(error)
    }

    async fn claim_batch(&self, batch: &[ChannelId], claimed: &mut Claimed) -> Result<(), SettlementError> {
        let found = batch.iter().filter_map(|id| Some((*id, self.book.get(*id)?)));
        let entries: Vec<(ChannelId, PayeeChannel)> =
            found.filter(|(_, entry)| !entry.state.unclaimed().is_zero()).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let rows = entries.iter().map(|(id, entry)| SettlementRow {
            channel: *id,
            from: entry.state.claimed,
            to: entry.state.spent.min(entry.state.deposited),
        });
        let mut settlement = self.ledger.open_settlement(rows.collect(), clock::now_secs()).await?;
        killpoint::reached("settlement.before_claim");
        let report = self.chain.claim_many(entries.iter().map(|(_, entry)| claim_row(entry)).collect()).await;
        killpoint::reached("settlement.after_claim");
        settlement.time_secs = clock::now_secs();
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                settlement.state = SettlementState::Failed;
                self.ledger.record_claim(settlement).await?;
                if let ChainError::Reverted { reason, .. } | ChainError::Failed { reason, .. } = &error {
                    claimed.refused.extend(entries.into_iter().map(|(id, _)| (id, reason.clone())));
                }
                return Err(error.into());
            }
        };
        for (channel, reason) in &report.refused {
            tracing::warn!(%channel, reason, "the contract does not pay a claim");
        }
        settlement.transaction = report.transactions.iter().find_map(|tx| tx.tx_hash).map(|hash| hash.0);
        let paid_to = |row: &SettlementRow| {
            let total = report.claimed.iter().find(|(channel, _)| *channel == row.channel);
            total.map_or(row.from, |(_, total)| (*total).min(row.to)).max(row.from)
        };
        let is_paid = |row: &&SettlementRow| paid_to(row) > row.from;
        let paid: Vec<ChannelId> = settlement.rows.iter().filter(is_paid).map(|row| row.channel).collect();
        let is_refused = |id: &ChannelId| report.refused.iter().any(|(refused, _)| refused == id);
        let unpaid = settlement.rows.iter().filter(|row| !is_paid(row)).map(|row| row.channel);
        claimed.unshown.extend(unpaid.filter(|id| !is_refused(id)));
        // A claim of which the chain shows nothing yet stays under way as it was made.
        if !paid.is_empty() || !report.refused.is_empty() {
            for row in &mut settlement.rows {
                row.to = paid_to(row);
                claimed.amount = claimed.amount.saturating_add(row.amount());
            }
        }
        settlement.state = match paid.is_empty() && !report.refused.is_empty() {
            true => SettlementState::Failed,
            false => SettlementState::Confirmed,
        };
        claimed.paid.extend(paid);
        claimed.refused.extend(report.refused);
        // A claim is confirmed by the channels' states, which have been read again by now; where they do not show it yet,
        // it is confirmed as soon as they do.
        self.intake.catch_up().await;
        self.ledger.record_claim(settlement).await?;
        claimed.transactions.extend(report.transactions);
        report.failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// A channel that has promised something is followed, however many strangers open larger ones.
    async fn keep_what_pays(&mut self) {
        for (channel, entry) in self.book.all() {
            // By the terms alone, this chain would follow another channel in the place of one elsewhere.
            if !entry.state.best.is_zero() && self.kept.insert(channel) && !entry.is_elsewhere {
                // It fails only when the chain is shut down.
                let _ = self.chain.track(entry.config).await;
            }
        }
    }

    /// A channel is served again once the close that was signed is done, or void because nobody brought it in time.
    async fn serve_again(&self) {
        // The first views come before the first head.
        let block_secs = chain_view::time_secs(&self.chain);
        let is_local = self.chain.spec().kind == ChainKind::Local;
        for close in self.book.signed_away() {
            let channel = close.channel;
            let is_void =
                block_secs.is_some_and(|secs| is_void(close.until_secs, secs, clock::now_secs(), is_local));
            let is_shown = close.done_for.is_some_and(|shown| is_believed(&self.chain, shown));
            // Before it counts, it is read once more: an endpoint that has fallen silent shows for long what it said last.
            if is_void {
                self.end_duty(channel).await;
            } else if is_shown && self.is_still_brought(channel).await {
                self.end_brought(channel).await;
            } else {
                self.store_again(channel).await;
            }
        }
    }

    /// Ends the duty of a signed close that was brought, which the next start keeps in mind.
    async fn end_brought(&self, channel: ChannelId) {
        let Some(PayeeChannel { ending, .. }) = self.book.get(channel) else { return };
        match self.ledger.end_brought_close(channel, ending).await {
            Ok(_) => drop(self.book.set_ending(channel, Ending::None)),
            Err(error) => tracing::warn!(%channel, %error, "the end of a signed close was not stored"),
        }
    }

    /// Stores a signed close that a block has taken back after its end was stored.
    async fn store_again(&self, channel: ChannelId) {
        let Some(PayeeChannel { ending, .. }) = self.book.get(channel) else { return };
        let stored = self.ledger.payee_channel(channel).ok().flatten();
        if stored.is_some_and(|row| row.ending == Ending::None)
            && let Err(error) = self.ledger.end_payee_channel(channel, ending).await
        {
            tracing::error!(%channel, %error, "a signed close that a block took back was not stored");
        }
    }

    /// Ends what this node took on, once the chain has shown for a while that it is done, and still does.
    async fn forget_closed(&mut self) {
        for (channel, shown_for) in self.book.closed() {
            if is_believed(&self.chain, shown_for) && self.is_still_closed(channel).await {
                self.end_duty(channel).await;
                self.ordered.remove(&channel);
            }
        }
    }

    async fn end_duty(&self, channel: ChannelId) {
        match self.ledger.end_payee_channel(channel, Ending::None).await {
            Ok(_) => drop(self.book.set_ending(channel, Ending::None)),
            Err(error) => tracing::warn!(%channel, %error, "the end of a close was not stored"),
        }
    }

    /// Asks the chain anew whether the channel was emptied since this node took on its close.
    async fn is_still_closed(&self, channel: ChannelId) -> bool {
        let Some(entry) = self.book.get(channel) else { return false };
        let now = self.chain.read_channel(entry.config).await;
        now.is_ok_and(|now| entry.is_emptied(now.deposited.saturating_sub(now.claimed), Some(now.round)))
    }

    /// Asks the chain anew whether the signed close was brought to it.
    async fn is_still_brought(&self, channel: ChannelId) -> bool {
        let Some(entry) = self.book.get(channel) else { return false };
        let Ending::SignedAway { round, .. } = entry.ending else { return false };
        let now = self.chain.read_channel(entry.config).await;
        now.is_ok_and(|now| now.round > round)
    }

    /// Takes on a close that a payer asked for. One that was signed stays signed: its payer may bring it still.
    async fn take_on(&mut self, channel: ChannelId) {
        let ending = self.book.get(channel).map(|entry| entry.ending);
        if let Some(Ending::SignedAway { .. }) = ending {
            self.closing.insert(channel);
        } else {
            self.start_closing(channel).await;
        }
    }

    /// Takes on the closes that this node has signed and nobody has brought, once what is due pays for their gas.
    fn take_up_signed(&mut self) {
        let gas = chain_view::gas(&self.chain, self.policy.gas_price_factor_max);
        let Some(gas) = gas.filter(|gas| !gas.is_dear) else { return };
        let signed = self.book.signed_away().into_iter().map(|close| close.channel);
        let is_paid = |channel: &ChannelId| {
            let entry = self.book.get(*channel).filter(PayeeChannel::is_to_be_sent);
            entry.is_some_and(|entry| gas.is_paid_by(entry.state.unclaimed()))
        };
        let paid: Vec<ChannelId> = signed.filter(is_paid).collect();
        self.closing.extend(paid);
    }

    async fn start_closing(&mut self, channel: ChannelId) {
        if !self.book.set_ending(channel, Ending::Closes { round: None }) {
            return;
        }
        let Some(ending) = self.book.get(channel).map(|entry| entry.ending) else { return };
        self.closing.insert(channel);
        // Asking again costs no further commit.
        let stored = self.ledger.payee_channel(channel).ok().flatten();
        if stored.is_none_or(|row| row.ending != ending)
            && let Err(error) = self.ledger.end_payee_channel(channel, ending).await
        {
            tracing::error!(%channel, %error, "a requested close was not stored");
        }
    }

    /// Closes what was asked to be closed and has no call in progress. Whatever fails stays in the queue; whether
    /// nothing failed.
    async fn close_idle(&mut self) -> bool {
        let mut tried = HashSet::new();
        let mut all_well = true;
        while let Some(channel) = self.closing.iter().copied().find(|channel| tried.insert(*channel)) {
            self.claim_pending().await;
            match self.close(channel).await {
                // It comes back when the chain shows that it is not done.
                Ok(Closing::Done) => drop(self.closing.remove(&channel)),
                Ok(Closing::Waits) => {}
                Err(error) => {
                    all_well = false;
                    tracing::warn!(%channel, %error, "the close failed and is tried again");
                }
            }
        }
        all_well
    }

    async fn close(&self, channel: ChannelId) -> Result<Closing, SettlementError> {
        let Some(entry) = self.book.get(channel) else { return Ok(Closing::Done) };
        if !entry.is_to_be_closed() && !entry.is_to_be_sent() {
            return Ok(Closing::Done);
        }
        let gas = chain_view::gas(&self.chain, self.policy.gas_price_factor_max);
        let is_paid = gas.is_some_and(|gas| gas.is_paid_by(entry.state.unclaimed()));
        // Of what the chain was not read of, more may have been claimed than is known.
        if entry.view.is_none() {
            return Ok(Closing::Waits);
        }
        if !entry.state.reserved.is_zero() || !(is_paid || self.ordered.contains(&channel)) {
            return Ok(Closing::Waits);
        }
        killpoint::reached("settlement.before_close");
        self.chain.close(claim_row(&entry)).await?;
        killpoint::reached("settlement.after_close");
        self.intake.catch_up().await;
        tracing::info!(%channel, "the channel is closed");
        Ok(Closing::Done)
    }
}

enum Closing {
    Done,
    /// A call runs on the channel, or gas costs more than is due; the payer can ask the chain.
    Waits,
}

fn row(channel: ChannelId, entry: &PayeeChannel, now_secs: u64) -> Row {
    let (spent, deposited) = (entry.state.spent.micros(), entry.state.deposited.micros());
    Row {
        channel,
        due: entry.state.unclaimed(),
        age_secs: entry.unclaimed_since_secs.map_or(0, |since| now_secs.saturating_sub(since)),
        used_percent: spent.saturating_mul(100).checked_div(deposited).unwrap_or(100),
        close_at_secs: entry.close_at_secs(),
    }
}

/// The claim of everything charged. Without a voucher nothing was, and the contract asks for no signature.
fn claim_row(entry: &PayeeChannel) -> ClaimRow {
    let voucher = entry.proof();
    ClaimRow {
        config: entry.config,
        cumulative: voucher.map_or(Usdc::ZERO, |voucher| voucher.cumulative),
        amount: voucher.map_or(Usdc::ZERO, |_| entry.state.spent),
        signature: voucher.map_or(Signature::from_bytes([0; 65]), |voucher| *voucher.signature()),
    }
}
