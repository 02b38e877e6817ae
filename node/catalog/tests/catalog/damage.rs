//! Files that were damaged, lost or swapped: said, rebuilt, never fatal.

use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use farthing_catalog::{Catalog, CatalogError, Failing, Options, Query, Verdict};
use farthing_protocol::keccak256;

use crate::world::{NOW_SECS, World, key, own, pushed, service, signed, words};

async fn with_one_listing() -> World {
    let world = World::new();
    world.offer(&signed(1, 1, |listing| listing.name = "Earthquakes".to_owned()), pushed()).await;
    world.catalog.settled().await.unwrap();
    world
}

/// Writes noise over a part of a file.
fn scribble(file: &Path, from: u64, length: usize) {
    let mut file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(from)).unwrap();
    file.write_all(&vec![0xa5; length]).unwrap();
}

fn damaged_files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("damaged")).collect()
}

#[tokio::test]
async fn a_damaged_catalog_is_moved_aside_and_filled_anew() {
    for (from, length) in [(0, 64), (0, 8192), (4096, 64 * 1024)] {
        let world = with_one_listing().await;
        let (world, opened) = world.reopen(|folder| scribble(&folder.join("catalog.redb"), from, length));
        assert!(opened.notices[0].contains("could not be read"), "{from}: {opened:?}");
        assert_eq!(damaged_files(world.folder.path()), ["catalog.redb.damaged-1"]);
        assert_eq!(world.catalog.counts().listings, 0);
        assert!(world.names(words("earthquakes")).await.is_empty(), "the index of the old one is gone");
        assert_eq!(world.offer(&signed(1, 1, |_| {}), pushed()).await, Verdict::Stored);
    }
}

#[tokio::test]
async fn a_file_that_is_no_catalog_is_moved_aside_and_kept() {
    let world = with_one_listing().await;
    let (world, opened) =
        world.reopen(|folder| fs::write(folder.join("catalog.redb"), "a letter to grandmother").unwrap());
    assert_eq!(opened.notices.len(), 2, "the catalog and its index: {opened:?}");
    let kept = fs::read_to_string(world.folder.path().join("catalog.redb.damaged-1")).unwrap();
    assert_eq!(kept, "a letter to grandmother");
    let (_, opened) = world.reopen(|folder| fs::write(folder.join("catalog.redb"), "another").unwrap());
    assert!(opened.notices[0].contains("damaged-2"), "{opened:?}");
}

#[tokio::test]
async fn files_that_were_emptied_are_filled_anew_and_it_is_said() {
    let world = with_one_listing().await;
    let (world, opened) = world.reopen(|folder| {
        fs::write(folder.join("catalog.redb"), "").unwrap();
        fs::write(folder.join("content.redb"), "").unwrap();
    });
    let of_file = |file: &str| {
        opened.notices.iter().any(|notice| notice.contains(file) && notice.contains("was empty"))
    };
    assert!(of_file("the catalog's file") && of_file("the cache of details"), "{opened:?}");
    assert!(damaged_files(world.folder.path()).is_empty(), "an empty file is worth nothing to anybody");
    assert_eq!(world.offer(&signed(1, 1, |_| {}), pushed()).await, Verdict::Stored);
}

#[tokio::test]
async fn stores_put_in_each_other_s_place_are_moved_aside_as_they_are() {
    let world = with_one_listing().await;
    let (world, opened) = world.reopen(|folder| {
        let (catalog, content) = (folder.join("catalog.redb"), folder.join("content.redb"));
        let swapped = folder.join("swapped");
        fs::rename(&catalog, &swapped).unwrap();
        fs::rename(&content, &catalog).unwrap();
        fs::rename(&swapped, &content).unwrap();
    });
    let told = opened.notices.iter().filter(|notice| notice.contains("another store")).count();
    assert_eq!(told, 2, "{opened:?}");
    let mut kept = damaged_files(world.folder.path());
    kept.sort();
    assert_eq!(kept, ["catalog.redb.damaged-1", "content.redb.damaged-1"]);
    assert_eq!(world.offer(&signed(1, 1, |_| {}), pushed()).await, Verdict::Stored);
    // What was moved is what it was: in its own place it is read again.
    let (world, _) = world.reopen(|folder| {
        fs::rename(folder.join("content.redb.damaged-1"), folder.join("catalog.redb")).unwrap();
    });
    world.catalog.settled().await.unwrap();
    assert_eq!(world.names(words("earthquakes")).await, ["Earthquakes"]);
}

