//! Sessions of hostile neighbours: as many as they like, with endless ranges and lies. What they may make this node do
//! is bounded for each address range, in time and in memory, and honest sessions go on.

use farthing_catalog::{Limits, Neighbour, Step, SyncError};
use farthing_protocol::{
    reconciliation::ROUNDS_MAX,
    sync::{ItemName, SyncMessage},
};

use crate::world::{NOW_SECS, World, fetched, peer, reconcile, signed};

/// Units of 16 KiB.
const COMPARED: u32 = 160;
const PACKED: u32 = 32;

async fn filled(limits: Limits, numbers: std::ops::Range<u64>) -> World {
    let world = World::with(limits);
    let listings = numbers.map(|number| signed(number, number, |_| {})).collect();
    world.catalog.offer(listings, fetched(), NOW_SECS).await;
    world
}

async fn bounded() -> World {
    let limits = Limits { compared_burst: COMPARED, packed_burst: PACKED, ..Limits::default() };
    filled(limits, 0..200).await
}

/// One of many wallets of one address range.
fn hostile(wallet: u8) -> Neighbour {
    Neighbour { wallet: peer(wallet), range: Some([9, 9, 9, 0].into()) }
}

/// A number as the comparison writes it: seven bits a byte, the highest first.
fn number(out: &mut Vec<u8>, value: u64) {
    let bytes = (1..10).rev().filter(|byte| value >> (7 * byte) != 0);
    bytes.for_each(|byte| out.push(u8::try_from(value >> (7 * byte) & 0x7f).unwrap() | 0x80));
    out.push(u8::try_from(value & 0x7f).unwrap());
}

const VERSION: u8 = 0x61;
const FINGERPRINT: u64 = 1;
const NAMES: u64 = 2;

/// A range that ends `after` seconds later than the one before; 0 is the end of all.
fn range(out: &mut Vec<u8>, after: u64, kind: u64) {
    number(out, after);
    number(out, 0);
    number(out, kind);
}

fn packed(message: &[u8]) -> SyncMessage {
    SyncMessage::Compare(zstd::bulk::compress(message, 1).unwrap().into())
}

/// As many ranges as a message holds, each said to be different.
fn endless_ranges() -> SyncMessage {
    let mut message = vec![VERSION];
    while message.len() < 990_000 {
        range(&mut message, 40_000, FINGERPRINT);
        message.extend([7; 16]);
    }
    packed(&message)
}

/// More than any share allows.
const ENOUGH: usize = 20;

/// So many comparisons and requests are answered in sessions of many wallets, one after another.
async fn answered(world: &World, message: &SyncMessage, now_secs: u64) -> usize {
    let mut answered = 0;
    for wallet in 0..=200 {
        let mut session = world.catalog.responder(hostile(wallet), now_secs);
        while answered < ENOUGH {
            match session.on(message.clone(), now_secs).await {
                Ok(_) => answered += 1,
                Err(SyncError::OverBudget) if session.stored() == 0 => break,
                Err(SyncError::TooLong) => break,
                Err(other) => panic!("{other}"),
            }
        }
    }
    answered
}

#[tokio::test]
async fn endless_ranges_in_sessions_without_end_use_up_a_share_and_honest_sessions_go_on() {
    let world = bounded().await;
    let endless = endless_ranges();
    let began = std::time::Instant::now();
    let answers = answered(&world, &endless, NOW_SECS).await;
    // A message of a megabyte is 61 units at least.
    assert!((1..=3).contains(&answers), "{answers} were answered");
    eprintln!("{answers} comparisons of a megabyte took {:?}", began.elapsed());

    let honest = filled(Limits::default(), 150..250).await;
    let (summary, _) = reconcile(&honest.catalog, &world.catalog).await.unwrap();
    assert_eq!((summary.lacked, summary.stored, summary.offered), (150, 150, 50));
    let (summary, _) = reconcile(&honest.catalog, &world.catalog).await.unwrap();
    assert_eq!((summary.lacked, summary.offered), (0, 0), "both are equal");
    assert_eq!(answered(&world, &endless, NOW_SECS + 5).await, 0);
    let later = answered(&world, &endless, NOW_SECS + 300).await;
    assert!((1..=2).contains(&later), "a share comes back slowly: {later}");
}

