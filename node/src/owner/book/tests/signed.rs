//! A book whose channel was signed away, and a chain that takes blocks back.

use super::*;

fn is_served(book: &Book) -> bool {
    !book.get(ID).unwrap().state.closing
}

#[test]
fn a_channel_that_was_signed_away_is_served_again_once_a_later_round_holds_a_deposit_that_stays() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let see = |deposited, claimed, safe: u64, round| {
        let view = View { safe_deposited: Usdc::from_micros(safe), round, ..SAFE };
        book.apply(&row(deposited, claimed), None, view);
    };
    see(10, 0, 10, 0);
    assert!(book.sign_away(ID, 100, 0));
    for (seen, round) in [((10, 10, 10), 1), ((10, 0, 10), 0), ((10, 10, 10), 1), ((20, 10, 10), 1)] {
        see(seen.0, seen.1, seen.2, round);
        assert!(!is_served(&book), "deposited, claimed, safe: {seen:?}");
    }
    see(20, 10, 20, 1);
    assert!(is_served(&book));
}

#[test]
fn a_void_close_is_forgotten_on_an_empty_channel_too() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 0), None, SAFE);
    assert!(book.sign_away(ID, 100, 0));
    book.apply(&row(10, 10), None, View { round: 1, ..SAFE });
    assert_eq!(book.signed_away(), [(ID, 100)]);
    book.set_ending(ID, Ending::None);
    assert!(book.signed_away().is_empty() && is_served(&book));
}
