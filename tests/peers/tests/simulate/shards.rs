//! Nodes that keep some shards, and index nodes, one of which lies.

use std::time::Duration;

use farthing_catalog::{Limits, Query};
use farthing_discovery::{AskedNodes, SearchAnswer};
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle};
use farthing_peers::simulate::{
    arrivals::Arrivals, holding::Holding, network_name, now_secs, population::key,
};
use farthing_protocol::{
    Listing, SecretKey, ServiceNonce, Signed, Usdc,
    info::{InfoRequest, InfoResponse, ListingOrder, ListingSearch},
    record::FLAG_KEEPS_ALL,
    shards::{Shards, shard_of},
    wire,
};
use farthing_tests::wait::eventually;
use tempfile::TempDir;

/// For two dozen searches; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node of the network that joins through those at these addresses.
async fn start(key: &SecretKey, bootstrap: Vec<String>) -> (NetworkHandle, Inbound, String) {
    let config = NetworkConfig {
        listen: vec!["/memory/0".to_owned()],
        bootstrap,
        allow_private: true,
        gossip: false,
        ..NetworkConfig::new(key.clone(), network_name())
    };
    let (handle, inbound) = Network::start(config).await.unwrap();
    let listening = handle.status().borrow().listening.first().cloned().unwrap();
    (handle, inbound, listening)
}

/// The catalog of a node in this folder.
async fn open(
    folder: &TempDir,
    key: &SecretKey,
    handle: &NetworkHandle,
    inbound: Inbound,
    shards: Shards,
) -> Holding {
    let (path, key, handle) = (folder.path().to_owned(), key.clone(), handle.clone());
    let limits = Limits::default();
    Holding::open(path, key, handle, inbound, Arrivals::default(), shards, limits).await.unwrap()
}

/// The first owner with this name whose shard is, or is not, among these.
fn owner(name: &str, shards: Shards, is_in: bool) -> SecretKey {
    let mut keys = (0..).map(|number| key(name, number));
    keys.find(|key| shards.has(shard_of(key.address())) == is_in).unwrap()
}

fn listing(owner: &SecretKey, name: &str) -> Signed<Listing> {
    let nonce = ServiceNonce::from_bytes([7; 16]);
    let listing = Listing {
        name: name.to_owned(),
        summary: "Says how high the water is".to_owned(),
        operations_count: 1,
        details_bytes: 1,
        ..Listing::first(network_name().as_str(), owner.address(), nonce, now_secs())
    };
    Signed::sign(&listing, owner).unwrap()
}

/// The same with another signature than its owner's.
fn forged(listing: &Signed<Listing>) -> Signed<Listing> {
    let mut bytes = wire::encode(listing);
    let in_signature = bytes.len() - 20;
    bytes[in_signature] ^= 1;
    wire::decode(&bytes).unwrap()
}

/// An index node that answers every search with this, and nothing else.
async fn lie(mut inbound: Inbound, answer: Signed<Listing>) {
    while let Some(question) = inbound.info.recv().await {
        if matches!(question.request, InfoRequest::Search(_)) {
            question.reply.send(InfoResponse::Listings(vec![answer.clone()]));
        }
    }
}

async fn searched(holding: &Holding, words: &str) -> SearchAnswer {
    let query = Query { words: words.to_owned(), ..Query::default() };
    holding.catalog().search(query).await.unwrap()
}

async fn found(holding: &Holding, words: &str) -> Vec<String> {
    let SearchAnswer { page, .. } = searched(holding, words).await;
    assert_eq!(page.total, page.hits.len());
    page.hits.into_iter().map(|hit| hit.listing.name).collect()
}

