//! A crash, a lost answer or a stuck transaction never pays twice and never loses a payment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use farthing_chain::{
    ChainError, ChainHandle, ChainSpec, ClaimRow, Journal, JournalError, MemoryJournal, Record,
    deploy::Deployer,
};
use farthing_values::{SecretKey, Usdc};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    proxy::{Mode, Proxy},
    world::{Deposits, World, new_key, opening, sending, start, start_ready, until_true, usdc},
};

/// A journal in which the process ends: its call for a transaction never returns.
struct CrashingJournal {
    kept: MemoryJournal,
    point: CrashPoint,
    reached: Notify,
    is_repaired: AtomicBool,
}

impl CrashingJournal {
    fn new(point: CrashPoint) -> Self {
        let (kept, reached, is_repaired) = Default::default();
        Self { kept, point, reached, is_repaired }
    }

    async fn crash_at(&self, point: CrashPoint, id: &str) {
        if self.point == point && id.contains("/tx/") && !self.is_repaired.load(SeqCst) {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

impl Journal for CrashingJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            self.kept.put(id.clone(), bytes).await?;
            self.crash_at(CrashPoint::Stored, &id).await;
            Ok(())
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
        self.kept.all()
    }

    /// A transaction is deleted when its end is known.
    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            self.crash_at(CrashPoint::Mined, &id).await;
            self.kept.delete(id).await
        })
    }
}

async fn transactions_in(journal: &dyn Journal) -> usize {
    journal.all().await.unwrap().iter().filter(|(name, _)| name.contains("/tx/")).count()
}

/// Where the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrashPoint {
    Stored,
    Sent,
    Mined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Open,
    TopUp,
    Claim,
    Close,
    RequestClose,
}

use Operation::{Claim, Close, Open, RequestClose, TopUp};

impl Operation {
    fn wallet(self, world: &World) -> &SecretKey {
        if matches!(self, Claim | Close) { &world.payee } else { &world.payer }
    }

    async fn run(self, chain: ChainHandle, row: ClaimRow) -> Result<(), ChainError> {
        let config = row.config;
        match self {
            Open => chain.deposit_onto(config, (0, Usdc::ZERO), usdc(250_000)).await.map(drop),
            TopUp => chain.open_or_top_up(config, usdc(50_000)).await.map(drop),
            Claim => chain.claim_many(vec![row]).await.map(drop),
            Close => chain.close(row).await.map(drop),
            RequestClose => chain.request_close(config).await.map(drop),
        }
    }

    /// Deposited, claimed, and whether a close is pending, when it happened exactly once.
    fn effect(self) -> (u64, u64, bool) {
        match self {
            Open => (250_000, 0, false),
            TopUp => (350_000, 0, false),
            Claim => (300_000, 100_000, false),
            Close => (100_000, 100_000, false),
            RequestClose => (300_000, 0, true),
        }
    }
}

