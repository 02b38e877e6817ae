//! Searches beyond what is kept here: a node that keeps some shards, or has no place for more listings, asks index nodes.
//!
//! 1. [`Catalog::search`] asks the store and, where that may lack some, up to three index nodes, which [`super::index_nodes`]
//!    chooses.
//! 2. What they answer is verified, joined with what is here, and remembered for a minute: turning a page and calling what was
//!    found ask nobody again. An answer without what is here is noted.
//! 3. [`Catalog::answer_search`] answers those who ask this node.
//!
//! Invariant: nothing is shown that its owner did not sign, and who asks decides neither how many searches are answered at
//! once nor how much is answered.

use std::cmp::{Ordering, Reverse};
use std::{hash::RandomState, num::NonZeroUsize, sync::Arc, time::Duration};

use farthing_catalog::{self as store, Hit, Page, Query, Sort};
use farthing_network::{IndexNode, InfoResponder};
use farthing_os::clock;
use farthing_protocol::{
    Address, Listing, ServiceId, Signed, Verified,
    info::{InfoRequest, InfoResponse, ListingOrder, ListingSearch},
    limits,
    shards::Shards,
};
use farthing_shared::{blocking::start_blocking, keyed_semaphore::SharedPlaces};
use futures::{StreamExt, stream::FuturesUnordered};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Catalog, CatalogError,
    index_nodes::{Candidate, IndexAnswers, is_expected},
    look_alikes::warn_of,
    replaces,
};

/// Index nodes that are drawn by lot, of which few are asked.
const DRAWN: usize = 32;
/// Answers that are enough: one of those that are asked may be slow, or a liar.
const ANSWERS_ENOUGH: usize = 2;
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// Listings that each is asked for, 160 KiB at most.
const WANTED: u8 = 40;
/// Searches whose results are remembered, and for how long.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(32).expect("it is not zero");
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Searches of others that are answered at once, and of one of them: each takes a core for some milliseconds. More wait, as
/// many as there are places for questions.
const ANSWERING_MAX: usize = 2;
const ANSWERING_FOR_EACH_MAX: usize = 1;
/// A place rests for so many times as long as its search took, and no longer than that: wallets are free, so without a rest
/// two that ask on and on would have two cores for themselves.
const REST_FOR_EACH: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(1);

/// A page of what was found, and the part of the network that was searched for it.
#[derive(Clone, Debug)]
pub struct SearchAnswer {
    pub page: Page,
    /// None where this node keeps all listings.
    pub scope: Option<SearchScope>,
}

/// The part of the network that a search covered on a node that does not keep all listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchScope {
    /// Shards that this node keeps, of the network's sixteen.
    pub shards_kept: u32,
    /// There is no place for more listings, so that some of these shards may be lacking.
    pub is_full: bool,
    pub index_nodes: AskedNodes,
}

/// Index nodes that were asked for what this node lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedNodes {
    pub asked: usize,
    /// Those of them that answered before there was enough.
    pub answered: usize,
    /// True if an answer was as long as it may be: there may be more.
    pub had_more: bool,
}

/// Verified listings that index nodes had for one search.
#[derive(Clone, Debug)]
struct FoundListings {
    listings: Arc<[Verified<Listing>]>,
    asked: AskedNodes,
}

/// The memory of what was found elsewhere, and the places for searches of others.
#[derive(Debug)]
pub(super) struct Elsewhere {
    found: Mutex<LruCache<ListingSearch, (Instant, FoundListings)>>,
    answering: SharedPlaces<Address>,
    answers: Mutex<IndexAnswers>,
}

impl Elsewhere {
    pub(super) fn new() -> Self {
        let found = Mutex::new(LruCache::new(REMEMBERED_MAX));
        let answering = SharedPlaces::new(ANSWERING_MAX, ANSWERING_FOR_EACH_MAX);
        Self { found, answering, answers: Mutex::new(IndexAnswers::new()) }
    }

    fn remembered(&self, search: &ListingSearch) -> Option<FoundListings> {
        let mut found = self.found.lock();
        let (at, listings) = found.get(search)?;
        (at.elapsed() < REMEMBERED_FOR).then(|| listings.clone())
    }
}

