//! Ten thousand of each kind of bad listing: none is kept, and nothing grows.

use farthing_catalog::{Limits, Reason, Source, Verdict};
use farthing_protocol::{Listing, Signed, wire};

use crate::world::{FOREVER_SECS, NOW_SECS, World, fetched, key, listing, peer, pushed, service, signed};

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
    let mut listing = listing(0, &key(1));
    change(&mut listing);
    let signature = signature();
    (2..FLOOD + 2).map(move |number| {
        listing.service = service(number);
        let mut bytes = Vec::new();
        let mut encoder = minicbor::Encoder::new(&mut bytes);
        encoder.map(2).unwrap().u8(0).unwrap().bytes(&wire::encode(&listing)).unwrap().u8(1).unwrap();
        bytes.extend(&signature);
        wire::decode(&bytes).unwrap()
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
    let listings: Vec<_> = listings.collect();
    let mut verdicts = Vec::new();
    for frame in listings.chunks(1_000) {
        verdicts.extend(world.catalog.offer(frame.to_vec(), source, NOW_SECS).await);
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
async fn one_owner_that_floods_has_its_share_and_its_neighbour_too() {
    let world = honest().await;
    let flood_of_one: Vec<_> = (2..400).map(|number| signed(number, 2, |_| {})).collect();
    let verdicts = flood(&world, flood_of_one.into_iter(), Source::Fetched(peer(9))).await;
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count(), 64);
    assert_eq!(world.catalog.counts().listings, 65);
    assert_eq!(world.offer(&signed(500, 3, |_| {}), pushed()).await, Verdict::Stored);
}
