//! The load of a soak: scripts of every consumer, which buy so many calls in a second and stop when they are told.
//!
//! A script believes what it is told: a call that is told to be free is over, and any other is asked for again under its id
//! until it is answered. So there are as many charges as answered calls, but for those that were open at the end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use farthing_protocol::ServiceId;
use farthing_tests::{market::until, world::PRICE};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::MissedTickBehavior};

/// The longest that anything may take which comes by itself.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Scripts of each consumer.
const SCRIPTS: usize = 4;
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
const AFTER_AN_OPEN_END: Duration = Duration::from_millis(250);
/// What is called in turn: mostly small answers, now and then a larger one, a slow one, and a call with effects.
const CALLS: [(&str, &str); 6] = [
    ("GET", "/ok"),
    ("GET", "/ok"),
    ("GET", "/large/5000"),
    ("POST", "/ok"),
    ("GET", "/ok"),
    ("GET", "/slow/50"),
];

/// A consumer's node as its scripts see it, and the services that they buy from.
#[derive(Debug, Clone)]
pub struct Gate {
    pub name: String,
    pub url: String,
    pub secret: String,
    pub client: reqwest::Client,
    pub services: Vec<ServiceId>,
}

/// What a script knows after one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    /// It was told that the call cost nothing.
    Free,
    Unknown,
}

impl Gate {
    fn body(&self, id: &str, service: usize, (method, path): (&str, &str)) -> String {
        let service = self.services.get(service % self.services.len().max(1));
        let service = service.map(ToString::to_string).unwrap_or_default();
        // An owner's price goes down and up again, and never above this one.
        json!({
            "api_id_public": service, "path": path, "method": method, "call_id": id, "max_price": PRICE.to_string(),
        })
        .to_string()
    }

    async fn attempt(&self, body: &str) -> End {
        let request = self.client.post(&self.url).bearer_auth(&self.secret).timeout(ANSWERED_WITHIN);
        let Ok(answer) = request.body(body.to_owned()).send().await else { return End::Unknown };
        let is_served = answer.status() == StatusCode::OK;
        let Ok(content) = answer.bytes().await else { return End::Unknown };
        if is_served {
            return End::Answered;
        }
        let problem: Value = serde_json::from_slice(&content).unwrap_or_default();
        if problem["charged"] == false { End::Free } else { End::Unknown }
    }

    /// Buys the first call of every service, which opens the channel with its owner; returns how many.
    pub async fn buy_first_calls(&self) -> Result<u64> {
        for service in 0..self.services.len() {
            let body = self.body(&format!("{} first {service}", self.name), service, ("GET", "/ok"));
            until("a first call is answered", PATIENCE, async || {
                Ok(self.attempt(&body).await == End::Answered)
            })
            .await
            .with_context(|| format!("{} and service {service}", self.name))?;
        }
        Ok(self.services.len() as u64)
    }
}

/// Calls by their ends.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Calls {
    pub answered: u64,
    /// Told to cost nothing.
    pub free: u64,
    /// Asked for again, because nobody said how the attempt had ended.
    pub repeated: u64,
    /// Never answered until the scripts were told to stop.
    pub open: u64,
}

/// Attempts that were answered since the last look.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Window {
    pub calls: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    free: AtomicU64,
    repeated: AtomicU64,
    open: AtomicU64,
    /// In microseconds.
    times: Mutex<Histogram<u64>>,
}

/// Scripts at work.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    scripts: JoinSet<()>,
}

impl Load {
    /// Starts the scripts of all consumers.
    pub fn start(gates: Vec<Gate>, calls_per_second: u32) -> Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            free: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            open: AtomicU64::new(0),
            times: Mutex::new(Histogram::new_with_bounds(1, 120_000_000, 3)?),
        });
        let all = u32::try_from(gates.len() * SCRIPTS)?;
        let every = Duration::from_secs(1) * all / calls_per_second.max(1);
        let mut scripts = JoinSet::new();
        for gate in gates {
            let gate = Arc::new(gate);
            for number in 0..SCRIPTS {
                scripts.spawn(script(Arc::clone(&gate), number, every, Arc::clone(&shared)));
            }
        }
        Ok(Self { shared, scripts })
    }

    pub fn answered(&self) -> u64 {
        self.shared.answered.load(SeqCst)
    }

    /// The calls since the last look, with their times.
    pub fn window(&self) -> Window {
        let mut times = self.shared.times.lock();
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1_000.0;
        let window = Window { calls: times.len(), p50_ms: at(0.5), p99_ms: at(0.99) };
        times.reset();
        window
    }

    /// Has the scripts stop after the attempt that each is at, and waits for them.
    pub async fn end(mut self) -> Calls {
        self.shared.stop.store(true, SeqCst);
        while self.scripts.join_next().await.is_some() {}
        let Shared { answered, free, repeated, open, .. } = &*self.shared;
        let of = |count: &AtomicU64| count.load(SeqCst);
        Calls { answered: of(answered), free: of(free), repeated: of(repeated), open: of(open) }
    }
}

async fn script(gate: Arc<Gate>, number: usize, every: Duration, shared: Arc<Shared>) {
    let mut turns = tokio::time::interval(every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (call, kind) in (0_usize..).zip(CALLS.into_iter().cycle()) {
        turns.tick().await;
        if shared.stop.load(SeqCst) {
            return;
        }
        // Each script begins with another service.
        let body = gate.body(&format!("{} {number} {call}", gate.name), call + number, kind);
        shared.buy(&gate, &body).await;
    }
}

impl Shared {
    async fn buy(&self, gate: &Gate, body: &str) {
        loop {
            let begun = Instant::now();
            match gate.attempt(body).await {
                End::Answered => {
                    self.answered.fetch_add(1, SeqCst);
                    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                    self.times.lock().saturating_record(micros);
                    return;
                }
                End::Free => {
                    self.free.fetch_add(1, SeqCst);
                    return;
                }
                End::Unknown if self.stop.load(SeqCst) => {
                    self.open.fetch_add(1, SeqCst);
                    return;
                }
                End::Unknown => {
                    self.repeated.fetch_add(1, SeqCst);
                    tokio::time::sleep(AFTER_AN_OPEN_END).await;
                }
            }
        }
    }
}
