//! The end of a history: the books of both nodes and the chain say the same, call by call and to the last micro.

use std::collections::BTreeMap;

use farthing_ledger::{Call, PayeeChannelRow, PayerChannelRow, Purchase, ServedRow, Side, day_of};
use farthing_os::clock;
use farthing_protocol::{CallId, Usdc};

use super::{
    blocks::WEALTH,
    ground::{BEGAN, PER_DAY, Party},
    history::History,
    run::NodeRun,
};
use crate::{
    halves::state::{call_id, number},
    world::sum,
};

impl History<'_> {
    /// Judges what both have left with. What was charged.
    pub(super) async fn judge(&self) -> Usdc {
        let broken = std::mem::take(&mut self.state.lock().broken);
        assert!(broken.is_empty(), "{broken:?}");
        let charged = self.compare_calls();
        self.compare_channels(charged).await;
        self.compare_money(charged);
        self.check_contract().await;
        self.check_caps();
        assert!(self.consumer.line.accused().is_empty(), "an honest owner is accused");
        for node in [&self.consumer.node, &self.owner.node] {
            let audit = node.ledger().audit(Some(self.ground.owner.signer.domain())).unwrap();
            assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        }
        charged
    }

    /// Compares both ledgers call by call. The sum of what was charged.
    fn compare_calls(&self) -> Usdc {
        let (sold, bought) = (self.sold(), self.bought());
        for (id, call) in &sold {
            let here = bought.get(id).map_or(Usdc::ZERO, |purchase| purchase.charged);
            let number = number(*id);
            // An adjustment may stand for the rest, which the channel's totals below have to explain.
            assert!(here <= call.charged, "X1: {number} cost {here}, and {} is charged", call.charged);
            let is_answered = self.state.lock().is_answered(number);
            assert!(call.charged.is_zero() || is_answered, "{number} is charged, and never answered");
        }
        for number in self.state.lock().answered() {
            let is_charged = sold.get(&call_id(number)).is_some_and(|call| !call.charged.is_zero());
            assert!(is_charged, "{number} is served, and its owner gets nothing for it");
        }
        for (number, told) in self.state.lock().told() {
            let id = call_id(number);
            let here = bought.get(&id).map_or(Usdc::ZERO, |purchase| purchase.charged);
            // An adjustment may stand for a call that its consumer forgot; nobody was told anything of that one.
            let there = sold.get(&id).map_or(Usdc::ZERO, |call| call.charged);
            assert_eq!((here, there), (told, told), "{number} costs something else than its caller was told");
        }
        for (id, purchase) in &bought {
            let is_sold = sold.contains_key(id) || purchase.charged.is_zero();
            assert!(is_sold, "X1: {} was never served", number(*id));
        }
        sum(sold.values().map(|call| call.charged))
    }

    /// Compares the totals of the channel on both sides (O2, M4, C4), and asks as users do.
    async fn compare_channels(&self, charged: Usdc) {
        let (Some(paid_in), Some(sold_on)) = (self.paid_in(), self.sold_on()) else {
            assert_eq!(charged, Usdc::ZERO, "nothing is charged without a channel");
            return;
        };
        let [payer, payee] = [&self.ground.consumer, &self.ground.owner].map(Party::wallet);
        let [ours, theirs] = [&self.consumer.node, &self.owner.node].map(NodeRun::ledger);
        // Its disk keeps what it promises, so nothing but a claim beyond its charges would need one.
        let adjusted = theirs.adjusted_with(Side::Payee, payer).unwrap();
        assert_eq!(adjusted, Usdc::ZERO, "M3: the owner was paid something that none of its calls explains");
        assert_eq!(sold_on.spent, charged, "O2");
        let unexplained = ours.adjusted_with(Side::Payer, payee).unwrap();
        let bought = sum(self.bought().values().map(|purchase| purchase.charged));
        assert_eq!(paid_in.acknowledged, sum([bought, unexplained]), "X1: every call or adjustment");
        assert_eq!(paid_in.acknowledged, sold_on.spent, "M4: one side paid what the other side earned");
        assert_eq!(paid_in.in_flight, Usdc::ZERO, "C4");
        assert!(!paid_in.stopped, "an honest owner is distrusted");
        // It ran, but for seconds, while the payer's delay did: nothing is lost, and nothing would be told as lost.
        assert_eq!((sold_on.claimed, sold_on.lost), (sold_on.spent, Usdc::ZERO), "M4: all is paid out");
        let compared = self.consumer.node.halves.consumer.consumer.compare_books_with(payee).await.unwrap();
        assert_eq!(compared.differences, Vec::<String>::new(), "X1, as the consumer asks its owner");
        assert_eq!(compared.undecided, 0, "C4");
    }

    /// Compares wallets and contract (M1 to M3) with what both sides have booked as paid.
    fn compare_money(&self, charged: Usdc) {
        self.blocks.check_money();
        let (deposited, claimed) = self.blocks.slot(self.ground.id);
        assert_eq!(deposited, claimed, "nothing is left in the channel");
        let earned = self.blocks.usdc_of(self.ground.owner.wallet());
        assert_eq!(earned, claimed, "the owner leaves with what it claimed");
        let left = self.blocks.usdc_of(self.ground.consumer.wallet());
        assert_eq!(sum([left, earned]), WEALTH, "the consumer leaves with what it did not spend");
        assert!(claimed <= charged, "M3: {claimed} of {charged} that were charged");
    }

    /// M3, at any time: the contract has paid the owner no more than its ledger charges for calls, whatever its vouchers say.
    pub(super) fn check_claims(&self) {
        let (_, claimed) = self.blocks.slot(self.ground.id);
        let charged = sum(self.sold().values().map(|call| call.charged));
        assert!(claimed <= charged, "M3: {claimed} of {charged} that were charged by now");
    }

    /// X1, at any time: what the consumer puts down to no call was charged for calls whose charge it does not know.
    pub(super) fn check_adjustments(&self) {
        let ledger = self.consumer.node.ledger();
        let adjusted = ledger.adjusted_with(Side::Payer, self.ground.owner.wallet()).unwrap();
        let (bought, open) = (self.bought(), self.consumer.open());
        // A death may keep the promise of a call out of the ledger, whose caller repeats it then.
        let is_promised = |number: u64| open.contains(&number) && self.state.lock().is_ordered_once(number);
        let unknown = self.sold().into_iter().filter(|(id, _)| !is_promised(number(*id)));
        let unknown = sum(unknown.map(|(id, call)| {
            let known = bought.get(&id).map_or(Usdc::ZERO, |purchase| purchase.charged);
            call.charged.saturating_sub(known)
        }));
        assert!(adjusted <= unknown, "X1: {adjusted} are put down to no call, of {unknown} that may be");
    }

    /// Both nodes hold their own books against the contract, as an audit does (M2, M3).
    async fn check_contract(&self) {
        for node in [&self.consumer.node, &self.owner.node] {
            let checked = node.halves.settlement.check_contract().await.unwrap();
            assert_eq!(checked.violations, Vec::<String>::new(), "in block {}", checked.block);
        }
    }

    /// C2: no day cost more than it may.
    fn check_caps(&self) {
        for day in day_of(BEGAN.as_secs())..=day_of(clock::now_secs()) {
            let totals = self.consumer.node.ledger().day_totals(day).unwrap();
            let total = sum(totals.into_iter().map(|(_, total)| total));
            assert!(total <= PER_DAY, "C2: {total} of at most {PER_DAY}");
        }
    }

    pub(super) fn paid_in(&self) -> Option<PayerChannelRow> {
        let rows = self.consumer.node.ledger().payer_channels().unwrap();
        rows.into_iter().find(|row| row.id == self.ground.id)
    }

    fn sold_on(&self) -> Option<PayeeChannelRow> {
        self.owner.node.ledger().payee_channel(self.ground.id).unwrap()
    }

    fn sold(&self) -> BTreeMap<CallId, Call> {
        let (payer, ledger) = (self.ground.consumer.wallet(), self.owner.node.ledger());
        let rows = ledger.calls_of(payer, None, usize::MAX, usize::MAX, |row| match row {
            ServedRow::Accepted(_) => None,
            ServedRow::Done(row) => Some((row.call.call_id, row.call)),
        });
        rows.unwrap().0.into_iter().collect()
    }

    pub(super) fn bought(&self) -> BTreeMap<CallId, Purchase> {
        let purchases = self.consumer.node.ledger().purchases(usize::MAX).unwrap();
        purchases.into_iter().map(|purchase| (purchase.call_id, purchase)).collect()
    }
}
