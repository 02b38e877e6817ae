//! Ten thousand of each kind of bad listing: none is kept, and nothing grows, memory neither.

use farthing_catalog::{Limits, Reason, Source, Verdict};
use farthing_protocol::{Listing, ServiceId, Signed, wire};

#[cfg(target_os = "linux")]
use crate::alone::{is_alone, resident_kib};
use crate::world::{
    FOREVER_SECS, NOW_SECS, World, as_it_travels, fetched, key, listing, nonce, peer, pushed, service,
    signed, words,
};

const FLOOD: u64 = 10_000;

/// A world with one honest listing of an owner that is there.
async fn honest() -> World {
    let world = World::new();
    world.catalog.owner_seen(key(1).address(), FOREVER_SECS);
    assert_eq!(world.offer(&signed(1, 1, |_| {}), fetched()).await, Verdict::Stored);
    world
}

/// Ten thousand listings, changed, each with the same signature of something else: signing them takes longer
/// than refusing them.
fn unsigned(change: impl Fn(&mut Listing)) -> impl Iterator<Item = Signed<Listing>> {
    unsigned_from(2, change)
}

/// The same with other services' numbers.
fn unsigned_from(first: u64, change: impl Fn(&mut Listing)) -> impl Iterator<Item = Signed<Listing>> {
    let mut listing = listing(0, &key(1));
    change(&mut listing);
    let signature = signature();
    (first..first + FLOOD).map(move |number| {
        listing.nonce = nonce(number);
        listing.service = ServiceId::derive(listing.owner, listing.nonce);
        as_it_travels(&wire::encode(&listing), &signature)
    })
}

/// A signature as it is written, of another listing.
fn signature() -> Vec<u8> {
    let bytes = wire::encode(&signed(0, 0, |_| {}));
    let mut decoder = minicbor::Decoder::new(&bytes);
    decoder.map().unwrap();
    // The first key, the document, and the second key.
    for _ in 0..3 {
        decoder.skip().unwrap();
    }
    bytes[decoder.position()..].to_vec()
}

/// Offers the flood as frames would bring it; what became of each.
async fn flood(
    world: &World,
    listings: impl Iterator<Item = Signed<Listing>>,
    source: Source,
) -> Vec<Verdict> {
    let mut listings = listings.peekable();
    let mut verdicts = Vec::new();
    while listings.peek().is_some() {
        let frame = listings.by_ref().take(1_000).collect();
        verdicts.extend(world.catalog.offer(frame, source, NOW_SECS).await);
    }
    verdicts
}

fn nothing_grew(world: &World) {
    let counts = world.catalog.counts();
    assert_eq!((counts.listings, counts.tombstones, counts.owners), (1, 0, 1));
    assert!(counts.refused <= Limits::default().refused_max);
}

#[tokio::test]
async fn forged_listings_are_not_kept_and_few_signatures_are_checked() {
    let world = honest().await;
    let verdicts = flood(&world, unsigned(|_| {}), pushed()).await;
    let count = |reason: Reason| verdicts.iter().filter(|v| **v == Verdict::Refused(reason.clone())).count();
    assert_eq!(count(Reason::BadSignature), 50, "as many as a neighbour may send");
    assert_eq!(count(Reason::OverBudget), 10_000 - 50);
    nothing_grew(&world);
    assert_eq!(world.catalog.counts().refused, 0, "a forgery says nothing about the listing it imitates");
}

#[tokio::test]
async fn replayed_listings_are_known() {
    let world = honest().await;
    let newer = signed(1, 1, |listing| listing.seq = 2);
    assert_eq!(world.offer(&newer, fetched()).await, Verdict::Stored);
    let old = signed(1, 1, |_| {});
    let replays = (0..FLOOD).map(|number| if number % 2 == 0 { old.clone() } else { newer.clone() });
    let verdicts = flood(&world, replays, pushed()).await;
    let refused = verdicts.iter().filter(|v| **v == Verdict::Refused(Reason::Refused)).count();
    let known = verdicts.iter().filter(|v| **v == Verdict::Known).count();
    assert_eq!((refused, known), (5_000, 5_000));
    assert_eq!(world.catalog.get(service(1), NOW_SECS).unwrap().unwrap().listing.seq, 2);
    nothing_grew(&world);
}

