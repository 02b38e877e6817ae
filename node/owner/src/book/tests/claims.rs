//! What an owner serves that it cannot claim.

use super::*;

const fn id(n: u8) -> ChannelId {
    ChannelId::from_bytes([n; 32])
}

/// A book with a channel for each of these sums, all of them served and not claimed.
fn owing(due: &[u64], without_gas_max: u64) -> Book {
    let book = Book::new(Usdc::ZERO, usdc(without_gas_max));
    for (n, due) in (0..).zip(due) {
        book.apply(
            &PayeeChannelRow { id: id(n), best: usdc(900), spent: usdc(*due), ..row(1_000, 0) },
            None,
            SAFE,
        );
    }
    book
}

const fn rows(rows: usize) -> GasMeans {
    GasMeans { rows, row_cost: usdc(5) }
}

#[test]
fn strangers_whose_sums_are_not_worth_a_claim_keep_nobody_from_calling_whose_sum_is() {
    // Two large ones, and more small ones than there is ETH for.
    let book = owing(&[200, 100, 30, 30, 30], 90);
    let serves = |n, price| book.admit(id(n), None, usdc(price), rows(2)).is_ok();
    assert!(serves(0, 500) && serves(1, 500), "their claims are made first");
    assert!(!serves(2, 1) && !serves(4, 1), "90 stay behind, and it would be 91");
    assert!(serves(2, 0), "nothing is added");
    // A larger sum takes the place of a smaller one, which then stays behind: no more than before.
    let book = owing(&[200, 100, 30, 30, 30], 59);
    assert!(book.admit(id(3), None, usdc(1), rows(3)).is_ok(), "30 and 30 stay behind, as they did");
    assert!(owing(&[200, 6, 6, 6], 18).admit(id(1), None, usdc(1), rows(1)).is_err());
    assert!(owing(&[200, 5, 5, 5], 0).admit(id(0), None, usdc(1), rows(1)).is_ok(), "dust asks for no ETH");
}

#[test]
fn what_the_contract_refuses_is_served_up_to_a_bound_and_what_it_pays_is_served_on() {
    let book = owing(&[20, 30, 40], 60);
    let serves = |n, price| book.admit(id(n), None, usdc(price), rows(10)).is_ok();
    let refuse = |n: u8| vec![(id(n), "no".to_owned())];
    book.note_claims(&[id(1), id(2)], refuse(0));
    assert!(serves(0, 40) && !serves(0, 41), "20 are refused, 60 may be");
    assert!(serves(1, 500), "the contract pays the others");
    // A claim that pays nothing says the same of the others.
    book.note_claims(&[], refuse(0));
    assert!(!serves(0, 1) && !serves(1, 1));
    book.note_claims(&[], Vec::new());
    assert!(!serves(1, 1), "nothing was claimed, so nothing is known");
    // Somebody was paid.
    book.apply(&PayeeChannelRow { id: id(1), best: usdc(900), ..row(1_000, 30) }, None, SAFE);
    assert!(serves(1, 500) && serves(0, 40) && !serves(0, 41));
    book.note_claims(&[id(0)], Vec::new());
    assert!(book.claims().refused.is_empty() && serves(0, 500));
}