impl Catalog {
    /// Finds services among all listings this node has, without asking anybody. A node that does not keep all asks index
    /// nodes besides, and shows what they found; the counts beside it are of what is here.
    ///
    /// # Errors
    /// [`CatalogError::Store`] when the index cannot be read.
    pub async fn search(&self, query: Query) -> Result<SearchAnswer, CatalogError> {
        if self.keeps_all() {
            let page = self.0.store.search(query, clock::now_secs()).await?;
            return Ok(SearchAnswer { page, scope: None });
        }
        let FoundListings { listings, asked } = self.found_elsewhere(&query).await;
        let page = self.page_with(query, &self.not_here(&listings)).await?;
        let scope =
            SearchScope { shards_kept: self.shards().count(), is_full: self.is_full(), index_nodes: asked };
        Ok(SearchAnswer { page, scope: Some(scope) })
    }

    /// The listings that are not kept here: what is here is shown from here, also if it came since the answer.
    fn not_here(&self, found: &[Verified<Listing>]) -> Vec<Verified<Listing>> {
        let is_not_here = |listing: &&Verified<Listing>| self.0.store.seq(listing.service).is_none();
        found.iter().filter(is_not_here).cloned().collect()
    }

    /// The services that index nodes have beyond those here and that have this very name; none where this node keeps all.
    pub(super) async fn named_elsewhere(&self, text: &str) -> Vec<store::NamedService> {
        let wanted = text.trim().to_lowercase();
        if self.keeps_all() || wanted.is_empty() || wanted.parse::<ServiceId>().is_ok() {
            return Vec::new();
        }
        let query = Query { words: wanted.clone(), ..Query::default() };
        let FoundListings { listings, .. } = self.found_elsewhere(&query).await;
        let mut named = self.not_here(&listings);
        named.retain(|listing| listing.name.trim().to_lowercase() == wanted);
        let shown = |listing: &Verified<Listing>| store::NamedService {
            service: listing.service,
            name: listing.name.clone(),
            owner: listing.owner,
            // Nobody knows which of two is older.
            is_look_alike: false,
        };
        named.iter().map(shown).collect()
    }

    /// A page of what is here and what was found elsewhere.
    async fn page_with(&self, query: Query, elsewhere: &[Verified<Listing>]) -> Result<Page, CatalogError> {
        let now_secs = clock::now_secs();
        if elsewhere.is_empty() {
            return Ok(self.0.store.search(query, now_secs).await?);
        }
        let (sort, offset) = (query.sort, query.offset);
        let limit = query.limit.unwrap_or(store::PAGE_HITS_MAX).min(store::PAGE_HITS_MAX);
        if offset.saturating_add(limit) > store::PAGE_HITS_MAX {
            // What was found elsewhere is on the pages before.
            let query = Query { offset: offset.saturating_sub(elsewhere.len()), ..query };
            let page = self.0.store.search(query, now_secs).await?;
            return Ok(Page { total: page.total + elsewhere.len(), ..page });
        }
        let page = self.0.store.search(Query { offset: 0, limit: None, ..query }, now_secs).await?;
        let others = elsewhere.iter().map(|listing| Hit {
            listing: Listing::clone(listing),
            state: self.0.store.state(listing.owner, now_secs),
            look_alike: self.0.store.look_alike_of(listing),
        });
        let hits = merged(page.hits, others.collect(), sort).into_iter().skip(offset).take(limit);
        let mut hits: Vec<Hit> = hits.collect();
        warn_of(&mut hits, elsewhere);
        Ok(Page { hits, total: page.total + elsewhere.len(), ..page })
    }

    /// Returns the shards whose listings this node keeps.
    pub fn shards(&self) -> Shards {
        self.0.store.shards()
    }

    /// Returns whether there is no place for more listings.
    pub fn is_full(&self) -> bool {
        self.0.store.is_full()
    }

    /// Returns whether this node keeps all of the network's listings, and answers the searches of others.
    pub fn keeps_all(&self) -> bool {
        self.shards() == Shards::ALL && !self.is_full()
    }

    /// Nodes that may know what this one does not keep; none where it keeps all.
    pub(super) async fn index_nodes(&self) -> Vec<Address> {
        if self.keeps_all() {
            return Vec::new();
        }
        let neighbours = self.0.network.neighbours().await;
        let mut named: Vec<Address> = neighbours.iter().map(|neighbour| neighbour.address).collect();
        let answers = self.0.elsewhere.answers.lock();
        named.extend(answers.proven());
        let candidate = |node: IndexNode| {
            let connected = neighbours.iter().find(|neighbour| neighbour.address == node.wallet);
            // Where somebody is connected is known better than by what it says.
            let network = connected.map_or(node.network, |neighbour| neighbour.network);
            Candidate { wallet: node.wallet, network, is_connected: connected.is_some() }
        };
        let nodes = self.0.network.index_nodes(&named, DRAWN);
        answers.choose(nodes.into_iter().map(candidate).collect(), &RandomState::new())
    }

