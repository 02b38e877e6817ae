//! The judgement of a pair: the books of a consumer and its owner say the same, call by call. Where one ledger was put back, its
//! adjustments stand for the calls that it lacks, and say why.

use std::collections::BTreeMap;

use farthing_ledger::{Call, Cause, Ledger, Position, Purchase, ServedRow, Side, Window};
use farthing_protocol::{Address, CallId, Usdc};

use super::{
    history::{Buyer, History},
    state::{call_id, number},
};
use crate::world::sum;

/// All adjustments.
const ALL: Window =
    Window { before: Position::start_of(u64::MAX), from_secs: 0, limit: usize::MAX, scan_max: usize::MAX };

impl History<'_> {
    /// Judges a consumer with its owner. What was charged.
    pub(super) async fn judge_pair(&self, buyer: &Buyer<'_>) -> Usdc {
        let (ground, is_put_back) = (buyer.ground, self.is_owner_restored());
        let (payer, payee) = (ground.consumer.key.address(), ground.owner.key.address());
        // The first comparison shows an owner what it lacks.
        let consumer = &buyer.run.half.consumer;
        consumer.compare_books_with(payee).await.unwrap();
        let compared = consumer.compare_books_with(payee).await.unwrap();
        assert!(
            compared.differences.is_empty(),
            "X1, as the consumer asks its owner: {:?}",
            compared.differences
        );
        assert_eq!(compared.undecided, 0, "C4");
        let (sold, bought) = (self.sold_to(buyer), buyer.bought());
        self.compare_calls(buyer, &sold, &bought);
        let [earned, paid] = [
            sum(sold.values().map(|call| call.charged)),
            sum(bought.values().map(|purchase| purchase.charged)),
        ];
        let unearned = put_down(self.owner.ledger(), (Side::Payee, payer), is_put_back);
        let unpaid = put_down(buyer.run.ledger(), (Side::Payer, payee), buyer.is_restored);
        let here = buyer.run.half.channels.get(ground.id).unwrap().state;
        let there = self.owner.half.book.get(ground.id).unwrap().state;
        assert_eq!((there.spent, there.reserved), (sum([earned, unearned]), Usdc::ZERO), "O2");
        assert_eq!((here.acknowledged, here.in_flight), (sum([paid, unpaid]), Usdc::ZERO), "X1, C4");
        assert_eq!(here.acknowledged, there.spent, "M4: one side paid what the other side earned");
        assert!(!here.stopped, "an honest owner is distrusted");
        there.spent
    }

    /// Compares both ledgers call by call.
    fn compare_calls(
        &self,
        buyer: &Buyer<'_>,
        sold: &BTreeMap<CallId, Call>,
        bought: &BTreeMap<CallId, Purchase>,
    ) {
        let shared = self.state.lock();
        for (id, call) in sold {
            let (number, purchase) = (number(*id), bought.get(id));
            let here = purchase.map_or(Usdc::ZERO, |purchase| purchase.charged);
            let is_lacking =
                (buyer.is_restored && here.is_zero()) || (self.is_owner_restored() && call.charged.is_zero());
            assert!(here == call.charged || is_lacking, "X1: {number} cost {here}, of {}", call.charged);
            assert!(
                call.charged.is_zero() || shared.is_answered(number),
                "{number} is charged, and never answered"
            );
        }
        for (id, purchase) in bought {
            let (number, Purchase { price, charged, .. }) = (number(*id), purchase);
            let is_sold = sold.contains_key(id) || charged.is_zero() || self.is_owner_restored();
            assert!(is_sold, "X1: {number} was never served");
            let allowed = self.allowed.get(&number).copied().unwrap_or_default();
            assert!(charged <= price && *price <= allowed, "C3: {number} cost {charged} of {allowed}");
        }
        for (number, told) in shared.told().filter(|(number, _)| buyer.has_ordered(*number)) {
            let id = call_id(number);
            let here = bought.get(&id).map_or(Usdc::ZERO, |purchase| purchase.charged);
            let there = sold.get(&id).map_or(Usdc::ZERO, |call| call.charged);
            let charged = if buyer.is_restored { there } else { here };
            assert_eq!(charged, told, "{number} costs something else than its caller was told");
        }
    }

    /// O4, and the charge of each answer of the service whose owner has stored it.
    pub(super) fn check_ended(&self) {
        let sold: BTreeMap<CallId, Call> = self.buyers.iter().flat_map(|buyer| self.sold_to(buyer)).collect();
        let shared = self.state.lock();
        for number in shared.answered() {
            let is_charged = sold.get(&call_id(number)).is_some_and(|call| !call.charged.is_zero());
            assert!(is_charged, "{number} is served, and its owner gets nothing for it");
        }
        for number in shared.ended() {
            let is_stored = sold.contains_key(&call_id(number));
            assert!(is_stored, "O4: {number} has ended, and its owner has not stored it");
        }
    }

    pub(super) fn sold_to(&self, buyer: &Buyer<'_>) -> BTreeMap<CallId, Call> {
        let payer = buyer.ground.consumer.key.address();
        let rows = self.owner.ledger().calls_of(payer, None, usize::MAX, usize::MAX, |row| match row {
            ServedRow::Accepted(_) => None,
            ServedRow::Done(row) => Some((row.call.call_id, row.call)),
        });
        rows.unwrap().0.into_iter().collect()
    }
}

impl Buyer<'_> {
    pub fn bought(&self) -> BTreeMap<CallId, Purchase> {
        let purchases = self.run.ledger().purchases(usize::MAX).unwrap();
        purchases.into_iter().map(|purchase| (purchase.call_id, purchase)).collect()
    }
}

/// What a ledger puts down to no call of this side with a wallet: nothing, unless it was put back.
fn put_down(ledger: &Ledger, (side, peer): (Side, Address), is_restored: bool) -> Usdc {
    let found = ledger.adjustments_in(&ALL, |row| row.side == side && row.peer == peer).unwrap();
    for (_, row) in &found.rows {
        assert!(is_restored, "X1: nothing is unexplained: {row:?}");
        assert!(side == Side::Payee || row.cause == Cause::Restored, "why it lacks calls: {row:?}");
    }
    sum(found.rows.iter().map(|(_, row)| row.amount))
}
