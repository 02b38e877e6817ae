//! System calls of a node that fail while it carries a paid call: writes and syncs of its ledger, connections that it makes
//! or takes, bytes that it sends and receives.
//!
//! 1. A call that nothing disturbs is counted, class by class.
//! 2. One system call fails, and a call is bought meanwhile. A run takes the first, the middle and the last of each class,
//!    and every one of them if `FARTHING_FAULTS` is `all`. `FARTHING_FAULTS=Write,Sync` takes every one of these classes alone.
//! 3. The node goes on. If its ledger could not write, it says so and takes no more until it is started again.
//! 4. Every call ends, under its id: answered and charged once, or free. Both books hold exactly that, call by call.
//!
//! Calls that meet faults of the ledger have effects, and so may not run twice.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use axum::{
    Router,
    extract::State,
    http::header::{CONNECTION, CONTENT_TYPE},
    response::IntoResponse,
    routing::any,
};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    agreement,
    calls::setting,
    upstream,
    wait::eventually,
    world::{Answer, PRICE, Setup, World},
};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};

use crate::support::{Lasting, body_with_id, call_by, spent, tail};

mod injector;

use injector::{Case, Class, Fault, Injector};

/// A call may do with fewer system calls than the one that was counted; the next one then meets the fault.
const CALLS_MAX: usize = 5;
/// Longer than any call may take.
const TOLD_WITHIN: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_whose_system_calls_fail_pays_every_call_once_and_gets_its_answer() -> Result<()> {
    every_case(Side::Consumer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_system_calls_fail_charges_every_call_once_or_not_at_all() -> Result<()> {
    every_case(Side::Owner).await
}

async fn every_case(side: Side) -> Result<()> {
    let mut trial = Trial::start(side).await?;
    let (of_post, of_get) = (trial.count("POST").await?, trial.count("GET").await?);
    println!("{side:?}, of {:?}: POST {of_post:?}, GET {of_get:?}", Class::ALL);
    let (asked, began, mut met) = (std::env::var("FARTHING_FAULTS").ok(), Instant::now(), 0);
    for class in Class::ALL {
        let of_call = if class.is_of_ledger() { of_post } else { of_get };
        let count = if side.is_cold(class) { 1 } else { of_call[class as usize] };
        ensure!(count > 0, "{side:?}: no {class:?} is seen in a call");
        for &fault in class.faults() {
            for position in positions(count, (class, fault), asked.as_deref()) {
                met += 1;
                let case = Case { class, position, fault };
                trial.buy(case).await.with_context(|| trial.told_of(case))?;
            }
        }
    }
    ensure!(met > 0, "FARTHING_FAULTS is `all`, or some of {:?} with commas between them", Class::ALL);
    println!("{side:?}: {met} system calls have failed, one by one, in {} s", began.elapsed().as_secs());
    trial.lasting.world.settle_for(trial.charged).await
}

/// The positions that this run takes of so many, if it was `asked` for every one, or for every one of some classes.
fn positions(count: u64, (class, fault): (Class, Fault), asked: Option<&str>) -> BTreeSet<u64> {
    let middle = count.div_ceil(2);
    let is_named = |names: &str| names.split(',').any(|name| name == format!("{class:?}"));
    match (asked, fault) {
        (Some(names), _) if names == "all" || is_named(names) => (1..=count).collect(),
        (Some(_), _) => BTreeSet::new(),
        // It closes the ledger as any other error does, and each takes a restart.
        (None, Fault::Full) => BTreeSet::from([middle]),
        (None, _) => BTreeSet::from([1, middle, count]),
    }
}

/// The node whose system calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Consumer,
    Owner,
}

impl Side {
    /// Returns whether nodes that are connected need none of these for a call. The other node then starts again, so that
    /// they have to connect. Either of them may dial first, so the fault may not happen.
    const fn is_cold(self, class: Class) -> bool {
        matches!((self, class), (Self::Consumer, Class::Connect) | (Self::Owner, Class::Accept))
    }
}

impl Case {
    /// Calls with effects are stored before they run, and their answers are kept.
    const fn method(self) -> &'static str {
        if self.class.is_of_ledger() { "POST" } else { "GET" }
    }

    const fn closes_the_ledger(self) -> bool {
        self.class.is_of_ledger() && matches!(self.fault, Fault::Io | Fault::Full)
    }

    /// Returns whether the call must not show it: the node repeats the system call, or does the rest with the next one.
    const fn is_harmless(self) -> bool {
        matches!(self.fault, Fault::Short)
            || (self.class.is_of_ledger() && matches!(self.fault, Fault::Interrupted))
    }
}

