//! Which listings are taken, and how long they stay.

use farthing_catalog::{Limits, Reason, Source, State, Verdict};
use farthing_protocol::Listing;

use crate::world::{
    FOREVER_SECS, NOW_SECS, World, fetched, forge, key, listing, own, peer, pushed, service, sign, signed,
};

#[tokio::test]
async fn a_listing_is_stored_and_survives_a_restart() {
    let world = World::new();
    let listing = signed(1, 1, |_| {});
    assert_eq!(world.offer(&listing, pushed()).await, Verdict::Stored);
    assert_eq!(world.offer(&listing, pushed()).await, Verdict::Known);
    world.catalog.owner_seen(key(1).address(), FOREVER_SECS);
    world.catalog.sweep(NOW_SECS).await.unwrap();
    let (world, opened) = world.reopen(|_| {});
    assert_eq!(opened.notices, [""; 0]);
    let known = world.catalog.get(service(1), NOW_SECS).unwrap().unwrap();
    assert_eq!((known.listing.name.as_str(), known.state), ("Service 1", State::Live));
    assert_eq!(world.catalog.listing_signed(service(1)).unwrap(), Some(listing.clone()));
    assert_eq!(world.catalog.by_owner(key(1).address()).unwrap(), [listing]);
    assert_eq!(world.catalog.counts().listings, 1);
}

#[tokio::test]
async fn only_a_newer_version_replaces_a_listing() {
    let world = World::new();
    let version = |seq: u64| signed(1, 1, |listing| listing.seq = seq);
    assert_eq!(world.offer(&version(5), pushed()).await, Verdict::Stored);
    assert_eq!(world.offer(&version(4), pushed()).await, Verdict::Refused(Reason::Superseded));
    assert_eq!(world.offer(&version(6), pushed()).await, Verdict::Stored);
    assert_eq!(world.catalog.get(service(1), NOW_SECS).unwrap().unwrap().listing.seq, 6);
    assert_eq!(world.catalog.counts().listings, 1);
}

/// Whoever comes first: before its owner, while the owner's is here, and after it was retired.
#[tokio::test]
async fn nobody_lists_another_s_service_and_who_brings_such_a_listing_is_hostile() {
    let world = World::new();
    let thief = key(2);
    let stolen = |seq: u64, tombstone: bool| {
        let Listing { service, nonce, .. } = listing(1, &key(1));
        let own = listing(1, &thief);
        forge(&Listing { service, nonce, seq, tombstone, ..own }, &thief)
    };
    let mut seq = 0;
    for honest in [None, Some(false), Some(true)] {
        if let Some(tombstone) = honest {
            seq += 1;
            let version = signed(1, 1, |listing| (listing.seq, listing.tombstone) = (seq, tombstone));
            assert_eq!(world.offer(&version, pushed()).await, Verdict::Stored);
        }
        for source in [pushed(), fetched(), Source::Given(peer(1).into())] {
            seq += 10;
            // The second time as the first: what was refused before is no less hostile.
            for tombstone in [false, true, false] {
                let verdict = world.offer(&stolen(seq, tombstone), source).await;
                assert!(matches!(verdict, Verdict::Refused(Reason::Stolen(_))), "{honest:?}: {verdict:?}");
                assert!(verdict.is_hostile());
            }
        }
        let held = world.catalog.get(service(1), NOW_SECS).unwrap();
        assert_eq!(held.map(|known| known.listing.owner), honest.map(|_| key(1).address()));
    }
}

#[tokio::test]
async fn a_tombstone_keeps_an_older_version_from_coming_back() {
    let world = World::new();
    let old = signed(1, 1, |_| {});
    assert_eq!(world.offer(&old, pushed()).await, Verdict::Stored);
    let tombstone = signed(1, 1, |listing| (listing.seq, listing.tombstone) = (2, true));
    assert_eq!(world.offer(&tombstone, pushed()).await, Verdict::Stored);
    let (world, _) = world.reopen(|_| {});
    assert_eq!(world.offer(&old, pushed()).await, Verdict::Refused(Reason::Superseded));
    assert!(world.names(farthing_catalog::Query::default()).await.is_empty());
    assert_eq!(world.catalog.counts().tombstones, 1);
}

#[tokio::test]
async fn a_listing_from_the_future_waits_until_clocks_could_differ_by_that() {
    for (ahead_secs, expected) in
        [(299, Verdict::Stored), (300, Verdict::Stored), (301, Verdict::Refused(Reason::FromTheFuture))]
    {
        let world = World::new();
        let early = signed(1, 1, |listing| listing.updated_secs = NOW_SECS + ahead_secs);
        assert_eq!(world.offer(&early, pushed()).await, expected, "{ahead_secs} s ahead");
    }
}