    /// Services that are here and that an index node would find as well.
    async fn expected(&self, search: &ListingSearch) -> Vec<ServiceId> {
        let now_secs = clock::now_secs();
        let page = self.0.store.search(query_of(search.clone()), now_secs).await;
        let hits = page.map(|page| page.hits).unwrap_or_default().into_iter();
        hits.filter(|hit| is_expected(hit, &search.words, now_secs)).map(|hit| hit.listing.service).collect()
    }

    /// The listing of a service that a search found elsewhere a moment ago.
    pub(super) fn found_before(&self, id: ServiceId) -> Option<Verified<Listing>> {
        let found = self.0.elsewhere.found.lock();
        let fresh = found.iter().filter(|(_, (at, _))| at.elapsed() < REMEMBERED_FOR);
        fresh.flat_map(|(_, (_, found))| found.listings.iter()).find(|listing| listing.service == id).cloned()
    }

    async fn found_elsewhere(&self, query: &Query) -> FoundListings {
        let search = asked(query);
        if let Some(found) = self.0.elsewhere.remembered(&search) {
            return found;
        }
        let found = self.ask_index_nodes(&search).await;
        // Maybe nobody could be reached; the next search tries again.
        if !found.listings.is_empty() {
            self.0.elsewhere.found.lock().put(search, (Instant::now(), found.clone()));
        }
        found
    }

    async fn ask_index_nodes(&self, search: &ListingSearch) -> FoundListings {
        let questions = self.index_nodes().await.into_iter().map(|node| {
            let question = self.0.network.ask(node, InfoRequest::Search(search.clone()));
            async move { (node, question.await) }
        });
        let mut questions: FuturesUnordered<_> = questions.collect();
        let mut asked = AskedNodes { asked: questions.len(), ..AskedNodes::default() };
        let until = Instant::now() + ANSWERED_WITHIN;
        let expected = if asked.asked > 0 { self.expected(search).await } else { Vec::new() };
        let mut answers = Vec::new();
        while answers.len() < ANSWERS_ENOUGH {
            let answered = tokio::time::timeout_at(until, questions.next()).await;
            let Ok(Some((node, answer))) = answered else { break };
            if let Ok(InfoResponse::Listings(listings)) = answer {
                asked.answered += 1;
                let is_cut = listings.len() >= usize::from(WANTED);
                asked.had_more |= is_cut;
                let mut verified = self.verified(node, listings, search).await;
                let is_named = |id: &&ServiceId| verified.iter().any(|listing| listing.service == **id);
                let named = expected.iter().filter(is_named).count();
                self.0.elsewhere.answers.lock().note(node, expected.len(), named, is_cut);
                // What is here is shown from here.
                verified.retain(|listing| self.0.store.seq(listing.service).is_none());
                // One that has just started has nothing yet.
                answers.extend(Some(verified).filter(|verified| !verified.is_empty()));
            }
        }
        FoundListings { listings: joined(&answers).into(), asked }
    }

    /// Checks what `node` answered, away from the tasks that serve calls.
    async fn verified(
        &self,
        node: Address,
        listings: Vec<Signed<Listing>>,
        search: &ListingSearch,
    ) -> Vec<Verified<Listing>> {
        let (catalog, search) = (self.clone(), search.clone());
        // Who keeps listings takes none that is dated later: it would be the newest for ever.
        let latest_secs = clock::now_secs().saturating_add(limits::CLOCK_SKEW_SECS_MAX);
        let verifying = move || {
            let listings = listings.into_iter().take(WANTED.into());
            let verified = listings.filter_map(|listing| catalog.accept(listing, node));
            verified.filter(|listing| listing.updated_secs <= latest_secs && fits(&search, listing)).collect()
        };
        start_blocking(verifying).await.unwrap_or_default()
    }

