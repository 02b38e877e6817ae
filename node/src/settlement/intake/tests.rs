//! A book without a free place, and a real chain.

use std::sync::Arc;

use farthing_chain::{Chain, ChainHandle, ChainKind, ClaimRow, MemoryJournal, Role};
use farthing_ledger::{Ending, OpenMode};
use farthing_os::clock;
use farthing_protocol::{CallId, ChannelConfig, RefusalCode, SecretKey, Signature, Voucher, call::Payment};
use farthing_shared::gas::GasMeans;
use farthing_testnet::{LocalChain, anvil::Anvil};
use redb::backends::InMemoryBackend;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::{
    consumer::{
        accounts::tests::promise_of,
        channels::{
            PayerChannels,
            tests::{terms as channel_terms, usdc},
        },
        close_promises::{ClosePromises, CloseWord},
    },
    settlement::{SettlementRequest, payee::Payee, policy::Policy},
};

mod between_calls;
mod elsewhere;
mod held_up;

const fn terms() -> Terms {
    Terms { deposit_min: usdc(1), close_delay_secs: 0, unsafe_max: Usdc::ZERO, without_gas_max: Usdc::ZERO }
}

/// A funded wallet's view of the chain.
async fn wallet(chain: &LocalChain, seed: u8) -> (SecretKey, ChainHandle) {
    wallet_on(chain, ChainKind::Local, seed).await
}

async fn wallet_on(chain: &LocalChain, kind: ChainKind, seed: u8) -> (SecretKey, ChainHandle) {
    let key = SecretKey::from_bytes(&[seed; 32]).unwrap();
    chain.fund(key.address(), usdc(1_000_000)).await.unwrap();
    let spec = farthing_chain::local(chain.rpc_url(), Anvil::CHAIN_ID, chain.token);
    let spec = farthing_chain::ChainSpec { poll_interval_ms: 50, kind, ..spec };
    let handle = Chain::start(spec, key.clone(), Arc::new(MemoryJournal::default())).await.unwrap();
    handle.balances().wait_for(Option::is_some).await.unwrap();
    (key, handle)
}

async fn open(payer: &ChainHandle, payee: &ChainHandle, deposit: u64) -> (ChannelConfig, ChannelId) {
    let config = ChannelConfig { token: payer.spec().token, ..channel_terms(payer.wallet(), payee.wallet()) };
    payer.deposit_onto(config, (0, Usdc::ZERO), usdc(deposit)).await.unwrap();
    let id = config.id(&payer.domain());
    payee
        .channels()
        .wait_for(|views| views.get(&id).is_some_and(|view| !view.deposited.is_zero()))
        .await
        .unwrap();
    (config, id)
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came true that {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_found_no_place_enters_the_book_when_there_is_one() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, owner), (first_key, first), (_, second)) =
        (wallet(&chain, 1).await, wallet(&chain, 2).await, wallet(&chain, 3).await);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
    let book = Book::with_places(1);
    let who = (owner.wallet(), owner.domain());
    let accounts = Arc::new(Accounts::new(ledger.clone(), Arc::default(), who));
    let intake =
        ChainIntake::new(owner.wallet(), owner.clone(), ledger.clone(), book.clone(), accounts, terms());
    let following = tokio::spawn(intake.clone().follow());

    let (_, small) = open(&first, &owner, 5_000).await;
    until("the first has the place", || book.get(small).is_some()).await;
    let voucher = Voucher { channel: small, cumulative: usdc(2_000) };
    let signature = voucher.sign(&owner.domain(), &first_key);
    let voucher = voucher.verify(&owner.domain(), signature, first.wallet()).unwrap();
    let call = book.admit(small, Some(&voucher), usdc(2_000), GasMeans::UNLIMITED).unwrap();
    let (config, large) = open(&second, &owner, 10_000).await;
    assert!(!intake.catch_up().await.is_placed, "there is a call on the first");
    assert!(book.get(large).is_none());

    // The chain shows nothing new of either.
    drop(call);
    until("the second has the place", || book.get(large).is_some()).await;
    assert!(book.get(small).is_none());
    let nothing = ClaimRow {
        config,
        cumulative: Usdc::ZERO,
        amount: Usdc::ZERO,
        signature: Signature::from_bytes([0; 65]),
    };
    owner.close(nothing).await.unwrap();
    until("the first has it again", || book.get(small).is_some()).await;
    following.abort();
}

