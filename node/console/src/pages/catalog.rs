//! Catalog: the services of the network, searched by words and narrowed by facets.
//!
//! Everything that was chosen stands in the address, so that a search can be kept, shared and gone back to, and
//! works without a script. `search.js` fetches the same address while one types. The id of a service or the wallet of an owner leads
//! to its page.

use std::collections::HashMap;

use askama::Template;
use axum::{
    extract::Query,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    Local, counted, endpoint,
    types::{
        CatalogHit, CatalogPage, CatalogQuery, CatalogSort, CatalogState, Charge, Count, Figures, FlagRule,
        Measured, PriceCount, ServiceFlag, StarredService,
    },
};
use farthing_os::clock;
use farthing_values::{Address, ServiceId, Usdc, identity::ParseAddressError};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    icons::Icon,
    page::Rendered,
    show, texts,
};

const PAGE_HITS: usize = 24;
/// Facets with more choices show the most frequent.
const CHOICES_MAX: usize = 10;
/// Categories that are suggested for a service of one's own.
const SUGGESTED_MAX: usize = 40;
/// Of the name of a starred service.
const STARRED_CHARS_MAX: usize = 40;
/// The greatest length of a search.
const WORDS_CHARS_MAX: usize = 200;
/// Choices made by yes or no.
const ONLINE: &str = "Online now";
const SAMPLES: &str = "Free samples";

/// The search as it stands in the address. An empty one asks for everything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct CatalogParams {
    q: String,
    category: String,
    tag: String,
    kind: String,
    price: String,
    online: String,
    samples: String,
    sort: String,
    page: usize,
}

#[derive(Template)]
#[template(path = "catalog.html")]
struct CatalogTemplate {
    frame: Frame,
    asked: CatalogParams,
    total: usize,
    cards: Vec<Card>,
    facets: Vec<Facet>,
    chosen: Vec<Choice>,
    /// The part of the network that was searched, where that is not all of it.
    scope: Option<String>,
    lacking: Option<String>,
    previous: Option<String>,
    next: Option<String>,
    /// The reason that nothing could be searched for.
    problem: Option<&'static str>,
    /// Id and name of each starred service.
    starred: Vec<(String, String)>,
    sorts: [(&'static str, &'static str); 4],
}

/// A service in the list.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) category: String,
    pub(super) tags: Vec<String>,
    pub(super) kind: String,
    pub(super) operations: u32,
    pub(super) has_samples: bool,
    pub(super) price: String,
    pub(super) per_thousand: String,
    /// Answers with a status from 400 to 499 cost as much.
    pub(super) charges_declined: bool,
    /// The wallet of its owner, shortened.
    pub(super) owner: String,
    pub(super) wallet: String,
    /// The name that the user gave to the owner.
    pub(super) owner_petname: Option<String>,
    pub(super) state: &'static str,
    pub(super) state_class: &'static str,
    pub(super) measured: String,
    pub(super) updated: String,
    pub(super) look_alike: Option<String>,
    pub(super) not_buyable: Option<String>,
    /// The warning that follows from this node's own calls.
    pub(super) flag: Option<String>,
}

struct Facet {
    title: &'static str,
    choices: Vec<Choice>,
}

struct Choice {
    label: String,
    count: usize,
    link: String,
    chosen: bool,
}

pub(super) async fn show(visit: Visit, Query(mut asked): Query<CatalogParams>) -> Page {
    asked.q = asked.q.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
    let node = visit.panel.node();
    if let Some(page) = page_of(node, asked.q.trim()).await? {
        return Ok(Redirect::to(&page).into_response());
    }
    let mut frame = visit.frame(Section::Catalog).await?;
    frame.words.clone_from(&asked.q);
    let figures = node.ask(endpoint::Figures).await?;
    let (found, problem) = match asked.query() {
        Ok(query) => (node.tell(endpoint::CatalogSearch, &query).await?, mistyped(asked.q.trim())),
        Err(problem) => (CatalogPage::default(), Some(problem)),
    };
    let measured = by_service(&figures);
    let now_secs = clock::now_secs();
    let shown_to = found.offset + found.hits.len();
    let page = CatalogTemplate {
        total: found.total,
        cards: found.hits.iter().map(|hit| card(hit, &measured, now_secs)).collect(),
        facets: facets(&asked, &found),
        chosen: chosen(&asked),
        scope: found.scope.map(|scope| scope.words),
        lacking: found.lacking,
        previous: (asked.page > 0).then(|| asked.with(|asked| asked.page -= 1)),
        next: (shown_to < found.total).then(|| asked.with(|asked| asked.page += 1)),
        problem,
        starred: starred(node).await?,
        sorts: [("", "Best match"), ("price", "Cheapest"), ("newest", "Recently updated"), ("name", "Name")],
        frame,
        asked,
    };
    Ok(Rendered(&page).into_response())
}

