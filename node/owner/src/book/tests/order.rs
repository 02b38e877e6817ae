//! Vouchers that arrive late, closes beside calls that run, and what a full book asks for.

use super::*;

#[test]
fn a_late_voucher_takes_the_place_of_no_higher_one() {
    let (domain, key) = (Domain::new(1, Address::ZERO), SecretKey::from_bytes(&[7; 32]).unwrap());
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&row(100, 0), None, SAFE);
    let admit = |cumulative: u64| {
        let voucher = Voucher { channel: ID, cumulative: usdc(cumulative) };
        let voucher = voucher.verify(&domain, voucher.sign(&domain, &key), key.address()).unwrap();
        book.admit(ID, Some(&voucher), usdc(1), GasMeans::UNLIMITED).unwrap()
    };
    admit(100).settle(usdc(1));
    // Both were verified before either of them was admitted.
    let late = admit(50);
    assert_eq!(late.voucher().map(|voucher| voucher.cumulative), Some(usdc(100)), "what is stored");
    let kept = book.get(ID).unwrap();
    assert_eq!(
        kept.best_voucher.map(|voucher| voucher.cumulative),
        Some(kept.state.best),
        "what is claimed by"
    );
}

#[test]
fn a_close_is_signed_away_on_no_channel_on_which_a_call_runs() {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    book.apply(&PayeeChannelRow { best: usdc(6), ..row(10, 0) }, None, SAFE);
    let call = book.admit(ID, None, usdc(5), GasMeans::UNLIMITED).unwrap();
    assert!(!book.sign_away(ID, 9, 0));
    assert_eq!(book.signed_away(), []);
    drop(book.admit(ID, None, usdc(1), GasMeans::UNLIMITED).expect("nothing has changed"));
    call.settle(usdc(5));
    assert!(book.sign_away(ID, 9, 0));
    assert_eq!(book.signed_away()[0].until_secs, 9);
    assert_eq!(book.admit(ID, None, usdc(1), GasMeans::UNLIMITED).err(), Some(RefusalCode::ChannelClosing));
}

#[test]
fn a_full_book_names_the_least_that_finds_a_place() {
    let book = Book::with_places(2);
    let of = |n: u8, deposited| PayeeChannelRow { id: ChannelId::from_bytes([n; 32]), ..row(deposited, 0) };
    book.apply(&of(1, 10), None, SAFE);
    assert_eq!(book.least_with_room(), Usdc::ZERO, "there is a place");
    book.apply(&of(2, 20), None, SAFE);
    let room = |left| book.room_for(ChannelId::from_bytes([9; 32]), left);
    let least = book.least_with_room();
    assert_eq!(least, usdc(11));
    assert_eq!((room(usdc(10)), room(least)), (Room::Full, Room::Instead(of(1, 0).id)));
    book.evict(of(1, 0).id);
    book.apply(&PayeeChannelRow { spent: usdc(1), ..of(1, 10) }, None, SAFE);
    assert_eq!(book.least_with_room(), usdc(21), "who pays does not make room");
    book.evict(of(2, 0).id);
    book.apply(&PayeeChannelRow { spent: usdc(1), ..of(2, 20) }, None, SAFE);
    assert_eq!((book.least_with_room(), room(usdc(1_000))), (Usdc::MAX, Room::Full), "all of them pay");
}
