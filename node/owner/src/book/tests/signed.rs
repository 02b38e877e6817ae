//! A book whose channel was signed away, and a chain that takes blocks back.

use super::*;

fn done(book: &Book) -> Option<bool> {
    assert!(book.get(ID).unwrap().state.closing, "no view ends it");
    book.signed_away().first().map(|close| close.done_for.is_some())
}

#[test]
fn a_signed_close_is_done_once_a_later_round_holds_a_deposit_that_stays() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let see = |deposited, claimed, safe: u64, round| {
        let view = View { safe_deposited: Usdc::from_micros(safe), round, ..SAFE };
        book.apply(&row(deposited, claimed), None, view);
    };
    see(10, 0, 10, 0);
    assert!(book.sign_away(ID, 100, 0));
    for (seen, round) in [((10, 10, 10), 1), ((10, 0, 10), 0), ((10, 10, 10), 1), ((20, 10, 10), 1)] {
        see(seen.0, seen.1, seen.2, round);
        assert_eq!(done(&book), Some(false), "deposited, claimed, safe: {seen:?}");
    }
    see(20, 10, 20, 1);
    assert_eq!(done(&book), Some(true));
    see(10, 0, 10, 0);
    assert_eq!(done(&book), Some(false), "another reading shows it is not");
}

#[test]
fn how_long_a_close_is_shown_to_be_done_is_counted_from_the_first_view_that_shows_it() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 0), None, SAFE);
    assert!(book.sign_away(ID, 100, 0));
    book.apply(&row(20, 10), None, View { round: 1, ..SAFE });
    let between = Duration::from_millis(20);
    std::thread::sleep(between);
    book.apply(&row(20, 10), None, View { round: 1, ..SAFE });
    assert!(book.signed_away()[0].done_for.unwrap() >= between, "the second view does not begin anew");
}

#[test]
fn a_void_close_is_forgotten_on_an_empty_channel_too() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 0), None, SAFE);
    assert!(book.sign_away(ID, 100, 0));
    book.apply(&row(10, 10), None, View { round: 1, ..SAFE });
    assert_eq!(done(&book), Some(false));
    book.set_ending(ID, Ending::None);
    assert!(book.signed_away().is_empty() && !book.get(ID).unwrap().state.closing);
}