#[test]
fn a_channel_without_a_place_is_looked_at_once_it_holds_as_much_as_a_place_takes() {
    let view = |n: u8, micros: u64| ChannelView {
        id: ChannelId::from_bytes([n; 32]),
        config: channel_terms(Address::from_bytes([n; 20]), Address::ZERO),
        role: Role::Payee,
        deposited: usdc(micros + 5),
        safe_deposited: usdc(0),
        claimed: usdc(5),
        close_at_secs: None,
        round: 0,
        safe_round: 0,
    };
    let [first, second] = [view(1, 10), view(2, 20)];
    let news = |progress: &IntakeProgress, views: &[ChannelView], least: u64| {
        let views = views.iter().map(|view| (view.id, *view)).collect::<HashMap<_, _>>().into();
        progress.news(&views, usdc(least)).iter().map(|view| view.id).collect::<Vec<_>>()
    };
    let mut progress = IntakeProgress::default();
    progress.note(first, ViewOutcome::None);
    assert_eq!(news(&progress, &[first], 11), []);
    assert_eq!(news(&progress, &[first], 10), [first.id], "it is enough");
    assert_eq!(news(&progress, &[view(1, 11)], 11), [first.id], "it holds more");
    progress.note(first, ViewOutcome::Taken { of: None });
    assert_eq!(news(&progress, &[first], 0), []);
    // Whoever made room is treated like one that found none.
    progress.note(second, ViewOutcome::Taken { of: Some(first.id) });
    assert_eq!(news(&progress, &[first, second], 21), []);
    assert_eq!(news(&progress, &[first, second], 10), [first.id]);
}

/// A wallet's books, in memory.
struct Books {
    ledger: Ledger,
    book: Book,
    channels: Arc<PayerChannels>,
    accounts: Arc<Accounts>,
    intake: ChainIntake,
}

impl Books {
    fn of(payer: &ChainHandle) -> Self {
        Self::with_places(payer, 1)
    }

