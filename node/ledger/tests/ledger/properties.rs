//! Random sequences of operations: the books stay right and say what a small model says.

use std::collections::BTreeMap;

use farthing_ledger::{Call, Ledger, PayeeChannelFacts, Retention};
use farthing_values::{Outcome, Usdc};
use proptest::prelude::*;

use crate::world::*;

#[derive(Clone, Debug)]
enum Op {
    Chain { salt: u8, deposited: u64, claimed_of_spent: u64, closing: bool },
    Serve { salt: u8, number: u64, cumulative: u64, price: u64, outcome: Outcome },
    Promise { salt: u8, number: u64, cumulative: u64 },
    Acknowledge { number: u64, charged: u64 },
    Release { number: u64 },
    Prune { later_days: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let salt = 1..3_u8;
    let outcome = prop_oneof![
        5 => Just(Outcome::Answered),
        1 => Just(Outcome::Declined),
        2 => Just(Outcome::TimedOut)
    ];
    prop_oneof![
        2 => (salt.clone(), 0..50_000_u64, 0..100_u64, any::<bool>()).prop_map(
            |(salt, deposited, claimed_of_spent, closing)|
                Op::Chain { salt, deposited, claimed_of_spent, closing }),
        8 => (salt.clone(), 0..12_u64, 0..60_000_u64, 0..5_000_u64, outcome).prop_map(
            |(salt, number, cumulative, price, outcome)|
                Op::Serve { salt, number, cumulative, price, outcome }),
        4 => (salt, 0..12_u64, 0..60_000_u64).prop_map(
            |(salt, number, cumulative)| Op::Promise { salt, number, cumulative }),
        3 => (0..12_u64, 0..3_000_u64).prop_map(|(number, charged)| Op::Acknowledge { number, charged }),
        1 => (0..12_u64).prop_map(|number| Op::Release { number }),
        1 => (0..20_u64).prop_map(|later_days| Op::Prune { later_days }),
    ]
}

/// What a ledger must say, kept in the simplest way.
#[derive(Default)]
struct Model {
    spent: BTreeMap<u8, u64>,
    best: BTreeMap<u8, u64>,
    /// The most that the chain ever showed.
    deposited: BTreeMap<u8, u64>,
    acknowledged: BTreeMap<u8, u64>,
}

async fn run(ledger: &Ledger, model: &mut Model, op: &Op) {
    match *op {
        Op::Chain { salt, deposited, claimed_of_spent, closing } => {
            let claimed = model.spent[&salt] * claimed_of_spent / 100;
            let channel = PayeeChannelFacts {
                deposited: micros(deposited),
                claimed: micros(claimed),
                closing,
                ..payee_channel(salt)
            };
            ledger.put_payee_channel(channel).await.unwrap();
            let most = model.deposited.get_mut(&salt).unwrap();
            *most = deposited.max(*most);
        }
        Op::Serve { salt, number, cumulative, price, outcome } => {
            let charged = if outcome == Outcome::Answered { price } else { 0 };
            let call = Call { price: micros(price), charged: micros(charged), outcome, ..call(number) };
            let was_best = model.best[&salt];
            let best = was_best.max(cumulative);
            if let Ok(recorded) = ledger.serve(served(salt, micros(cumulative), call)).await {
                // O1 in the model's words: accepted means covered.
                assert!(best == was_best || best <= model.deposited[&salt], "{op:?}");
                let spent = model.spent.get_mut(&salt).unwrap();
                *spent += charged;
                assert!(charged == 0 || *spent <= best, "{op:?}");
                assert_eq!(recorded.receipt().spent_total, micros(*spent));
                model.best.insert(salt, best);
            }
        }
        Op::Promise { salt, number, cumulative } => {
            let pending = ledger.promise(promise(salt, number, micros(cumulative))).await.unwrap();
            let _ = pending.await;
        }
        Op::Acknowledge { number, charged } => {
            let Some(promise) = ledger.promise_of(call_id(number)).unwrap() else { return };
            let receipt = receipt(&promise, micros(charged), Outcome::Answered);
            if ledger.acknowledge(call_id(number), acknowledgement(receipt)).await.is_ok() {
                assert!(micros(charged) <= PRICE);
                let salt = if promise.channel() == channel(1) { 1 } else { 2 };
                *model.acknowledged.entry(salt).or_default() += charged;
            }
        }
        Op::Release { number } => drop(ledger.release(call_id(number), "busy", NOW_SECS).await),
        Op::Prune { later_days } => {
            let keep = Retention { bodies_kept_secs: 0, body_bytes_max: 0, rows_kept_secs: 0 };
            ledger.prune(keep, NOW_SECS + later_days * 86_400).await.unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_leaves_right_books(ops in prop::collection::vec(op(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let ledger = in_memory();
            let mut model = Model::default();
            for salt in [1, 2] {
                ledger.put_payee_channel(payee_channel(salt)).await.unwrap();
                ledger.put_payer_channel(payer_channel(salt)).await.unwrap();
                model.spent.insert(salt, 0);
                model.best.insert(salt, 0);
                model.deposited.insert(salt, DEPOSIT.micros());
            }
            for op in &ops {
                run(&ledger, &mut model, op).await;
            }
            for salt in [1, 2] {
                let row = ledger.payee_channel(channel(salt)).unwrap().unwrap();
                assert_eq!((row.spent, row.best), (micros(model.spent[&salt]), micros(model.best[&salt])));
                let channels = ledger.payer_channels().unwrap();
                let row = channels.iter().find(|row| row.id == channel(salt)).unwrap();
                let acknowledged = model.acknowledged.get(&salt).copied().unwrap_or_default();
                assert_eq!(row.acknowledged, Usdc::from_micros(acknowledged));
            }
            assert_eq!(ledger.audit(None).unwrap().violations, []);
        });
    }
}
