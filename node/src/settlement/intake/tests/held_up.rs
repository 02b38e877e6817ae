//! What waits for nothing: a payer that takes its deposit back, one that asks for its close, and one whose channel was closed
//! before its owner started.

use std::collections::BTreeSet;

use farthing_ledger::Served;
use farthing_network::{Network, NetworkConfig};
use farthing_protocol::{CallMessage, wire::NetworkName};
use farthing_shared::tasks::Tasks;
use farthing_wallet::Wallet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    consumer::{
        deposits::DepositPolicy,
        funding::{Funding, FundingParts},
        rest::RestLimits,
    },
    escrows::Escrows,
    settlement::{Settlement, SettlementParts},
    testing::charged_call,
};

const DEPOSIT: u64 = 900_000;
/// Several times what it costs to claim it.
const CHARGED: Usdc = usdc(700_000);
/// Closes that wait, each a transaction of its own.
const QUEUED: u8 = 24;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A channel on which a call was charged.
async fn used_channel(
    (payer_key, payer): (&SecretKey, &ChainHandle),
    owner: &ChainHandle,
    books: &Books,
) -> (ChannelConfig, ChannelId) {
    let (config, channel) = open(payer, owner, DEPOSIT).await;
    assert!(books.intake.catch_up().await.is_placed);
    let voucher = Voucher { channel, cumulative: CHARGED };
    let signature = voucher.sign(&owner.domain(), payer_key);
    let voucher = voucher.verify(&owner.domain(), signature, payer.wallet()).unwrap();
    let running = books.book.admit(channel, Some(&voucher), CHARGED, GasMeans::UNLIMITED).unwrap();
    let (payer, voucher, call) = (payer.wallet(), running.voucher().cloned(), charged_call(CHARGED));
    books.ledger.serve(Served { payer, channel, voucher, call }).await.unwrap();
    running.settle(CHARGED);
    (config, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_that_takes_its_deposit_back_is_claimed_from_before_the_closes_that_wait() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, owner), (payer_key, payer)) = (wallet(&chain, 1).await, wallet(&chain, 2).await);
    owner.base_fee().wait_for(Option::is_some).await.unwrap();
    let books = Books::with_places(&owner, usize::from(QUEUED) + 1);
    let (config, id) = used_channel((&payer_key, &payer), &owner, &books).await;
    let mut queued = Vec::new();
    for salt in 1..=QUEUED {
        let config = ChannelConfig { salt: [salt; 32], ..config };
        payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
        queued.push(config.id(&owner.domain()));
    }
    let Books { ledger, book, intake, .. } = books;
    let following = tokio::spawn(intake.clone().follow());
    until("the owner has them all", || queued.iter().all(|id| book.get(*id).is_some())).await;
    for id in &queued {
        assert!(book.set_ending(*id, Ending::Closes { round: None }));
    }
    let (closing, kept, unshown) = Default::default();
    let payee = Payee {
        chain: owner.clone(),
        ledger,
        book: book.clone(),
        intake,
        policy: Policy::default(),
        closing,
        // Whatever they cost.
        ordered: queued.iter().copied().collect(),
        kept,
        retry_refused: Instant::now(),
        is_probe_due: false,
        unshown,
    };
    let ((_requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let task = tokio::spawn(payee.run(receiver, asked, Duration::from_secs(60)));
    until("the first of them is closed", || book.closing().len() < queued.len()).await;
    payer.request_close(config).await.unwrap();
    until("it is claimed from", || owner.channel(&id).is_some_and(|view| view.claimed == CHARGED)).await;
    assert!(!book.closing().is_empty(), "only once all of them were closed");
    task.abort();
    following.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payers_close_is_carried_out_while_another_owner_leaves_this_node_waiting() {
    let chain = LocalChain::start().await.unwrap();
    let ((owner_key, owner), (payer_key, payer), (silent_key, silent)) =
        (wallet(&chain, 1).await, wallet(&chain, 2).await, wallet(&chain, 3).await);
    owner.base_fee().wait_for(Option::is_some).await.unwrap();
    let books = Books::of(&owner);
    let (_, id) = used_channel((&payer_key, &payer), &owner, &books).await;
    // This node buys as well, of an owner that is there and says nothing.
    let (_, unused) = open(&owner, &silent, DEPOSIT).await;
    assert!(books.intake.catch_up().await.is_stored);

    let config = |key: &SecretKey, bootstrap: Vec<String>| NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap,
        allow_private: true,
        ..NetworkConfig::new(key.clone(), NetworkName::new(Anvil::CHAIN_ID.to_string()).unwrap())
    };
    let (theirs, mut inbound) = Network::start(config(&silent_key, Vec::new())).await.unwrap();
    let mut status = theirs.status();
    let there = status.wait_for(|status| !status.listening.is_empty()).await.unwrap().listening[0].clone();
    let (network, _inbound) = Network::start(config(&owner_key, vec![there])).await.unwrap();
    let connected = async {
        while !network.connected_peers().await.contains(&silent.wallet()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, connected).await.unwrap();

    let Books { ledger, book, channels, accounts, .. } = books;
    let funding = Funding::restore(FundingParts {
        wallet: owner.wallet(),
        signer: Wallet::from_key(owner_key.clone()).signer(owner.domain()),
        network: None,
        chain: owner.clone(),
        ledger: ledger.clone(),
        channels: channels.clone(),
        escrows: Escrows::new(owner.spec().escrow(), &BTreeSet::new()),
        policy: DepositPolicy::default(),
        close_delay_max_secs: 86_400,
        rest_limits: RestLimits { per_owner: usdc(DEPOSIT), in_all: usdc(DEPOSIT) },
        tasks: Tasks::default(),
    });
    let (closes, asked) = mpsc::channel(256);
    let (_settlement, work) = Settlement::new(SettlementParts {
        signer: Wallet::from_key(owner_key).signer(owner.domain()),
        chain: owner.clone(),
        ledger,
        network,
        book,
        channels,
        funding: funding.await.unwrap(),
        accounts,
        // Each channel is to be closed at once, and where its owner says nothing the chain is asked.
        policy: Policy { idle_close_secs: 0, close_answer_secs: 0, ..Policy::default() },
        terms: terms(),
        interval: Duration::from_secs(60),
        closes: asked,
        stopping: CancellationToken::new(),
    })
    .unwrap();
    let task = tokio::spawn(work);
    let question = timeout(PATIENCE, inbound.calls.recv()).await.unwrap().unwrap();
    assert!(matches!(question.message, CallMessage::Close(channel, _) if channel == unused));

    closes.send(id).await.unwrap();
    let is_closed = || {
        let view = payer.channel(&id).unwrap();
        (view.deposited, view.claimed) == (CHARGED, CHARGED)
    };
    until("the payer has its rest", is_closed).await;
    let view = owner.channel(&unused).unwrap();
    assert_eq!(view.close_at_secs, None, "only once the other owner was given up");
    drop(question);
    task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_starts_after_its_signed_close_was_brought_serves_the_channel_before_a_tick() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, payer), (_, owner)) = (wallet(&chain, 2).await, wallet(&chain, 1).await);
    let Books { ledger, accounts, intake, .. } = Books::of(&owner);
    let (config, id) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_stored);
    ledger.end_payee_channel(id, Ending::SignedAway { until_secs: u64::MAX, round: 0 }).await.unwrap();
    let (cumulative, signature) = (Usdc::ZERO, Signature::from_bytes([0; 65]));
    owner.close(ClaimRow { config, cumulative, amount: cumulative, signature }).await.unwrap();
    let is_over = || owner.channel(&id).is_some_and(|view| view.round.min(view.safe_round) > 0);
    until("the chain shows the next round", is_over).await;

    // As after a start: the books are of the ledger alone, and the chain has nothing new to show.
    let book = Book::with_places(1);
    let row = || ledger.payee_channel(id).unwrap().unwrap();
    book.restore(&row(), None, false);
    let intake =
        ChainIntake::new(owner.wallet(), owner.clone(), ledger.clone(), book.clone(), accounts, terms());
    let ((_requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let payee = payee(&owner, &ledger, &book, intake);
    let task = tokio::spawn(payee.run(receiver, asked, Duration::from_secs(3_600)));
    until("the channel is served again", || row().ending == Ending::None).await;
    until("calls may begin", || book.get(id).is_some_and(|entry| !entry.state.closing)).await;
    task.abort();

    // A block takes the close back after another start.
    let book = Book::with_places(1);
    book.restore(&row(), None, false);
    let before = View { safe_deposited: Usdc::ZERO, close_at_secs: None, round: 0, safe_round: 0 };
    book.apply(&row(), None, before);
    assert!(book.get(id).unwrap().state.closing, "the same words close the channel again");
    ledger.end_payee_channel(id, Ending::None).await.unwrap();
    assert_eq!(row().brought, None, "void");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_close_that_the_book_takes_up_again_is_stored_again() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, payer), (_, owner)) = (wallet(&chain, 2).await, wallet(&chain, 1).await);
    let Books { ledger, book, intake, .. } = Books::of(&owner);
    let (_, id) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_stored);
    // As after a block that took the close back: by the ledger the duty is over.
    assert!(book.sign_away(id, u64::MAX, 0));
    let ((_requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let payee = payee(&owner, &ledger, &book, intake);
    let task = tokio::spawn(payee.run(receiver, asked, Duration::from_secs(3_600)));
    let ending = || ledger.payee_channel(id).unwrap().unwrap().ending;
    let signed = Ending::SignedAway { until_secs: u64::MAX, round: 0 };
    until("the next start knows of it", || ending() == signed).await;
    task.abort();
}
