//! A consumer that keeps to no rule: it speaks the protocol itself, with its own key and money.
//!
//! Whatever it sends, the owner's upstream is reached once per paid call, and the owner can claim exactly what
//! it charged.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use farthing_chain::{Chain, ChainHandle, ChainSpec, MemoryJournal};
use farthing_control::{endpoint, types::PriceRequest};
use farthing_network::{CallFailure, Inbound, NetworkHandle};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, CallResponse, ChannelConfig, ChannelId, Listing,
    Receipt, Refusal, RefusalCode, SecretKey, Signature, Usdc, Verified, Voucher,
    books::{CallRecord, CallsAsked, CallsPage},
    call::{CallStatus, Method, Payment},
    info::{InfoRequest, InfoResponse},
};
use farthing_testnet::anvil::Anvil;
use farthing_tests::{
    calls::{cost, expect_free, expect_served, fixed_owner, posing_as_public, setting},
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use futures::{StreamExt, stream};

use crate::stranger::{join, until_connected};

mod before;
mod closes;
mod deposits;
mod errands;
mod free_rides;
mod late;
mod pending;
mod poor;
mod restored;
mod unpaid;
mod withdrawals;

const DEADLINE: Duration = Duration::from_secs(20);

/// A payer of its own making.
struct Payer {
    key: SecretKey,
    network: NetworkHandle,
    chain: ChainHandle,
    owner: Address,
    listing: Verified<Listing>,
    config: ChannelConfig,
    channel: ChannelId,
    _inbound: Inbound,
}

/// What came of one request.
#[derive(Debug)]
enum Reply {
    Served(Box<CallResponse>),
    Status(CallStatus),
    Refused(Refusal),
}

impl Payer {
    /// Joins the world with a channel that holds `deposit`, and waits until the owner has seen it.
    async fn join(world: &World, seed: u8, deposit: Usdc) -> Result<Self> {
        let key = || SecretKey::from_bytes(&[seed; 32]);
        let wallet = key()?.address();
        world.chain.fund(wallet, FUNDS).await?;
        let spec = farthing_chain::local(world.chain.rpc_url(), Anvil::CHAIN_ID, world.chain.token);
        // Whatever gas costs.
        let spec = ChainSpec { poll_interval_ms: 100, gas_price_cap_wei: u128::MAX / 4, ..spec };
        let chain = Chain::start(spec, key()?, Arc::new(MemoryJournal::default())).await?;
        let (network, inbound) = connect(world, key()?).await?;
        let listing = listing_of(&network, world).await?;
        let config = ChannelConfig {
            payer: wallet,
            payee: world.owner_wallet,
            token: world.chain.token,
            signer: wallet,
            close_delay_secs: listing.accepts[0].close_delay_secs,
            salt: [0; 32],
        };
        let channel = config.id(&chain.domain());
        let payer = Self {
            key: key()?,
            network,
            chain,
            owner: world.owner_wallet,
            listing,
            config,
            channel,
            _inbound: inbound,
        };
        payer.open(config, deposit).await?;
        Ok(payer)
    }

    async fn deposit(&self, config: ChannelConfig, deposit: Usdc) -> Result<()> {
        eventually("the chain is ready", async || {
            self.chain.refresh().await?;
            Ok(self.chain.balances().borrow().is_some_and(|balances| balances.usdc >= deposit))
        })
        .await?;
        let known = self.chain.channel(&config.id(&self.chain.domain()));
        let before = known.map_or((0, Usdc::ZERO), |view| (view.round, view.deposited));
        Ok(self.chain.deposit_onto(config, before, deposit).await.map(drop)?)
    }

    /// Deposits, and waits until the owner has seen it.
    async fn open(&self, config: ChannelConfig, deposit: Usdc) -> Result<()> {
        self.deposit(config, deposit).await?;
        self.until_known(config, deposit).await
    }

    async fn until_known(&self, config: ChannelConfig, deposit: Usdc) -> Result<()> {
        let question = CallMessage::Sync(config.id(&self.chain.domain()), None);
        eventually("the owner is met, and knows the deposit", async || {
            let answer = self.network.call(self.owner, question.clone(), Bytes::new(), DEADLINE).await;
            Ok(matches!(answer, Ok((CallReply::Channel(books), ..)) if books.deposited >= deposit))
        })
        .await
    }

    fn voucher(&self, channel: ChannelId, cumulative: Usdc) -> Signature {
        Voucher { channel, cumulative }.sign(&self.chain.domain(), &self.key)
    }

    /// `GET /ok`, honestly paid up to `cumulative`.
    fn request(&self, id: &str, cumulative: Usdc) -> CallRequest {
        CallRequest {
            call_id: CallId::from_idempotency_key(id),
            service: self.listing.service,
            listing_version: self.listing.seq,
            method: Method::Get,
            path: "/ok".to_owned(),
            params: BTreeMap::new(),
            headers: BTreeMap::new(),
            body_bytes: 0,
            price: PRICE,
            deadline_ms: 10_000,
            payment: self.pays(self.channel, cumulative, Some(self.voucher(self.channel, cumulative))),
        }
    }

    fn pays(&self, channel: ChannelId, cumulative: Usdc, signature: Option<Signature>) -> Payment {
        Payment::Channel { channel, cumulative, signature, receipted: None }
    }

    async fn send(&self, request: CallRequest) -> Result<Reply> {
        self.ask(CallMessage::Call(request)).await
    }

    async fn ask(&self, message: CallMessage) -> Result<Reply> {
        self.ask_over(&self.network, message).await
    }

    async fn ask_over(&self, network: &NetworkHandle, message: CallMessage) -> Result<Reply> {
        match self.answered(network, message).await? {
            CallReply::Response(response) => Ok(Reply::Served(Box::new(response))),
            CallReply::Refused(refusal) => Ok(Reply::Refused(refusal)),
            CallReply::Status(status) => Ok(Reply::Status(status)),
            other => bail!("an answer to another question: {other:?}"),
        }
    }

    /// The first answer that is not that the owner is busy.
    async fn answered(&self, network: &NetworkHandle, message: CallMessage) -> Result<CallReply> {
        // The owner's node takes a bounded number of streams at once; what it drops was never begun.
        for _ in 0..200 {
            match network.call(self.owner, message.clone(), Bytes::new(), DEADLINE).await {
                Ok((CallReply::Refused(refusal), ..)) if refusal.code == RefusalCode::Busy => {}
                Ok((reply, ..)) => return Ok(reply),
                Err(CallFailure::NeverStarted(_) | CallFailure::Unknown(_)) => {}
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the owner's node does not answer")
    }

    async fn served(&self, request: CallRequest) -> Result<CallResponse> {
        match self.send(request).await? {
            Reply::Served(response) => Ok(*response),
            other => bail!("not served: {other:?}"),
        }
    }

    /// Waits until the owner knows that the channel closes. `request` promises nothing new, so it is not served before.
    async fn until_closing(&self, request: CallRequest) -> Result<()> {
        eventually("the owner sees the close", async || match self.send(request.clone()).await? {
            Reply::Refused(refusal) if refusal.code == RefusalCode::InsufficientVoucher => Ok(false),
            Reply::Refused(refusal) if refusal.code == RefusalCode::ChannelClosing => Ok(true),
            other => bail!("{other:?}"),
        })
        .await
    }

    /// The receipt that comes in the place of an answer.
    async fn receipt(&self, request: CallRequest) -> Result<Receipt> {
        match self.send(request).await? {
            Reply::Status(CallStatus::Done { receipt, .. }) => Ok(receipt),
            other => bail!("no receipt alone: {other:?}"),
        }
    }

    async fn refused(&self, what: &str, request: CallRequest, code: RefusalCode) -> Result<Refusal> {
        match self.send(request).await? {
            Reply::Refused(refusal) if refusal.code == code => Ok(refusal),
            other => bail!("{what}: {other:?}, expected {code:?}"),
        }
    }
}

/// A connection of its own to the owner.
async fn connect(world: &World, key: SecretKey) -> Result<(NetworkHandle, Inbound)> {
    let (network, inbound) = join(key, &[&world.owner]).await?;
    until_connected(&network, world.owner_wallet).await?;
    Ok((network, inbound))
}

async fn listing_of(network: &NetworkHandle, world: &World) -> Result<Verified<Listing>> {
    match network.ask(world.owner_wallet, InfoRequest::Services(vec![world.api.id.0])).await? {
        InfoResponse::Listings(mut listings) => Ok(listings.pop().context("no listing")?.verify()?),
        other => bail!("no listings: {other:?}"),
    }
}

/// The upstream was reached once per paid call, and the owner gains exactly what they cost.
async fn expect_paid(world: &World, calls: u64) -> Result<()> {
    assert_eq!(world.upstream.hits(), calls);
    expect_charged(world, calls).await
}

/// The owner gains exactly what so many calls cost.
async fn expect_charged(world: &World, calls: u64) -> Result<()> {
    world.owner.control().ask(endpoint::Settle).await?;
    let channels = world.owner.control().ask(endpoint::Channels).await?;
    let spent = channels.iter().map(|channel| channel.spent.0.micros()).sum::<u64>();
    assert_eq!(Usdc::from_micros(spent), cost(calls));
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, cost(calls));
    let audit = world.owner.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_is_told_of_each_of_its_own_calls_and_of_nobody_elses() -> Result<()> {
    let world = World::start().await?;
    let payers = [Payer::join(&world, 0x61, cost(10)).await?, Payer::join(&world, 0x62, cost(10)).await?];
    for (calls, payer) in [3, 1].into_iter().zip(&payers) {
        for n in 1..=calls {
            payer.served(payer.request(&format!("{n}"), cost(n))).await?;
        }
    }
    for (calls, payer) in [3, 1].into_iter().zip(&payers) {
        let ask = async |after| -> Result<CallsPage> {
            let question = CallMessage::Calls(CallsAsked { after, since_secs: 0 });
            match payer.network.call(payer.owner, question, Bytes::new(), DEADLINE).await? {
                (CallReply::Calls(page), ..) => Ok(page),
                (other, ..) => bail!("an answer to another question: {other:?}"),
            }
        };
        let page = ask(None).await?;
        let ids: Vec<CallId> = page.records.iter().map(|record| record.call_id).collect();
        let mut own: Vec<CallId> =
            (1..=calls).map(|n| CallId::from_idempotency_key(&format!("{n}"))).collect();
        own.sort();
        assert_eq!(ids, own, "each once, in the order of ids");
        assert_eq!(page.next, None);
        let charged = |record: &CallRecord| record.charged == PRICE && record.channel == payer.channel;
        ensure!(page.records.iter().all(charged), "{page:?}");
        assert_eq!(ask(Some(own[0])).await?.records, page.records[1..], "behind an id");
    }
    expect_paid(&world, 4).await
}

#[tokio::test]
async fn a_promise_that_is_not_good_is_refused_and_free() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x52, cost(3)).await?;
    expect_served(&world.get("/ok").await?)?;
    let others = world.consumer.control().ask(endpoint::Channels).await?;
    let others = others[0].id.0;
    let second = ChannelConfig { salt: [1; 32], ..payer.config };
    let elsewhere = ChannelConfig { payee: world.consumer_wallet, ..payer.config };
    payer.deposit(elsewhere, cost(3)).await?;
    // The owner has seen the other with it.
    payer.open(second, cost(3)).await?;
    payer.served(payer.request("paid", PRICE)).await?;

    let domain = payer.chain.domain();
    let unopened = ChannelConfig { salt: [2; 32], ..payer.config }.id(&domain);
    let (second, elsewhere) = (second.id(&domain), elsewhere.id(&domain));
    let stranger = SecretKey::from_bytes(&[0x77; 32])?;
    let forged = Voucher { channel: payer.channel, cumulative: cost(2) }.sign(&domain, &stranger);
    let sign = |channel, cumulative| Some(payer.voucher(channel, cumulative));
    let almost = Usdc::from_micros(cost(2).micros() - 1);
    for (what, payment, code) in [
        (
            "it grew by less than the price",
            payer.pays(payer.channel, almost, sign(payer.channel, almost)),
            RefusalCode::InsufficientVoucher,
        ),
        (
            "it did not grow",
            payer.pays(payer.channel, PRICE, sign(payer.channel, PRICE)),
            RefusalCode::InsufficientVoucher,
        ),
        ("it is not signed", payer.pays(payer.channel, cost(2), None), RefusalCode::InsufficientVoucher),
        (
            "it is above the deposit",
            payer.pays(payer.channel, cost(4), sign(payer.channel, cost(4))),
            RefusalCode::VoucherAboveDeposit,
        ),
        (
            "it is the most there can be",
            payer.pays(payer.channel, Usdc::MAX, sign(payer.channel, Usdc::MAX)),
            RefusalCode::VoucherAboveDeposit,
        ),
        ("a stranger signed it", payer.pays(payer.channel, cost(2), Some(forged)), RefusalCode::BadSignature),
        (
            "it was signed for less",
            payer.pays(payer.channel, cost(2), sign(payer.channel, PRICE)),
            RefusalCode::BadSignature,
        ),
        (
            "it was signed for another channel",
            payer.pays(second, PRICE, sign(payer.channel, PRICE)),
            RefusalCode::BadSignature,
        ),
        (
            "its signature is no point of the curve",
            payer.pays(payer.channel, cost(2), Some(Signature::from_bytes([0xff; 65]))),
            RefusalCode::BadSignature,
        ),
        (
            "the channel is another payer's",
            payer.pays(others, cost(2), sign(others, cost(2))),
            RefusalCode::BadSignature,
        ),
        (
            "the channel is another payer's and covers it",
            payer.pays(others, Usdc::ZERO, None),
            RefusalCode::BadSignature,
        ),
        (
            "the channel pays another owner",
            payer.pays(elsewhere, PRICE, sign(elsewhere, PRICE)),
            RefusalCode::UnknownChannel,
        ),
        (
            "the channel does not exist",
            payer.pays(unopened, PRICE, sign(unopened, PRICE)),
            RefusalCode::UnknownChannel,
        ),
        (
            "it is no channel",
            payer.pays(ChannelId::NONE, PRICE, sign(ChannelId::NONE, PRICE)),
            RefusalCode::UnknownChannel,
        ),
        ("it pays nothing", Payment::Free, RefusalCode::PaymentRequired),
    ] {
        payer.refused(what, CallRequest { payment, ..payer.request(what, cost(2)) }, code).await?;
    }
    let good = |id: &str| payer.request(id, cost(2));
    for (what, request) in [
        ("an old listing", CallRequest { listing_version: payer.listing.seq - 1, ..good("old") }),
        ("a listing to come", CallRequest { listing_version: payer.listing.seq + 1, ..good("new") }),
        ("a price of its own", CallRequest { price: Usdc::from_micros(1), ..good("cheap") }),
        ("a price of nothing", CallRequest { price: Usdc::ZERO, payment: Payment::Free, ..good("free") }),
    ] {
        let refusal = payer.refused(what, request, RefusalCode::PriceChanged).await?;
        let offered = refusal.listing.context("no listing comes with it")?.verify()?;
        assert_eq!(offered, payer.listing, "{what}");
    }
    payer.served(good("good")).await?;
    // A late, lower voucher neither harms nor helps.
    payer.refused("late", payer.request("late", PRICE), RefusalCode::InsufficientVoucher).await?;
    payer.served(payer.request("last", cost(3))).await?;
    expect_paid(&world, 4).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_replayed_two_hundred_times_is_served_once() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x53, cost(300)).await?;
    let request = payer.request("replayed", cost(300));
    let replies: Vec<_> =
        stream::iter(0..200).map(|_| payer.served(request.clone())).buffer_unordered(60).collect().await;
    let replies = replies.into_iter().collect::<Result<Vec<_>>>()?;
    for reply in &replies {
        assert_eq!(reply.receipt, replies[0].receipt);
        assert_eq!(reply.signature, replies[0].signature);
    }
    // Under the same id, other terms of payment change nothing either.
    let unpaid = CallRequest { payment: Payment::Free, ..request.clone() };
    assert_eq!(payer.served(unpaid).await?.receipt, replies[0].receipt);
    let other = CallRequest { path: "/status/200".to_owned(), ..request };
    payer.refused("another path", other, RefusalCode::CallIdConflict).await?;
    expect_paid(&world, 1).await
}