    /// Answers a search of `peer` in its turn, on a task of its own.
    pub(super) fn answer_search(&self, peer: Address, search: ListingSearch, reply: InfoResponder) {
        if self.shards() != Shards::ALL {
            reply.send(InfoResponse::refused("this node keeps some shards only"));
            return;
        }
        let catalog = self.clone();
        tokio::spawn(async move {
            let place = catalog.0.elsewhere.answering.take(peer).await;
            if !reply.is_awaited() {
                return;
            }
            let began = Instant::now();
            let page = catalog.0.store.search(query_of(search), clock::now_secs()).await;
            let rest = rest_after(began.elapsed());
            reply.send(match page {
                Ok(page) => InfoResponse::Listings(
                    page.hits.iter().filter_map(|hit| catalog.signed_listing(hit.listing.service)).collect(),
                ),
                Err(error) => {
                    tracing::warn!(%error, "a search from another node is not answered");
                    InfoResponse::refused("the catalog cannot be read")
                }
            });
            drop(catalog);
            tokio::time::sleep(rest).await;
            drop(place);
        });
    }
}

/// The time for which nobody's search takes the place of one that took so long.
fn rest_after(search: Duration) -> Duration {
    search.saturating_mul(REST_FOR_EACH).min(REST_MAX)
}

/// The search that index nodes are asked to make.
fn asked(query: &Query) -> ListingSearch {
    ListingSearch {
        words: query.words.chars().take(store::WORDS_CHARS_MAX).collect(),
        category: query.category.clone(),
        tag: query.tag.clone(),
        kind: query.kind,
        price_max: query.price_max,
        online: query.online,
        samples: query.samples,
        owner: query.owner,
        order: match query.sort {
            Sort::Relevance => ListingOrder::Relevance,
            Sort::Price => ListingOrder::Price,
            Sort::Newest => ListingOrder::Newest,
            Sort::Name => ListingOrder::Name,
        },
        limit: WANTED,
    }
}

fn query_of(search: ListingSearch) -> Query {
    let ListingSearch { words, category, tag, kind, price_max, online, samples, owner, order, limit } =
        search;
    let sort = match order {
        ListingOrder::Relevance => Sort::Relevance,
        ListingOrder::Price => Sort::Price,
        ListingOrder::Newest => Sort::Newest,
        ListingOrder::Name => Sort::Name,
    };
    let limit = Some(usize::from(limit).min(limits::INFO_ITEMS_MAX));
    Query { words, category, tag, kind, price_max, online, samples, owner, sort, offset: 0, limit }
}

/// Returns whether a listing is what was searched for, as far as it tells itself: it may have the words in its operations.
fn fits(search: &ListingSearch, listing: &Listing) -> bool {
    !listing.tombstone
        && search.kind.is_none_or(|kind| kind == listing.kind)
        && search.price_max.is_none_or(|max| listing.price <= max)
        && search.owner.is_none_or(|owner| owner == listing.owner)
        && search.category.as_ref().is_none_or(|category| *category == listing.category)
        && search.tag.as_ref().is_none_or(|tag| listing.tags.contains(tag))
        && (!search.samples || listing.samples_count > 0)
}

/// The answers by turns, each service once, in its newest version.
fn joined(answers: &[Vec<Verified<Listing>>]) -> Vec<Verified<Listing>> {
    let mut found: Vec<Verified<Listing>> = Vec::new();
    for n in 0..answers.iter().map(Vec::len).max().unwrap_or_default() {
        for listing in answers.iter().filter_map(|answer| answer.get(n)) {
            match found.iter().position(|held| held.service == listing.service) {
                Some(at) if replaces(listing, &found[at]) => found[at] = listing.clone(),
                Some(_) => {}
                None => found.push(listing.clone()),
            }
        }
    }
    found
}

/// Both in the order that was asked for; what matches best by turns, as nobody's measure is that of another.
fn merged(here: Vec<Hit>, elsewhere: Vec<Hit>, sort: Sort) -> Vec<Hit> {
    let (mut here, mut elsewhere) = (here.into_iter(), elsewhere.into_iter());
    let mut all = Vec::new();
    loop {
        let turn = [here.next(), elsewhere.next()];
        if turn.iter().all(Option::is_none) {
            break;
        }
        all.extend(turn.into_iter().flatten());
    }
    all.sort_by(|one, other| compare(&one.listing, &other.listing, sort));
    all
}

