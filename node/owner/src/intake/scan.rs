//! Searching a running server for API descriptions.
//!
//! 1. The address itself. When a description lies there, the search is over.
//! 2. A path that cannot exist, whose answer tells servers that answer everything; what the front door's
//!    `Link` header (RFC 8631) and the API catalog (RFC 9727) name.
//! 3. Well-known places ([`places`]), and documentation pages for the documents they show ([`pages`]).
//! 4. GraphQL endpoints.
//!
//! Bounds: five seconds a request, thirty in all, four requests at a time, one host, answers together as
//! [`Fetcher`] allows. Invariant: every place asked is in [`Scan::tried`], in order, with what came.

mod outcome;

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use farthing_bridge::openapi;
use futures::{StreamExt, stream};
use url::Url;

pub use self::outcome::{Candidate, Found, Scan};
use super::{
    Intake, IntakeError, IntakeOptions, Kind,
    fetch::{Fetcher, Miss, Page},
    graphql::{self, Endpoint},
    pages, parse, places,
    scan_attempt::{ScanAttempt, ScanOutcome, first_problem},
};

/// Requests under way at once: quick, and nothing that a small server notices.
const AT_ONCE: usize = 4;
/// Descriptions of one server; real ones have a few versions.
const CANDIDATES_MAX: usize = 16;
/// Page → script → configuration → document.
const ROUNDS_MAX: usize = 4;
/// Places that pages and headers may name.
const LEADS_MAX: usize = 64;

/// Searches the server at `url`.
///
/// # Errors
/// [`IntakeError`] when the address cannot be asked, does not answer, or is itself a description that cannot
/// be read. Finding nothing is no error here; see [`Scan::into_best`].
pub async fn scan(url: &Url, options: &IntakeOptions) -> Result<Scan, IntakeError> {
    let fetcher = Arc::new(Fetcher::new(url, options.each, options)?);
    let mut search = Search::new(Arc::clone(&fetcher));
    let leads = search.first(url).await?;
    if search.candidates.is_empty() {
        let front = ScanTarget::following(places::root(url), Found::Page);
        let round = [ScanTarget::plain(places::catalog(url), Found::Declared), front];
        search.guard(places::nowhere(url, nonce()?)).await;
        let mut leads = [leads, search.ask(round.into()).await].concat();
        leads.extend(places::documents(url).into_iter().map(|url| ScanTarget::plain(url, Found::WellKnown)));
        leads.extend(places::pages(url).into_iter().map(|url| ScanTarget::following(url, Found::Page)));
        for _ in 0..ROUNDS_MAX {
            leads = search.ask(leads).await;
        }
        search.graphql(url).await;
    }
    Ok(search.finish(url))
}

/// Tells whether the name of a file says that it is a GraphQL schema.
pub(super) fn is_schema_file(url: &Url) -> bool {
    [".graphql", ".graphqls", ".gql", ".sdl"].iter().any(|kind| url.path().ends_with(kind))
}

/// For the path that cannot exist.
fn nonce() -> Result<u64, IntakeError> {
    getrandom::u64().map_err(|_| IntakeError::Missed {
        url: "the system".into(),
        what: "it provides no random numbers; try again".into(),
    })
}

/// Somewhere to ask.
#[derive(Debug, Clone)]
struct ScanTarget {
    url: Url,
    found: Found,
    /// Set when other places may be taken from what comes: the address that they are relative to.
    follow: Option<Url>,
}

impl ScanTarget {
    const fn plain(url: Url, found: Found) -> Self {
        Self { url, found, follow: None }
    }

    fn following(url: Url, found: Found) -> Self {
        Self { follow: Some(url.clone()), url, found }
    }
}

/// A search under way.
struct Search {
    fetcher: Arc<Fetcher>,
    seen: HashSet<Url>,
    leads_left: usize,
    candidates: Vec<Candidate>,
    tried: Vec<ScanAttempt>,
    /// The body that any path gets, from a server that answers everything.
    anything: Option<Bytes>,
}

impl Search {
    fn new(fetcher: Arc<Fetcher>) -> Self {
        Self {
            fetcher,
            seen: HashSet::new(),
            leads_left: LEADS_MAX,
            candidates: Vec::new(),
            tried: Vec::new(),
            anything: None,
        }
    }

    /// Asks the address itself. A server that is not there, or a description with mistakes, ends the search.
    async fn first(&mut self, url: &Url) -> Result<Vec<ScanTarget>, IntakeError> {
        let place = ScanTarget::following(url.clone(), Found::Given);
        self.seen.insert(url.clone());
        let page = match self.fetcher.get(url).await {
            Err(miss @ Miss::Unreachable(_)) => return Err(IntakeError::missed(url, &miss)),
            answer => answer,
        };
        let claims = |page: &Page| openapi::looks_like_openapi(&page.body) || is_schema_file(url);
        if let Ok(page) = &page
            && page.status.is_success()
            && !page.is_html()
            && claims(page)
            && let Err(error) = parse(page.body.clone()).await
        {
            return Err(IntakeError::Unreadable { origin: url.to_string(), error });
        }
        Ok(self.judge(place, page).await)
    }

    /// Learns what the server answers where nothing is.
    async fn guard(&mut self, nowhere: Url) {
        if let Ok(page) = self.fetcher.get(&nowhere).await
            && page.status.is_success()
        {
            self.anything = Some(page.body);
        }
    }

    /// Asks all `places` that were not asked before; what they name is returned.
    async fn ask(&mut self, places: Vec<ScanTarget>) -> Vec<ScanTarget> {
        let new: Vec<_> = places.into_iter().filter(|place| self.seen.insert(place.url.clone())).collect();
        let fetcher = Arc::clone(&self.fetcher);
        let mut answers = stream::iter(new)
            .map(|place| async {
                let answer = fetcher.get(&place.url).await;
                (place, answer)
            })
            .buffered(AT_ONCE);
        let mut leads = Vec::new();
        while let Some((place, answer)) = answers.next().await {
            leads.extend(self.judge(place, answer).await);
        }
        leads
    }

