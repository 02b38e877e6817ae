//! Sales on a ledger, kept and forgotten.

use farthing_ledger::OpenMode;
use farthing_protocol::Signature;

use super::*;

const NOW_SECS: u64 = 1_795_000_000;
const TOKEN: Address = Address::from_bytes([9; 20]);

fn sale(state: SaleState) -> Sale {
    let authorization = TransferAuthorization {
        from: Address::from_bytes([1; 20]),
        to: Address::from_bytes([2; 20]),
        value: Usdc::from_micros(2_000),
        valid_after_secs: 0,
        valid_before_secs: NOW_SECS + 300,
        nonce: [7; 32],
    };
    Sale {
        chain_id: 8_453,
        request_hash: [3; 32],
        service: ServiceId::from_bytes([4; 16]),
        method: Method::Get,
        path: "/ok".to_owned(),
        price: Usdc::from_micros(2_000),
        payment: SignedTransfer { authorization, signature: Signature::from_bytes([5; 65]) },
        since_block: 9,
        time_secs: NOW_SECS,
        state,
        answer: Some(AnswerHead {
            status: 200,
            headers: BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]),
            outcome: Outcome::Answered,
            body_bytes: 2,
            response_hash: [6; 32],
            upstream_us: 1_000,
        }),
        paid_by: None,
        header_names: vec!["x-place".to_owned()],
        token: Some(TOKEN),
    }
}

#[test]
fn a_sale_belongs_to_the_chain_and_the_token_that_it_was_offered_in() {
    let (sold, other) = (sale(SaleState::Answered), Address::from_bytes([8; 20]));
    let is_in = [(8_453, TOKEN), (8_453, other), (1, TOKEN)].map(|here| sold.is_in(here));
    assert_eq!(is_in, [true, false, false]);
    let of_before = Sale { token: None, ..sold };
    assert!(of_before.is_in((8_453, TOKEN)), "a version that knew one token noted none");
}

#[tokio::test]
async fn a_sale_is_found_after_a_restart_with_its_answer_until_it_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Create).unwrap()).unwrap();
    let (sold, body) = (sale(SaleState::Answered), Bytes::from_static(b"{}"));
    let key = key_of(&sold.payment.authorization);
    sales.put(key, &sold, Some(body.clone())).await.unwrap();
    drop(sales);
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Existing).unwrap()).unwrap();
    assert_eq!(
        (sales.find(&key).unwrap(), sales.body(&key).unwrap()),
        (Some(sold.clone()), Some(body.clone()))
    );
    assert_eq!(sales.keys(), [key]);
    assert!(!sales.is_looked_at(&key, Some(0)), "blocks are also taken back while the node is down");
    sales.note_look(&key, Some(0));
    let settled = Sale { state: SaleState::Settled, paid_by: Some([8; 32].into()), ..sold };
    sales.put(key, &settled, None).await.unwrap();
    assert_eq!((sales.find(&key).unwrap(), sales.body(&key).unwrap()), (Some(settled), Some(body)));
    assert!(sales.is_looked_at(&key, Some(0)) && !sales.is_looked_at(&key, Some(1)));
    sales.forget(key).await.unwrap();
    assert_eq!((sales.find(&key).unwrap(), sales.body(&key).unwrap()), (None, None));
    assert!(sales.keys().is_empty());
}

#[tokio::test]
async fn neither_a_clock_nor_a_block_that_is_ahead_ends_a_sale_whose_payment_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Create).unwrap()).unwrap();
    for state in [SaleState::Running, SaleState::Answered] {
        let sold = sale(state);
        let key = key_of(&sold.payment.authorization);
        sales.put(key, &sold, None).await.unwrap();
        let until_secs = sold.until_secs(NOW_SECS);
        for (clock_secs, block_secs, is_over) in [
            (until_secs, Some(until_secs), true),
            (until_secs + 900, Some(until_secs - 1), false),
            (until_secs - 1, Some(until_secs + 900), false),
            (until_secs + 900, None, false),
        ] {
            assert_eq!(sales.is_over(&key, clock_secs, block_secs), is_over, "{clock_secs} {block_secs:?}");
        }
        let settled = Sale { state: SaleState::Settled, ..sold };
        sales.put(key, &settled, None).await.unwrap();
        let ended_secs = clock::now_secs() + KEPT_SECS;
        assert!(!sales.is_over(&key, ended_secs - 60, None));
        assert!(sales.is_over(&key, ended_secs + 60, None), "nothing of it can be taken any more");
    }
}

