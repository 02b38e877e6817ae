//! A side that breaks the rules on the chain: behind its own node's back, its wallet asks for its deposit early or brings an old signed
//! close, or claims all that was promised or too little; and a miner takes its transactions before those of the other side.
//!
//! A consumer can gain nothing by it: both are judged as honest ones are, and the owner leaves with all that it charged. Of an owner
//! that claims more than it charged, the consumer loses no more than it has promised, gets the rest back, and its books or their
//! audit tell of it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use farthing_chain::ClaimRow;
use farthing_ledger::Side as Half;
use farthing_protocol::{SignedClose, Usdc, Voucher};

use super::{
    TRIES, attempt_against,
    blocks::WEALTH,
    ground::{PUBLIC, Party, UNLIMITED},
    history::History,
    lay,
};
use crate::{
    halves::{hostile::Side, state::call_id},
    play::Simulation,
    world::sum,
};

/// Histories of each side.
const HISTORIES: u64 = 30;
/// In the line of the log that tells of each.
pub const BEHIND: &str = "behind its node's back";

impl History<'_> {
    /// Now and then, has the wallet of this side do something.
    pub(super) fn break_rules(&mut self, side: Side) {
        let what = self.state.lock().choices.below(100);
        match (side, what) {
            (_, 0..6) => self.blocks.take_first(self.party(side).wallet()),
            (Side::Consumer, 6..10) => self.ask_early(),
            (Side::Consumer, 10..18) => self.withdraw(),
            (Side::Consumer, 18..26) => self.bring_old_close(),
            (Side::Owner, 6..12) => self.claim_promised(1),
            (Side::Owner, 12..16) => self.claim_promised(2),
            (Side::Owner, 16..20) => self.close_at_promised(),
            _ => {}
        }
    }

    fn party(&self, side: Side) -> &Party {
        match side {
            Side::Consumer => &self.ground.consumer,
            Side::Owner => &self.ground.owner,
        }
    }

    fn ask_early(&mut self) {
        let (chain, config) = (self.consumer.node.chain(), self.ground.channel);
        let asking = async move { chain.request_close(config).await.map(drop) };
        self.consumer.node.send(&self.state, "the consumer asks to close", asking);
    }

    fn withdraw(&mut self) {
        let (chain, config) = (self.consumer.node.chain(), self.ground.channel);
        let taking = async move { chain.withdraw(config).await.map(drop) };
        self.consumer.node.send(&self.state, "the consumer withdraws", taking);
    }

    /// Brings a close that its owner has signed at some time.
    fn bring_old_close(&mut self) {
        let signed = {
            let shared = &mut *self.state.lock();
            let count = shared.closes.len();
            if count == 0 {
                return;
            }
            shared.closes[shared.choices.below(count)]
        };
        let SignedClose { consent, signature } = signed;
        let promised = Voucher { channel: self.ground.id, cumulative: consent.amount };
        let row = ClaimRow {
            config: self.ground.channel,
            cumulative: consent.amount,
            amount: consent.amount,
            signature: promised.sign(&self.ground.spec.escrow().domain(), &self.ground.consumer.key),
        };
        let chain = self.consumer.node.chain();
        let bringing = async move { chain.relay_close(row, consent, signature).await.map(drop) };
        self.consumer.node.send(&self.state, "the consumer brings an old close", bringing);
    }

    /// The claim of a part of all that was promised.
    fn promised(&self, divisor: u64) -> Option<ClaimRow> {
        let row = self.owner.node.ledger().payee_channel(self.ground.id).unwrap()?;
        let amount = Usdc::from_micros(row.best.micros() / divisor);
        Some(ClaimRow {
            config: self.ground.channel,
            cumulative: row.best,
            amount,
            signature: row.best_signature?,
        })
    }

    fn claim_promised(&mut self, divisor: u64) {
        let Some(row) = self.promised(divisor) else { return };
        let chain = self.owner.node.chain();
        let claiming = async move { chain.claim_many(vec![row]).await.map(drop) };
        self.owner.node.send(&self.state, "the owner claims what was promised, or a part", claiming);
    }

    fn close_at_promised(&mut self) {
        let Some(row) = self.promised(1) else { return };
        let chain = self.owner.node.chain();
        let closing = async move { chain.close(row).await.map(drop) };
        self.owner.node.send(&self.state, "the owner closes at what was promised", closing);
    }

    /// Judges what the consumer has left with, of an owner that took what it liked. What it paid.
    pub(super) fn judge_consumer(&self) -> Usdc {
        self.blocks.check_money();
        let (deposited, claimed) = self.blocks.slot(self.ground.id);
        assert_eq!(deposited, claimed, "nothing is left in the channel");
        let left = self.blocks.usdc_of(self.ground.consumer.wallet());
        assert_eq!(sum([left, claimed]), WEALTH, "the consumer leaves with what was not claimed");
        let bought = self.bought();
        let paid = sum(bought.values().map(|purchase| purchase.charged));
        let ledger = self.consumer.node.ledger();
        if let Some(row) = self.paid_in() {
            assert!(claimed <= row.signed, "M2: {claimed} are claimed of {} that were promised", row.signed);
            let unexplained = ledger.adjusted_with(Half::Payer, self.ground.owner.wallet()).unwrap();
            assert_eq!(row.acknowledged, sum([paid, unexplained]), "X1: every call or adjustment");
        }
        for (number, told) in self.state.lock().told() {
            let charged = bought.get(&call_id(number)).map_or(Usdc::ZERO, |purchase| purchase.charged);
            assert_eq!(charged, told, "{number} costs something else than its caller was told");
        }
        let audit = ledger.audit(Some(self.ground.consumer.signer.domain())).unwrap();
        assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        let acknowledged = self.paid_in().map_or(Usdc::ZERO, |row| row.acknowledged);
        assert!(acknowledged >= claimed, "what was claimed is counted: {acknowledged} of {claimed}");
        claimed
    }
}

/// Plays histories in which this side breaks the rules on the chain.
fn play_against(name: &'static str, side: Side) {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    let breaking = AtomicUsize::new(0);
    let attempt = |history: &[u8], _: bool| {
        let attempted = attempt_against(&ground, history, Some(side));
        let is_broken = attempted.as_ref().is_ok_and(|played| played.log.contains(BEHIND));
        breaking.fetch_add(usize::from(is_broken), Ordering::Relaxed);
        attempted
    };
    let simulation = Simulation { name, tries: TRIES, attempt: &attempt };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let totals = simulation.play_chosen(HISTORIES, Vec::new(), cores);
    let breaking = breaking.into_inner();
    assert!(
        totals.histories == 1 || (totals.charging > 0 && 2 * breaking > totals.histories),
        "a side that breaks no rule, or buys nothing, shows nothing: {totals:?}, {breaking} break the rules"
    );
}

#[test]
fn an_owner_leaves_with_what_it_charged_whatever_its_consumer_does_on_the_chain() {
    play_against("settled::hostile::an_owner_leaves", Side::Consumer);
}

#[test]
fn a_consumer_loses_no_more_than_it_promised_whatever_its_owner_does_on_the_chain() {
    play_against("settled::hostile::a_consumer_loses", Side::Owner);
}