#[tokio::test]
async fn the_catalog_of_another_network_is_not_used() {
    let world = with_one_listing().await;
    let World { folder, catalog, .. } = world;
    drop(catalog);
    let (catalog, opened) = Catalog::open(folder.path(), Options::new("other", own().address())).unwrap();
    assert!(opened.notices[0].contains("its network is local-test, not other"), "{opened:?}");
    assert_eq!(catalog.counts().listings, 0);
}

#[tokio::test]
async fn two_processes_cannot_share_a_catalog() {
    let world = with_one_listing().await;
    let again = Catalog::open(world.folder.path(), Options::new("local-test", own().address()));
    assert!(matches!(again, Err(CatalogError::InUse)), "{again:?}");
    assert_eq!(world.catalog.counts().listings, 1, "and the first is not harmed");
}

#[tokio::test]
async fn an_index_that_is_missing_or_damaged_is_made_anew() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("gone", |index| fs::remove_dir_all(index).unwrap()),
        ("without its list", |index| fs::write(index.join("meta.json"), "{}").unwrap()),
        ("of another version", |index| fs::write(index.join("mark"), "0 0").unwrap()),
        ("a segment is gone", |index| fs::remove_file(segment(index)).unwrap()),
        ("a segment is damaged", |index| scribble(&segment(index), 0, 8)),
    ];
    for (what, damage) in damages {
        let world = with_one_listing().await;
        let (world, opened) = world.reopen(|folder| damage(&folder.join("catalog-index")));
        assert_eq!(opened.indexing, 1, "{what}: {opened:?}");
        world.catalog.settled().await.unwrap();
        assert_eq!(world.names(words("earthquakes")).await, ["Earthquakes"], "{what}");
    }
}

#[tokio::test]
async fn a_file_where_the_index_should_be_and_a_folder_for_the_cache_are_moved_aside() {
    let world = with_one_listing().await;
    let (world, opened) = world.reopen(|folder| {
        fs::remove_dir_all(folder.join("catalog-index")).unwrap();
        fs::write(folder.join("catalog-index"), "a letter to grandfather").unwrap();
        fs::remove_file(folder.join("content.redb")).unwrap();
        fs::create_dir(folder.join("content.redb")).unwrap();
    });
    assert!(opened.notices[0].contains("catalog-index.damaged-1"), "{opened:?}");
    assert_eq!(opened.indexing, 1);
    let folder = world.folder.path();
    let kept = fs::read_to_string(folder.join("catalog-index.damaged-1")).unwrap();
    assert_eq!(kept, "a letter to grandfather");
    assert!(folder.join("content.redb.damaged-1").is_dir());
    world.catalog.settled().await.unwrap();
    assert_eq!(world.names(words("earthquakes")).await, ["Earthquakes"]);
}

#[tokio::test]
async fn an_index_that_cannot_be_written_is_told_until_it_has_learned_what_it_missed() {
    let world = with_one_listing().await;
    assert_eq!(world.catalog.failing(), None);
    let (index, aside) = (world.folder.path().join("catalog-index"), world.folder.path().join("index-aside"));
    fs::rename(&index, &aside).unwrap();
    let listing = signed(2, 2, |listing| listing.name = "Planets".to_owned());
    assert_eq!(world.offer(&listing, pushed()).await, Verdict::Stored, "the store works");
    assert!(world.catalog.settled().await.is_err());
    assert_eq!(world.catalog.failing(), Some(Failing::Index));
    // Whatever was made in its place goes.
    let _ = fs::remove_dir_all(&index);
    fs::rename(&aside, &index).unwrap();
    world.catalog.settled().await.unwrap();
    assert_eq!(world.catalog.failing(), None);
    assert_eq!(world.names(words("planets")).await, ["Planets"]);
}

/// A file with the words of a segment.
fn segment(index: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "idx")).min().unwrap()
}

