//! An hour of the chain's time without events, or without any answer, while money is due.

use std::sync::Arc;

use farthing_chain::{ChainHandle, ChainStatus, LogsView, MemoryJournal};
use farthing_values::{ChannelConfig, ChannelId};
use serde_json::json;

use crate::{
    events::{forged, through},
    proxy::{LogsMode, Mode, Proxy},
    world::{Deposits, World, start_ready, until, until_deposited, usdc},
};

const HOUR_SECS: u64 = 3_600;
/// The hour passes in so many steps, each of as many blocks as a layer 2 makes in a minute or so.
const STEPS: u64 = 12;
const BLOCKS_OF_A_STEP: u64 = 30;

/// Lets a part of the hour pass: blocks come, ten seconds apart.
async fn pass(world: &World) {
    let seconds = HOUR_SECS / STEPS / BLOCKS_OF_A_STEP;
    world.anvil.rpc("anvil_mine", json!([format!("{BLOCKS_OF_A_STEP:#x}"), format!("{seconds:#x}")])).await;
}

async fn now_secs(world: &World) -> u64 {
    let block = world.anvil.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
    let digits = block["timestamp"].as_str().and_then(|text| text.strip_prefix("0x")).expect("a time");
    u64::from_str_radix(digits, 16).expect("a time")
}

/// An owner and a payer on an endpoint, and a channel that both know.
struct Both {
    payer: ChainHandle,
    payee: ChainHandle,
    journal: Arc<MemoryJournal>,
}

impl Both {
    async fn at(spec: &farthing_chain::ChainSpec, world: &World) -> Self {
        let payer = world.payer_at(spec.clone()).await;
        let journal = Arc::new(MemoryJournal::default());
        let payee = start_ready(spec.clone(), &world.payee, journal.clone()).await;
        Self { payer, payee, journal }
    }

    fn id(&self, world: &World, salt: u8) -> ChannelId {
        world.terms(salt).id(&self.payer.domain())
    }

    /// Opens a channel whose owner hears of it from elsewhere.
    async fn open(&self, world: &World, salt: u8, micros: u64) {
        self.payer.open_or_top_up(world.terms(salt), usdc(micros)).await.expect("a deposit");
        self.payee.track(world.terms(salt)).await.expect("the chain runs");
        until_deposited(&self.payee, self.id(world, salt), micros).await;
    }
}

/// An hour in which nothing true is heard of events: what is due is claimed, closed and withdrawn all the while.
async fn an_hour_without_events(mode: impl FnOnce(&World, &ChainHandle) -> LogsMode) -> (World, Proxy, Both) {
    let world = World::new().await;
    let (proxy, mut spec) = through(&world, LogsMode::Pass).await;
    (spec.request_timeout_ms, spec.logs_again_ms) = (1_000, 1_000);
    let mut both = Both::at(&spec, &world).await;
    let (claimed_from, closing) = (both.id(&world, 1), both.id(&world, 2));
    both.open(&world, 1, 500_000).await;
    both.open(&world, 2, 200_000).await;
    proxy.set_logs(mode(&world, &both.payer));
    let began_secs = now_secs(&world).await;
    // The owner's node starts anew into it.
    both.payee.shutdown().await;
    both.payee = start_ready(spec, &world.payee, both.journal.clone()).await;

    // The payer of one channel asks the chain to close it, the hour being its delay: its owner has to claim before.
    both.payer.request_close(world.terms(2)).await.expect("a request to close");
    both.payee.track(world.terms(2)).await.expect("the chain runs");
    let seen = until(both.payee.channels(), |views| views[&closing].close_at_secs.is_some()).await;
    let close_at_secs = seen[&closing].close_at_secs.expect("it was waited for");
    for step in 1..=STEPS {
        pass(&world).await;
        let row = world.row(&both.payee, world.terms(1), step * 10_000);
        let claim = both.payee.claim_many(vec![row]).await.expect("a claim");
        assert_eq!(claim.claimed, [(claimed_from, usdc(step * 10_000))], "step {step}");
        if step == STEPS - 1 {
            let row = world.row(&both.payee, world.terms(2), 150_000);
            both.payee.claim_many(vec![row]).await.expect("what is due of a channel that closes");
            assert!(now_secs(&world).await < close_at_secs, "the hour is not over");
        }
    }
    assert!(now_secs(&world).await >= began_secs + HOUR_SECS);
    both.payer.withdraw(world.terms(2)).await.expect("what is left goes back");
    both.payee.close(world.row(&both.payee, world.terms(1), 130_000)).await.expect("a close");
    let earned = both.payee.balances_of(world.payee.address()).await.expect("an answer").usdc;
    assert_eq!(earned, usdc(150_000 + 130_000), "all that was due");
    let left = both.payer.balances_of(world.payer.address()).await.expect("an answer").usdc;
    assert_eq!(left, usdc(100_000_000 - 280_000), "and no more");
    (world, proxy, both)
}