/// The page of the service, the x402 server or the owner that has this very id; words have none.
async fn page_of(node: &Local, id: &str) -> Result<Option<String>, Failure> {
    if let Ok(owner) = id.parse::<Address>() {
        return Ok(Some(format!("/panel/owners/{owner}")));
    }
    let Ok(id) = id.parse::<ServiceId>() else { return Ok(None) };
    let is_there = node.ask(endpoint::CatalogService.of(id)).await.is_ok()
        || node.ask(endpoint::X402Servers).await?.iter().any(|server| server.id.0 == id);
    Ok(is_there.then(|| format!("/panel/catalog/{id}")))
}

/// Says that one character of a wallet is wrong, where the words are a wallet with a wrong checksum.
fn mistyped(words: &str) -> Option<&'static str> {
    let is_mistyped = matches!(words.parse::<Address>(), Err(ParseAddressError::Checksum));
    is_mistyped.then_some(texts::WRONG_CHARACTER)
}

impl CatalogParams {
    fn query(&self) -> Result<CatalogQuery, &'static str> {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let price_max = match self.price.as_str() {
            "" => None,
            price => Some(
                price.parse::<Usdc>().map_err(|_| "The maximum price must be an amount such as 0.002.")?,
            ),
        };
        Ok(CatalogQuery {
            words: self.q.clone(),
            category: some(&self.category),
            tag: some(&self.tag),
            kind: self.kind.parse().ok(),
            price_max: price_max.map(Into::into),
            owner: None,
            online: !self.online.is_empty(),
            samples: !self.samples.is_empty(),
            sort: match self.sort.as_str() {
                "price" => CatalogSort::Price,
                "newest" => CatalogSort::Newest,
                "name" => CatalogSort::Name,
                _ => CatalogSort::Relevance,
            },
            offset: self.page.saturating_mul(PAGE_HITS),
            limit: Some(PAGE_HITS),
        })
    }

    /// The address of the same search with something changed.
    fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut changed = self.clone();
        change(&mut changed);
        let page = if changed.page == 0 { String::new() } else { changed.page.to_string() };
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("q", &changed.q),
            ("category", &changed.category),
            ("tag", &changed.tag),
            ("kind", &changed.kind),
            ("price", &changed.price),
            ("online", &changed.online),
            ("samples", &changed.samples),
            ("sort", &changed.sort),
            ("page", &page),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        if query.is_empty() { "/panel/catalog".to_owned() } else { format!("/panel/catalog?{query}") }
    }
}

/// The starred services, by name; one that is not known now by its id.
async fn starred(node: &Local) -> Result<Vec<(String, String)>, Failure> {
    let shown = |one: StarredService| {
        let (id, name) = (one.id.to_string(), show::beginning(&one.name, STARRED_CHARS_MAX));
        if name.trim().is_empty() { (id.clone(), id) } else { (id, name) }
    };
    Ok(node.ask(endpoint::Starred).await?.into_iter().map(shown).collect())
}

/// The categories of the services that the node knows, the most frequent first.
pub(super) async fn categories(node: &Local) -> Result<Vec<String>, Failure> {
    let query = CatalogQuery { limit: Some(1), ..CatalogQuery::default() };
    let found = node.tell(endpoint::CatalogSearch, &query).await?;
    let values = found.counts.categories.iter().take(SUGGESTED_MAX);
    Ok(values.map(|count| show::visible(&count.value)).collect())
}

/// Maps each service to what this node measured of it.
pub(super) fn by_service(figures: &Figures) -> HashMap<ServiceId, &Measured> {
    figures.measured.iter().map(|measured| (measured.service.0, measured)).collect()
}

