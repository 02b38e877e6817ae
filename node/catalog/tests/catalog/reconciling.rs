//! Two catalogs become one.

use farthing_catalog::{Limits, Source, SyncError, Verdict};
use farthing_protocol::{
    limits,
    sync::{ItemName, SyncMessage},
};

use crate::world::{NOW_SECS, World, fetched, peer, reconcile, reconcile_shards, signed};

/// Two catalogs that share most listings; each has some of its own.
async fn pair(shared: u64, only_one: u64, only_other: u64) -> [World; 2] {
    let listings: Vec<_> = (0..shared + only_one + only_other)
        .map(|number| {
            // Times that differ and repeat, as they do.
            signed(number, number / 50, |listing| listing.updated_secs += number * 37 % 1_000)
        })
        .map(Some)
        .collect();
    let limits = || Limits { strangers_max: 20_000, ..Limits::default() };
    let worlds = [World::with(limits()), World::with(limits())];
    for (world, without) in
        worlds.iter().zip([shared + only_one..shared + only_one + only_other, shared..shared + only_one])
    {
        let its = (0_u64..).zip(&listings).filter(|(number, _)| !without.contains(number));
        let its = its.filter_map(|(_, listing)| listing.clone()).collect();
        world.catalog.offer(its, fetched(), NOW_SECS).await;
    }
    worlds
}

#[tokio::test]
async fn two_catalogs_of_thousands_become_equal_in_one_reconciliation() {
    let [one, other] = pair(2_000, 60, 40).await;
    let (summary, cost) = reconcile(&one.catalog, &other.catalog).await.unwrap();
    assert_eq!((summary.lacked, summary.stored, summary.offered), (40, 40, 60));
    assert_eq!(one.catalog.counts().listings, 2_100);
    assert_eq!(other.catalog.counts().listings, 2_100);
    assert!(cost.bytes < 200 * 1024, "{cost:?}");
    let (again, cost) = reconcile(&other.catalog, &one.catalog).await.unwrap();
    assert_eq!((again.lacked, again.offered), (0, 0));
    assert!(cost.bytes < 2_048, "equal catalogs say little: {cost:?}");
}

#[tokio::test]
async fn a_newcomer_learns_everything_and_a_newer_version_wins() {
    let [one, other] = [World::new(), World::new()];
    let listings: Vec<_> = (0..300).map(|number| signed(number, number, |_| {})).collect();
    one.catalog.offer(listings, fetched(), NOW_SECS).await;
    let old = signed(1, 1, |_| {});
    other.offer(&old, fetched()).await;
    let newer = signed(1, 1, |listing| (listing.seq, listing.name) = (2, "Newer".to_owned()));
    one.offer(&newer, fetched()).await;
    let (summary, _) = reconcile(&other.catalog, &one.catalog).await.unwrap();
    assert_eq!((summary.stored, summary.offered), (300, 0), "what was replaced is not offered");
    let (again, _) = reconcile(&one.catalog, &other.catalog).await.unwrap();
    assert_eq!((again.lacked, again.offered), (0, 0));
}

#[tokio::test]
async fn what_was_refused_is_not_fetched_again_every_time() {
    let [one, other] = [World::new(), World::with(Limits { per_owner_max: 1, ..Limits::default() })];
    for number in 1..=2 {
        one.offer(&signed(number, 1, |_| {}), fetched()).await;
    }
    let (first, _) = reconcile(&other.catalog, &one.catalog).await.unwrap();
    assert_eq!((first.lacked, first.stored), (2, 1));
    let (_, cost) = reconcile(&other.catalog, &one.catalog).await.unwrap();
    assert_eq!(cost.messages, 2, "it knows what it refused");
    let (_, cost) = reconcile(&one.catalog, &other.catalog).await.unwrap();
    assert_eq!(cost.messages, 4, "offered and declined, without sending it");
}

#[tokio::test]
async fn a_peer_that_compares_without_end_is_left() {
    let world = World::new();
    let listings = (0..100).map(|number| signed(number, number, |_| {})).collect();
    world.catalog.offer(listings, fetched(), NOW_SECS).await;
    let mut responder = world.catalog.responder(peer(2), NOW_SECS);
    let (_, first) = World::new().catalog.initiator(peer(1), false, NOW_SECS).await.unwrap();
    let mut rounds = 0;
    let end = loop {
        match responder.on(first.clone(), NOW_SECS).await {
            Ok(_) => rounds += 1,
            Err(end) => break end,
        }
        assert!(rounds < 100);
    };
    assert!(matches!(end, SyncError::TooLong));
    assert!(!end.is_hostile(), "a slow peer is no forger");
}