#[tokio::test]
async fn listings_asked_for_again_and_again_are_packed_as_often_as_a_share_allows() {
    let world = bounded().await;
    let listings = (0..200).flat_map(|n| world.catalog.by_owner(crate::world::key(n).address()).unwrap());
    let names: Vec<_> = listings.map(|listing| ItemName::of(&listing.content_hash())).collect();
    let again = SyncMessage::Fetch(names);
    // Two hundred listings are 16 units.
    assert_eq!(answered(&world, &again, NOW_SECS).await, 2);
    assert_eq!(answered(&world, &SyncMessage::Fetch(Vec::new()), NOW_SECS).await, 0);
    let newcomer = World::new();
    reconcile(&newcomer.catalog, &world.catalog).await.unwrap();
    assert_eq!(newcomer.catalog.counts().listings, 200);
}

#[tokio::test]
async fn whoever_asks_a_session_of_this_side_for_the_same_again_uses_up_its_share_too() {
    let world = bounded().await;
    let empty = World::new();
    let mut handed_out = 0;
    for wallet in 0..5 {
        let mut peer =
            empty.catalog.responder(crate::world::key(250 + u64::from(wallet)).address(), NOW_SECS);
        let (mut session, mut message) =
            world.catalog.initiator(hostile(wallet), false, NOW_SECS).await.unwrap();
        let names = loop {
            if let SyncMessage::Offer(names) = &message {
                break names.clone();
            }
            let answer = peer.on(message, NOW_SECS).await.unwrap();
            let Step::Send(next) = session.on(answer, NOW_SECS).await.unwrap() else {
                panic!("nothing is offered")
            };
            message = next;
        };
        while let Ok(step) = session.on(SyncMessage::Fetch(names.clone()), NOW_SECS).await {
            assert!(matches!(step, Step::Send(SyncMessage::Listings(_))), "{step:?}");
            handed_out += 1;
            assert!(handed_out < ENOUGH, "without end");
        }
    }
    assert_eq!(handed_out, 2);
}

#[tokio::test]
async fn lies_about_ranges_end_the_session_and_are_held_against_their_sender() {
    let world = bounded().await;
    let mut too_many = vec![VERSION];
    range(&mut too_many, 0, NAMES);
    number(&mut too_many, 1 << 60);
    let mut cut = vec![VERSION];
    range(&mut cut, 0, FINGERPRINT);
    cut.extend([7; 15]);
    let mut unknown = vec![VERSION];
    range(&mut unknown, 0, 99);
    for lie in [too_many, cut, unknown, Vec::new()] {
        let mut session = world.catalog.responder(peer(1), NOW_SECS);
        let end = session.on(packed(&lie), NOW_SECS).await;
        assert!(end.as_ref().is_err_and(SyncError::is_hostile), "{lie:?}: {end:?}");
        let (mut session, _) = world.catalog.initiator(peer(1), false, NOW_SECS).await.unwrap();
        let end = session.on(packed(&lie), NOW_SECS).await;
        assert!(end.as_ref().is_err_and(SyncError::is_hostile), "{lie:?}: {end:?}");
    }
}

/// Names of listings that do not exist, and a range that is said to differ, whatever was asked.
fn invented(round: u32) -> SyncMessage {
    let mut message = vec![VERSION];
    range(&mut message, 1 + u64::from(round), NAMES);
    number(&mut message, 20_000);
    for name in 0..20_000_u32 {
        message.extend([0x77; 8]);
        message.extend((u64::from(round) << 32 | u64::from(name)).to_be_bytes());
        message.extend([0; 16]);
    }
    range(&mut message, 0, FINGERPRINT);
    message.extend([9; 16]);
    packed(&message)
}

#[tokio::test]
async fn after_so_many_rounds_of_a_comparison_what_is_known_by_then_is_fetched() {
    let world = bounded().await;
    let (mut session, _) = world.catalog.initiator(peer(1), false, NOW_SECS).await.unwrap();
    let mut rounds = 0;
    let wanted = loop {
        rounds += 1;
        match session.on(invented(rounds), NOW_SECS).await.unwrap() {
            Step::Send(SyncMessage::Compare(_)) => {}
            Step::Send(SyncMessage::Fetch(names)) => break names,
            step => panic!("{step:?} after {rounds} rounds"),
        }
    };
    assert_eq!(rounds, ROUNDS_MAX);
    assert!(!wanted.is_empty());
}

/// What sixteen hostile sessions at once, and one that we opened, may add to memory: a few frames each.
#[cfg(target_os = "linux")]
const GROWTH_KIB_MAX: u64 = 64 * 1024;