#[tokio::test]
async fn what_another_signed_or_another_network_has_is_hostile() {
    let world = World::new();
    let foreign = signed(1, 1, |listing| listing.network = "other".to_owned());
    let verdict = world.offer(&foreign, pushed()).await;
    assert_eq!(verdict, Verdict::Refused(Reason::WrongNetwork));
    assert!(verdict.is_hostile());
    let verdict = world.offer(&forged(1), pushed()).await;
    assert_eq!(verdict, Verdict::Refused(Reason::BadSignature));
    assert!(verdict.is_hostile());
    let honest = signed(1, 1, |_| {});
    assert_eq!(
        world.offer(&honest, pushed()).await,
        Verdict::Stored,
        "the forgery does not stand in its way"
    );
}

/// Service `number` of owner 1 with a signature of other bytes.
fn forged(number: u64) -> farthing_protocol::Signed<Listing> {
    use farthing_protocol::wire;
    let (honest, other) = (signed(number, 1, |_| {}), signed(number, 1, |listing| listing.seq = 2));
    let (honest, other) = (wire::encode(&honest), wire::encode(&other));
    // The signature is the last 65 bytes of the document.
    let cut = |bytes: &[u8]| bytes.len() - 65;
    wire::decode(&[&honest[..cut(&honest)], &other[cut(&other)..]].concat()).unwrap()
}

#[tokio::test]
async fn an_owner_corrects_itself_in_a_burst_and_is_then_slowed_down() {
    let world = World::new();
    let version = |seq: u64| signed(1, 1, |listing| listing.seq = seq);
    for seq in 1..=21 {
        assert_eq!(world.offer(&version(seq), pushed()).await, Verdict::Stored, "version {seq}");
    }
    let slowed = Verdict::Refused(Reason::TooOften { retry_secs: 600 });
    assert_eq!(world.offer(&version(22), pushed()).await, slowed);
    let early = world.offer_at(&version(22), pushed(), NOW_SECS + 599).await;
    assert!(matches!(early, Verdict::Refused(_)), "{early:?}");
    assert_eq!(world.offer_at(&version(22), pushed(), NOW_SECS + 600).await, Verdict::Stored);
    let retired = signed(1, 1, |listing| (listing.seq, listing.tombstone) = (23, true));
    assert_eq!(world.offer_at(&retired, pushed(), NOW_SECS + 600).await, Verdict::Stored, "the last word");
}

#[tokio::test]
async fn an_owner_has_as_many_listings_as_one_may_have() {
    let world = World::with(Limits { per_owner_max: 3, ..Limits::default() });
    for number in 1..=3 {
        assert_eq!(world.offer(&signed(number, 1, |_| {}), pushed()).await, Verdict::Stored);
    }
    assert_eq!(world.offer(&signed(4, 1, |_| {}), pushed()).await, Verdict::Refused(Reason::OwnerFull));
    assert_eq!(world.offer(&signed(4, 2, |_| {}), pushed()).await, Verdict::Stored, "others are not touched");
    let retired = signed(1, 1, |listing| (listing.seq, listing.tombstone) = (2, true));
    assert_eq!(world.offer(&retired, pushed()).await, Verdict::Stored);
    assert_eq!(world.offer(&signed(5, 1, |_| {}), pushed()).await, Verdict::Stored, "there is room again");
}

#[tokio::test]
async fn a_neighbour_sends_its_share_and_what_is_asked_for_is_not_counted_against_it() {
    let world = World::new();
    let listings: Vec<_> = (1..=60).map(|number| signed(number, number, |_| {})).collect();
    let verdicts = world.catalog.offer(listings.clone(), pushed(), NOW_SECS).await;
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count(), 50);
    assert_eq!(verdicts[50], Verdict::Refused(Reason::OverBudget));
    let other =
        world.catalog.offer(listings[50..55].to_vec(), Source::Pushed(peer(2).into()), NOW_SECS).await;
    assert!(other.iter().all(|verdict| *verdict == Verdict::Stored), "another neighbour has its own share");
    let asked = world.catalog.offer(listings[55..].to_vec(), fetched(), NOW_SECS).await;
    assert!(asked.iter().all(|verdict| *verdict == Verdict::Stored));
}