/// Asks until the owner's node has seen the deposit, and gives its refusal.
async fn refusal_of_a_new_channel(payer: &Payer, config: ChannelConfig) -> Result<RefusalCode> {
    let channel = config.id(&payer.chain.domain());
    let payment = payer.pays(channel, PRICE, Some(payer.voucher(channel, PRICE)));
    let mut code = RefusalCode::UnknownChannel;
    eventually("the owner has seen the deposit", async || {
        let request = CallRequest { payment: payment.clone(), ..payer.request("of a new channel", PRICE) };
        match payer.send(request).await? {
            Reply::Refused(refusal) => code = refusal.code,
            Reply::Served(_) => bail!("it is served"),
            Reply::Status(status) => bail!("{status:?}"),
        }
        Ok(code != RefusalCode::UnknownChannel)
    })
    .await?;
    Ok(code)
}

#[tokio::test]
async fn a_channel_below_the_listed_delay_or_deposit_is_refused_and_takes_no_place() -> Result<()> {
    let least = setting("settlement.channel_min", "0.01");
    let world = World::with(Setup { owner_settings: least, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x58, cost(100)).await?;
    assert_eq!(payer.listing.accepts[0].min_deposit, cost(5), "the listing tells it");
    let delay = payer.config.close_delay_secs;
    let too_short = ChannelConfig { close_delay_secs: delay - 1, salt: [1; 32], ..payer.config };
    let too_small = ChannelConfig { salt: [2; 32], ..payer.config };
    let just_right = ChannelConfig { salt: [3; 32], ..payer.config };
    payer.chain.deposit_onto(too_short, (0, Usdc::ZERO), cost(100)).await?;
    let almost = Usdc::from_micros(cost(5).micros() - 1);
    payer.chain.deposit_onto(too_small, (0, Usdc::ZERO), almost).await?;
    assert_eq!(refusal_of_a_new_channel(&payer, too_short).await?, RefusalCode::DelayTooShort);
    assert_eq!(refusal_of_a_new_channel(&payer, too_small).await?, RefusalCode::DepositTooSmall);
    payer.open(just_right, cost(5)).await?;
    let channels = world.owner.control().ask(endpoint::Channels).await?;
    assert_eq!(channels.len(), 2, "{channels:?}");
    payer.served(payer.request("paid", PRICE)).await?;
    // A deposit that reaches the least is served from then on.
    payer.open(too_small, Usdc::from_micros(1)).await?;
    expect_paid(&world, 1).await
}

#[tokio::test]
async fn after_a_request_to_close_nothing_more_is_served_and_everything_is_claimed() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x54, cost(100)).await?;
    for n in 1..=3 {
        payer.served(payer.request(&format!("before/{n}"), cost(n))).await?;
    }
    payer.chain.request_close(payer.config).await?;
    let mut paid = 3;
    eventually("the owner has seen the request", async || {
        let request = payer.request(&format!("after/{paid}"), cost(paid + 1));
        match payer.send(request).await? {
            Reply::Served(_) => paid += 1,
            Reply::Refused(refusal) if refusal.code == RefusalCode::ChannelClosing => return Ok(true),
            other => bail!("{other:?}"),
        }
        Ok(false)
    })
    .await?;
    for n in 0..5 {
        let request = payer.request(&format!("late/{n}"), cost(50));
        payer.refused("late", request, RefusalCode::ChannelClosing).await?;
    }
    ensure!(payer.chain.withdraw(payer.config).await.is_err(), "the delay is not over");
    expect_paid(&world, paid).await
}