/// "4.2 ms, 98 % answered; measured by your node in 37 calls"
pub(super) fn measured_words(measured: Option<&Measured>) -> String {
    let Some(Measured { calls, answered, median_us, .. }) = measured else {
        return "No data yet: your node has not called it".to_owned();
    };
    let percent = answered * 100 / (*calls).max(1);
    let took = median_us.map_or_else(String::new, |us| format!("{}, ", show::duration(us)));
    format!("{took}{percent} % answered; measured by your node in {}", counted(*calls, "call"))
}

pub(super) fn card(hit: &CatalogHit, measured: &HashMap<ServiceId, &Measured>, now_secs: u64) -> Card {
    let (state, state_class) = state(hit.state);
    Card {
        id: hit.id.to_string(),
        name: show::visible(&hit.name),
        summary: show::visible(&hit.summary),
        category: show::visible(&hit.category),
        tags: hit.tags.iter().map(|tag| show::visible(tag)).collect(),
        kind: hit.kind.to_string(),
        operations: hit.operations,
        has_samples: hit.samples_free > 0,
        price: show::usdc(hit.price.0),
        per_thousand: show::per_thousand(hit.price.0),
        charges_declined: hit.charge == Charge::Answered,
        owner: show::short(hit.owner.0),
        wallet: hit.owner.to_string(),
        owner_petname: hit.owner_petname.as_deref().map(show::visible),
        state,
        state_class,
        measured: measured_words(measured.get(&hit.id.0).copied()),
        updated: show::ago(hit.updated_secs, now_secs),
        look_alike: hit.look_alike.as_ref().map(|other| {
            let age = if other.older { ", which your node has known for longer" } else { "" };
            format!(
                "Easy to confuse with “{}” by {}{age}",
                show::visible(&other.name),
                show::short(other.owner.0)
            )
        }),
        not_buyable: hit.not_buyable.as_deref().map(texts::sentence),
        flag: hit.flag.as_ref().map(flagged),
    }
}

/// Puts into words what a flag says, and does.
fn flagged(flag: &ServiceFlag) -> String {
    let words = texts::sentence(&show::visible(&flag.words));
    match flag.rule {
        FlagRule::Warn => words,
        FlagRule::Stop => {
            format!("{words} Your node does not buy from it for now, except for an occasional trial.")
        }
    }
}

/// In words, and the class of its colour.
const fn state(state: CatalogState) -> (&'static str, &'static str) {
    match state {
        CatalogState::Online => ("Online", "good"),
        CatalogState::Away => ("Away: its owner's node has not been seen recently", "plain"),
        CatalogState::Paused => ("Paused by its owner", "plain"),
    }
}

fn facets(asked: &CatalogParams, found: &CatalogPage) -> Vec<Facet> {
    let counts = &found.counts;
    let switch = |label: &str, count, now: &str, set: fn(&mut CatalogParams, String)| {
        let is_chosen = !now.is_empty();
        let link = asked.with(|asked| {
            set(asked, if is_chosen { String::new() } else { "1".to_owned() });
            asked.page = 0;
        });
        Choice { label: label.to_owned(), count, link, chosen: is_chosen }
    };
    let online = switch(ONLINE, counts.online, &asked.online, |asked, value| asked.online = value);
    let samples = switch(SAMPLES, counts.samples, &asked.samples, |asked, value| asked.samples = value);
    let kinds: Vec<Count> =
        counts.kinds.iter().map(|kind| Count { value: kind.value.to_string(), count: kind.count }).collect();
    let all = vec![
        Facet { title: "State", choices: vec![online] },
        Facet { title: "Samples", choices: vec![samples] },
        Facet { title: "Price per call", choices: prices(asked, &counts.prices) },
        facet(asked, "Category", &counts.categories, &asked.category, |asked, value| asked.category = value),
        facet(asked, "Tag", &counts.tags, &asked.tag, |asked, value| asked.tag = value),
        facet(asked, "Kind", &kinds, &asked.kind, |asked, value| asked.kind = value),
    ];
    all.into_iter().filter(|facet| !facet.choices.is_empty()).collect()
}

/// Values that `set` narrows the search to; the chosen one is taken back.
fn facet(
    asked: &CatalogParams,
    title: &'static str,
    counts: &[Count],
    chosen: &str,
    set: fn(&mut CatalogParams, String),
) -> Facet {
    let choices = counts.iter().filter(|count| count.count > 0).take(CHOICES_MAX).map(|count| {
        let is_chosen = count.value == chosen;
        let value = if is_chosen { String::new() } else { count.value.clone() };
        Choice {
            label: show::visible(&count.value),
            count: count.count,
            link: asked.with(|asked| {
                set(asked, value);
                asked.page = 0;
            }),
            chosen: is_chosen,
        }
    });
    Facet { title, choices: choices.collect() }
}