#[tokio::test]
async fn a_search_finds_what_index_nodes_have_and_shows_nothing_that_its_owner_did_not_sign() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let searcher_key = key("searcher", 0);
    let kept = Shards::of_node(searcher_key.address(), "1".parse().unwrap());
    let (seller, liar) = (owner("seller", kept, false), key("liar", 0));

    let (index, index_inbound, at_index) = start(&seller, Vec::new()).await;
    let index_holding = open(&folders[0], &seller, &index, index_inbound, Shards::ALL).await;
    index_holding.publish(&listing(&seller, "Tides of Cork")).await.unwrap();
    index.publish(FLAG_KEEPS_ALL, 1, [1; 32]).await.unwrap();

    let (lying, lying_inbound, at_liar) = start(&liar, vec![at_index.clone()]).await;
    let answering =
        tokio::spawn(lie(lying_inbound, forged(&listing(&owner("victim", kept, false), "Tides of nobody"))));
    lying.publish(FLAG_KEEPS_ALL, 0, [0; 32]).await.unwrap();

    let (searcher, searcher_inbound, _) = start(&searcher_key, vec![at_index, at_liar]).await;
    let holding = open(&folders[1], &searcher_key, &searcher, searcher_inbound, kept).await;
    eventually(
        "index nodes are known by their records",
        async || Ok(searcher.index_nodes(&[], 3).len() == 2),
    )
    .await
    .unwrap();
    eventually("what the index node has is found", async || Ok(!found(&holding, "tides").await.is_empty()))
        .await
        .unwrap();
    assert_eq!(found(&holding, "tides").await, ["Tides of Cork"]);
    assert_eq!(holding.catalog().counts().listings, 0, "it is shown and not kept");
    let scope = searched(&holding, "tides").await.scope.unwrap();
    let AskedNodes { asked, answered, had_more } = scope.index_nodes;
    assert!(scope.shards_kept == 1 && asked == 2 && answered > 0 && !had_more, "{scope:?}");
    // What was found is remembered: it is there when nobody answers any more.
    index.shutdown().await;
    assert_eq!(found(&holding, "tides").await, ["Tides of Cork"]);
    answering.abort();
    let _ = answering.await;
    let AskedNodes { asked, answered, .. } = searched(&holding, "rivers").await.scope.unwrap().index_nodes;
    assert!(asked > 0 && answered == 0, "nobody answers any more: {asked}, {answered}");
}

#[tokio::test]
async fn a_node_whose_places_are_all_taken_searches_at_index_nodes_as_well_and_says_so() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [full_key, seller] = ["full", "roomy"].map(|name| key(name, 0));
    let (index, index_inbound, at_index) = start(&seller, Vec::new()).await;
    let index_holding = open(&folders[0], &seller, &index, index_inbound, Shards::ALL).await;
    index_holding.publish(&listing(&seller, "Tides of Cork")).await.unwrap();
    index.publish(FLAG_KEEPS_ALL, 1, [1; 32]).await.unwrap();

    let (full, inbound, _) = start(&full_key, vec![at_index]).await;
    let (path, arrivals) = (folders[1].path().to_owned(), Arrivals::default());
    let limits = Limits { listings_max: 1, ..Limits::default() };
    let (key, handle) = (full_key.clone(), full.clone());
    let holding = Holding::open(path, key, handle, inbound, arrivals, Shards::ALL, limits).await.unwrap();
    holding.publish(&listing(&full_key, "Its only place")).await.unwrap();
    eventually("what the index node has is found", async || {
        Ok(found(&holding, "tides").await == ["Tides of Cork"])
    })
    .await
    .unwrap();
    assert_eq!(holding.catalog().counts().listings, 1, "there was a place");
    let scope = searched(&holding, "tides").await.scope.unwrap();
    assert!(scope.is_full && scope.shards_kept == 16 && scope.index_nodes.asked == 1, "{scope:?}");
}

#[tokio::test]
async fn a_name_that_another_owner_has_in_a_shard_that_is_not_kept_names_no_service_alone() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let imitator = key("imitator", 0);
    let kept = Shards::of_node(imitator.address(), "1".parse().unwrap());
    let seller = owner("imitated", kept, false);
    let (index, index_inbound, at_index) = start(&seller, Vec::new()).await;
    let (searcher, searcher_inbound, _) = start(&imitator, vec![at_index]).await;
    let index_holding = open(&folders[0], &seller, &index, index_inbound, Shards::ALL).await;
    let holding = open(&folders[1], &imitator, &searcher, searcher_inbound, kept).await;
    let genuine = listing(&seller, "Tides of Cork");
    index_holding.publish(&genuine).await.unwrap();
    holding.publish(&listing(&imitator, "Tides of Cork")).await.unwrap();
    index.publish(FLAG_KEEPS_ALL, 1, [1; 32]).await.unwrap();

    // Names are known at once, words with the next commit of their index.
    eventually("the name is that of two services", async || {
        let named = holding.catalog().named("tides of cork".to_owned()).await.unwrap();
        Ok(named.len() >= 2 && found(&holding, "cork").await.len() >= 2)
    })
    .await
    .unwrap();
    let hits = searched(&holding, "cork").await.page.hits;
    assert!(hits.iter().all(|hit| hit.look_alike.is_some()), "{hits:?}");
    let entry = holding.catalog().entry(genuine.claimed().unwrap().service).await.unwrap();
    assert_eq!(entry.look_alike.map(|other| other.owner), Some(imitator.address()));
}

/// Index nodes that answer every search with nothing, and the searches after which each of them has been asked.
const SILENT_NODES: usize = 9;
const SEARCHES: u64 = 12;

async fn leave_all_out(mut inbound: Inbound) {
    while let Some(question) = inbound.info.recv().await {
        if matches!(question.request, InfoRequest::Search(_)) {
            question.reply.send(InfoResponse::Listings(Vec::new()));
        }
    }
}