/// Runs every operation up to a crash, starts again with the journal that is left, and checks that each came
/// true once, with one transaction.
async fn crash_and_restart_at(point: CrashPoint) {
    let (world, setup) = World::with_payer().await;
    for (salt, operation) in (1..).zip([Open, TopUp, Claim, Close, RequestClose]) {
        let config = world.terms(salt);
        if operation != Open {
            setup.open_or_top_up(config, usdc(300_000)).await.unwrap();
        }
        let wallet = operation.wallet(&world);
        let nonce = world.nonce(wallet).await;
        let journal = Arc::new(CrashingJournal::new(point));
        let chain = start_ready(world.spec(), wallet, journal.clone()).await;
        if point == CrashPoint::Sent {
            world.anvil.rpc("evm_setAutomine", json!([false])).await;
        }
        let running = tokio::spawn(operation.run(chain.clone(), world.row(&chain, config, 100_000)));
        match point {
            CrashPoint::Stored | CrashPoint::Mined => journal.reached.notified().await,
            CrashPoint::Sent => until_true(|| async { world.waiting_transactions().await == 1 }).await,
        }
        chain.shutdown().await;
        let told = running.await.unwrap().unwrap_err();
        let is_told = match operation {
            Open | TopUp => matches!(told, ChainError::UnderWay { .. }),
            Claim | Close | RequestClose => told == ChainError::Stopped,
        };
        assert!(is_told, "{operation:?}: {told}");
        assert_eq!(transactions_in(&*journal).await, 1, "{operation:?}");
        let mined = u64::from(point == CrashPoint::Mined);
        assert_eq!(world.nonce(wallet).await, nonce + mined, "{operation:?}");
        if point == CrashPoint::Sent {
            world.anvil.rpc("evm_setAutomine", json!([true])).await;
            world.anvil.mine().await;
        }

        journal.is_repaired.store(true, SeqCst);
        let chain = start_ready(world.spec(), wallet, journal.clone()).await;
        until_true(|| async { transactions_in(&*journal).await == 0 }).await;
        let view = chain.read_channel(config).await.unwrap();
        let effect = (view.deposited.micros(), view.claimed.micros(), view.close_at_secs.is_some());
        assert_eq!(effect, operation.effect(), "{operation:?}");
        assert_eq!(world.nonce(wallet).await, nonce + 1, "{operation:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_and_not_sent_before_a_crash_is_sent_once_after_it() {
    crash_and_restart_at(CrashPoint::Stored).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_and_not_mined_before_a_crash_is_waited_for_after_it() {
    crash_and_restart_at(CrashPoint::Sent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_mined_and_not_noted_before_a_crash_is_not_done_again() {
    crash_and_restart_at(CrashPoint::Mined).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_asked_for_again_after_a_restart_counts_once() {
    let world = World::new().await;
    let journal = Arc::new(CrashingJournal::new(CrashPoint::Stored));
    let chain = start_ready(world.spec(), &world.payer, journal.clone()).await;
    let config = world.terms(1);
    let opening = opening(&chain, config);
    journal.reached.notified().await;
    chain.shutdown().await;
    let _ = opening.await;

    journal.is_repaired.store(true, SeqCst);
    let chain = start(world.spec(), &world.payer, journal.clone()).await;
    chain.deposit_onto(config, (0, Usdc::ZERO), usdc(250_000)).await.unwrap();
    let deposited = chain.channel(&config.id(&chain.domain())).unwrap().deposited;
    let wallet = chain.balances_of(world.payer.address()).await.unwrap().usdc;
    assert_eq!(deposited.checked_add(wallet), Some(usdc(100_000_000)), "no money is lost");
    assert_eq!(deposited, usdc(250_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_acknowledgement_is_lost_is_found_by_its_effect() {
    let (world, proxy) = World::behind(Mode::LoseAnswersToTransactions).await;
    let journal = Arc::new(MemoryJournal::default());
    let chain = start_ready(world.spec_at(&[proxy.url()]), &world.payer, journal.clone()).await;
    let report = chain.open_or_top_up(world.terms(1), usdc(250_000)).await.unwrap();
    assert!(report.tx_hash.is_some());
    assert!(proxy.transactions() >= 1);
    assert_eq!(world.nonce(&world.payer).await, 1);
    assert_eq!(chain.channel(&world.terms(1).id(&chain.domain())).unwrap().deposited, usdc(250_000));
    assert_eq!(transactions_in(&*journal).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_transaction_is_replaced_by_a_dearer_one_with_the_same_nonce() {
    let world = World::new().await;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let chain = world.payer_chain().await;
    let config = world.terms(1);
    let opening = opening(&chain, config);
    let (first, first_fee) = waiting_form(&world).await;
    // Not mined: another form with the same nonce takes its place.
    until_true(|| async { waiting_form(&world).await.0 != first }).await;
    let (second, second_fee) = waiting_form(&world).await;
    assert!(second_fee * 10 >= first_fee * 11, "{first_fee} → {second_fee}");
    assert_eq!(world.waiting_transactions().await, 1);
    world.anvil.mine().await;

    let report = opening.await.unwrap().unwrap();
    assert_ne!(report.tx_hash.unwrap().to_string(), first, "{second}");
    assert_eq!(world.nonce(&world.payer).await, 1);
    assert_eq!(chain.channel(&config.id(&chain.domain())).unwrap().deposited, usdc(250_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_withheld_offers_no_tip_beyond_what_a_busy_chain_asks_for() {
    let world = World::new().await;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
    let spec = ChainSpec { resend_after_ms: 50, ..world.spec_at(&[proxy.url()]) };
    let chain = world.payer_at(spec).await;
    let config = world.terms(1);
    let opening = opening(&chain, config);
    let tip = async || wei(&waiting(&world).await, "maxPriorityFeePerGas");
    // The endpoint says that a tip of 1 gwei is usual. A first one has at most 0.01 gwei, and one that is raised twice that.
    let (first, most) = (tip().await, 20_000_000);
    assert!(first < most, "{first} of {most}");
    // Each time that it is sent again it would rise by an eighth.
    until_true(|| async { proxy.transactions() >= 25 }).await;
    let last = tip().await;
    assert!((first + 1..=most).contains(&last), "{first} → {last} of {most}");
    world.anvil.mine().await;
    opening.await.unwrap().unwrap();
}

/// Hash and fee of the payer's transaction with nonce 0 that waits to be mined.
async fn waiting_form(world: &World) -> (String, u128) {
    let form = waiting(world).await;
    (form["hash"].as_str().unwrap().to_owned(), wei(&form, "maxFeePerGas"))
}

fn wei(of: &serde_json::Value, field: &str) -> u128 {
    u128::from_str_radix(of[field].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

async fn waiting(world: &World) -> serde_json::Value {
    let wallet = world.payer.address().to_string();
    let found = Mutex::new(None);
    until_true(|| async {
        let pool = world.anvil.rpc("txpool_content", json!([])).await;
        let pending = pool["pending"].as_object().cloned().unwrap_or_default();
        let ours = pending.iter().find(|(address, _)| address.eq_ignore_ascii_case(&wallet));
        let form = ours.map(|(_, by_nonce)| by_nonce["0"].clone()).filter(serde_json::Value::is_object);
        let is_there = form.is_some();
        *found.lock() = form;
        is_there
    })
    .await;
    found.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_never_arrive_are_sent_until_one_does() {
    let (world, proxy) = World::behind(Mode::LoseTransactions).await;
    let chain = world.payer_at(world.spec_at(&[proxy.url()])).await;
    let friend = new_key().address();
    let sending = sending(&chain, friend);
    until_true(|| async { proxy.transactions() >= 2 }).await;
    proxy.set(Mode::Pass);
    sending.await.unwrap().unwrap();
    assert_eq!(chain.balances_of(friend).await.unwrap().usdc, usdc(7));
    assert_eq!(world.nonce(&world.payer).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_was_signed_is_never_told_as_one_that_the_wallet_cannot_pay() {
    let (world, proxy) = World::behind(Mode::LoseTransactions).await;
    let spec = ChainSpec { resend_after_ms: 3_600_000, ..world.spec_at(&[proxy.url()]) };
    let chain = world.payer_at(spec).await;
    let operation = opening(&chain, world.terms(1));
    until_true(|| async { proxy.transactions() >= 1 }).await;
    // Its nonce is taken, and with it the money for another.
    let elsewhere = world.payer_chain().await;
    elsewhere.send_usdc(new_key().address(), usdc(100_000_000)).await.unwrap();
    proxy.set(Mode::Pass);
    let error = operation.await.unwrap().unwrap_err();
    assert!(matches!(&error, ChainError::Replaced { nonce: 0, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_transaction_of_the_same_key_replaces_a_transfer_but_only_delays_a_deposit() {
    for is_transfer in [true, false] {
        let world = World::new().await;
        world.anvil.rpc("evm_setAutomine", json!([false])).await;
        let mut spec = world.spec();
        // Only the foreign transaction is to raise a fee here.
        spec.resend_after_ms = 3_600_000;
        spec.receipt_patience_ms = 1_000;
        let proxy = Proxy::to(world.anvil.port(), Mode::LoseTransactions).await;
        spec.rpc_urls = vec![proxy.url()];
        let chain = world.payer_at(spec).await;
        let friend = new_key().address();
        let operation = tokio::spawn({
            let (chain, config) = (chain.clone(), world.terms(1));
            async move {
                if is_transfer {
                    chain.send_usdc(friend, usdc(7)).await
                } else {
                    chain.open_or_top_up(config, usdc(250_000)).await
                }
            }
        });
        until_true(|| async { proxy.transactions() >= 1 }).await;
        world.anvil.rpc("evm_setAutomine", json!([true])).await;
        let elsewhere = Deployer::connect(&world.anvil.url(), 31_337, world.payer.clone()).await.unwrap();
        elsewhere.fund_eth(friend, 1).await.unwrap();
        proxy.set(Mode::Pass);
        let result = operation.await.unwrap();
        if is_transfer {
            let error = result.unwrap_err();
            assert!(matches!(&error, ChainError::Unaccounted { nonce: 0, .. }), "{error:?}");
            assert!(error.to_string().contains("may have been made"), "{error}");
            assert_eq!(chain.balances_of(friend).await.unwrap().usdc, Usdc::ZERO);
        } else {
            assert!(result.unwrap().tx_hash.is_some());
            assert_eq!(chain.channel(&world.terms(1).id(&chain.domain())).unwrap().deposited, usdc(250_000));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_when_the_journal_fails_and_what_it_refused_is_told_as_unsent() {
    struct FullDisk(MemoryJournal, JournalError);
    impl Journal for FullDisk {
        fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
            if id.contains("/tx/") {
                return Box::pin(async { Err(self.1.clone()) });
            }
            self.0.put(id, bytes)
        }
        fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
            self.0.all()
        }
        fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
            self.0.delete(id)
        }
    }
    let world = World::new().await;
    let why = || "no space left on device".to_owned();
    for (fails, may_be_found) in [(JournalError::Refused(why()), false), (JournalError::Failed(why()), true)]
    {
        let journal = Arc::new(FullDisk(MemoryJournal::default(), fails));
        let chain = start_ready(world.spec(), &world.payer, journal).await;
        let error = chain.send_usdc(new_key().address(), usdc(7)).await.unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
        assert_eq!(error.may_have_been_made(), may_be_found, "{error}");
        assert_eq!(error.to_string().contains("nothing was sent"), !may_be_found, "{error}");
        assert_eq!((world.nonce(&world.payer).await, world.waiting_transactions().await), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fails_later_keeps_the_fee_as_it_is_and_the_transaction_in_view() {
    /// Takes one record of a transaction and refuses every later one.
    #[derive(Default)]
    struct Filling(MemoryJournal, AtomicBool, Notify);
    impl Journal for Filling {
        fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
            if id.contains("/tx/") && self.1.swap(true, SeqCst) {
                self.2.notify_one();
                return Box::pin(async { Err(JournalError::Failed("no space left on device".to_owned())) });
            }
            self.0.put(id, bytes)
        }
        fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
            self.0.all()
        }
        fn delete(&self, _: String) -> BoxFuture<'_, Result<(), JournalError>> {
            Box::pin(async { Err(JournalError::Failed("no space left on device".to_owned())) })
        }
    }
    let world = World::new().await;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let journal = Arc::new(Filling::default());
    let chain = start_ready(world.spec(), &world.payer, journal.clone()).await;
    let friend = new_key().address();
    let sending = sending(&chain, friend);
    let (first, _) = waiting_form(&world).await;
    journal.2.notified().await;
    assert_eq!(waiting_form(&world).await.0, first, "an unstored form is never sent");
    world.anvil.mine().await;
    let report = sending.await.unwrap().unwrap();
    assert_eq!(report.tx_hash.unwrap().to_string(), first);
    chain.shutdown().await;

    // The record that could not be deleted does no harm after a restart.
    world.anvil.rpc("evm_setAutomine", json!([true])).await;
    let chain = start_ready(world.spec(), &world.payer, journal).await;
    chain.send_eth(friend, 1).await.unwrap_err();
    let balances = chain.balances_of(friend).await.unwrap();
    assert_eq!((balances.usdc, balances.eth_wei), (usdc(7), 0));
    assert_eq!(world.nonce(&world.payer).await, 1);
}