#[tokio::test]
async fn noise_in_a_comparison_is_an_error_and_never_a_panic() {
    let world = World::new();
    let listings = (0..200).map(|number| signed(number, number, |_| {})).collect();
    world.catalog.offer(listings, fetched(), NOW_SECS).await;
    let (_, first) = World::new().catalog.initiator(peer(1), false, NOW_SECS).await.unwrap();
    let SyncMessage::Compare(first) = first else { panic!("it begins with a comparison") };
    let answer = world.catalog.responder(peer(2), NOW_SECS).on(SyncMessage::Compare(first), NOW_SECS).await;
    let SyncMessage::Compare(packed) = answer.unwrap() else { panic!("and is answered by one") };
    let honest = zstd::bulk::decompress(&packed, 1 << 20).unwrap();
    // SplitMix64: the same noise on every machine.
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        usize::try_from(mixed >> 33).unwrap() % below
    };
    for _ in 0..1_000 {
        let mut noise = honest.clone();
        for _ in 0..=random(4) {
            let at = random(noise.len());
            match random(3) {
                0 => noise.truncate(at + 1),
                1 => noise[at] = u8::try_from(random(256)).unwrap(),
                _ => noise.insert(at, u8::try_from(random(256)).unwrap()),
            }
        }
        let packed = SyncMessage::Compare(zstd::bulk::compress(&noise, 1).unwrap().into());
        let _ = world.catalog.responder(peer(2), NOW_SECS).on(packed.clone(), NOW_SECS).await;
        let (mut initiator, _) = world.catalog.initiator(peer(2), false, NOW_SECS).await.unwrap();
        let _ = initiator.on(packed, NOW_SECS).await;
    }
    assert_eq!(world.catalog.counts().listings, 200);
}

#[tokio::test]
async fn a_session_ends_when_its_time_is_over() {
    let [one, other] = [World::new(), World::new()];
    let (mut initiator, first) = one.catalog.initiator(peer(2), false, NOW_SECS).await.unwrap();
    let mut responder = other.catalog.responder(peer(1), NOW_SECS);
    let late_secs = NOW_SECS + farthing_catalog::SESSION_SECS_MAX + 1;
    assert!(matches!(responder.on(first.clone(), late_secs).await, Err(SyncError::TooLong)));
    assert!(matches!(initiator.on(first, late_secs).await, Err(SyncError::TooLong)));
}

#[tokio::test]
async fn listings_nobody_asked_for_are_not_looked_at() {
    let [victim, attacker] = [World::new(), World::new()];
    attacker.offer(&signed(1, 1, |_| {}), fetched()).await;
    let names = attacker.catalog.by_owner(crate::world::key(1).address()).unwrap();
    let name = ItemName::of(&names[0].content_hash());
    let batch = |names| async {
        let mut responder = attacker.catalog.responder(peer(1), NOW_SECS);
        responder.on(SyncMessage::Fetch(names), NOW_SECS).await.unwrap()
    };
    let unasked = batch(vec![name]).await;
    let mut responder = victim.catalog.responder(peer(2), NOW_SECS);
    let end = responder.on(unasked.clone(), NOW_SECS).await.unwrap_err();
    assert!(matches!(end, SyncError::Unasked) && end.is_hostile());
    let (mut initiator, _) = victim.catalog.initiator(peer(2), false, NOW_SECS).await.unwrap();
    assert!(initiator.on(unasked, NOW_SECS).await.unwrap_err().is_hostile());
    assert_eq!(victim.catalog.counts().listings, 0);

    let many = vec![name; limits::SYNC_ITEMS_MAX + 1];
    let end = responder.on(SyncMessage::Fetch(many), NOW_SECS).await.unwrap_err();
    assert!(end.is_hostile());
}

#[tokio::test]
async fn a_peer_that_names_what_it_does_not_have_gains_nothing() {
    let [one, other] = [World::new(), World::new()];
    other.offer(&signed(1, 1, |_| {}), fetched()).await;
    let (mut initiator, first) = one.catalog.initiator(peer(2), false, NOW_SECS).await.unwrap();
    let mut responder = other.catalog.responder(peer(1), NOW_SECS);
    let answer = responder.on(first, NOW_SECS).await.unwrap();
    let farthing_catalog::Step::Send(SyncMessage::Fetch(_)) = initiator.on(answer, NOW_SECS).await.unwrap()
    else {
        panic!("it fetches what it lacks");
    };
    let nothing =
        World::new().catalog.responder(peer(1), NOW_SECS).on(SyncMessage::Fetch(Vec::new()), NOW_SECS).await;
    let end = initiator.on(nothing.unwrap(), NOW_SECS).await.unwrap();
    assert!(
        matches!(end, farthing_catalog::Step::Done(summary) if (summary.lacked, summary.stored) == (1, 0))
    );
}

