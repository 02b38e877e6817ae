//! What is told apart when the books are held against the contract: differences, and what is not confirmed.

use farthing_ledger::{PayeeChannelFacts, PayerChannelFacts};
use farthing_protocol::{Address, ChannelConfig};
use redb::backends::InMemoryBackend;

use super::*;

const ID: ChannelId = ChannelId::from_bytes([3; 32]);

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

fn state(deposited: u64, claimed: u64) -> ChannelState {
    ChannelState { deposited: usdc(deposited), claimed: usdc(claimed), ..ChannelState::default() }
}

fn booked(side: Side, deposited: u64, claimed: u64) -> Booked {
    Booked { id: ID, side, deposited: usdc(deposited), claimed: usdc(claimed) }
}

fn at_rest(state: ChannelState) -> ContractView {
    ContractView { before: state, confirmed: state, newest: state }
}

fn contract(escrow: u64, confirmed: ChannelState, newest: ChannelState) -> ContractBooks {
    ContractBooks {
        head: 7,
        block: 7,
        escrow: usdc(escrow),
        confirmed: vec![confirmed],
        newest: vec![newest],
    }
}

#[test]
fn at_rest_the_books_are_what_the_contract_says() {
    let seen = at_rest(state(10, 4));
    for side in [Side::Payer, Side::Payee] {
        assert_eq!(judge(&booked(side, 10, 4), &seen), Verdict::Agrees);
        for (deposited, claimed) in [(11, 4), (10, 3), (10, 5), (9, 3)] {
            let verdict = judge(&booked(side, deposited, claimed), &seen);
            assert!(matches!(verdict, Verdict::Violates(_)), "{side:?} {deposited} {claimed}: {verdict:?}");
        }
    }
    let less = |side| judge(&booked(side, 9, 4), &seen);
    assert!(matches!(less(Side::Payer), Verdict::Violates(_)), "its own deposit");
    assert!(matches!(less(Side::Payee), Verdict::Waits(_)), "what it does not count it does not serve on");
}

#[test]
fn what_is_not_confirmed_or_just_changed_is_waited_for() {
    let deposit = ContractView { newest: state(15, 4), ..at_rest(state(10, 4)) };
    let claim = ContractView { newest: state(10, 6), ..at_rest(state(10, 4)) };
    let just_claimed = ContractView { before: state(10, 4), ..at_rest(state(10, 6)) };
    let closed = ContractView { newest: state(6, 6), ..at_rest(state(10, 4)) };
    for (seen, deposited, claimed) in
        [(deposit, 10, 4), (claim, 10, 4), (just_claimed, 10, 4), (just_claimed, 10, 6), (closed, 6, 4)]
    {
        let verdict = judge(&booked(Side::Payer, deposited, claimed), &seen);
        let Verdict::Waits(told) = &verdict else { panic!("{seen:?}: {verdict:?}") };
        assert!(told.contains("in the newest block"), "{told}");
    }
    for (seen, deposited, claimed) in
        [(deposit, 16, 4), (deposit, 10, 5), (claim, 10, 7), (claim, 10, 3), (closed, 5, 4)]
    {
        let verdict = judge(&booked(Side::Payer, deposited, claimed), &seen);
        assert!(matches!(verdict, Verdict::Violates(_)), "{seen:?} {deposited} {claimed}: {verdict:?}");
    }
}

#[test]
fn a_contract_that_pays_out_more_than_it_got_is_named() {
    let verdict = judge(&booked(Side::Payee, 10, 4), &at_rest(state(4, 10)));
    assert!(matches!(&verdict, Verdict::Violates(told) if told.contains("more than it got")), "{verdict:?}");
}

#[test]
fn the_contract_holds_at_least_what_is_in_the_channels_here() {
    let (channel, seen) = (state(10, 4), [booked(Side::Payer, 10, 4), booked(Side::Payee, 10, 4)]);
    let with = |escrow| {
        let books = contract(escrow, channel, channel);
        check(&[ID], &seen, &books, &books, 0)
    };
    assert_eq!((with(6).violations, with(7).violations), (vec![], vec![]));
    // A channel between two services of one node is held once.
    assert_eq!((with(6).at_stake, with(6).channels), (usdc(6), 2));
    let short = with(5).violations;
    assert!(short.len() == 1 && short[0].starts_with("M2 "), "{short:?}");
}

#[test]
fn every_violation_is_counted_and_a_thousand_are_listed() {
    let ids: Vec<ChannelId> = (0..1_001_u16)
        .map(|n| {
            let mut id = [0; 32];
            id[..2].copy_from_slice(&n.to_be_bytes());
            ChannelId::from_bytes(id)
        })
        .collect();
    let books: Vec<Booked> = ids.iter().map(|id| Booked { id: *id, ..booked(Side::Payer, 1, 1) }).collect();
    let states = vec![state(1, 0); ids.len()];
    let contract =
        ContractBooks { head: 1, block: 1, escrow: usdc(5_000), confirmed: states.clone(), newest: states };
    let checked = check(&ids, &books, &contract, &contract, 0);
    assert_eq!((checked.violations_total, checked.violations.len()), (1_001, LISTED_MAX));
}

#[test]
fn what_an_endpoint_has_just_begun_to_show_is_no_failure_of_storage() {
    let done = |is_stored, is_sure| why_not(CaughtUp { is_stored, is_sure, is_placed: true });
    assert!(done(true, true).is_none());
    assert!(matches!(done(true, false), Some(NotChecked::NotSure)));
    assert!(matches!(done(false, false), Some(NotChecked::NotStored)));
}

#[tokio::test]
async fn channels_of_another_token_or_contract_are_left_out() {
    let [payer, payee, token, contract, other] = [1, 2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
    let here = Escrow { chain_id: 31_337, contract, token };
    let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
    let config =
        |token| ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 86_400, salt: [0; 32] };
    let (deposited, claimed) = (usdc(10), usdc(4));
    for escrow in [here, Escrow { token: other, ..here }, Escrow { contract: other, ..here }] {
        let config = config(escrow.token);
        let id = config.id(&escrow.domain());
        let paying = PayerChannelFacts { id, config, deposited, claimed, round: Some(0), stopped: false };
        ledger.put_payer_channel(paying).await.unwrap();
        let paid = PayeeChannelFacts { id, config, deposited, claimed, closing: false };
        ledger.put_payee_channel(paid).await.unwrap();
    }
    let id = config(token).id(&here.domain());
    let kept = [Side::Payer, Side::Payee].map(|side| Booked { id, ..booked(side, 10, 4) });
    assert_eq!(booked_in(&ledger, &here).unwrap(), (kept.to_vec(), 4));
}
