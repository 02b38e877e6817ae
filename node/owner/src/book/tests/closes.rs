//! Closes that this node takes on, and their rounds.

use super::*;

#[test]
fn a_close_of_an_empty_channel_does_not_stop_it_from_serving_when_it_is_filled() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 10), None, SAFE);
    assert!(!book.begin_close(ID), "there is nothing to close");
    book.apply(&row(20, 10), None, SAFE);
    assert!(!book.get(ID).unwrap().state.closing);
    assert!(book.begin_close(ID));
    book.apply(&row(20, 10), None, SAFE);
    assert!(book.get(ID).unwrap().state.closing, "a view does not end a close that is asked for");
    book.apply(&row(10, 10), None, View { round: 1, ..SAFE });
    assert!(!book.get(ID).unwrap().state.closing && book.closing().is_empty(), "done");
    assert_eq!(book.closed().len(), 1);
    // The next round is served at once, and the block that closed the last one may be taken back.
    book.apply(&row(20, 10), None, View { round: 1, ..SAFE });
    assert!(!book.get(ID).unwrap().state.closing && book.closing().is_empty());
    book.apply(&row(20, 10), None, SAFE);
    assert!(book.get(ID).unwrap().state.closing && book.closed().is_empty(), "it was not closed");
    assert_eq!(book.closing(), [ID]);
}

#[test]
fn a_close_that_a_ledger_remembers_is_of_its_round_alone() {
    let filled_in = |ending, round| {
        let book = Book::new(Usdc::ZERO, Usdc::ZERO);
        book.apply(&PayeeChannelRow { ending, ..row(20, 10) }, None, View { round, ..SAFE });
        book.get(ID).unwrap().state.closing
    };
    let closes = Ending::Closes { round: Some(3) };
    assert!(filled_in(closes, 3), "it is still to be closed");
    assert!(!filled_in(closes, 4), "it was closed while this node was away");
    // A ledger of before does not say which round: one that was seen empty serves again when it is filled.
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let closes = Ending::Closes { round: None };
    book.apply(&PayeeChannelRow { ending: closes, ..row(10, 10) }, None, View { round: 4, ..SAFE });
    book.apply(&PayeeChannelRow { ending: closes, ..row(20, 10) }, None, View { round: 4, ..SAFE });
    assert!(!book.get(ID).unwrap().state.closing);
}

#[test]
fn a_close_is_taken_on_once_however_often_its_payer_asks_and_anew_in_a_later_round() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(10, 0), None, SAFE);
    assert_eq!([(); 3].map(|()| book.begin_close(ID)), [true, false, false]);
    book.apply(&row(10, 0), None, SAFE);
    assert!(!book.begin_close(ID), "a view that shows it open is none of its own");
    book.apply(&row(20, 10), None, View { round: 1, ..SAFE });
    assert_eq!([(); 2].map(|()| book.begin_close(ID)), [true, false]);
}