#[tokio::test]
async fn listings_from_the_future_of_another_network_or_too_large_are_not_kept() {
    let world = honest().await;
    let future = unsigned(|listing| listing.updated_secs = NOW_SECS + 301);
    let verdicts = flood(&world, future, pushed()).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Refused(Reason::FromTheFuture)));

    let foreign = unsigned(|listing| listing.network = "else".to_owned());
    let verdicts = flood(&world, foreign, pushed()).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Refused(Reason::WrongNetwork)));

    let oversize = unsigned(|listing| listing.summary = "x".repeat(4_096));
    let verdicts = flood(&world, oversize, pushed()).await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Refused(Reason::Malformed(_)))));
    nothing_grew(&world);
    assert_eq!(
        world.offer(&signed(2, 2, |_| {}), pushed()).await,
        Verdict::Stored,
        "none of it used up a share"
    );
}

#[tokio::test]
async fn listings_of_an_owner_whose_record_expired_long_ago_are_not_kept() {
    let world = honest().await;
    world.catalog.owner_seen(key(2).address(), LONG_AGO_SECS);
    let expired = unsigned(|listing| listing.owner = key(2).address());
    let verdicts = flood(&world, expired, fetched()).await;
    assert_eq!(verdicts.len(), 10_000);
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Refused(Reason::OwnerAway)));
    nothing_grew(&world);
}

/// What may be added to this process's memory by thirty thousand refused listings, which would take ten times as much.
#[cfg(target_os = "linux")]
const GROWTH_KIB_MAX: u64 = 2048;
/// When the record of an owner that has left expired.
const LONG_AGO_SECS: u64 = NOW_SECS - 31 * 24 * 3600;

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_of_each_bad_listing_leave_memory_flat() {
    if !is_alone("floods::ten_thousand_of_each_bad_listing_leave_memory_flat") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(memory_stays_flat());
}

#[cfg(target_os = "linux")]
async fn memory_stays_flat() {
    // What was refused is remembered, up to a bound that the warm-up reaches.
    let world = World::with(Limits { refused_max: 1_000, ..Limits::default() });
    world.catalog.owner_seen(key(1).address(), FOREVER_SECS);
    world.catalog.owner_seen(key(2).address(), LONG_AGO_SECS);
    let held = signed(1, 1, |listing| listing.seq = 2);
    assert_eq!(world.offer(&held, fetched()).await, Verdict::Stored);
    // The index of words takes it in beside all this, and needs memory for it.
    while world.names(words("answers")).await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    type Change = fn(&mut Listing);
    let floods: [(&str, Change); 5] = [
        ("forged", |_| {}),
        ("from the future", |listing| listing.updated_secs = NOW_SECS + 301),
        ("expired", |listing| listing.owner = key(2).address()),
        ("oversize", |listing| listing.summary = "x".repeat(4_096)),
        ("of another network", |listing| listing.network = "else".to_owned()),
    ];
    for (what, change) in floods {
        let flood_from = async |first| {
            let verdicts = flood(&world, unsigned_from(first, change), pushed()).await;
            assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Refused(_))), "{what}");
        };
        flood_from(FLOOD).await;
        let before = resident_kib();
        for round in 2..5 {
            flood_from(round * FLOOD).await;
        }
        is_flat(&world, what, before);
    }
    let replays = || (0..FLOOD).map(|n| if n % 2 == 0 { signed_before() } else { held.clone() });
    flood(&world, replays(), pushed()).await;
    let before = resident_kib();
    for _ in 0..3 {
        let verdicts = flood(&world, replays(), pushed()).await;
        assert!(!verdicts.contains(&Verdict::Stored));
    }
    is_flat(&world, "replayed", before);
}

/// The version before the one that is held.
#[cfg(target_os = "linux")]
fn signed_before() -> Signed<Listing> {
    static BEFORE: std::sync::OnceLock<Signed<Listing>> = std::sync::OnceLock::new();
    BEFORE.get_or_init(|| signed(1, 1, |_| {})).clone()
}

#[cfg(target_os = "linux")]
fn is_flat(world: &World, what: &str, before: u64) {
    let grown = resident_kib().saturating_sub(before);
    assert!(grown <= GROWTH_KIB_MAX, "{what}: {grown} KiB more");
    let counts = world.catalog.counts();
    assert_eq!((counts.listings, counts.tombstones), (1, 0), "{what}");
    assert!(counts.refused <= 1_000, "{what}: {counts:?}");
}

#[tokio::test]
async fn one_owner_that_floods_has_its_share_and_its_neighbour_too() {
    let world = honest().await;
    let flood_of_one = (2..400).map(|number| signed(number, 2, |_| {}));
    let verdicts = flood(&world, flood_of_one, Source::Fetched(peer(9).into())).await;
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count(), 64);
    assert_eq!(world.catalog.counts().listings, 65);
    assert_eq!(world.offer(&signed(500, 3, |_| {}), pushed()).await, Verdict::Stored);
}