/// A world, one node of which meets faults.
struct Trial {
    lasting: Lasting,
    injector: Injector,
    side: Side,
    /// Requests that the service got.
    hits: Arc<AtomicU64>,
    /// Ids that were used.
    ids: u64,
    /// What the bought calls cost.
    charged: Usdc,
}

/// A call that somebody waits for.
struct BegunCall {
    body: Value,
    told: JoinHandle<Result<Answer>>,
}

impl Trial {
    async fn start(side: Side) -> Result<Self> {
        let (upstream_url, hits) = closing_service().await?;
        // What goes between the nodes is counted over TCP.
        let consumer_settings = setting("network.listen", "/ip4/127.0.0.1/tcp/0");
        let setup = Setup { upstream_url: Some(upstream_url), consumer_settings, ..Setup::default() };
        let lasting = Lasting::with(setup).await?;
        let injector = Injector::new(lasting.world.chain.rpc_url()).await?;
        let mut trial = Self { lasting, injector, side, hits, ids: 0, charged: Usdc::ZERO };
        trial.restart_victim().await?;
        // A first call opens the channel, and accepts the price.
        for method in ["GET", "POST"] {
            let body = trial.new_body(method);
            trial.end(&body).await?;
        }
        trial.until_agreed().await?;
        Ok(trial)
    }

    const fn world(&self) -> &World {
        &self.lasting.world
    }

    const fn victim(&self) -> &NodeProcess {
        match self.side {
            Side::Consumer => &self.lasting.world.consumer,
            Side::Owner => &self.lasting.world.owner,
        }
    }

    async fn restart_victim(&mut self) -> Result<()> {
        let environment = self.injector.environment();
        let World { consumer, owner, .. } = &mut self.lasting.world;
        let victim = if self.side == Side::Consumer { consumer } else { owner };
        victim.restart_until_ready(environment).await
    }

    async fn restart_other(&mut self) -> Result<()> {
        let World { consumer, owner, .. } = &mut self.lasting.world;
        let other = if self.side == Side::Consumer { owner } else { consumer };
        other.restart_until_ready(Vec::new()).await
    }

    /// Counts what one call takes until both sides have booked it.
    async fn count(&mut self, method: &str) -> Result<[u64; Class::ALL.len()]> {
        let body = self.new_body(method);
        self.injector.arm(None)?;
        self.end(&body).await?;
        self.until_agreed().await?;
        let mut counts = [0; Class::ALL.len()];
        for class in Class::ALL {
            counts[class as usize] = self.injector.count(class)?;
        }
        self.injector.disarm()?;
        Ok(counts)
    }

    /// Buys while a system call fails, and checks how that ends.
    async fn buy(&mut self, case: Case) -> Result<()> {
        if case.is_harmless() {
            // A fault of before may have parted the nodes.
            let body = self.new_body("GET");
            self.end(&body).await?;
        }
        let hits = self.hits.load(SeqCst);
        self.injector.arm(Some(case))?;
        if self.side.is_cold(case.class) {
            self.restart_other().await?;
        }
        let calls = self.until_it_happens(case).await?;
        self.recover(case).await?;
        let (mut made, mut bought) = (0, 0);
        for BegunCall { body, told } in calls {
            let told = first_word(case, told).await?;
            let end = self.end(&body).await?;
            (made, bought) = (made + 1, bought + u64::from(end.is_some()));
            if let Some(told) = told.filter(|told| told.status == StatusCode::OK) {
                ensure!(end.is_some_and(|end| end.body == told.body), "answered with {told:?}, and then not");
            }
        }
        let asked = self.hits.load(SeqCst) - hits;
        ensure!(
            case.method() == "GET" || (bought..=made).contains(&asked),
            "the service carried out {asked} of {made} calls, of which {bought} were bought"
        );
        self.until_agreed().await?;
        ensure!(!is_closed(self.victim()).await?, "the ledger is closed");
        Ok(())
    }

    /// Calls until the fault has happened.
    async fn until_it_happens(&mut self, case: Case) -> Result<Vec<BegunCall>> {
        let mut calls = Vec::new();
        for _ in 0..CALLS_MAX {
            let body = self.new_body(case.method());
            let told = self.begin(&body).await?;
            // The books are closed after the answer, too.
            eventually("the fault happens, or the call is over", async || {
                let has_happened = self.injector.has_happened()?;
                Ok(has_happened || (told.is_finished() && self.is_decided().await?))
            })
            .await?;
            calls.push(BegunCall { body, told });
            if self.injector.has_happened()? || self.side.is_cold(case.class) {
                return Ok(calls);
            }
        }
        bail!("it never happened")
    }