#[tokio::test]
async fn a_listing_lives_greys_and_leaves_with_its_owner() {
    const DAY: u64 = 24 * 3600;
    let world = World::new();
    let listing = signed(1, 1, |_| {});
    let owner = key(1).address();
    assert_eq!(world.offer(&listing, pushed()).await, Verdict::Stored);
    let state = |now_secs| world.catalog.get(service(1), now_secs).unwrap().map(|known| known.state);
    assert_eq!(state(NOW_SECS), Some(State::Away), "its owner was never seen");
    world.catalog.owner_seen(owner, NOW_SECS + 100);
    assert_eq!(state(NOW_SECS + 99), Some(State::Live));
    assert_eq!(state(NOW_SECS + 100), Some(State::Away));
    assert_eq!(state(NOW_SECS + 100 + 7 * DAY - 1), Some(State::Away));
    assert_eq!(state(NOW_SECS + 100 + 7 * DAY), Some(State::Dormant));
    let last_secs = NOW_SECS + 100 + 30 * DAY;
    assert_eq!(world.catalog.sweep(last_secs - 1).await.unwrap(), 0);
    assert_eq!(world.catalog.sweep(last_secs).await.unwrap(), 1);
    assert_eq!(state(last_secs), None);
    let (world, _) = world.reopen(|_| {});
    let again = world.offer_at(&listing, fetched(), last_secs).await;
    assert_eq!(
        again,
        Verdict::Refused(Reason::OwnerAway),
        "a neighbour that still has it does not bring it back"
    );
    world.catalog.owner_seen(owner, last_secs + DAY);
    let later = last_secs + 601;
    assert_eq!(world.offer_at(&listing, fetched(), later).await, Verdict::Stored, "its owner does");
}

#[tokio::test]
async fn an_owner_that_says_goodbye_is_away_at_once() {
    let world = World::new();
    world.catalog.owner_seen(key(1).address(), NOW_SECS + 1_000);
    assert_eq!(world.offer(&signed(1, 1, |_| {}), pushed()).await, Verdict::Stored);
    let state = || world.catalog.get(service(1), NOW_SECS).unwrap().unwrap().state;
    assert_eq!(state(), State::Live, "its record came before the listing");
    world.catalog.owner_gone(key(1).address(), NOW_SECS);
    assert_eq!(state(), State::Away);
}

#[tokio::test]
async fn a_flood_of_invented_owners_fills_its_share_and_no_more() {
    let limits = Limits { listings_max: 100, strangers_max: 20, ..Limits::default() };
    let world = World::with(limits);
    // Honest: owners that were seen, and five strangers that another neighbour told of.
    for number in 1..=50 {
        world.catalog.owner_seen(key(number).address(), FOREVER_SECS);
        assert_eq!(world.offer(&signed(number, number, |_| {}), fetched()).await, Verdict::Stored);
    }
    for number in 51..=55 {
        assert_eq!(world.offer(&signed(number, number, |_| {}), pushed()).await, Verdict::Stored);
    }
    let flooder = Source::Fetched(peer(66).into());
    let flood: Vec<_> = (1_000..1_300).map(|number| signed(number, number, |_| {})).collect();
    let verdicts = world.catalog.offer(flood, flooder, NOW_SECS).await;
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count(), 15);
    assert_eq!(world.catalog.counts().strangers, 20);
    for number in 1..=55 {
        assert!(world.catalog.get(service(number), NOW_SECS).unwrap().is_some(), "{number} was pushed out");
    }
    // An honest neighbour takes from the flooder's share, not the other way round.
    assert_eq!(world.offer(&signed(60, 60, |_| {}), pushed()).await, Verdict::Stored);
    assert_eq!(world.catalog.counts().strangers, 20);
}

#[tokio::test]
async fn a_full_catalog_lets_those_go_that_are_away_longest_and_nobody_who_is_live() {
    let limits = Limits { listings_max: 10, strangers_max: 2, ..Limits::default() };
    let world = World::with(limits);
    for number in 1..=10 {
        let expires_secs = if number <= 3 { NOW_SECS - 10 * number } else { FOREVER_SECS };
        world.catalog.owner_seen(key(number).address(), expires_secs);
        assert_eq!(world.offer(&signed(number, number, |_| {}), fetched()).await, Verdict::Stored);
    }
    for number in 11..=14 {
        world.catalog.owner_seen(key(number).address(), FOREVER_SECS);
    }
    for (number, gone) in [(11, 3), (12, 2), (13, 1)] {
        assert_eq!(world.offer(&signed(number, number, |_| {}), fetched()).await, Verdict::Stored);
        assert!(world.catalog.get(service(gone), NOW_SECS).unwrap().is_none(), "{gone} was away longest");
    }
    let verdict = world.offer(&signed(14, 14, |_| {}), fetched()).await;
    assert_eq!(verdict, Verdict::Refused(Reason::Full));
    assert_eq!(world.catalog.counts().listings, 10);
    let published = sign(&listing(99, &own()), &own());
    assert_eq!(world.offer(&published, Source::Own).await, Verdict::Stored, "this node's own has a place");
}

#[tokio::test]
async fn an_owner_that_signs_two_listings_with_one_number_does_not_split_the_network() {
    let one = sign(&listing(1, &key(1)), &key(1));
    let other = signed(1, 1, |listing| listing.name = "Another".to_owned());
    let mut ends = Vec::new();
    for order in [[&one, &other], [&other, &one]] {
        let world = World::new();
        for listing in order {
            world.offer(listing, pushed()).await;
        }
        ends.push(world.catalog.listing_signed(service(1)).unwrap());
    }
    assert_eq!(ends[0], ends[1]);
}
