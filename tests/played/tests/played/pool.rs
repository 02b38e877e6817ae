//! Transactions that wait: which of them a chain takes, in which order, and what becomes of them when blocks are taken back.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256};
use farthing_contract_tests::CHAIN_ID;
use farthing_played_chain::{Genesis, Machine, NotTaken};

use crate::people::{Draft, key};

const GWEI: u128 = 1_000_000_000;
const TO: Address = Address::repeat_byte(0x70);

fn machine() -> Machine {
    let mut machine = Machine::new(&Genesis {
        chain_id: CHAIN_ID,
        number: 0,
        timestamp_secs: 1_700_000_000,
        usdc: Address::repeat_byte(0x7c),
        minter: key("minter").address(),
        accounts: BTreeMap::from([(key("payer").address(), (1_000_000 * GWEI, 0))]),
    });
    machine.set_base_fee_wei(GWEI);
    machine
}

/// A transfer of 5 wei.
fn draft(nonce: u64, max_fee_wei: u128, tip_wei: u128) -> Draft {
    Draft { nonce, gas_limit: 21_000, max_fee_wei, tip_wei, to: TO, value_wei: 5, data: Vec::new() }
}

fn send(machine: &mut Machine, draft: &Draft) -> Result<B256, NotTaken> {
    machine.send(&draft.sign(&key("payer")))
}

#[test]
fn a_transaction_is_replaced_by_one_that_pays_a_tenth_more_on_both_fees_and_by_no_other() {
    let mut machine = machine();
    let first = draft(0, 10 * GWEI, GWEI);
    send(&mut machine, &first).unwrap();
    assert_eq!(send(&mut machine, &first), Err(NotTaken::Known));
    for (max_fee_wei, tip_wei) in [(11 * GWEI - 1, 2 * GWEI), (20 * GWEI, GWEI), (10 * GWEI, GWEI + 1)] {
        let refused = send(&mut machine, &draft(0, max_fee_wei, tip_wei));
        assert_eq!(refused, Err(NotTaken::Underpriced), "{max_fee_wei} {tip_wei}");
    }
    let second = send(&mut machine, &draft(0, 11 * GWEI, GWEI + GWEI / 10)).unwrap();
    let mined: Vec<B256> = machine.mine(0).mined.iter().map(|mined| mined.transaction.hash).collect();
    assert_eq!(mined, [second]);
    assert_eq!(send(&mut machine, &first), Err(NotTaken::NonceTooLow));
}

#[test]
fn a_transaction_waits_for_the_one_before_it_and_for_a_block_that_it_pays_for() {
    let mut machine = machine();
    send(&mut machine, &draft(1, 2 * GWEI, 0)).unwrap();
    assert!(machine.mine(0).mined.is_empty(), "nonce 0 is missing");
    machine.set_base_fee_wei(3 * GWEI);
    send(&mut machine, &draft(0, 9 * GWEI, GWEI)).unwrap();
    let first = machine.mine(0).mined.clone();
    assert_eq!((first.len(), first[0].price_wei), (1, 4 * GWEI));
    machine.set_base_fee_wei(2 * GWEI);
    let second = machine.mine(0).mined.clone();
    assert_eq!((second.len(), second[0].price_wei), (1, 2 * GWEI));
    let books = &machine.head().books;
    assert_eq!(books.wei(TO), 10);
    assert_eq!(books.wei(key("payer").address()), 1_000_000 * GWEI - 6 * GWEI * 21_000 - 10);
}

#[test]
fn what_nobody_signed_for_this_chain_or_can_pay_for_is_not_taken() {
    let mut machine = machine();
    assert_eq!(machine.send(b"no transaction"), Err(NotTaken::Malformed));
    assert_eq!(send(&mut machine, &draft(0, 1_000 * GWEI, 0)), Err(NotTaken::NoFunds));
    let foreign = machine.send(&draft(0, 2 * GWEI, 0).sign(&key("stranger")));
    assert_eq!(foreign, Err(NotTaken::NoFunds), "it is the signer who pays");
    assert!(machine.pool().is_empty());
}

#[test]
fn blocks_that_are_taken_back_leave_no_trace_and_their_transactions_wait_again_if_they_are_kept() {
    for are_kept in [true, false] {
        let mut machine = machine();
        machine.mine(0);
        send(&mut machine, &draft(0, 2 * GWEI, 0)).unwrap();
        let old = machine.mine(0).hash;
        machine.mine(0);
        machine.take_back(2, are_kept);
        assert_eq!((machine.head().number, machine.head().books.wei(TO)), (1, 0));
        let new = machine.mine(0);
        assert_eq!(new.mined.len(), usize::from(are_kept));
        assert_ne!(new.hash, old, "a block that is made again is another one");
        assert_eq!(machine.head().books.wei(TO), if are_kept { 5 } else { 0 });
    }
}

#[test]
fn a_transaction_whose_gas_does_not_suffice_is_paid_for_and_does_nothing() {
    let mut machine = machine();
    machine.set_gas_extra(1);
    send(&mut machine, &draft(0, 2 * GWEI, 0)).unwrap();
    let mined = machine.mine(0).mined.clone();
    assert_eq!((mined[0].succeeded, mined[0].gas_used), (false, 21_000));
    let books = &machine.head().books;
    assert_eq!((books.wei(TO), books.nonce(key("payer").address())), (0, 1));
    assert_eq!(books.wei(key("payer").address()), 1_000_000 * GWEI - GWEI * 21_000);
}
