//! A full catalog, and wallets by the thousand that cost nothing: nobody owns all places, and nobody loses an old one.

use farthing_catalog::{Limits, Neighbour, Reason, Source, Verdict};
use farthing_protocol::{Address, Listing, Signed};

use crate::world::{FOREVER_SECS, NOW_SECS, World, key, peer, reconcile, service, signed};

const DAY_SECS: u64 = 24 * 3600;
const PLACES: usize = 400;
/// Wallets of the flood, with as many listings as one may have.
const FLOODERS: std::ops::Range<u64> = 1_000..1_010;

fn small() -> World {
    World::with(Limits { listings_max: PLACES, strangers_max: 80, ..Limits::default() })
}

/// A neighbour with this wallet, in an address range with this number.
fn neighbour(wallet: u8, range: u8) -> Neighbour {
    Neighbour { wallet: peer(wallet), range: Some([9, 9, range, 0].into()) }
}

/// Whether the service with this number, of the owner with the same one, is here.
fn is_here(world: &World, number: u64) -> bool {
    world.catalog.get(service(number), NOW_SECS).unwrap().is_some()
}

/// Listings of wallets that nobody knows, each with a valid node record, some more than there are places.
fn flood() -> Vec<Signed<Listing>> {
    FLOODERS.flat_map(|owner| (0..64).map(move |n| signed(owner * 100 + n, owner, |_| {}))).collect()
}

/// A listing that was made and updated then.
fn of_day(number: u64, owner: u64, then_secs: u64) -> Signed<Listing> {
    signed(number, owner, |listing| (listing.created_secs, listing.updated_secs) = (then_secs, then_secs))
}

fn live(world: &World, owners: impl IntoIterator<Item = u64>) {
    owners.into_iter().for_each(|owner| world.catalog.owner_seen(key(owner).address(), FOREVER_SECS));
}

/// How many of the listings of the flood are here.
fn of_flood(world: &World) -> usize {
    let here = |address: Address| world.catalog.by_owner(address).unwrap().len();
    FLOODERS.map(|owner| here(key(owner).address())).sum()
}

/// The flood comes, as its neighbour gives it.
async fn flooded(world: &World, now_secs: u64) {
    live(world, FLOODERS);
    for frame in flood().chunks(200) {
        world.catalog.offer(frame.to_vec(), Source::Given(neighbour(66, 66)), now_secs).await;
    }
    assert_eq!(world.catalog.counts().listings, PLACES, "there was room, and it took it");
}

#[tokio::test]
async fn a_flood_of_free_wallets_keeps_no_newcomer_out_and_pushes_no_old_owner_out() {
    let world = small();
    live(&world, 1..=20);
    for number in 1..=10 {
        let source = Source::Fetched(neighbour(1, 1));
        let then = NOW_SECS - 8 * DAY_SECS;
        let old = of_day(number, number, then);
        assert_eq!(world.offer_at(&old, source, then).await, Verdict::Stored);
    }
    world.catalog.sweep(NOW_SECS).await.unwrap();
    flooded(&world, NOW_SECS).await;
    assert!((1..=10).all(|number| is_here(&world, number)), "an old owner was pushed out");

    // From somebody else, and from a neighbour that passes on the flood as well.
    for (number, from) in [(11, neighbour(2, 2)), (12, neighbour(66, 66)), (13, neighbour(67, 66))] {
        let verdict = world.offer(&signed(number, number, |_| {}), Source::Pushed(from)).await;
        assert_eq!(verdict, Verdict::Stored, "{number} found no room");
    }
    // The flood comes again, with other services.
    let again: Vec<_> =
        FLOODERS.flat_map(|owner| (64..96).map(move |n| signed(owner * 100 + n, owner, |_| {}))).collect();
    world.catalog.offer(again, Source::Given(neighbour(68, 66)), NOW_SECS).await;
    assert!((1..=13).all(|number| is_here(&world, number)), "somebody honest was pushed out");
    assert_eq!(world.catalog.counts().listings, PLACES);
}

