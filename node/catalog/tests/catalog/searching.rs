//! Finding listings.

use farthing_catalog::{Query, Sort, Verdict};
use farthing_protocol::{Listing, Usdc, listing::ServiceKind};

use crate::world::{FOREVER_SECS, NOW_SECS, World, fetched, key, pushed, service, signed, words};

/// A name, and what else is special about its listing.
type Special<'a> = (&'a str, fn(&mut Listing));

/// A catalog of services that differ; each has an owner of its own with its number.
async fn filled(listings: &[Special<'_>]) -> World {
    let world = World::new();
    let listings: Vec<_> = (1..)
        .zip(listings)
        .map(|(number, (name, change))| {
            signed(number, number, |listing| {
                listing.name = (*name).to_owned();
                listing.updated_secs += number;
                change(listing);
            })
        })
        .collect();
    world.catalog.offer(listings, fetched(), NOW_SECS).await;
    world.catalog.settled().await.unwrap();
    world
}

#[tokio::test]
async fn words_are_found_in_every_part_of_a_listing_and_the_name_counts_most() {
    let world = filled(&[
        ("Seismic data", |listing| listing.summary = "Earthquakes of the last days".to_owned()),
        ("Earthquakes", |_| {}),
        ("Tremors", |listing| listing.tags = vec!["earthquakes".to_owned()]),
        ("Rumbles", |listing| listing.category = "Earthquakes".to_owned()),
        ("Exoplanets", |_| {}),
    ])
    .await;
    let names = world.names(words("earthquakes")).await;
    assert_eq!(names[0], "Earthquakes");
    assert_eq!(names.len(), 4);
    assert!(!names.contains(&"Exoplanets".to_owned()));
}

#[tokio::test]
async fn a_listing_is_named_by_its_name_or_by_the_beginning_of_its_id_and_all_that_fit_are_told() {
    let world = filled(&[("Tides", |_| {}), ("Earthquakes", |_| {}), ("tides", |_| {})]).await;
    let named = async |text: String| {
        let named = world.catalog.named(text).await.unwrap();
        let mut services: Vec<_> = named.into_iter().map(|one| one.service).collect();
        services.sort_unstable();
        services
    };
    let mut tides = [service(1), service(3)];
    tides.sort_unstable();
    assert_eq!(named("TIDES ".to_owned()).await, tides);
    let id = service(2).to_string();
    for text in ["earthquakes", &id, &id[..13], &id.to_uppercase()[..8]] {
        assert_eq!(named(text.to_owned()).await, [service(2)], "{text}");
    }
    for text in ["earthquake", "", &id[..3], &id[1..]] {
        assert!(named(text.to_owned()).await.is_empty(), "{text}");
    }
    let other = service(1).to_string();
    let world = filled(&[("Tides", |_| {}), (&other, |_| {})]).await;
    let named = world.catalog.named(other).await.unwrap();
    assert_eq!(
        named.iter().map(|one| one.service).collect::<Vec<_>>(),
        [service(1)],
        "a name that is another's id"
    );
}

#[tokio::test]
async fn unfinished_mistyped_and_accented_words_are_found() {
    let world = filled(&[("Café prices", |_| {}), ("Weather forecast", |_| {}), ("Wein", |_| {})]).await;
    for (typed, found) in [
        ("cafe", "Café prices"),
        ("CAFÉ", "Café prices"),
        ("weath", "Weather forecast"),
        ("forecst weather", "Weather forecast"),
        ("weather forecst", "Weather forecast"),
        ("waether", "Weather forecast"),
        ("eather", "Weather forecast"),
        ("ecas weather", "Weather forecast"),
        ("rice", "Café prices"),
    ] {
        assert_eq!(world.names(words(typed)).await, [found], "{typed}");
    }
    assert!(world.names(words("wien")).await.is_empty(), "a short word is what it is");
    assert!(world.names(words("weather prices")).await.is_empty(), "all words must occur");
}

#[tokio::test]
async fn few_words_of_a_query_and_no_long_ones_are_taken_for_mistyped() {
    let world = filled(&[("Seismic harbour weather planets", |listing| {
        listing.summary = "Electroencephalography".to_owned();
    })])
    .await;
    let found = async |typed: &str| world.names(words(typed)).await.len();
    for typed in ["seismik harbuor wether", "seismik harbuor wether planets", "electroencephalography"] {
        assert_eq!(found(typed).await, 1, "{typed}");
    }
    for typed in ["seismik harbuor wether plamets", "electroencephalographi"] {
        assert_eq!(found(typed).await, 0, "{typed}: each guess takes long, and strangers ask as well");
    }
}

#[tokio::test]
async fn no_text_is_an_error_of_syntax() {
    let world = filled(&[("Weather AND (sun", |_| {})]).await;
    for hostile in
        ["\"", "name:weather", "a AND", "(", "*", "~1 ^2", "[a TO", "\\", "+-!", "\u{0}", "\u{202e}x"]
    {
        world.catalog.search(words(hostile), NOW_SECS).await.unwrap();
    }
    assert_eq!(world.names(words("weather AND (")).await, ["Weather AND (sun"]);
    assert_eq!(world.names(words(&"weather ".repeat(10_000))).await, ["Weather AND (sun"]);
    world.catalog.search(words(&"x".repeat(1_000_000)), NOW_SECS).await.unwrap();
    for long in ["x", "é", "地", "𝕏"] {
        let long = format!("{0} ", long.repeat(47 / long.len())).repeat(12);
        assert!(world.names(words(&long)).await.is_empty());
    }
}

#[tokio::test]
async fn filters_narrow_and_facets_show_what_other_choices_would_give() {
    let world = filled(&[
        ("One", |listing| listing.category = "Weather".to_owned()),
        ("Two", |listing| {
            (listing.category, listing.price) = ("weather".to_owned(), Usdc::from_micros(5_000));
            listing.samples_count = 2;
        }),
        ("Three", |listing| (listing.category, listing.kind) = ("space".to_owned(), ServiceKind::Graphql)),
        ("Four", |listing| listing.price = Usdc::ZERO),
    ])
    .await;
    world.catalog.owner_seen(key(2).address(), FOREVER_SECS);
    let query = Query { category: Some("weather".to_owned()), ..Query::default() };
    let page = world.catalog.search(query.clone(), NOW_SECS).await.unwrap();
    assert_eq!(page.total, 2);
    let categories = [("weather", 2), ("science", 1), ("space", 1)];
    assert_eq!(page.facets.categories, categories.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(page.facets.kinds, [(ServiceKind::Rest, 2), (ServiceKind::Graphql, 0)]);
    assert_eq!((page.facets.online, page.facets.samples), (1, 1));
    let counts: Vec<usize> = page.facets.prices.iter().map(|band| band.count).collect();
    assert_eq!(counts, [0, 1, 1, 0, 0, 0]);

    assert_eq!(world.names(Query { online: true, ..query.clone() }).await, ["Two"]);
    assert_eq!(world.names(Query { samples: true, ..Query::default() }).await, ["Two"]);
    assert_eq!(world.names(Query { price_max: Some(Usdc::from_micros(4_999)), ..query }).await, ["One"]);
    assert_eq!(world.names(Query { kind: Some(ServiceKind::Graphql), ..Query::default() }).await, ["Three"]);
    assert_eq!(world.names(Query { owner: Some(key(4).address()), ..Query::default() }).await, ["Four"]);
    assert!(world.names(Query { tag: Some("none".to_owned()), ..Query::default() }).await.is_empty());
}

#[tokio::test]
async fn hits_are_sorted_and_turned_page_by_page() {
    let world = filled(&[
        ("banana", |listing| listing.price = Usdc::from_micros(30)),
        ("Apple", |listing| listing.price = Usdc::from_micros(20)),
        ("cherry", |listing| listing.price = Usdc::from_micros(10)),
    ])
    .await;
    let sorted = |sort| Query { sort, ..Query::default() };
    assert_eq!(world.names(sorted(Sort::Price)).await, ["cherry", "Apple", "banana"]);
    assert_eq!(world.names(sorted(Sort::Newest)).await, ["cherry", "Apple", "banana"]);
    assert_eq!(world.names(sorted(Sort::Name)).await, ["Apple", "banana", "cherry"]);
    assert_eq!(world.names(Query { limit: Some(2), ..sorted(Sort::Name) }).await, ["Apple", "banana"]);
    assert_eq!(world.names(Query { offset: 2, ..sorted(Sort::Name) }).await, ["cherry"]);
    assert!(world.names(Query { offset: 3, ..sorted(Sort::Name) }).await.is_empty());
}

/// Nine honest owners with two services each, which are older than two wallets with as many as they may have, dated as
/// far ahead as anything is taken.
async fn beside_two_hostile_wallets() -> World {
    let world = World::new();
    (1..=11).for_each(|owner| world.catalog.owner_seen(key(owner).address(), FOREVER_SECS));
    let honest =
        |number: u64| signed(number, number.div_ceil(2), |listing| listing.name = format!("honest {number}"));
    let honest: Vec<_> = (1..=18).map(honest).collect();
    world.catalog.offer(honest, fetched(), NOW_SECS - 60).await;
    let hostile = |number: u64| {
        signed(number, 10 + number % 2, |listing| {
            listing.name = format!("hostile {number}");
            listing.updated_secs = NOW_SECS + 300;
        })
    };
    let hostile: Vec<_> = (100..228).map(hostile).collect();
    let taken = world.catalog.offer(hostile, fetched(), NOW_SECS).await;
    assert!(taken.iter().all(|verdict| *verdict == Verdict::Stored));
    world.catalog.settled().await.unwrap();
    world
}

fn hostile(names: &[String]) -> usize {
    names.iter().filter(|name| name.starts_with("hostile")).count()
}

#[tokio::test]
async fn two_hostile_wallets_with_many_listings_dated_ahead_do_not_own_the_first_page() {
    let world = beside_two_hostile_wallets().await;
    let page = |sort, offset| Query { sort, offset, limit: Some(20), ..Query::default() };
    for sort in [Sort::Relevance, Sort::Newest] {
        let names = world.names(page(sort, 0)).await;
        // Each has had its turn, and some the second: the two wallets theirs as well, where being new counts.
        assert_eq!(
            (names.len(), hostile(&names)),
            (20, if sort == Sort::Newest { 4 } else { 2 }),
            "{names:?}"
        );
        let mut all = names;
        for offset in (20..146).step_by(20) {
            all.extend(world.names(page(sort, offset)).await);
        }
        assert_eq!((all.len(), hostile(&all)), (146, 128));
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
    }
    let names = world.names(page(Sort::Relevance, 0)).await;
    assert_eq!(hostile(&names[..9]), 0, "who has been here longer comes first: {names:?}");
}

#[tokio::test]
async fn nothing_was_updated_later_than_it_came_and_a_restart_does_not_forget_it() {
    let mut world = World::new();
    let ahead = signed(1, 1, |listing| {
        (listing.name, listing.updated_secs) = ("ahead".to_owned(), NOW_SECS + 300);
    });
    let later = signed(2, 2, |listing| {
        (listing.name, listing.updated_secs) = ("later".to_owned(), NOW_SECS + 200);
    });
    assert_eq!(world.offer(&ahead, pushed()).await, Verdict::Stored);
    assert_eq!(world.offer_at(&later, pushed(), NOW_SECS + 200).await, Verdict::Stored);
    let newest = || Query { sort: Sort::Newest, ..Query::default() };
    assert_eq!(world.names(newest()).await, ["later", "ahead"]);
    (world, _) = world.reopen(|_| {});
    assert_eq!(world.names(newest()).await, ["later", "ahead"]);
}

#[tokio::test]
async fn what_this_node_uses_comes_first_and_then_what_it_has_known_for_longest() {
    let world = World::new();
    for number in 1..=4 {
        let then = NOW_SECS - 100 + number;
        let listing = signed(number, number, |listing| listing.name = format!("planets {number}"));
        assert_eq!(world.offer_at(&listing, pushed(), then).await, Verdict::Stored);
    }
    world.catalog.settled().await.unwrap();
    let orders = async || (world.names(Query::default()).await, world.names(words("planets")).await);
    let planets = |numbers: [u8; 4]| numbers.map(|number| format!("planets {number}")).to_vec();
    assert_eq!(orders().await, (planets([1, 2, 3, 4]), planets([1, 2, 3, 4])));
    world.catalog.completed([(service(3), 1), (service(4), 5)]);
    world.catalog.completed([(service(3), 1)]);
    assert_eq!(orders().await, (planets([4, 3, 1, 2]), planets([4, 3, 1, 2])));
    // A new version is the same service.
    world
        .offer(&signed(4, 4, |listing| (listing.seq, listing.name) = (2, "planets 4".to_owned())), pushed())
        .await;
    world.catalog.settled().await.unwrap();
    assert_eq!(orders().await.0, planets([4, 3, 1, 2]));
}

#[tokio::test]
async fn a_service_is_found_by_its_operations_once_they_are_known() {
    let world = filled(&[("Exoplanets", |_| {})]).await;
    assert!(world.names(words("orbit")).await.is_empty());
    let operations = ["GET /planets list planets".to_owned(), "GET /orbit/{id} the orbit of one".to_owned()];
    world.catalog.index_operations(service(1), &operations).await.unwrap();
    world.catalog.settled().await.unwrap();
    assert_eq!(world.names(words("orbit")).await, ["Exoplanets"]);
    let (world, _) = world.reopen(|folder| std::fs::remove_dir_all(folder.join("catalog-index")).unwrap());
    world.catalog.settled().await.unwrap();
    assert_eq!(world.names(words("planets orbit")).await, ["Exoplanets"], "an index made anew knows it too");
}

#[tokio::test]
async fn a_new_version_is_found_by_its_new_words_only() {
    let world = filled(&[("Sunshine", |_| {})]).await;
    let changed = signed(1, 1, |listing| (listing.seq, listing.name) = (2, "Moonlight".to_owned()));
    world.offer(&changed, pushed()).await;
    world.catalog.settled().await.unwrap();
    assert!(world.names(words("sunshine")).await.is_empty());
    assert_eq!(world.names(words("moonlight")).await, ["Moonlight"]);
}

#[tokio::test]
async fn a_name_like_an_older_ones_carries_a_warning() {
    let world = filled(&[("Earthquakes", |_| {})]).await;
    let later_secs = NOW_SECS + 2 * 24 * 3600;
    let imitation = signed(2, 2, |listing| listing.name = "E\u{430}rthquakes!".to_owned());
    world.offer_at(&imitation, pushed(), later_secs).await;
    let look_alike = |number| world.catalog.get(service(number), later_secs).unwrap().unwrap().look_alike;
    let warning = look_alike(2).expect("the younger one is warned of");
    assert_eq!((warning.service, warning.owner), (service(1), key(1).address()));
    assert!(warning.older);
    assert_eq!(look_alike(1), None, "the older one is not");
    let named = world.catalog.named(service(2).to_string()).await.unwrap();
    assert!(named.len() == 1 && named[0].is_look_alike, "{named:?}");
    world.catalog.settled().await.unwrap();
    let page = world.catalog.search(Query::default(), later_secs).await.unwrap();
    assert_eq!(page.hits.iter().filter(|hit| hit.look_alike.is_some()).count(), 1);
}
