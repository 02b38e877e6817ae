//! A book whose channel was signed away, and a chain that takes blocks back.

use super::*;

fn done(book: &Book) -> Option<bool> {
    assert!(book.get(ID).unwrap().state.closing, "no view ends it");
    book.signed_away().first().map(|close| close.done_for.is_some())
}

#[test]
fn a_signed_close_is_done_once_a_later_round_stays_before_the_channel_is_filled_again() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let see = |(deposited, claimed): (u64, u64), (round, safe_round): (u32, u32)| {
        book.apply(&row(deposited, claimed), None, View { round, safe_round, ..SAFE });
    };
    see((10, 0), (0, 0));
    assert!(book.sign_away(ID, 100, 0));
    for (seen, rounds) in
        [((10, 10), (1, 0)), ((10, 0), (0, 0)), ((10, 10), (1, 0)), ((20, 10), (1, 0)), ((10, 0), (0, 1))]
    {
        see(seen, rounds);
        assert_eq!(done(&book), Some(false), "deposited and claimed: {seen:?}, round and safe: {rounds:?}");
    }
    for seen in [(10, 10), (20, 10)] {
        see(seen, (1, 1));
        assert_eq!(done(&book), Some(true), "{seen:?}");
    }
    see((10, 0), (0, 0));
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
    book.apply(&row(10, 10), None, View { round: 1, safe_round: 0, ..SAFE });
    assert_eq!(done(&book), Some(false));
    book.set_ending(ID, Ending::None);
    assert!(book.signed_away().is_empty() && !book.get(ID).unwrap().state.closing);
}

#[test]
fn a_signed_close_that_a_block_takes_back_keeps_the_channel_from_serving_until_it_is_done_again_or_void() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let see = |(deposited, claimed): (u64, u64), round: u32| {
        book.apply(&row(deposited, claimed), None, View { round, ..SAFE });
        book.get(ID).unwrap().state.closing
    };
    see((10, 0), 0);
    assert!(book.sign_away(ID, 100, 0));
    for _ in 0..2 {
        see((20, 10), 1);
        assert_eq!(done(&book), Some(true));
        book.set_ending(ID, Ending::None);
        assert!(!see((20, 10), 1), "it serves again once the close stays");
        assert!(see((10, 0), 0), "the same words close it again");
        assert_eq!(book.signed_away()[0].until_secs, 100, "the term is the same");
        assert_eq!(done(&book), Some(false));
    }
    book.set_ending(ID, Ending::None);
    assert!(!see((10, 0), 0), "nobody can bring what is void");
}

#[test]
fn a_close_that_was_signed_and_not_brought_is_sent_here_once_and_stays_signed() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 0), None, SAFE);
    assert!(!book.get(ID).unwrap().is_to_be_sent(), "nothing is signed");
    assert!(book.sign_away(ID, 100, 0));
    assert!(book.get(ID).unwrap().is_to_be_sent());
    assert_eq!([book.begin_close(ID), book.begin_close(ID)], [true, false], "it is taken on once");
    assert_eq!(book.get(ID).unwrap().ending, Ending::SignedAway { until_secs: 100, round: 0 });
    assert!(book.closing().is_empty());
    for (deposited, claimed) in [(10, 10), (20, 10)] {
        book.apply(&row(deposited, claimed), None, View { round: 1, ..SAFE });
        assert!(!book.get(ID).unwrap().is_to_be_sent(), "what was filled since is closed by nobody's word");
    }
}