/// A catalog of forty places, all taken by what this neighbour brought, and one of the neighbour that has so many more.
async fn full_beside_a_larger_one(more: u64) -> [World; 2] {
    const DAY_SECS: u64 = 24 * 3600;
    let full = World::with(Limits { listings_max: 40, strangers_max: 8, ..Limits::default() });
    let larger = World::new();
    for owner in 0..40 + more {
        for world in [&full, &larger] {
            world.catalog.owner_seen(crate::world::key(owner).address(), crate::world::FOREVER_SECS);
        }
    }
    let then_secs = NOW_SECS - 8 * DAY_SECS;
    let listings = |numbers: std::ops::Range<u64>| -> Vec<_> {
        let of_then = |listing: &mut farthing_protocol::Listing| {
            (listing.created_secs, listing.updated_secs) = (then_secs, then_secs);
        };
        numbers.map(|number| signed(number, number, of_then)).collect()
    };
    // Three quarters of owners that have been here for long, and the quarter of newcomers.
    let from = Source::Fetched(peer(2).into());
    full.catalog.offer(listings(1..31), from, then_secs).await;
    full.catalog.sweep(NOW_SECS).await.unwrap();
    full.catalog.offer(listings(31..41), from, NOW_SECS).await;
    larger.catalog.offer(listings(1..40 + more), fetched(), NOW_SECS).await;
    assert_eq!(full.catalog.counts().listings, 40);
    [full, larger]
}

#[tokio::test]
async fn a_full_catalog_asks_for_nothing_that_it_has_no_room_for() {
    let [full, larger] = full_beside_a_larger_one(60).await;
    let (summary, cost) = reconcile(&full.catalog, &larger.catalog).await.unwrap();
    // It counts no more than it could hold.
    assert_eq!((summary.lacked, summary.stored), (40, 0));
    assert_eq!(cost.messages, 2 * summary.rounds as usize, "it compared, and fetched nothing");
    assert_eq!(full.catalog.counts().refused, 0);
}

#[tokio::test]
async fn a_full_catalog_that_may_miss_a_newer_version_asks_for_a_few_and_no_more() {
    let [full, larger] = full_beside_a_larger_one(400).await;
    let newer = signed(31, 31, |listing| (listing.seq, listing.updated_secs) = (2, NOW_SECS));
    assert_eq!(larger.offer(&newer, fetched()).await, Verdict::Stored);
    reconcile(&full.catalog, &larger.catalog).await.unwrap();
    let refused = full.catalog.counts().refused;
    assert!((1..=160).contains(&refused), "{refused} were fetched to be refused");
    // And a full neighbour that is offered more takes as little.
    let [full, larger] = full_beside_a_larger_one(400).await;
    reconcile(&larger.catalog, &full.catalog).await.unwrap();
    let refused = full.catalog.counts().refused;
    assert!(refused <= 160, "{refused} were taken to be refused");
}

#[tokio::test]
async fn a_full_catalog_compares_everything_now_and_then_and_what_is_new_in_between() {
    let [full, larger] = full_beside_a_larger_one(400).await;
    let (summary, _) = reconcile(&full.catalog, &larger.catalog).await.unwrap();
    assert_eq!(summary.lacked, 40, "as many as it could hold");
    let newer = signed(31, 31, |listing| (listing.seq, listing.updated_secs) = (2, NOW_SECS));
    assert_eq!(larger.offer(&newer, fetched()).await, Verdict::Stored);
    let (summary, cost) = reconcile(&full.catalog, &larger.catalog).await.unwrap();
    assert_eq!((summary.lacked, summary.stored), (1, 1), "the newer version alone");
    assert!(cost.bytes < 2_048, "{cost:?}");
    // So it is with those who come to compare themselves, and know of shards.
    reconcile_shards(&larger.catalog, &full.catalog).await.unwrap();
    let (summary, cost) = reconcile_shards(&larger.catalog, &full.catalog).await.unwrap();
    assert_eq!((summary.rounds, cost.messages), (0, 2), "nothing is said of what there is no room for");
    let later_secs = NOW_SECS + 6 * 3600;
    let (_, first) = full.catalog.initiator(peer(2), true, later_secs).await.unwrap();
    assert!(matches!(first, SyncMessage::Shards(_)), "everything, after a while");
}