    fn with_places(payer: &ChainHandle, places: usize) -> Self {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let channels = Arc::<PayerChannels>::default();
        let who = (payer.wallet(), payer.domain());
        let accounts = Arc::new(Accounts::new(ledger.clone(), channels.clone(), who));
        let (chain, book) = (payer.clone(), Book::with_places(places));
        let intake = ChainIntake::new(who.0, chain, ledger.clone(), book.clone(), accounts.clone(), terms());
        Self { ledger, book, channels, accounts, intake }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_empties_a_channel_by_what_no_call_explains_gets_no_further_promise() {
    let chain = LocalChain::start().await.unwrap();
    let (key, payer) = wallet(&chain, 1).await;
    let Books { ledger, channels, accounts, intake, .. } = Books::of(&payer);
    let counted_today = || {
        let today = farthing_ledger::day_of(clock::now_secs());
        accounts.spending_of(today).unwrap().total(today)
    };
    for (seed, price, claimed, is_in_doubt, stops) in [
        (2, 5_000, 5_000, false, true),
        (3, 4_000, 4_000, false, false),
        (4, 5_000, 5_000, true, false),
        // It may have cost its price, and not more.
        (5, 2_000, 5_000, true, true),
    ] {
        let (_, owner) = wallet(&chain, seed).await;
        let (config, id) = open(&payer, &owner, 5_000).await;
        let seen = async |claimed: u64| {
            let is_seen = |views: &ChannelViews| {
                views
                    .get(&id)
                    .is_some_and(|view| (view.deposited, view.claimed) == (usdc(5_000), usdc(claimed)))
            };
            payer.channels().wait_for(is_seen).await.unwrap();
            assert!(intake.catch_up().await.is_stored);
        };
        seen(0).await;

        // A call is refused, and its voucher is good all the same.
        let call = channels.reserve(owner.wallet(), usdc(price), 0).unwrap();
        let voucher = Voucher { channel: id, cumulative: usdc(claimed) };
        let signature = voucher.sign(&payer.domain(), &key);
        let payment = Payment::Channel {
            channel: id,
            cumulative: usdc(claimed),
            signature: Some(signature),
            receipted: None,
        };
        let call_id = CallId::from_bytes([seed; 16]);
        let promised =
            ledger.promise(promise_of(call_id, owner.wallet(), call.price, payment)).await.unwrap();
        promised.await.unwrap();
        channels.release(&call);
        match is_in_doubt {
            true => ledger.release_in_doubt(call_id, "refused", 1).await.unwrap(),
            false => ledger.release(call_id, "refused", 1).await.unwrap(),
        }
        let (cumulative, amount) = (usdc(claimed), usdc(claimed));
        owner.claim_many(vec![ClaimRow { config, cumulative, amount, signature }]).await.unwrap();
        let before = counted_today();
        seen(claimed).await;
        let channel = channels.in_use(owner.wallet()).unwrap();
        assert_eq!(channel.state.stopped, stops, "{claimed} of 5000 claimed, a call in doubt: {is_in_doubt}");
        // What it was paid beyond every call counts for today's limit at once. A channel with something left is asked about.
        let adjusted = counted_today().checked_sub(before).unwrap();
        assert_eq!(adjusted, usdc(if claimed == 5_000 { claimed } else { 0 }), "{claimed}, {is_in_doubt}");
        // One call in doubt explains one claim.
        assert!(stops || claimed < 5_000 || ledger.released_in_doubt(id).unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_counts_what_no_call_of_its_explains_when_it_lasts() {
    let chain = LocalChain::start().await.unwrap();
    let (payer_key, payer) = wallet(&chain, 2).await;
    let cumulative = usdc(2_000);
    for (seed, kind, counted) in [(1, ChainKind::Testnet, Usdc::ZERO), (3, ChainKind::Local, cumulative)] {
        let (_, owner) = wallet_on(&chain, kind, seed).await;
        let Books { ledger, intake, .. } = Books::of(&owner);
        let (config, id) = open(&payer, &owner, 5_000).await;
        assert!(intake.catch_up().await.is_sure);
        // Another node with this wallet claims.
        let (_, twin) = wallet(&chain, seed).await;
        let signature = Voucher { channel: id, cumulative }.sign(&owner.domain(), &payer_key);
        twin.claim_many(vec![ClaimRow { config, cumulative, amount: cumulative, signature }]).await.unwrap();
        owner.channels().wait_for(|views| views[&id].claimed == cumulative).await.unwrap();
        assert_eq!(intake.catch_up().await.is_sure, kind == ChainKind::Local);
        let row = ledger.payee_channels().unwrap()[0];
        assert_eq!((row.deposited, row.spent), (usdc(5_000), counted), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_owner_is_accused_of_what_the_endpoint_of_a_public_chain_has_just_begun_to_show() {
    let chain = LocalChain::start().await.unwrap();
    let (key, payer) = wallet_on(&chain, ChainKind::Testnet, 1).await;
    let (_, owner) = wallet(&chain, 2).await;
    let Books { ledger, channels, intake, .. } = Books::of(&payer);
    let (config, id) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_stored);
    // The books were compared.
    channels.release(&channels.reserve(owner.wallet(), usdc(5_000), 0).unwrap());
    let cumulative = usdc(5_000);
    let signature = Voucher { channel: id, cumulative }.sign(&payer.domain(), &key);
    owner.claim_many(vec![ClaimRow { config, cumulative, amount: cumulative, signature }]).await.unwrap();
    payer.channels().wait_for(|views| views[&id].claimed == cumulative).await.unwrap();
    for _ in 0..2 {
        let looked = intake.catch_up().await;
        assert!(looked.is_stored && !looked.is_sure, "it is looked at again");
        assert!(!channels.in_use(owner.wallet()).unwrap().state.stopped);
    }
    assert_eq!(ledger.payer_channels().unwrap()[0].claimed, Usdc::ZERO, "nothing is booked of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_doubt_outlasts_one_reading_of_a_public_chain_that_shows_it_paid() {
    let chain = LocalChain::start().await.unwrap();
    let (_, owner) = wallet(&chain, 2).await;
    for (seed, kind) in [(1, ChainKind::Testnet), (3, ChainKind::Local)] {
        let (key, payer) = wallet_on(&chain, kind, seed).await;
        let Books { ledger, channels, intake, .. } = Books::of(&payer);
        let (config, id) = open(&payer, &owner, 5_000).await;
        payer.channels().wait_for(|views| views.contains_key(&id)).await.unwrap();
        assert!(intake.catch_up().await.is_stored);
        let cumulative = usdc(5_000);
        let call = channels.reserve(owner.wallet(), cumulative, 0).unwrap();
        let signature = Voucher { channel: id, cumulative }.sign(&payer.domain(), &key);
        let payment =
            Payment::Channel { channel: id, cumulative, signature: Some(signature), receipted: None };
        let call_id = CallId::from_bytes([seed; 16]);
        let promised =
            ledger.promise(promise_of(call_id, owner.wallet(), call.price, payment)).await.unwrap();
        promised.await.unwrap();
        channels.release(&call);
        ledger.release_in_doubt(call_id, "refused", 1).await.unwrap();

        owner.claim_many(vec![ClaimRow { config, cumulative, amount: cumulative, signature }]).await.unwrap();
        payer.channels().wait_for(|views| views[&id].claimed == cumulative).await.unwrap();
        let looked = intake.catch_up().await;
        let is_over = kind == ChainKind::Local;
        assert_eq!((looked.is_stored, looked.is_sure), (true, is_over), "{kind}");
        assert_eq!(ledger.released_in_doubt(id).unwrap().is_empty(), is_over, "{kind}");
    }
}

fn payee(owner: &ChainHandle, ledger: &Ledger, book: &Book, intake: ChainIntake) -> Payee {
    let (closing, ordered, kept, unshown) = Default::default();
    Payee {
        chain: owner.clone(),
        ledger: ledger.clone(),
        book: book.clone(),
        intake,
        policy: Policy::default(),
        closing,
        ordered,
        kept,
        retry_refused: Instant::now(),
        is_probe_due: false,
        unshown,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_to_close_outlasts_one_reading_of_a_public_chain_that_shows_it_kept() {
    let chain = LocalChain::start().await.unwrap();
    let (_, payer) = wallet(&chain, 2).await;
    for (seed, kind) in [(1, ChainKind::Testnet), (3, ChainKind::Local)] {
        let (_, owner) = wallet_on(&chain, kind, seed).await;
        let Books { ledger, book, intake, .. } = Books::of(&owner);
        let (_, id) = open(&payer, &owner, 5_000).await;
        owner.base_fee().wait_for(Option::is_some).await.unwrap();
        assert!(intake.catch_up().await.is_stored);
        let payee = payee(&owner, &ledger, &book, intake);
        let ((requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
        let task = tokio::spawn(payee.run(receiver, asked, Duration::from_secs(60)));
        let (answer, done) = oneshot::channel();
        requests.send(SettlementRequest::Close(id, answer)).await.unwrap();
        done.await.unwrap().unwrap();
        until("the channel is closed", || book.get(id).is_some_and(|entry| !entry.state.closing)).await;
        let ending = || ledger.payee_channel(id).unwrap().unwrap().ending;
        match kind {
            ChainKind::Local => until("nothing is left to do", || ending() == Ending::None).await,
            _ => assert_eq!(ending(), Ending::Closes { round: Some(0) }, "one reading ends nothing"),
        }
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owners_promise_to_close_outlasts_one_reading_of_a_public_chain_that_shows_it_kept() {
    let chain = LocalChain::start().await.unwrap();
    let (_, owner) = wallet(&chain, 1).await;
    for (seed, kind) in [(2, ChainKind::Testnet), (3, ChainKind::Local)] {
        let (_, payer) = wallet_on(&chain, kind, seed).await;
        payer.base_fee().wait_for(Option::is_some).await.unwrap();
        let promised = ClosePromises::restore(Books::of(&payer).ledger).unwrap();
        let (config, id) = open(&payer, &owner, 5_000).await;
        let word = CloseWord { until_secs: 100, round: Some(0), is_signed: false, done_secs: None };
        promised.note(id, word).await;
        assert!(!promised.look(&payer, config, true, word).await, "it is open");
        let (cumulative, signature) = (Usdc::ZERO, Signature::from_bytes([0; 65]));
        owner.close(ClaimRow { config, cumulative, amount: cumulative, signature }).await.unwrap();
        until("it is closed", || payer.channel(&id).is_some_and(|view| word.is_kept(&view))).await;
        assert!(promised.look(&payer, config, true, word).await);
        let left = promised.all();
        match kind {
            ChainKind::Local => assert_eq!(left, []),
            _ => assert_eq!(left, [(id, word)], "one reading ends nothing"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_of_ones_own_that_the_chain_never_had_is_forgotten() {
    let chain = LocalChain::start().await.unwrap();
    let (key, journal) = (SecretKey::from_bytes(&[1; 32]).unwrap(), Arc::new(MemoryJournal::default()));
    let spec = farthing_chain::local(chain.rpc_url(), Anvil::CHAIN_ID, chain.token);
    let spec = farthing_chain::ChainSpec { poll_interval_ms: 50, absent_forgotten_ms: 500, ..spec };
    // An endpoint told of them in an earlier run, and this wallet has promised something on the second.
    let before = Chain::start(spec.clone(), key.clone(), journal.clone()).await.unwrap();
    let config = |salt| ChannelConfig {
        token: chain.token,
        salt: [salt; 32],
        ..channel_terms(key.address(), Address::from_bytes([9; 20]))
    };
    for salt in [1, 2] {
        before.track(config(salt)).await.unwrap();
    }
    before.refresh().await.unwrap();
    before.shutdown().await;

    let payer = Chain::start(spec, key.clone(), journal).await.unwrap();
    let Books { ledger, channels, intake, .. } = Books::of(&payer);
    let [id, used] = [1, 2].map(|salt| config(salt).id(&payer.domain()));
    payer.channels().wait_for(|views| views.contains_key(&used)).await.unwrap();
    let facts = PayerChannelFacts {
        id: used,
        config: config(2),
        deposited: usdc(5_000),
        claimed: Usdc::ZERO,
        round: Some(0),
        stopped: false,
    };
    ledger.put_payer_channel(facts).await.unwrap();
    let signature = Voucher { channel: used, cumulative: usdc(1_000) }.sign(&payer.domain(), &key);
    let payment = Payment::Channel {
        channel: used,
        cumulative: usdc(1_000),
        signature: Some(signature),
        receipted: None,
    };
    let promised = promise_of(CallId::from_bytes([1; 16]), facts.config.payee, usdc(1_000), payment);
    ledger.promise(promised).await.unwrap().await.unwrap();
    assert!(intake.catch_up().await.is_stored);
    assert_eq!(ledger.payer_channels().unwrap().len(), 2);
    assert!(channels.get(id).is_some());
    for _ in 0..1_200 {
        payer.refresh().await.unwrap();
        intake.catch_up().await;
        if channels.get(id).is_none() && payer.channel(&used).is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    intake.catch_up().await;
    assert!(channels.get(id).is_none() && payer.channel(&id).is_none(), "nothing is left of it");
    let left: Vec<ChannelId> = ledger.payer_channels().unwrap().iter().map(|row| row.id).collect();
    assert_eq!(left, [used], "what was promised is remembered");
    assert!(channels.get(used).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_restored_from_a_backup_serves_nothing_where_more_was_paid_than_it_counts() {
    let chain = LocalChain::start().await.unwrap();
    let (payer_key, payer) = wallet(&chain, 2).await;
    for (seed, is_restored) in [(1, false), (3, true)] {
        let (_, owner) = wallet_on(&chain, ChainKind::Testnet, seed).await;
        let Books { ledger, book, intake, .. } = Books::of(&owner);
        let (config, id) = open(&payer, &owner, 5_000).await;
        if is_restored {
            ledger.mark_restored(1).await.unwrap();
        }
        // The endpoint shows the state of the backup first.
        assert!(intake.catch_up().await.is_sure);
        let voucher = |cumulative| {
            let voucher = Voucher { channel: id, cumulative };
            let signature = voucher.sign(&owner.domain(), &payer_key);
            voucher.verify(&owner.domain(), signature, payer.wallet()).unwrap()
        };
        let admit =
            || book.admit(id, Some(&voucher(usdc(4_000))), usdc(1_000), GasMeans::UNLIMITED).map(drop);
        assert_eq!(admit(), Ok(()));
        // What the owner claimed after the backup.
        let (_, twin) = wallet(&chain, seed).await;
        let cumulative = usdc(3_000);
        let signature = *voucher(cumulative).signature();
        twin.claim_many(vec![ClaimRow { config, cumulative, amount: cumulative, signature }]).await.unwrap();
        owner.channels().wait_for(|views| views[&id].claimed == cumulative).await.unwrap();
        for _ in 0..2 {
            assert!(!intake.catch_up().await.is_sure);
            assert_eq!(admit(), if is_restored { Err(RefusalCode::UnknownChannel) } else { Ok(()) });
        }
    }
}
