//! Deposits that are not safe, and the places of a full book.

use farthing_protocol::SecretKey;

use super::*;

mod agreement;
mod claims;
mod closes;
mod order;
mod restored;
mod signed;

pub(crate) const ID: ChannelId = ChannelId::from_bytes([1; 32]);
const SAFE: View = View { safe_deposited: Usdc::MAX, close_at_secs: None, round: 0, safe_round: u32::MAX };

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

pub(crate) const fn terms(payer: Address, payee: Address) -> ChannelConfig {
    let token = Address::ZERO;
    ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 86_400, salt: [0; 32] }
}

fn row(deposited: u64, claimed: u64) -> PayeeChannelRow {
    PayeeChannelRow {
        id: ID,
        config: terms(Address::from_bytes([1; 20]), Address::from_bytes([2; 20])),
        deposited: Usdc::from_micros(deposited),
        claimed: Usdc::from_micros(claimed),
        closing: false,
        best: Usdc::from_micros(claimed),
        best_signature: None,
        spent: Usdc::from_micros(claimed),
        opening: Usdc::from_micros(claimed),
        opening_version: claimed,
        ending: Ending::None,
        lost: Usdc::ZERO,
        brought: None,
    }
}

#[test]
fn deposits_that_are_not_safe_serve_each_payer_up_to_a_bound_over_all_its_channels() {
    let (domain, key) = (Domain::new(1, Address::ZERO), SecretKey::from_bytes(&[7; 32]).unwrap());
    let book = Book::new(usdc(10), Usdc::ZERO);
    let open = |n: u8, payer: u8, safe: u64| {
        let id = ChannelId::from_bytes([n; 32]);
        let payer = Address::from_bytes([payer; 20]);
        let row = PayeeChannelRow { id, ..row(100, 0) };
        let row = PayeeChannelRow { config: ChannelConfig { payer, ..row.config }, ..row };
        book.apply(&row, None, View { safe_deposited: usdc(safe), ..SAFE });
        id
    };
    let signed = |channel| {
        let voucher = Voucher { channel, cumulative: usdc(100) };
        voucher.verify(&domain, voucher.sign(&domain, &key), key.address()).unwrap()
    };
    let admit = |id, price| book.admit(id, Some(&signed(id)), usdc(price), GasMeans::UNLIMITED);
    let refused = Some(RefusalCode::DepositNotSafe);
    let (first, second, other) = (open(1, 1, 0), open(2, 1, 5), open(3, 2, 0));
    assert_eq!(admit(first, 11).err(), refused, "at once");
    admit(first, 6).unwrap().settle(usdc(6));
    assert_eq!(admit(first, 5).err(), refused, "bit by bit");
    // Of another channel the safe part does not count, and what is in progress does.
    let in_progress = admit(second, 9).unwrap();
    assert_eq!(admit(first, 1).err(), refused, "over all channels");
    assert_eq!(admit(second, 1).err(), refused);
    admit(other, 10).unwrap().settle(usdc(10));
    drop(in_progress);
    admit(first, 4).unwrap().settle(usdc(4));
    // What has become safe is no risk any more.
    open(1, 1, 100);
    admit(first, 90).unwrap().settle(usdc(90));
    admit(second, 15).unwrap().settle(usdc(15));
    assert_eq!(admit(second, 1).err(), refused);
}

#[test]
fn dust_makes_room_for_what_holds_more_and_never_for_less() {
    let book = Book::with_places(3);
    let id = |n: u8| ChannelId::from_bytes([n; 32]);
    let of = |n: u8, deposited, claimed| PayeeChannelRow { id: id(n), ..row(deposited, claimed) };
    for (n, deposited) in [(1, 10), (2, 11), (3, 12)] {
        assert_eq!(book.room_for(id(n), Usdc::from_micros(deposited)), Room::Free);
        book.apply(&of(n, deposited, 0), None, SAFE);
    }
    let room = |left| book.room_for(id(9), Usdc::from_micros(left));
    assert_eq!((room(9), room(10), room(11)), (Room::Full, Room::Full, Room::Instead(id(1))));
    // A channel that pays stays, however little is left; one that is empty goes first.
    book.apply(&PayeeChannelRow { spent: Usdc::from_micros(1), ..of(1, 10, 0) }, None, SAFE);
    let paid = of(1, 10, 9);
    book.evict(id(1));
    book.apply(&paid, None, SAFE);
    assert_eq!(room(100), Room::Instead(id(2)));
    book.apply(&of(3, 12, 12), None, SAFE);
    assert_eq!(room(1), Room::Instead(id(3)));
    book.evict(id(3));
    assert_eq!(room(1), Room::Free);
}

#[test]
fn a_channel_with_a_call_in_progress_keeps_its_place() {
    let book = Book::with_places(1);
    book.apply(&PayeeChannelRow { best: Usdc::from_micros(5), ..row(10, 0) }, None, SAFE);
    let reserved = book.admit(ID, None, Usdc::from_micros(5), GasMeans::UNLIMITED).unwrap();
    let other = ChannelId::from_bytes([9; 32]);
    assert_eq!(book.room_for(other, Usdc::from_micros(100)), Room::Full);
    assert!(!book.evict(ID));
    assert!(book.get(ID).is_some());
    drop(reserved);
    assert_eq!(book.room_for(other, Usdc::from_micros(100)), Room::Instead(ID));
}