#[tokio::test]
async fn slots_stay_the_same_and_new_listings_use_those_that_are_free() {
    let world = World::new();
    for number in 1..=5 {
        world.catalog.owner_seen(key(number).address(), NOW_SECS + if number == 3 { 1 } else { 10_000_000 });
        world
            .offer(&signed(number, number, |listing| listing.name = format!("Name{number}")), pushed())
            .await;
    }
    world.catalog.sweep(NOW_SECS + 1 + 30 * 24 * 3600).await.unwrap();
    let (world, _) = world.reopen(|_| {});
    world.offer(&signed(6, 6, |listing| listing.name = "Name6".to_owned()), pushed()).await;
    world.catalog.settled().await.unwrap();
    for number in [1, 2, 4, 5, 6] {
        assert_eq!(world.names(words(&format!("name{number}"))).await, [format!("Name{number}")]);
    }
    assert!(world.catalog.get(service(3), NOW_SECS).unwrap().is_none());
    assert_eq!(world.names(Query::default()).await.len(), 5);
}

#[tokio::test]
async fn content_is_what_its_hash_says_or_missing() {
    let world = World::new();
    let (blob, other) = (b"details of a service".to_vec(), b"other bytes".to_vec());
    let hash = keccak256(&[&blob]);
    assert_eq!(world.catalog.blob(&hash).unwrap(), None);
    assert!(!world.catalog.put_blob(hash, &other).unwrap(), "bytes that are not the hash's are not kept");
    assert!(world.catalog.put_blob(hash, &blob).unwrap());
    assert_eq!(world.catalog.blob(&hash).unwrap(), Some(blob.clone()));
    let (world, _) = world.reopen(|_| {});
    assert_eq!(world.catalog.blob(&hash).unwrap(), Some(blob.clone()), "it survives an orderly restart");
    let (world, opened) = world.reopen(|folder| fs::write(folder.join("content.redb"), "noise").unwrap());
    assert!(opened.notices[0].contains("a new one is made"), "{opened:?}");
    assert_eq!(world.catalog.blob(&hash).unwrap(), None);
    assert!(world.catalog.put_blob(hash, &blob).unwrap());
}

#[tokio::test]
async fn content_used_longest_ago_leaves_first() {
    let limits = farthing_catalog::Limits { content_bytes_max: 3_000, ..farthing_catalog::Limits::default() };
    let world = World::with(limits);
    let blobs: Vec<(_, Vec<u8>)> =
        (0..4_u8).map(|byte| vec![byte; 1_000]).map(|b| (keccak256(&[&b]), b)).collect();
    let has = |world: &World, number: usize| world.catalog.blob(&blobs[number].0).unwrap().is_some();
    for (hash, blob) in &blobs[..3] {
        assert!(world.catalog.put_blob(*hash, blob).unwrap());
    }
    assert!(has(&world, 0), "used again");
    assert!(world.catalog.put_blob(blobs[3].0, &blobs[3].1).unwrap());
    assert!(!has(&world, 1), "it was used longest ago");
    assert!(has(&world, 0) && has(&world, 2) && has(&world, 3));
    let large = vec![9; 3_001];
    assert!(!world.catalog.put_blob(keccak256(&[&large]), &large).unwrap(), "larger than the cache");
    let (world, _) = world.reopen(|_| {});
    assert!(has(&world, 0) && has(&world, 2) && has(&world, 3));
}

/// A row and a place in memory cost as much for eight bytes as for some hundred.
#[tokio::test]
async fn content_of_a_few_bytes_takes_no_more_places_than_content_of_512() {
    let limits = farthing_catalog::Limits { content_bytes_max: 5_120, ..farthing_catalog::Limits::default() };
    let world = World::with(limits);
    let blobs: Vec<_> = (0..40).map(u64::to_be_bytes).map(|b| (keccak256(&[&b]), b)).collect();
    let kept =
        |world: &World| blobs.iter().filter(|(hash, _)| world.catalog.blob(hash).unwrap().is_some()).count();
    for (hash, blob) in &blobs {
        assert!(world.catalog.put_blob(*hash, blob).unwrap());
    }
    assert_eq!(kept(&world), 10);
    let (world, _) = world.reopen(|_| {});
    let another = [9; 8];
    assert!(world.catalog.put_blob(keccak256(&[&another]), &another).unwrap());
    assert_eq!(kept(&world), 9, "one of them made room after a restart, too");
}
