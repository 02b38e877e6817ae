//! Deposits on a real chain.

use std::pin::pin;

use farthing_chain::{Chain, ChainError, ChainSpec, ChainStatus, ClaimRow, MemoryJournal};
use farthing_ledger::{Namespace, PayerChannelRow};
use farthing_protocol::{CallId, SecretKey, Signature, listing::SCHEME_CHANNEL};
use farthing_testnet::{LocalChain, anvil::Anvil};
use farthing_wallet::Wallet;
use redb::backends::InMemoryBackend;
use tokio::runtime::Handle;

use super::{
    wallet::{is_unsent, is_unsigned},
    *,
};
use crate::consumer::{
    channels::tests::{row, terms, usdc},
    rest::PlacedDeposit,
};

/// A funded wallet's handle of the chain, which pays so much for gas.
pub(super) async fn wallet(chain: &LocalChain, seed: u8, gas_price_cap_wei: u128) -> ChainHandle {
    let key = SecretKey::from_bytes(&[seed; 32]).unwrap();
    chain.fund(key.address(), usdc(1_000_000)).await.unwrap();
    let spec = farthing_chain::local(chain.rpc_url(), Anvil::CHAIN_ID, chain.token);
    let spec = ChainSpec { poll_interval_ms: 50, gas_price_cap_wei, ..spec };
    let handle = Chain::start(spec, key, Arc::new(MemoryJournal::default())).await.unwrap();
    handle.balances().wait_for(Option::is_some).await.unwrap();
    handle.status().wait_for(|status| *status == ChainStatus::Ready).await.unwrap();
    handle
}

/// The funding of a wallet without books.
pub(super) async fn funding(chain: ChainHandle) -> Funding {
    restored(chain, Ledger::with_backend(InMemoryBackend::new()).unwrap()).await
}

pub(super) async fn restored(chain: ChainHandle, ledger: Ledger) -> Funding {
    limited(chain, ledger, usdc(1_000_000)).await
}

/// The funding of a wallet that puts so much into channels with an owner.
async fn limited(chain: ChainHandle, ledger: Ledger, per_owner: Usdc) -> Funding {
    let mut keys = (1..=u8::MAX).map(|seed| SecretKey::from_bytes(&[seed; 32]).unwrap());
    let key = keys.find(|key| key.address() == chain.wallet()).unwrap();
    Funding::restore(FundingParts {
        wallet: chain.wallet(),
        signer: Wallet::from_key(key).signer(chain.domain()),
        network: None,
        escrows: Escrows::new(chain.spec().escrow(), &BTreeSet::new()),
        chain,
        ledger,
        channels: Arc::default(),
        policy: DepositPolicy::default(),
        close_delay_max_secs: 86_400,
        rest_limits: RestLimits { per_owner, in_all: usdc(1_000_000) },
        tasks: Tasks::default(),
    })
    .await
    .unwrap()
}

/// Has the books show a channel as emptied so often.
fn emptied(channels: &PayerChannels, config: ChannelConfig, id: ChannelId, round: u32) {
    booked(channels, id, config, (Usdc::ZERO, round));
}

/// Has the books show a channel with this deposit in this round.
pub(super) fn booked(
    channels: &PayerChannels,
    id: ChannelId,
    config: ChannelConfig,
    (deposited, round): (Usdc, u32),
) {
    let row = PayerChannelRow {
        id,
        round: Some(round),
        is_promised_on: false,
        may_lack_calls: false,
        ..row(config, deposited.micros())
    };
    channels.apply(&row, None);
}

/// An owner's claim of nothing, with which it closes the channel.
fn nothing(config: ChannelConfig) -> ClaimRow {
    let (cumulative, signature) = (Usdc::ZERO, Signature::from_bytes([0; 65]));
    ClaimRow { config, cumulative, amount: cumulative, signature }
}