#[tokio::test]
async fn unpaid_answers_of_one_payer_leave_room_for_others_and_paid_ones_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Create).unwrap()).unwrap();
    let mut long = sale(SaleState::Answered);
    let (payer, other) = (long.payment.authorization.from, Address::from_bytes([9; 20]));
    long.answer.as_mut().unwrap().body_bytes = 8 * 1024 * 1024;
    for nonce in [1, 2] {
        assert!(sales.has_room(payer), "{nonce}");
        long.payment.authorization.nonce = [nonce; 32];
        sales.put(key_of(&long.payment.authorization), &long, None).await.unwrap();
    }
    assert!(!sales.has_room(payer), "two of the longest answers are unpaid");
    assert!(sales.has_room(other));
    let paid = Sale { state: SaleState::Settled, ..long };
    sales.put(key_of(&paid.payment.authorization), &paid, None).await.unwrap();
    assert!(sales.has_room(payer));
}

#[tokio::test]
async fn answers_that_nobody_pays_make_room_for_those_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Create).unwrap()).unwrap();
    let turns = KeyedMutex::default();
    let mut long = sale(SaleState::Answered);
    long.answer.as_mut().unwrap().body_bytes = 8 * 1024 * 1024;
    let mut keys = Vec::new();
    for wallet in 1..=32 {
        assert!(sales.make_room(&turns).await.unwrap(), "{wallet}");
        long.payment.authorization.from = Address::from_bytes([wallet; 20]);
        let key = key_of(&long.payment.authorization);
        sales.put(key, &long, None).await.unwrap();
        keys.push(key);
    }
    assert!(!sales.make_room(&turns).await.unwrap(), "any of these payments may be under way");
    for (key, secs) in [(keys[0], 3), (keys[1], 1), (keys[2], 2)] {
        sales.note_refusal(&key, Some(secs));
    }
    let turn = turns.try_take(keys[1]);
    assert!(sales.make_room(&turns).await.unwrap());
    drop(turn);
    let left = |key: &SaleKey| sales.find(key).unwrap().is_some();
    assert_eq!([0, 1, 2].map(|at| left(&keys[at])), [true, true, false], "the second one is worked on");
    sales.put(keys[2], &long, None).await.unwrap();
    // Tried again, and nobody knows the end.
    sales.note_refusal(&keys[1], None);
    assert!(sales.make_room(&turns).await.unwrap());
    assert_eq!([0, 1, 2].map(|at| left(&keys[at])), [false, true, true]);
    let free = Sale { state: SaleState::Free, ..long };
    for key in [keys[0], keys[3]] {
        sales.put(key, &free, None).await.unwrap();
    }
    assert!(sales.make_room(&turns).await.unwrap());
    assert!(!left(&keys[0]) || !left(&keys[3]), "free calls cost nothing, either");
}

#[tokio::test]
async fn a_paid_answer_whose_payment_is_missing_again_makes_room_for_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let sales = Sales::restore(Ledger::open(&path, OpenMode::Create).unwrap()).unwrap();
    let turns = KeyedMutex::default();
    let mut long = sale(SaleState::Settled);
    long.answer.as_mut().unwrap().body_bytes = 8 * 1024 * 1024;
    for wallet in 1..=32 {
        long.payment.authorization.from = Address::from_bytes([wallet; 20]);
        let key = key_of(&long.payment.authorization);
        sales.put(key, &long, None).await.unwrap();
        // The chain took its block back, and its payer has no money now.
        sales.note_refusal(&key, Some(1));
    }
    assert!(!sales.make_room(&turns).await.unwrap(), "each of them is brought again later");
    assert_eq!(sales.keys().len(), 32);
}

#[test]
fn a_sale_waits_as_long_as_its_payment_can_be_taken_and_a_settled_one_for_ten_minutes() {
    let until = |sale: &Sale| sale.until_secs(NOW_SECS + 60) - NOW_SECS;
    assert_eq!(until(&sale(SaleState::Answered)), 300 + 600);
    assert_eq!(until(&sale(SaleState::Running)), 300 + 600);
    assert_eq!(until(&sale(SaleState::Settled)), 60 + 600);
    assert_eq!(until(&sale(SaleState::Free)), 300 + 600, "or it would have its effect again");
    let mut for_ever = sale(SaleState::Answered);
    for_ever.payment.authorization.valid_before_secs = u64::MAX;
    assert_eq!(until(&for_ever), 24 * 3_600);
}
