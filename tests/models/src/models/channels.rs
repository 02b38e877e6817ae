//! What is set aside for calls: `node/src/consumer/channels.rs` for who pays, `node/owner/src/book.rs` for who is paid.

use real_std::sync::Arc;

use farthing_protocol::{
    Address, CallId, ChannelId, RefusalCode, Usdc,
    channel::{PayerState, Receipt},
};

use super::{any, begin, end};
use crate::{
    Ending, PayeeChannelRow, PayerChannelFacts, PayerChannelRow,
    consumer::channels::{PayerChannels, Shortage},
    gas::GasMeans,
    owner::book::{Book, View},
    point,
};

const OWNER: Address = Address::ZERO;
const ID: ChannelId = ChannelId::NONE;

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

fn receipt(charged: Usdc, spent_total: Usdc) -> Receipt {
    Receipt {
        channel: ID,
        call_id: CallId::from_bytes([0; 16]),
        request_hash: [0; 32],
        response_hash: [0; 32],
        outcome: 0,
        charged,
        spent_total,
        time_secs: 0,
    }
}

fn state(channels: &PayerChannels) -> PayerState {
    channels.get(ID).expect("it is there").state
}

/// Three calls at once on a deposit for two: nothing is signed beyond the deposit, and what is not charged comes back.
pub fn calls_never_reserve_more_than_the_deposit() {
    let channels = Arc::new(PayerChannels::default());
    channels.apply(&PayerChannelRow::new(usdc(100)), None);
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let channels = Arc::clone(&channels);
            begin(async move {
                let reserved = match channels.reserve(OWNER, usdc(40), 0) {
                    Ok(reserved) => reserved,
                    Err(shortage) => {
                        assert!(matches!(shortage, Shortage::Low { .. }), "{shortage:?}");
                        return 0;
                    }
                };
                assert!(reserved.cumulative <= reserved.deposited, "{reserved:?}");
                let state = state(&channels);
                assert!(state.acknowledged.saturating_add(state.in_flight) <= state.deposited, "{state:?}");
                point();
                if any(2) == 0 {
                    channels.release(&reserved);
                    return 0;
                }
                channels
                    .acknowledge(&reserved, &receipt(usdc(40), reserved.cumulative))
                    .expect("the price was charged");
                40
            })
        })
        .collect();
    let charged = end(tasks).into_iter().sum();
    let state = state(&channels);
    assert_eq!((state.in_flight, state.acknowledged), (Usdc::ZERO, usdc(charged)), "{state:?}");
    assert!(state.signed <= state.deposited, "{state:?}");
}

/// The chain shows less while calls are reserved: from then on no promise goes beyond that.
pub fn what_the_chain_takes_back_is_promised_to_nobody() {
    let channels = Arc::new(PayerChannels::default());
    let row = PayerChannelRow::new(usdc(100));
    channels.apply(&row, None);
    let chain = {
        let channels = Arc::clone(&channels);
        begin(async move {
            let PayerChannelRow { id, config, claimed, round, .. } = row;
            channels.lower(&PayerChannelFacts { id, config, deposited: usdc(50), claimed, round });
            channels.apply(&PayerChannelRow { deposited: usdc(50), ..row }, None);
        })
    };
    let caller = {
        let channels = Arc::clone(&channels);
        begin(async move {
            for _ in 0..2 {
                let before = state(&channels);
                if let Ok(reserved) = channels.reserve(OWNER, usdc(40), 0) {
                    assert!(reserved.cumulative <= before.deposited, "{reserved:?} on {before:?}");
                }
            }
        })
    };
    end([chain, caller]);
    assert_eq!(channels.reserve(OWNER, usdc(40), 0).err().is_some(), state(&channels).in_flight > usdc(10));
}

/// Whoever waits for a deposit goes on when the books have it, at whatever moment they get it.
pub fn whoever_waits_for_a_deposit_goes_on() {
    let channels = Arc::new(PayerChannels::default());
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let channels = Arc::clone(&channels);
            begin(async move { channels.until(ID, |channel| channel.state.deposited >= usdc(100)).await })
        })
        .collect();
    channels.apply(&PayerChannelRow::new(usdc(50)), None);
    channels.apply(&PayerChannelRow::new(usdc(100)), None);
    end(waiting);
}

fn book(deposited: u64, best: u64) -> Book {
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let view = View { safe_deposited: Usdc::MAX, close_at_secs: None, round: 0, safe_round: u32::MAX };
    book.apply(&PayeeChannelRow::new(usdc(deposited), usdc(best)), None, view);
    book
}

/// Three calls at once on a voucher for two: what is served and charged lies within it, and what is not served comes back.
pub fn an_owner_never_serves_beyond_the_voucher() {
    let book = book(100, 90);
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let book = book.clone();
            begin(async move {
                let reserved = match book.admit(ID, None, usdc(40), GasMeans::UNLIMITED) {
                    Ok(reserved) => reserved,
                    Err(refusal) => {
                        assert_eq!(refusal, RefusalCode::InsufficientVoucher);
                        return 0;
                    }
                };
                let state = book.get(ID).expect("it is there").state;
                assert!(state.spent.saturating_add(state.reserved) <= state.best, "{state:?}");
                point();
                match any(2) {
                    0 => {
                        drop(reserved);
                        0
                    }
                    _ => {
                        reserved.settle(usdc(30));
                        30
                    }
                }
            })
        })
        .collect();
    let charged = end(tasks).into_iter().sum();
    let state = book.get(ID).expect("it is there").state;
    assert_eq!((state.reserved, state.spent), (Usdc::ZERO, usdc(charged)), "{state:?}");
}

/// A close is signed away, or a total taken over, while no call runs; and none begins then.
pub fn no_call_runs_on_a_channel_that_is_signed_away_or_looked_at() {
    let book = book(100, 100);
    let caller = {
        let book = book.clone();
        begin(async move {
            let Ok(reserved) = book.admit(ID, None, usdc(40), GasMeans::UNLIMITED) else { return };
            point();
            let channel = book.get(ID).expect("a call keeps its place");
            assert!(channel.ending == Ending::None, "{channel:?}");
            assert!(book.look(ID).is_none(), "a call runs");
            assert!(!book.evict(ID));
            point();
            if any(2) == 0 { reserved.settle(usdc(40)) } else { drop(reserved) }
        })
    };
    let other = {
        let book = book.clone();
        begin(async move {
            let way = any(3);
            match way {
                0 => _ = book.sign_away(ID, 9, 0),
                1 => {
                    if let Some(look) = book.look(ID) {
                        assert!(book.get(ID).expect("it is there").state.reserved.is_zero());
                        point();
                        assert!(book.get(ID).expect("it is there").state.reserved.is_zero(), "a call began");
                        drop(look);
                    }
                }
                _ => drop(book.quiet(ID)),
            }
            way
        })
    };
    end([caller]);
    let way = end([other])[0];
    assert!(book.get(ID).expect("it is there").state.reserved.is_zero());
    if way == 1 {
        assert!(book.admit(ID, None, usdc(40), GasMeans::UNLIMITED).is_ok(), "nobody looks any more");
    }
}