pub(super) fn accept(chain: &ChainHandle, pay_to: Address) -> Accept {
    Accept {
        scheme: SCHEME_CHANNEL.to_owned(),
        chain_id: chain.spec().chain_id,
        asset: chain.spec().token,
        pay_to,
        contract: chain.spec().contract,
        min_deposit: usdc(1),
        close_delay_secs: 86_400,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_fails_again_and_again_takes_one_place_and_leaves_no_task() {
    let chain = LocalChain::start().await.unwrap();
    let funding = funding(wallet(&chain, 1, 1).await).await;
    let accept = accept(&funding.0.chain, Address::from_bytes([2; 20]));
    let fails = async || {
        let failed = funding.deposit_now(&accept, usdc(100_000)).await.unwrap_err();
        assert!(matches!(failed, BuyError::OpenFailed(ChainError::GasTooDear { .. })), "{failed}");
    };
    fails().await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..20 {
        fails().await;
    }
    // Connections to the chain have tasks, too.
    assert!(tasks() < before + 10, "{before} tasks have become {}", tasks());
    assert_eq!(funding.at_rest().total(), usdc(100_000), "its authorization may be used yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_into_an_emptied_channel_counts_for_a_day_or_until_its_owner_has_closed_as_asked() {
    let chain = LocalChain::start().await.unwrap();
    let (payer, owner) = (wallet(&chain, 1, u128::MAX / 4).await, wallet(&chain, 2, u128::MAX / 4).await);
    let funding = funding(payer.clone()).await;
    let config = funding.terms(&accept(&payer, owner.wallet()));
    let at = RestingPlace { owner: owner.wallet(), channel: config.id(&payer.domain()) };
    let rest = funding.at_rest();
    let deposits = [0, 1, 2].map(|round| ChannelSum { round, deposited: Usdc::ZERO });
    for held in deposits {
        rest.take(at, held, usdc(100_000), usdc(100_000)).unwrap();
        rest.keep(at, held, Instant::now() + COUNTED_FOR);
    }
    let stored = || funding.0.ledger.list(Namespace::Deposits).unwrap().len();
    funding.closed_for_us(config, 2).await;
    assert_eq!((rest.total(), stored()), (usdc(300_000), 0), "nothing is freed, and nothing stored");
    owner.track(config).await.unwrap();
    for round in 0..2 {
        payer.deposit_onto(config, (round, Usdc::ZERO), usdc(100_000)).await.unwrap();
        owner.close(nothing(config)).await.unwrap();
    }
    assert_eq!(payer.read_channel(config).await.unwrap().round, 2);
    assert_eq!(rest.total(), usdc(300_000), "what the chain alone says frees nothing");
    funding.closed_for_us(config, 0).await;
    assert_eq!(rest.total(), usdc(200_000), "the first is back as asked for, the second was not asked for");
    assert_eq!(stored(), 1, "a restart takes the others again");
    funding.closed_for_us(config, 2).await;
    assert_eq!(rest.total(), usdc(100_000), "nobody has brought the third yet");
    rest.keep(at, deposits[2], Instant::now());
    assert_eq!(rest.total(), Usdc::ZERO, "nobody can any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_closed_unasked_is_known_by_its_deposits_of_the_day_and_one_that_was_asked_is_not() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
    let funding = restored(payer.clone(), ledger.clone()).await;
    let [unasked, asked] = [2, 3].map(|n| accept(&payer, Address::from_bytes([n; 20])));
    for accept in [&unasked, &asked] {
        let config = funding.terms(accept);
        let at = RestingPlace { owner: accept.pay_to, channel: config.id(&payer.domain()) };
        let held = ChannelSum { round: 0, deposited: Usdc::ZERO };
        funding.at_rest().take(at, held, usdc(100_000), usdc(100_000)).unwrap();
        funding.at_rest().made(at, held);
        funding.at_rest().keep(at, held, Instant::now() + COUNTED_FOR);
        emptied(&funding.0.channels, config, at.channel, 0);
        assert_eq!(funding.closed_unasked().unwrap().len(), 0, "it is paid out to its end");
        if accept.pay_to == asked.pay_to {
            funding.asks_to_close(&funding.0.channels.get(at.channel).unwrap()).await.unwrap();
        }
    }
    for accept in [&unasked, &asked] {
        let config = funding.terms(accept);
        emptied(&funding.0.channels, config, config.id(&payer.domain()), 1);
    }
    let closed = funding.closed_unasked().unwrap();
    assert_eq!(closed.iter().map(|closed| closed.owner).collect::<Vec<_>>(), [unasked.pay_to]);
    assert_eq!(closed[0].resting.returned, usdc(100_000));
    // One refill is borne at once after either, and after the next close the owner that was not asked waits for a day.
    for (accept, hours) in [(&unasked, Some(24)), (&asked, None)] {
        let id = funding.terms(accept).id(&payer.domain());
        let round = |round| [(id, round)];
        funding.check_refill(accept.pay_to, &round(1)).unwrap();
        funding.0.refills.note(accept.pay_to, &round(1), false, clock::now_secs()).await.unwrap();
        if hours.is_none() {
            funding.asks_to_close(&funding.0.channels.get(id).unwrap()).await.unwrap();
        }
        let refused = funding.check_refill(accept.pay_to, &round(2)).err();
        let told = refused.map(|refused| match refused {
            BuyError::OverLimit(OverLimit::ClosedUnasked { hours, .. }) => hours,
            other => panic!("{other}"),
        });
        assert_eq!(told, hours);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_refill_tells_why_and_advises_a_deposit_by_hand_only_where_one_is_made() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, 1).await;
    let accept = accept(&payer, Address::from_bytes([2; 20]));
    for (per_owner, is_asked, told) in [
        (200_000, false, "although this node did not ask"),
        (200_000, true, "emptied and filled too often"),
        (100_000, false, "may hold at most 0.10 USDC"),
    ] {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let funding = limited(payer.clone(), ledger, usdc(per_owner)).await;
        let config = funding.terms(&accept);
        let at = RestingPlace { owner: accept.pay_to, channel: config.id(&payer.domain()) };
        // A deposit of today came back, and as many refills were made as are borne.
        let held = ChannelSum { round: 0, deposited: Usdc::ZERO };
        funding.at_rest().take(at, held, usdc(100_000), usdc(100_000)).unwrap();
        funding.at_rest().made(at, held);
        funding.at_rest().keep(at, held, Instant::now() + COUNTED_FOR);
        for round in 0..6 {
            if is_asked {
                funding.0.refills.ask(at.owner, at.channel, round).await.unwrap();
            }
            let emptied = [(at.channel, round + 1)];
            funding.0.refills.note(at.owner, &emptied, false, clock::now_secs()).await.unwrap();
        }
        if is_asked {
            funding.0.refills.ask(at.owner, at.channel, 6).await.unwrap();
        }
        emptied(&funding.0.channels, config, at.channel, 7);
        let refused = funding.ensure(&accept, usdc(1_000)).await.unwrap_err();
        assert!(matches!(refused, BuyError::OverLimit(_)), "{refused}");
        let refused = refused.to_string();
        assert!(refused.contains(told), "{refused}");
        assert_eq!(refused.contains("farthing channel open"), per_owner == 200_000, "{refused}");
        assert_eq!(funding.at_rest().with_owners()[&at.owner].total(), usdc(100_000), "it takes no place");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_closes_after_a_request_to_the_chain_was_asked() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let owner = Address::from_bytes([2; 20]);
    let config = funding.terms(&accept(&payer, owner));
    let id = config.id(&payer.domain());
    payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
    booked(&funding.0.channels, id, config, (usdc(1_000), 0));
    funding.request_close(&funding.0.channels.get(id).unwrap()).await.unwrap();
    assert!(payer.read_channel(config).await.unwrap().close_at_secs.is_some());
    assert!(funding.0.refills.is_asked(owner, id, 0).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_of_a_former_contract_closes_none_of_the_same_terms_in_this_one() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let config = funding.terms(&accept(&payer, Address::from_bytes([2; 20])));
    payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
    let former = ChannelId::from_bytes([3; 32]);
    booked(&funding.0.channels, former, config, (usdc(1_000), 0));
    let former = PayerChannel { is_elsewhere: true, ..funding.0.channels.get(former).unwrap() };
    let refused = funding.request_close(&former).await;
    assert!(matches!(refused, Err(ChainError::Invalid(_))), "{refused:?}");
    let told = refused.unwrap_err().to_string();
    assert!(
        told.contains("set `chain.preset`, `chain.chain_id` and `chain.contract` back to what they"),
        "{told}"
    );
    assert!(payer.read_channel(config).await.unwrap().close_at_secs.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_that_is_over_before_it_is_asked_for_excuses_no_later_one() {
    let chain = LocalChain::start().await.unwrap();
    let (payer, owner) = (wallet(&chain, 1, u128::MAX / 4).await, wallet(&chain, 2, u128::MAX / 4).await);
    let funding = funding(payer.clone()).await;
    let config = funding.terms(&accept(&payer, owner.wallet()));
    let id = config.id(&payer.domain());
    owner.track(config).await.unwrap();
    payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
    booked(&funding.0.channels, id, config, (usdc(1_000), 0));
    owner.close(nothing(config)).await.unwrap();
    payer.refresh().await.unwrap();
    let before = funding.0.channels.get(id).unwrap();
    assert!(funding.asks_to_close(&before).await.is_none());
    assert!(!funding.0.refills.is_asked(owner.wallet(), id, 1).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_have_lapsed_are_dropped_from_the_ledger_at_the_start() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
    let placed = PlacedDeposits::new(ledger.clone());
    let now_secs = clock::now_secs();
    let deposit = |round, lapses_secs| PlacedDeposit {
        round,
        deposited: Usdc::ZERO,
        amount: usdc(1_000),
        rest_before: Usdc::ZERO,
        paid_before: Usdc::ZERO,
        begun_secs: 1,
        lapses_secs,
        is_made: None,
    };
    let [lapsed, half, elsewhere] = [1, 2, 3].map(|n| RestingPlace {
        owner: Address::from_bytes([n; 20]),
        channel: ChannelId::from_bytes([n; 32]),
    });
    placed.put(lapsed, || vec![deposit(0, now_secs)]).await.unwrap();
    placed.put(half, || vec![deposit(0, now_secs), deposit(1, now_secs + 3_600)]).await.unwrap();
    // Of no channel that the settings name: nobody can tell what became of it.
    let of_former = terms(payer.wallet(), elsewhere.owner);
    placed.put_of(elsewhere, of_former, || vec![deposit(0, now_secs)]).await.unwrap();
    let funding = restored(payer, ledger).await;
    let stored = placed.all().unwrap();
    let stored: Vec<_> = stored.iter().map(|(at, deposit)| (*at, deposit.round)).collect();
    assert_eq!(stored, [(half, 1), (elsewhere, 0)]);
    assert_eq!(funding.at_rest().total(), usdc(1_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_sends_nothing_is_no_filling_of_an_emptied_channel() {
    let chain = LocalChain::start().await.unwrap();
    let funding = funding(wallet(&chain, 1, 1).await).await;
    let accept = accept(&funding.0.chain, Address::from_bytes([2; 20]));
    let config = funding.terms(&accept);
    emptied(&funding.0.channels, config, config.id(&funding.0.chain.domain()), 0);
    // More than are borne at once.
    for _ in 0..10 {
        let failed = funding.ensure(&accept, usdc(1_000)).await.unwrap_err();
        assert!(matches!(failed, BuyError::OpenFailed(ChainError::GasTooDear { .. })), "{failed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_the_token_refuses_sends_nothing_and_one_that_is_made_fills_an_emptied_channel() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let accept = accept(&payer, Address::from_bytes([2; 20]));
    let config = funding.terms(&accept);
    let sent = payer.deposit_onto(config, (0, Usdc::ZERO), usdc(100_000)).await;
    assert!(!sent.as_ref().is_err_and(is_unsent), "{sent:?}");
    // The authorization of this decision is used up.
    let refused = payer.deposit_onto(config, (0, Usdc::ZERO), usdc(200_000)).await;
    assert!(refused.as_ref().is_err_and(is_unsent), "{refused:?}");
    assert!(!refused.as_ref().is_err_and(is_unsigned), "an endpoint has seen its authorization");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_that_was_decided_on_before_its_owner_closed_the_channel_fills_no_emptied_one() {
    let chain = LocalChain::start().await.unwrap();
    let (payer, owner) = (wallet(&chain, 1, u128::MAX / 4).await, wallet(&chain, 2, u128::MAX / 4).await);
    let funding = funding(payer.clone()).await;
    let accept = accept(&payer, owner.wallet());
    let config = funding.terms(&accept);
    owner.track(config).await.unwrap();
    payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
    booked(&funding.0.channels, config.id(&payer.domain()), config, (usdc(1_000), 0));
    // Nobody counts it as a refill. The owner closes while it is looked for, and the books show that later.
    funding.top_up_when_low(&accept, usdc(2_000), async move { owner.close(nothing(config)).await.is_ok() });
    funding.0.tasks.close();
    funding.0.tasks.wait().await;
    // What is decided on what a view shows that lags behind the chain, and on books that lag behind the view.
    for round in [0, 1] {
        let refused = payer.deposit_onto(config, (round, usdc(1_000)), usdc(100_000)).await;
        assert!(matches!(refused, Err(ChainError::Invalid(_))), "{round}: {refused:?}");
    }
    let now = payer.read_channel(config).await.unwrap();
    assert_eq!((now.round, now.deposited, funding.at_rest().in_all().coming), (1, Usdc::ZERO, Usdc::ZERO));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_top_up_is_made_in_the_background_where_a_close_is_asked_for_or_may_be_signed() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    for (n, is_being_asked, is_asked) in [(2, true, false), (3, false, true), (4, false, false)] {
        let accept = accept(&payer, Address::from_bytes([n; 20]));
        let config = funding.terms(&accept);
        let id = config.id(&payer.domain());
        payer.deposit_onto(config, (0, Usdc::ZERO), usdc(1_000)).await.unwrap();
        booked(&funding.0.channels, id, config, (usdc(1_000), 0));
        let turn = funding.try_turn(accept.pay_to).filter(|_| is_being_asked);
        if is_asked {
            funding.asks_to_close(&funding.0.channels.get(id).unwrap()).await.unwrap();
        }
        funding.top_up_when_low(&accept, usdc(2_000), async { true });
        drop(turn);
        let deposited = async || payer.read_channel(config).await.unwrap().deposited;
        if is_being_asked || is_asked {
            funding.0.tasks.close();
            funding.0.tasks.wait().await;
            assert_eq!(deposited().await, usdc(1_000), "{n}");
        } else {
            let filled = async { while deposited().await == usdc(1_000) {} };
            timeout(DEPOSIT_WAIT_MAX, filled).await.expect("any other channel is filled");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deposited_while_a_signed_close_is_on_its_way_also_by_who_waited_for_a_turn_before() {
    let chain = LocalChain::start().await.unwrap();
    let funding = funding(wallet(&chain, 1, 1).await).await;
    let accept = accept(&funding.0.chain, Address::from_bytes([2; 20]));
    let id = funding.terms(&accept).id(&funding.0.chain.domain());
    let turn = funding.turn(accept.pay_to).await;
    let mut by_hand = pin!(funding.deposit_now(&accept, usdc(100_000)));
    assert!(futures::poll!(by_hand.as_mut()).is_pending(), "another deposit is being made");
    let closing = funding.begin_close(id);
    drop(turn);
    let by_hand = by_hand.await;
    let of_a_call = funding.ensure(&accept, usdc(1_000)).await;
    for made in [by_hand, of_a_call, funding.check_served(&accept)] {
        assert!(matches!(made, Err(BuyError::CloseAwaited { channel, .. }) if channel == id), "{made:?}");
    }
    drop(closing);
    funding.check_served(&accept).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_told_of_the_deposit_that_is_made_meanwhile_and_of_none_before() {
    let chain = LocalChain::start().await.unwrap();
    let funding = funding(wallet(&chain, 1, 1).await).await;
    let (owner, since) = (Address::from_bytes([2; 20]), Instant::now());
    let told = |since| funding.awaited(owner, since);
    assert_eq!(told(since), None);
    let being_made = funding.0.begin(owner, usdc(100_000));
    assert_eq!(told(since), Some(AwaitedDeposit::UnderWay(usdc(100_000))));
    drop(being_made);
    assert_eq!(told(since), None, "it has failed");
    let config = funding.terms(&accept(&funding.0.chain, owner));
    booked(&funding.0.channels, config.id(&funding.0.chain.domain()), config, (usdc(100_000), 0));
    assert_eq!(told(since), Some(AwaitedDeposit::Made(usdc(100_000))));
    assert_eq!(told(Instant::now() + COUNTED_FOR), None, "it was made before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_by_hand_leaves_what_is_promised_to_servers() {
    let chain = LocalChain::start().await.unwrap();
    let funding = funding(wallet(&chain, 1, 1).await).await;
    let accept = accept(&funding.0.chain, Address::from_bytes([2; 20]));
    funding.pledge(CallId::from_bytes([1; 16]), usdc(900_000)).unwrap().keep(0);
    let refused = funding.deposit_now(&accept, usdc(100_001)).await.unwrap_err();
    let BuyError::Unfunded(missing) = &refused else { panic!("{refused}") };
    assert_eq!((missing.usdc_have, missing.usdc_need), (usdc(100_000), usdc(100_001)));
    assert_eq!(funding.at_rest().total(), Usdc::ZERO, "nothing was signed");
    // As much as is left is up to the chain, on which gas is too dear for this wallet.
    let tried = funding.deposit_now(&accept, usdc(100_000)).await.unwrap_err();
    assert!(matches!(tried, BuyError::OpenFailed(ChainError::GasTooDear { .. })), "{tried}");
}