#[tokio::test]
async fn a_flood_that_has_waited_for_its_time_keeps_no_newcomer_out_either() {
    let world = small();
    let then = NOW_SECS - 8 * DAY_SECS;
    live(&world, FLOODERS);
    let old: Vec<_> =
        FLOODERS.flat_map(|owner| (0..64).map(move |n| of_day(owner * 100 + n, owner, then))).collect();
    world.catalog.offer(old, Source::Given(neighbour(66, 66)), then).await;
    world.catalog.sweep(NOW_SECS).await.unwrap();
    assert_eq!(of_flood(&world), PLACES, "all places are those of owners that have been here for long");

    live(&world, 1..=150);
    for number in 1..=100 {
        let source =
            Source::Pushed(neighbour(u8::try_from(number).unwrap(), u8::try_from(number % 4).unwrap()));
        let verdict = world.offer(&signed(number, number, |_| {}), source).await;
        assert_eq!(verdict, Verdict::Stored, "{number} found no room");
    }
    assert!((1..=100).all(|number| is_here(&world, number)), "newcomers have a quarter");
    // Newcomers have no more than that of those that are old, and share it out among themselves.
    let verdict = world.offer(&signed(101, 101, |_| {}), Source::Pushed(neighbour(1, 1))).await;
    assert_eq!(verdict, Verdict::Refused(Reason::Full));
    assert_eq!(of_flood(&world), PLACES - 100);
    let verdict = world.offer(&signed(102, 102, |_| {}), Source::Pushed(neighbour(9, 9))).await;
    assert_eq!(verdict, Verdict::Stored, "of a range that has nothing yet");
    assert_eq!(of_flood(&world), PLACES - 100);
}

#[tokio::test]
async fn owners_with_channels_never_leave_for_others() {
    let world = small();
    live(&world, [1, 2]);
    // The youngest of the largest group, away for a while, by turns.
    world.catalog.set_partners([key(1).address()].into(), NOW_SECS);
    flooded(&world, NOW_SECS).await;
    let source = || Source::Pushed(neighbour(66, 66));
    assert_eq!(world.offer(&signed(1, 1, |_| {}), source()).await, Verdict::Stored);
    world.catalog.owner_gone(key(1).address(), NOW_SECS - 5 * DAY_SECS);
    for number in 100..400 {
        world.catalog.owner_seen(key(number).address(), FOREVER_SECS);
        let from = Source::Pushed(neighbour(2, u8::try_from(number % 50).unwrap()));
        world.offer(&signed(number, number, |_| {}), from).await;
        assert!(is_here(&world, 1), "{number} took its place");
    }
    // Who has no channel any more is one of many, and the first to go while it is away.
    world.catalog.set_partners([].into(), NOW_SECS);
    world.catalog.owner_seen(key(2).address(), FOREVER_SECS);
    assert_eq!(world.offer(&signed(2, 2, |_| {}), Source::Pushed(neighbour(77, 77))).await, Verdict::Stored);
    assert!(!is_here(&world, 1));
}

#[tokio::test]
async fn who_brought_what_is_known_after_a_restart() {
    let world = World::with(Limits { listings_max: 40, strangers_max: 8, ..Limits::default() });
    live(&world, 1..=45);
    for number in 1..=40 {
        let from = neighbour(1, if number <= 30 { 66 } else { 1 });
        let verdict = world.offer(&signed(number, number, |_| {}), Source::Pushed(from)).await;
        assert_eq!(verdict, Verdict::Stored);
    }
    let (world, _) = world.reopen(|_| {});
    let verdict = world.offer(&signed(41, 41, |_| {}), Source::Pushed(neighbour(67, 66))).await;
    assert_eq!(verdict, Verdict::Refused(Reason::Full), "its range has the largest part already");
    let verdict = world.offer(&signed(42, 42, |_| {}), Source::Pushed(neighbour(2, 2))).await;
    assert_eq!(verdict, Verdict::Stored);
    assert!((31..=40).all(|number| is_here(&world, number)), "it took from the largest part");
}

#[tokio::test]
async fn a_flood_that_comes_by_sessions_of_a_neighbour_shuts_nobody_out() {
    let (world, hostile) = (small(), World::new());
    live(&hostile, FLOODERS);
    live(&world, FLOODERS);
    for frame in flood().chunks(200) {
        hostile.catalog.offer(frame.to_vec(), Source::Given(peer(1).into()), NOW_SECS).await;
    }
    live(&world, [1, 2]);
    assert_eq!(world.offer(&signed(1, 1, |_| {}), Source::Pushed(neighbour(1, 1))).await, Verdict::Stored);
    reconcile(&world.catalog, &hostile.catalog).await.unwrap();
    assert_eq!(world.catalog.counts().listings, PLACES);
    let newcomer = World::new();
    live(&newcomer, [2]);
    newcomer.offer(&signed(2, 2, |_| {}), Source::Pushed(peer(2).into())).await;
    // It brings its own listing itself.
    reconcile(&newcomer.catalog, &world.catalog).await.unwrap();
    assert!(is_here(&world, 1) && is_here(&world, 2));
    // And again the flood, which is at no more than its places.
    reconcile(&hostile.catalog, &world.catalog).await.unwrap();
    assert!(is_here(&world, 1) && is_here(&world, 2), "it came again and took what it had not");
}