/// Upper ends of prices, each with the services that cost no more; an end that adds none is left out.
fn prices(asked: &CatalogParams, bands: &[PriceCount]) -> Vec<Choice> {
    let mut up_to = 0;
    let choice = |band: &PriceCount| {
        up_to += band.count;
        let price: Usdc = band.up_to.as_ref()?.0;
        let is_chosen = asked.price.parse() == Ok(price);
        (band.count > 0 || is_chosen).then(|| Choice {
            label: if price.is_zero() { "Free".to_owned() } else { format!("Up to {price} USDC") },
            count: up_to,
            link: asked.with(|asked| {
                asked.price = if is_chosen { String::new() } else { price.to_string() };
                asked.page = 0;
            }),
            chosen: is_chosen,
        })
    };
    bands.iter().filter_map(choice).collect()
}

/// Lists what narrows the search, each with the way to take it back.
fn chosen(asked: &CatalogParams) -> Vec<Choice> {
    let one = |value: &str, label: String, clear: fn(&mut CatalogParams)| {
        let link = asked.with(|asked| {
            clear(asked);
            asked.page = 0;
        });
        (!value.is_empty()).then_some(Choice { label, count: 0, link, chosen: true })
    };
    [
        one(&asked.category, show::visible(&asked.category), |asked| asked.category.clear()),
        one(&asked.tag, format!("#{}", show::visible(&asked.tag)), |asked| asked.tag.clear()),
        one(&asked.kind, show::visible(&asked.kind), |asked| asked.kind.clear()),
        one(&asked.price, format!("≤ {} USDC", show::visible(&asked.price)), |asked| asked.price.clear()),
        one(&asked.online, ONLINE.to_owned(), |asked| asked.online.clear()),
        one(&asked.samples, SAMPLES.to_owned(), |asked| asked.samples.clear()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_stands_in_its_address() {
        let asked =
            CatalogParams { q: "earth & sky".into(), tag: "a+b".into(), page: 2, ..CatalogParams::default() };
        assert_eq!(asked.with(|_| {}), "/panel/catalog?q=earth+%26+sky&tag=a%2Bb&page=2");
        assert_eq!(CatalogParams::default().with(|_| {}), "/panel/catalog");
        assert!(CatalogParams { price: "cheap".into(), ..CatalogParams::default() }.query().is_err());
    }

    #[test]
    fn a_wallet_with_a_wrong_character_is_told_from_words() {
        let wallet = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
        assert!(mistyped(&wallet.replace("7E5F", "7e5F")).is_some_and(|words| words.contains("checksum")));
        for words in [wallet, "", "tides", "0x7E5F"] {
            assert_eq!(mistyped(words), None, "{words}");
        }
    }

    #[test]
    fn prices_are_chosen_by_their_upper_ends_and_counted_with_all_that_is_cheaper() {
        let band = |above: &str, up_to: &str, count| PriceCount {
            above: above.parse::<Usdc>().ok().map(Into::into),
            up_to: up_to.parse::<Usdc>().ok().map(Into::into),
            count,
        };
        let bands =
            [band("", "0.00", 0), band("0.00", "0.001", 2), band("0.001", "0.01", 3), band("0.01", "", 4)];
        let asked =
            CatalogParams { q: "a".into(), price: "0.001".into(), page: 3, ..CatalogParams::default() };
        let choices = prices(&asked, &bands);
        let shown: Vec<_> = choices
            .iter()
            .map(|one| (one.label.as_str(), one.count, one.chosen, one.link.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("Up to 0.001 USDC", 2, true, "/panel/catalog?q=a"),
                ("Up to 0.01 USDC", 5, false, "/panel/catalog?q=a&price=0.01"),
            ]
        );
    }

    #[test]
    fn measured_figures_say_how_many_calls_they_come_from() {
        let measured = Measured {
            service: ServiceId::from_bytes([7; 16]).into(),
            calls: 37,
            answered: 36,
            median_us: Some(4_250),
        };
        let words = measured_words(Some(&measured));
        assert_eq!(words, "4.2 ms, 97 % answered; measured by your node in 37 calls");
        assert!(measured_words(None).starts_with("No data yet"));
    }
}
