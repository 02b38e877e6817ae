//! Follow a live feed: look at it regularly, publish what is new, keep the last good data when it fails.
//!
//! A look is a conditional request, so an unchanged feed costs a few hundred bytes. Whatever goes wrong (no answer,
//! an error status, too many bytes, something that is not a feature collection) leaves the data as it was, notes
//! since when in [`Source::Feed`], and is tried again, less often while it lasts.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use thiserror::Error;
use tokio::sync::watch;

use super::answer::{Edition, Source};
use super::catalog::{EarthquakeCatalog, EarthquakeCatalogError};

/// The survey's largest feed, all events of a month, is about 8 MB.
const FEED_BYTES_MAX: usize = 32 << 20;
const CONNECT_MAX: Duration = Duration::from_secs(5);
const LOOK_MAX: Duration = Duration::from_secs(30);
/// While a feed fails the pause doubles, up to this many times the interval.
const BACKOFF_MAX: u32 = 8;

/// A feed in the survey's GeoJSON summary format.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    url: Url,
    interval: Duration,
    /// Headers to send back, from the last good answer, so that the next one may be "not modified".
    validators: HeaderMap,
}

/// The reason that a look at the feed brought nothing.
#[derive(Debug, Error)]
pub enum FeedError {
    #[error("the feed cannot be reached or stopped in the middle")]
    Transport(#[source] reqwest::Error),
    #[error("the feed answered {0}")]
    Status(StatusCode),
    #[error("the feed is larger than {FEED_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the feed answered something else than earthquakes")]
    Content(#[from] EarthquakeCatalogError),
}

impl From<reqwest::Error> for FeedError {
    fn from(error: reqwest::Error) -> Self {
        // A feed's address may hold a key, which has no place in a log.
        Self::Transport(error.without_url())
    }
}

impl Feed {
    /// Prepares a client; nothing is requested yet.
    pub fn new(url: Url, interval: Duration) -> Result<Self, FeedError> {
        // The first provider installed in a process stays; a second attempt changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("earthquakes/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_MAX)
            .timeout(LOOK_MAX)
            .redirect(redirect::Policy::limited(3))
            .build()?;
        Ok(Self { client, url, interval, validators: HeaderMap::new() })
    }

    /// Looks at the feed now and then every interval, and publishes what it finds. Never ends.
    pub async fn follow(mut self, editions: watch::Sender<Arc<Edition>>) {
        let mut failures_in_a_row = 0_u32;
        loop {
            match self.look().await {
                Ok(news) => {
                    failures_in_a_row = 0;
                    self.publish(&editions, news);
                }
                Err(error) => {
                    failures_in_a_row += 1;
                    tracing::warn!(%error, cause = cause(&error), "keeping the last good data");
                    mark_failing(&editions);
                }
            }
            let backoff = 2_u32.saturating_pow(failures_in_a_row).min(BACKOFF_MAX);
            tokio::time::sleep(if failures_in_a_row == 0 { self.interval } else { self.interval * backoff })
                .await;
        }
    }

    /// One look: new data, or nothing new.
    async fn look(&mut self) -> Result<Option<EarthquakeCatalog>, FeedError> {
        let response = self.client.get(self.url.clone()).headers(self.validators.clone()).send().await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => return Ok(None),
            StatusCode::OK => {}
            other => return Err(FeedError::Status(other)),
        }
        let validators = validators(response.headers());
        let catalog = EarthquakeCatalog::parse(&bounded_body(response).await?)?;
        self.validators = validators;
        Ok(Some(catalog))
    }

    fn publish(&self, editions: &watch::Sender<Arc<Edition>>, news: Option<EarthquakeCatalog>) {
        let now = unix_ms();
        editions.send_modify(|edition| {
            let (catalog, since) = match (news, &edition.source) {
                (Some(catalog), _) => (Arc::new(catalog), now),
                (None, Source::Feed { since, .. }) => (Arc::clone(&edition.catalog), *since),
                // "Not modified" needs validators, which only an earlier answer of the feed can have brought.
                (None, Source::Snapshot { .. }) => return,
            };
            let url = public_part(&self.url);
            let source = Source::Feed { url, since, checked: now, failing_since: None };
            *edition = Arc::new(Edition { catalog, source });
        });
    }
}

/// The address without what may be secret in it: user, password and query.
fn public_part(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn mark_failing(editions: &watch::Sender<Arc<Edition>>) {
    editions.send_if_modified(|edition| {
        let mut failing = Edition::clone(edition);
        let Source::Feed { failing_since: since @ None, .. } = &mut failing.source else { return false };
        *since = Some(unix_ms());
        *edition = Arc::new(failing);
        true
    });
}

fn validators(answered: &HeaderMap) -> HeaderMap {
    let echo = |from, to| answered.get(from).map(|value: &HeaderValue| (to, value.clone()));
    [echo(ETAG, IF_NONE_MATCH), echo(LAST_MODIFIED, IF_MODIFIED_SINCE)].into_iter().flatten().collect()
}

async fn bounded_body(mut response: Response) -> Result<Vec<u8>, FeedError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > FEED_BYTES_MAX {
            return Err(FeedError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause, which names the thing to mend.
fn cause(error: &FeedError) -> String {
    anyhow::Chain::new(error).last().map_or_else(String::new, ToString::to_string)
}

fn unix_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
