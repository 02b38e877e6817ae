//! Catalogs that keep some of the network's listings: those of owners in their shards, and of whom they have to do with.

use farthing_catalog::{Limits, Reason, Source, Verdict};
use farthing_protocol::shards::{ShardCount, Shards, shard_of};

use crate::world::{NOW_SECS, World, key, own, pushed, reconcile, reconcile_shards, service, signed};

const OWNERS: std::ops::RangeInclusive<u64> = 1..=100;

/// The shards of this node, when it keeps so many.
fn shards(count: &str) -> Shards {
    Shards::of_node(own().address(), count.parse::<ShardCount>().unwrap())
}

fn is_in(shards: Shards, owner: u64) -> bool {
    shards.has(shard_of(key(owner).address()))
}

/// Owners in none of these shards.
fn others(kept: Shards) -> Vec<u64> {
    OWNERS.filter(|owner| !is_in(kept, *owner)).collect()
}

fn is_here(world: &World, number: u64) -> bool {
    world.catalog.get(service(number), NOW_SECS).unwrap().is_some()
}

#[tokio::test]
async fn listings_of_other_shards_are_refused_but_of_owners_that_this_node_has_to_do_with() {
    let kept = shards("4");
    let world = World::keeping(kept, Limits::default());
    for owner in OWNERS {
        let expected =
            if is_in(kept, owner) { Verdict::Stored } else { Verdict::Refused(Reason::OtherShard) };
        assert_eq!(world.offer(&signed(owner, owner, |_| {}), pushed_by(owner)).await, expected, "{owner}");
    }
    let [partner, seller, stranger] = others(kept)[..3] else { panic!("all are in these shards") };
    world.catalog.set_partners([key(partner).address()].into(), NOW_SECS);
    world.catalog.completed([(service(seller), 1)]);
    for owner in [partner, seller] {
        assert_eq!(world.offer(&signed(owner, owner, |_| {}), pushed()).await, Verdict::Stored);
    }
    let verdict = world.offer(&signed(stranger, stranger, |_| {}), pushed()).await;
    assert_eq!(verdict, Verdict::Refused(Reason::OtherShard));
    let verdict = world.offer(&signed(1_000, 0, |_| {}), Source::Own).await;
    assert_eq!(verdict, Verdict::Stored, "its own");
}

/// Of a neighbour for each owner, so that none brings too many.
fn pushed_by(owner: u64) -> Source {
    Source::Pushed(key(owner).address().into())
}

#[tokio::test]
async fn what_was_kept_of_other_shards_leaves_once_it_is_told_with_whom_this_node_has_to_do() {
    let mut world = World::new();
    for owner in OWNERS {
        world.offer(&signed(owner, owner, |_| {}), pushed_by(owner)).await;
    }
    let kept = shards("2");
    world.shards = kept;
    let (world, _) = world.reopen(|_| {});
    assert_eq!(world.catalog.sweep(NOW_SECS).await.unwrap(), 0, "nobody has told who the partners are");
    let partner = others(kept)[0];
    world.catalog.set_partners([key(partner).address()].into(), NOW_SECS);
    world.catalog.sweep(NOW_SECS).await.unwrap();
    for owner in OWNERS {
        assert_eq!(is_here(&world, owner), is_in(kept, owner) || owner == partner, "{owner}");
    }
}

/// A catalog of all shards with a listing of each owner, and an empty one that keeps so many.
async fn all_beside(kept: Shards) -> [World; 2] {
    let [all, some] = [World::new(), World::keeping(kept, Limits::default())];
    for owner in OWNERS {
        all.offer(&signed(owner, owner, |_| {}), pushed_by(owner)).await;
    }
    [all, some]
}

#[tokio::test]
async fn two_catalogs_compare_the_shards_that_both_keep_and_say_little_when_those_are_equal() {
    let kept = shards("4");
    let [all, some] = all_beside(kept).await;
    let in_common = OWNERS.filter(|owner| is_in(kept, *owner)).count();
    let (summary, _) = reconcile_shards(&some.catalog, &all.catalog).await.unwrap();
    assert_eq!((summary.lacked, summary.stored), (in_common, in_common), "others were compared");
    for [from, with] in [[&some, &all], [&all, &some]] {
        let (summary, cost) = reconcile_shards(&from.catalog, &with.catalog).await.unwrap();
        assert_eq!((summary.lacked, summary.offered), (0, 0));
        assert!(cost.bytes < 2_048, "they agree: {cost:?}");
    }
    assert_eq!(some.catalog.counts().refused, 0);
}

#[tokio::test]
async fn two_catalogs_without_a_shard_in_common_have_nothing_to_compare() {
    let own = shards("1");
    let other = Shards::from_bits(!own.bits());
    let [one, another] = [World::keeping(own, Limits::default()), World::keeping(other, Limits::default())];
    for owner in OWNERS {
        for world in [&one, &another] {
            world.offer(&signed(owner, owner, |_| {}), pushed_by(owner)).await;
        }
    }
    let (summary, cost) = reconcile_shards(&one.catalog, &another.catalog).await.unwrap();
    assert_eq!((summary.rounds, summary.lacked, cost.messages), (0, 0, 2));
}

#[tokio::test]
async fn of_a_neighbour_that_knows_of_no_shards_nothing_of_others_is_kept() {
    let kept = shards("4");
    let [all, some] = all_beside(kept).await;
    reconcile(&some.catalog, &all.catalog).await.unwrap();
    let came: Vec<u64> = OWNERS.filter(|owner| is_here(&some, *owner)).collect();
    assert!(!came.is_empty(), "nothing came at all");
    assert!(came.iter().all(|owner| is_in(kept, *owner)), "{came:?}");
}
