//! A feed that the test writes, and waiting for conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::service::{PATIENCE, Server, client, get_json};

pub(crate) async fn post(url: &str) -> reqwest::Response {
    client().post(url).send().await.unwrap()
}

/// Asks until the answer is as wanted, and returns it.
pub(crate) async fn wait_until(url: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let answer = get_json(url).await;
        if wanted(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{url} still answers {answer}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A feed whose text the test writes; every text has its own entity tag, and no text is "503 Service Unavailable".
pub(crate) struct TestFeed {
    pub(crate) server: Server,
    shown: Arc<Shown>,
}

#[derive(Default)]
struct Shown {
    text: Mutex<Option<String>>,
    not_modified: AtomicUsize,
}

/// A feed of one event.
pub(crate) async fn feed_of(id: &str, time_ms: i64) -> TestFeed {
    let shown = Arc::new(Shown::default());
    let app = Router::new().route("/feed.geojson", routing::get(show)).with_state(Arc::clone(&shown));
    let feed = TestFeed { server: Server::start(app).await, shown };
    feed.publish(id, time_ms);
    feed
}

impl TestFeed {
    pub(crate) fn publish(&self, id: &str, time_ms: i64) {
        self.publish_text(&collection(id, time_ms).to_string());
    }

    pub(crate) fn publish_text(&self, text: &str) {
        *self.shown.text.lock() = Some(text.to_owned());
    }

    pub(crate) fn withdraw(&self) {
        *self.shown.text.lock() = None;
    }

    /// How often the feed was asked for what the asker already had.
    pub(crate) fn not_modified(&self) -> usize {
        self.shown.not_modified.load(Ordering::Relaxed)
    }
}

async fn show(State(shown): State<Arc<Shown>>, asked: HeaderMap) -> Response {
    let Some(text) = shown.text.lock().clone() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let tag = format!("\"{}\"", text.len() ^ text.bytes().map(usize::from).sum::<usize>() << 16);
    if asked.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        shown.not_modified.fetch_add(1, Ordering::Relaxed);
        return StatusCode::NOT_MODIFIED.into_response();
    }
    ([(header::ETAG, tag)], text).into_response()
}

fn collection(id: &str, time_ms: i64) -> Value {
    json!({
        "type": "FeatureCollection",
        "metadata": {
            "generated": time_ms, "url": "http://feed.test/", "title": "Test", "status": 200, "api": "1", "count": 1,
        },
        "features": [{
            "type": "Feature",
            "id": id,
            "properties": { "mag": null, "place": "here", "time": time_ms },
            "geometry": { "type": "Point", "coordinates": [1.5, 2.5, null] },
        }],
    })
}