/// One of many wallets of which nothing else is known.
#[cfg(target_os = "linux")]
fn stranger(number: u64) -> Neighbour {
    let mut wallet = [0xee; 20];
    wallet[12..].copy_from_slice(&number.to_be_bytes());
    farthing_protocol::Address::from_bytes(wallet).into()
}

#[cfg(target_os = "linux")]
#[test]
fn sixteen_hostile_sessions_at_once_take_little_memory_and_an_honest_one_goes_on_beside_them() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::alone::{is_alone, resident_kib};
    if !is_alone(
        "sessions::sixteen_hostile_sessions_at_once_take_little_memory_and_an_honest_one_goes_on_beside_them",
    ) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Four messages each.
        let world = filled(Limits { compared_burst: 250, ..Limits::default() }, 0..200).await;
        let honest = filled(Limits::default(), 150..250).await;
        let endless = endless_ranges();
        let before = resident_kib();
        // Each goes on, as another wallet once it is refused, until the honest one has ended.
        let over = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(tokio::sync::Barrier::new(17));
        let sessions = (0..16).map(|number| {
            let (catalog, endless) = (world.catalog.clone(), endless.clone());
            let (over, begun) = (over.clone(), begun.clone());
            tokio::spawn(async move {
                let mut most = 0;
                let mut wallets = (0_u64..).map(|turn| stranger(turn * 16 + number));
                let mut session = catalog.responder(wallets.next().unwrap(), NOW_SECS);
                assert!(session.on(endless.clone(), NOW_SECS).await.is_ok(), "it is served at first");
                begun.wait().await;
                while !over.load(Ordering::Relaxed) {
                    while session.on(endless.clone(), NOW_SECS).await.is_ok() {
                        most = resident_kib().max(most);
                    }
                    session = catalog.responder(wallets.next().unwrap(), NOW_SECS);
                }
                most
            })
        });
        let sessions: Vec<_> = sessions.collect();
        begun.wait().await;
        let (summary, _) = reconcile(&honest.catalog, &world.catalog).await.unwrap();
        assert_eq!((summary.stored, summary.offered), (150, 50));
        over.store(true, Ordering::Relaxed);
        let mut most = 0;
        for session in sessions {
            most = session.await.unwrap().max(most);
        }
        let grown = most.saturating_sub(before);
        eprintln!("{grown} KiB more");
        assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more");
    });
}

/// As many listings as show a copy for each session beside everything else; sixteen copies of so many take 18 MB.
#[cfg(target_os = "linux")]
const MANY: u64 = 30_000;
#[cfg(target_os = "linux")]
const HELD_KIB_MAX: u64 = 8 * 1024;

/// A session that compares some shards, and has been told what differs once.
#[cfg(target_os = "linux")]
async fn open_about(world: &World, wallet: u8, bits: u16) -> farthing_catalog::Responder {
    let mut differs = vec![VERSION];
    range(&mut differs, 0, FINGERPRINT);
    differs.extend([7; 16]);
    let mut session = world.catalog.responder(peer(wallet), NOW_SECS);
    session.on(SyncMessage::Shards(bits), NOW_SECS).await.unwrap();
    let answer = session.on(packed(&differs), NOW_SECS).await.unwrap();
    assert!(matches!(answer, SyncMessage::Compare(_)), "{answer:?}");
    session
}

#[cfg(target_os = "linux")]
#[test]
fn sixteen_sessions_that_each_name_other_shards_while_listings_change_hold_no_copies_of_the_catalog() {
    use crate::alone::{is_alone, resident_kib};
    if !is_alone(
        "sessions::sixteen_sessions_that_each_name_other_shards_while_listings_change_hold_no_copies_of_the_catalog",
    ) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = filled(Limits::default(), 0..MANY).await;
        assert_eq!(world.catalog.counts().listings as u64, MANY);
        // What every catalog holds, and sorting it takes, is there before.
        let mut sessions = vec![open_about(&world, 99, u16::MAX).await];
        world.catalog.settled().await.unwrap();
        let before = resident_kib();
        for number in 0..16 {
            let changed = MANY + u64::from(number);
            world.catalog.offer(vec![signed(changed, changed, |_| {})], fetched(), NOW_SECS).await;
            sessions.push(open_about(&world, 100 + number, !(1 << number)).await);
        }
        world.catalog.settled().await.unwrap();
        let grown = resident_kib().saturating_sub(before);
        eprintln!("{grown} KiB more with {} sessions", sessions.len());
        assert!(grown <= HELD_KIB_MAX, "{grown} KiB more");
    });
}