    /// Ends the fault. A ledger that could not write stays closed until its node is started again.
    async fn recover(&mut self, case: Case) -> Result<()> {
        if case.closes_the_ledger() {
            eventually("the node says that its ledger is closed", async || is_closed(self.victim()).await)
                .await?;
            self.injector.disarm()?;
            return self.restart_victim().await;
        }
        self.injector.disarm()
    }

    /// Repeats a call under its id until it is answered. `None` for a call with effects that may have run, and is free.
    async fn end(&mut self, body: &Value) -> Result<Option<Answer>> {
        let mut last = None;
        let ended = eventually("the call ends", async || {
            let answer = self.begin(body).await?.await??;
            is_honest(&answer)?;
            let is_over = answer.status == StatusCode::OK || answer.problem() == "may-have-run";
            last = Some(answer);
            Ok(is_over)
        })
        .await;
        ended.with_context(|| format!("last answer: {last:?}"))?;
        let answer = last.context("no answer")?;
        if answer.status == StatusCode::OK {
            self.charged = self.charged.saturating_add(PRICE);
            return Ok(Some(answer));
        }
        ensure!(answer.charged() == json!(false), "{answer:?}");
        Ok(None)
    }

    /// Both sides count exactly what was bought, and their books agree call by call.
    async fn until_agreed(&self) -> Result<()> {
        let World { owner, consumer, .. } = self.world();
        let mut last = String::new();
        let agreed = eventually("both books hold exactly what was bought", async || {
            let counted = [spent(owner).await?, spent(consumer).await?];
            let differences = agreement::differences(&[owner, consumer]).await?;
            last = format!("{counted:?} counted, {} bought\n{}", self.charged, differences.join("\n"));
            Ok(counted == [self.charged; 2] && differences.is_empty() && self.is_decided().await?)
        })
        .await;
        agreed.context(last)
    }

    async fn is_decided(&self) -> Result<bool> {
        let audit = self.world().consumer.control().ask(endpoint::Audit.with("offline", true)).await?;
        ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
        Ok(audit.calls_undecided == 0)
    }

    fn new_body(&mut self, method: &str) -> Value {
        self.ids += 1;
        body_with_id(self.world(), method, "/ok", &format!("call {}", self.ids))
    }

    /// Sends a call over a connection of its own, which the consumer has to take.
    async fn begin(&self, body: &Value) -> Result<JoinHandle<Result<Answer>>> {
        call_by(&self.world().consumer.https_client()?, self.world(), body).await
    }

    fn told_of(&self, case: Case) -> String {
        let World { owner, consumer, .. } = self.world();
        format!("{:?}: {case:?}\nowner:\n{}\nconsumer:\n{}", self.side, tail(owner), tail(consumer))
    }
}

/// The first answer to the caller; `None` if its connection broke.
async fn first_word(case: Case, told: JoinHandle<Result<Answer>>) -> Result<Option<Answer>> {
    let told = timeout(TOLD_WITHIN, told).await.context("the caller waits without end")??;
    if case.is_harmless() {
        let answer = told?;
        ensure!(answer.status == StatusCode::OK, "the call shows a harmless fault: {answer:?}");
        return Ok(Some(answer));
    }
    let told = told.ok();
    told.iter().try_for_each(is_honest)?;
    Ok(told)
}

/// Checks that a caller without an answer does not hear that the call was charged.
fn is_honest(answer: &Answer) -> Result<()> {
    let is_answer = answer.problem().is_empty();
    ensure!(is_answer || answer.charged() != json!(true), "charged without answer: {answer:?}");
    Ok(())
}

async fn is_closed(node: &NodeProcess) -> Result<bool> {
    let health = node.control().ask_any_status(endpoint::Health).await?;
    Ok(health.waiting_for.iter().any(|text| text.starts_with("ledger: ")))
}

/// A service that closes each connection, so that its owner has to make one for every call; and what reached it.
async fn closing_service() -> Result<(String, Arc<AtomicU64>)> {
    let hits = Arc::new(AtomicU64::new(0));
    let router = Router::new().route("/ok", any(closing_answer)).with_state(Arc::clone(&hits));
    Ok((upstream::serve(router).await?, hits))
}

async fn closing_answer(State(hits): State<Arc<AtomicU64>>) -> impl IntoResponse {
    let n = hits.fetch_add(1, SeqCst) + 1;
    ([(CONTENT_TYPE, "application/json"), (CONNECTION, "close")], format!("{{\"n\":{n}}}"))
}