fn compare(one: &Listing, other: &Listing, sort: Sort) -> Ordering {
    match sort {
        Sort::Relevance => Ordering::Equal,
        Sort::Price => one.price.cmp(&other.price),
        Sort::Newest => Reverse(one.updated_secs).cmp(&Reverse(other.updated_secs)),
        Sort::Name => one.name.to_lowercase().cmp(&other.name.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{SecretKey, ServiceNonce, Usdc};

    use super::*;

    /// The service with this number, in this version and at this price.
    fn listing(number: u8, seq: u64, micros: u64) -> Verified<Listing> {
        let key = SecretKey::from_bytes(&[9; 32]).unwrap();
        let nonce = ServiceNonce::from_bytes([number; 16]);
        let listing = Listing {
            seq,
            name: format!("Service {number}"),
            category: "geology".to_owned(),
            tags: vec!["earth".to_owned()],
            // The first one has some.
            samples_count: u32::from(number == 1),
            price: Usdc::from_micros(micros),
            operations_count: 1,
            details_hash: [7; 32],
            details_bytes: 1,
            ..Listing::first("local", key.address(), nonce, 1_767_323_045)
        };
        Signed::sign(&listing, &key).unwrap().verify().unwrap()
    }

    fn hit(number: u8, micros: u64) -> Hit {
        let listing = Listing::clone(&listing(number, 1, micros));
        Hit { listing, state: store::State::Away, look_alike: None }
    }

    fn names(hits: &[Hit]) -> Vec<&str> {
        hits.iter().map(|hit| hit.listing.name.as_str()).collect()
    }

    #[test]
    fn answers_are_joined_by_turns_and_the_newest_version_of_a_service_counts() {
        let answers =
            [vec![listing(1, 1, 5), listing(2, 1, 5)], vec![listing(3, 1, 5), listing(1, 2, 6)], Vec::new()];
        let found: Vec<(String, u64)> =
            joined(&answers).iter().map(|found| (found.name.clone(), found.seq)).collect();
        let expected = [("Service 1", 2), ("Service 3", 1), ("Service 2", 1)];
        assert_eq!(found, expected.map(|(name, seq)| (name.to_owned(), seq)));
    }

    #[test]
    fn what_is_here_and_elsewhere_comes_by_turns_or_in_the_order_that_was_asked_for() {
        let both = |sort| merged(vec![hit(1, 30), hit(2, 40), hit(3, 50)], vec![hit(4, 10)], sort);
        assert_eq!(names(&both(Sort::Relevance)), ["Service 1", "Service 4", "Service 2", "Service 3"]);
        assert_eq!(names(&both(Sort::Price)), ["Service 4", "Service 1", "Service 2", "Service 3"]);
        assert_eq!(names(&both(Sort::Name)), ["Service 1", "Service 2", "Service 3", "Service 4"]);
    }

    #[test]
    fn searches_of_others_take_a_part_of_a_core_whatever_each_of_them_takes() {
        let shares = [1, 20, 200].map(|millis| {
            let search = Duration::from_millis(millis);
            search.as_secs_f64() / (search + rest_after(search)).as_secs_f64()
        });
        assert!(shares.iter().all(|share| share * 2.0 < 0.5), "of a core, with two places: {shares:?}");
        assert_eq!(rest_after(Duration::from_secs(60)), REST_MAX, "a busy machine answers, too");
    }

    #[test]
    fn an_index_node_cannot_show_what_was_not_searched_for() {
        let search = asked(&Query { price_max: Some(Usdc::from_micros(20)), ..Query::default() });
        assert!(fits(&search, &listing(1, 1, 20)));
        assert!(!fits(&search, &listing(1, 1, 21)), "it is dearer");
        let search = asked(&Query { owner: Some(Address::ZERO), ..Query::default() });
        assert!(!fits(&search, &listing(1, 1, 20)), "it is another owner's");
        let told = |category: Option<&str>, tag: Option<&str>, samples: bool| {
            let [category, tag] = [category, tag].map(|word| word.map(str::to_owned));
            fits(&asked(&Query { category, tag, samples, ..Query::default() }), &listing(1, 1, 20))
        };
        assert!(told(Some("geology"), Some("earth"), true));
        assert!(!told(Some("weather"), None, false), "it is of another category");
        assert!(!told(None, Some("sea"), false), "it has other tags");
        assert!(
            !fits(&asked(&Query { samples: true, ..Query::default() }), &listing(2, 1, 20)),
            "without samples"
        );
    }
}