/// The listing as it was published so long ago that everybody may have it.
fn of_yesterday(listing: &Signed<Listing>, owner: &SecretKey) -> Signed<Listing> {
    let then_secs = now_secs() - 24 * 3600;
    let mut listing = listing.claimed().unwrap();
    (listing.created_secs, listing.updated_secs) = (then_secs, then_secs);
    Signed::sign(&listing, owner).unwrap()
}

#[tokio::test]
async fn index_nodes_that_leave_out_what_is_held_here_are_asked_after_one_that_names_it() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let searcher_key = key("omitted", 0);
    let kept = Shards::of_node(searcher_key.address(), "1".parse().unwrap());
    let seller = owner("named", kept, false);
    let (index, index_inbound, at_index) = start(&seller, Vec::new()).await;
    let (searcher, searcher_inbound, at_searcher) = start(&searcher_key, vec![at_index.clone()]).await;
    let index_holding = open(&folders[0], &seller, &index, index_inbound, Shards::ALL).await;
    let holding = open(&folders[1], &searcher_key, &searcher, searcher_inbound, kept).await;
    for (holding, key) in [(&index_holding, &seller), (&holding, &searcher_key)] {
        let published = of_yesterday(&listing(key, "Tides of Cork"), key);
        holding.publish(&published).await.unwrap();
    }
    index.publish(FLAG_KEEPS_ALL, 1, [1; 32]).await.unwrap();
    searcher.publish(0, 1, [1; 32]).await.unwrap();
    let mut silent = Vec::new();
    for number in 0..SILENT_NODES {
        let addresses = vec![at_searcher.clone(), at_index.clone()];
        let (handle, inbound, _) = start(&key("silent", number), addresses).await;
        tokio::spawn(leave_all_out(inbound));
        handle.publish(FLAG_KEEPS_ALL, 0, [0; 32]).await.unwrap();
        silent.push(handle);
    }
    let count = SILENT_NODES + 1;
    eventually("all know each other", async || {
        Ok(searcher.index_nodes(&[], count).len() == count
            && searcher.connected_peers().await.len() >= count
            && found(&index_holding, "water").await.len() >= 2)
    })
    .await
    .unwrap();
    // Each search is another one, so that nothing is remembered of the last.
    let mut price_max = Usdc::from_micros(1_000_000);
    // Of one where an index node did not answer in time nothing follows; whoever is silent here answers, with nothing.
    let mut found_by_all_asked = async || loop {
        price_max = price_max.saturating_add(Usdc::from_micros(1));
        let query = Query { words: "water".to_owned(), price_max: Some(price_max), ..Query::default() };
        let searched = holding.catalog().search(query).await.unwrap();
        let AskedNodes { asked, answered, .. } = searched.scope.unwrap().index_nodes;
        if asked > 0 && answered == asked {
            break searched.page.hits.len();
        }
    };
    let searching = async {
        for _ in 0..SEARCHES {
            found_by_all_asked().await;
        }
        for _ in 0..SEARCHES {
            assert_eq!(found_by_all_asked().await, 2, "the node that names all was not asked");
        }
    };
    tokio::time::timeout(PATIENCE, searching).await.expect("whoever is asked answers");
}

/// One peer that asks without end takes one place, and who asks at the same time waits for its turn.
#[tokio::test]
async fn an_index_node_refuses_no_search_because_others_search() {
    let folder = TempDir::new().unwrap();
    let (seller, asker) = (key("index", 0), key("asker", 0));
    let (index, index_inbound, at_index) = start(&seller, Vec::new()).await;
    let holding = open(&folder, &seller, &index, index_inbound, Shards::ALL).await;
    let published = listing(&seller, "Tides of Cork");
    holding.publish(&published).await.unwrap();
    eventually("what is published is found", async || Ok(!found(&holding, "tides").await.is_empty()))
        .await
        .unwrap();

    let (asker, _inbound, _) = start(&asker, vec![at_index]).await;
    eventually("the index node is met", async || {
        Ok(asker.connected_peers().await.contains(&seller.address()))
    })
    .await
    .unwrap();
    let search = ListingSearch {
        words: "tides".to_owned(),
        category: None,
        tag: None,
        kind: None,
        price_max: None,
        online: false,
        samples: false,
        owner: None,
        order: ListingOrder::Relevance,
        limit: 1,
    };
    let questions = (0..12).map(|_| asker.ask(seller.address(), InfoRequest::Search(search.clone())));
    for answer in futures::future::join_all(questions).await {
        let Ok(InfoResponse::Listings(found)) = answer else { panic!("{answer:?}") };
        assert_eq!(found, std::slice::from_ref(&published));
    }
}