/// What was opened meanwhile is found once events can be read again, by the owner alone.
async fn found_afterwards(world: &World, proxy: &Proxy, both: &Both) {
    let block = both.payer.open_or_top_up(world.terms(3), usdc(70_000)).await.expect("a deposit").block;
    pass(world).await;
    // The owner's node has gone far beyond it, if it was told that there is nothing, or knows that it was told nothing.
    let is_past =
        |logs: &LogsView| logs.failing.is_some() || logs.read_to.is_some_and(|read| read > block + 10);
    until(both.payee.logs(), is_past).await;
    proxy.set_logs(LogsMode::Pass);
    until_deposited(&both.payee, both.id(world, 3), 70_000).await;
    until(both.payee.logs(), |logs| logs.failing.is_none() && logs.skipped.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_through_an_hour_in_which_events_are_refused() {
    let (world, proxy, both) = an_hour_without_events(|_, _| LogsMode::Refuse).await;
    until(both.payee.logs(), |logs| logs.failing.is_some()).await;
    found_afterwards(&world, &proxy, &both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_through_an_hour_in_which_events_time_out() {
    let (world, proxy, both) = an_hour_without_events(|_, _| LogsMode::Silent).await;
    until(both.payee.logs(), |logs| logs.failing.is_some()).await;
    found_afterwards(&world, &proxy, &both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_through_an_hour_of_lies_about_events() {
    let (_world, _proxy, both) =
        an_hour_without_events(|world, chain| LogsMode::Answer(forged(world, chain, 0..500))).await;
    assert_eq!(both.payee.channels().borrow().len(), 2, "no lie became a channel");
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_through_an_hour_in_which_events_lag_behind() {
    // The endpoint has indexed no block since the beginning, and says of the later ones that nothing happened.
    let (world, proxy, both) = an_hour_without_events(|_, _| LogsMode::Answer(Vec::new())).await;
    assert!(both.payee.logs().borrow().failing.is_none(), "it does answer");
    found_afterwards(&world, &proxy, &both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_when_the_endpoint_returns_after_an_hour_is_done_then() {
    let world = World::new().await;
    let (proxy, mut spec) = through(&world, LogsMode::Pass).await;
    spec.request_timeout_ms = 2_000;
    let both = Both::at(&spec, &world).await;
    let terms = ChannelConfig { close_delay_secs: 2 * HOUR_SECS, ..world.terms(1) };
    both.payer.open_or_top_up(terms, usdc(500_000)).await.expect("a deposit");
    let id = terms.id(&both.payer.domain());
    until_deposited(&both.payee, id, 500_000).await;
    // The payer has another endpoint, and asks for its money as soon as the owner's is away.
    let other = world.payer_at(world.spec()).await;
    other.track(terms).await.expect("the chain runs");
    until_deposited(&other, id, 500_000).await;
    proxy.set(Mode::Silent);
    other.request_close(terms).await.expect("a request to close");
    until(both.payee.status(), |status| matches!(status, ChainStatus::Unreachable { .. })).await;
    for _ in 0..STEPS {
        pass(&world).await;
        let row = world.row(&both.payee, terms, 400_000);
        assert!(both.payee.claim_many(vec![row]).await.is_err(), "nobody answers");
    }
    assert_eq!(
        both.payee.channel(&id).expect("it is known").close_at_secs,
        None,
        "the owner knows nothing of it"
    );

    proxy.set(Mode::Pass);
    let seen = until(both.payee.channels(), |views| views[&id].close_at_secs.is_some()).await;
    let close_at_secs = seen[&id].close_at_secs.expect("it was waited for");
    until(both.payee.status(), |status| *status == ChainStatus::Ready).await;
    let claim = both.payee.claim_many(vec![world.row(&both.payee, terms, 400_000)]).await.expect("a claim");
    assert_eq!(claim.claimed, [(id, usdc(400_000))]);
    assert!(now_secs(&world).await < close_at_secs, "within the closing delay");
    world.anvil.rpc("evm_mine", json!([{ "timestamp": close_at_secs }])).await;
    other.withdraw(terms).await.expect("what is left goes back");
    let earned = both.payee.balances_of(world.payee.address()).await.expect("an answer").usdc;
    assert_eq!(earned, usdc(400_000));
    let left = other.balances_of(world.payer.address()).await.expect("an answer").usdc;
    assert_eq!(left, usdc(100_000_000 - 400_000), "and no more");
}