    /// Notes what came from `place`, and returns what it leads to.
    async fn judge(&mut self, place: ScanTarget, answer: Result<Page, Miss>) -> Vec<ScanTarget> {
        let ScanTarget { url, found, follow } = place;
        let mut leads = Vec::new();
        let came = match answer {
            Err(miss) => ScanOutcome::Missed(miss.to_string()),
            Ok(page) => {
                if follow.is_some() {
                    let declared = pages::linked(page.links(), &page.url);
                    leads.extend(declared.into_iter().map(|url| ScanTarget::following(url, Found::Declared)));
                }
                self.judge_page(page, &url, found, follow, &mut leads).await
            }
        };
        self.tried.push(ScanAttempt { url: url.to_string(), came });
        leads.retain(|lead| !self.seen.contains(&lead.url));
        leads.truncate(self.leads_left);
        self.leads_left -= leads.len();
        leads
    }

    async fn judge_page(
        &mut self,
        page: Page,
        url: &Url,
        found: Found,
        follow: Option<Url>,
        leads: &mut Vec<ScanTarget>,
    ) -> ScanOutcome {
        if !page.status.is_success() {
            return ScanOutcome::Status(page.status.as_u16());
        }
        if found > Found::Declared && self.anything.as_ref() == Some(&page.body) {
            return ScanOutcome::Anything;
        }
        let is_text = page.is_html() || page.is_script();
        if !is_text {
            match parse(page.body.clone()).await {
                Ok(reading) => {
                    // An address that is itself a document's is where somebody keeps it, and need not be its server's.
                    let intake = match found {
                        Found::Given if url.path() != "/" => {
                            Intake::of_document(reading, url.to_string(), Some(&page.url))
                        }
                        _ => Intake::found_at(reading, url.to_string(), &page.url),
                    };
                    self.add(Candidate { found, intake });
                    return ScanOutcome::Description;
                }
                Err(error) if openapi::looks_like_openapi(&page.body) => {
                    return ScanOutcome::Unreadable(first_problem(&error));
                }
                Err(_) => {}
            }
            leads.extend(
                pages::catalogued(&page.body, &page.url)
                    .into_iter()
                    .map(|url| ScanTarget::following(url, Found::Declared)),
            );
        }
        let Some(base) = follow else {
            return if is_text { ScanOutcome::Page } else { ScanOutcome::NoDescription };
        };
        // Behind a redirect, `/docs` → `/docs/`, the page's own address counts; a script has its page's.
        let base = if base == *url { page.url.clone() } else { base };
        let told = pages::leads(&page.text(), &base);
        leads.extend(told.documents.into_iter().map(|document| ScanTarget {
            url: document,
            found: Found::Page,
            follow: Some(base.clone()),
        }));
        leads.extend(told.scripts.into_iter().map(|script| ScanTarget {
            url: script,
            found: Found::Page,
            follow: Some(base.clone()),
        }));
        if let Some(document) = told.embedded
            && let Ok(reading) = parse(document.into()).await
        {
            self.add(Candidate {
                found: Found::Page,
                intake: Intake::found_at(reading, url.to_string(), &base),
            });
            return ScanOutcome::Description;
        }
        if is_text { ScanOutcome::Page } else { ScanOutcome::NoDescription }
    }

    /// Asks the usual endpoints, one after the other: the first that tells its schema is the one.
    async fn graphql(&mut self, url: &Url) {
        for endpoint in places::graphql(url) {
            let answer = graphql::ask(&self.fetcher, &endpoint).await;
            let came = ScanOutcome::of_endpoint(&answer);
            if matches!(came, ScanOutcome::Description | ScanOutcome::Unreadable(_) | ScanOutcome::Silent) {
                self.set_endpoint(&endpoint);
            }
            self.tried.push(ScanAttempt { url: format!("{endpoint} (GraphQL)"), came });
            if let Ok(Endpoint::Schema(reading)) = answer {
                let intake = Intake::of_endpoint(*reading, &endpoint);
                self.add(Candidate { found: Found::Introspection, intake });
                break;
            }
        }
    }

    /// A schema that was found as text has the endpoint that was found.
    fn set_endpoint(&mut self, endpoint: &Url) {
        let schemas = self.candidates.iter_mut().map(|candidate| &mut candidate.intake);
        for intake in schemas.filter(|intake| intake.kind() == Kind::Graphql && intake.upstreams.is_empty()) {
            intake.upstreams.push(endpoint.clone());
        }
    }

    /// The same document in JSON and YAML, or at two places, is one candidate.
    fn add(&mut self, new: Candidate) {
        let same = |old: &Candidate| {
            old.intake.reading.description == new.intake.reading.description
                && old.intake.upstreams == new.intake.upstreams
        };
        if self.candidates.len() < CANDIDATES_MAX && !self.candidates.iter().any(same) {
            self.candidates.push(new);
        }
    }

    fn finish(mut self, url: &Url) -> Scan {
        self.candidates.sort_by_key(rank);
        Scan { url: url.to_string(), candidates: self.candidates, tried: self.tried }
    }
}

/// Smaller is better: something to sell, what the server declares itself, REST before GraphQL, more operations.
fn rank(candidate: &Candidate) -> impl Ord + use<> {
    let operations = candidate.intake.reading.description.operations.len();
    let declared = candidate.found <= Found::Declared;
    let is_graphql = candidate.intake.kind() == Kind::Graphql;
    (operations == 0, !declared, is_graphql, std::cmp::Reverse(operations))
}
