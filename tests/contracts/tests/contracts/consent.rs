//! Words that others bring: a close signed by the payee, a request to close signed by payer or signer, and a
//! withdrawal by anyone. None of them counts twice, or for more than it says.

use alloy::{
    primitives::{B256, U256},
    signers::local::PrivateKeySigner,
};
use anyhow::Result;
use farthing_contract_tests::{
    CHAIN_ID,
    PayChannels::{self, Channel, Claim, Consent},
    events,
};
use farthing_values::{Address, ChannelId, CloseConsent, CloseRequest, Domain, SecretKey, Signature, Usdc};

use crate::{
    claim::ORDER,
    world::{DAY, HOUR, NEVER, State, U40, World, key},
};

/// Signed as a node signs it, by the protocol's own code.
pub(crate) fn close_consent(
    world: &World,
    payee: &PrivateKeySigner,
    terms: &Channel,
    amount: u128,
    state: (State, u32),
    deadline_secs: u64,
) -> Result<Consent> {
    let usdc = |amount: u128| Usdc::try_from(amount);
    let (State { deposited, .. }, round) = state;
    let channel = ChannelId::from_bytes(world.id(terms).0);
    let (amount, deposited) = (usdc(amount)?, usdc(deposited)?);
    let consent = CloseConsent { channel, amount, deposited, round, deadline_secs };
    Ok(compact(&consent.sign(&domain(world), &secret(payee)?), deadline_secs))
}

pub(crate) fn close_request(
    world: &World,
    signer: &PrivateKeySigner,
    terms: &Channel,
    round: u32,
    deadline_secs: u64,
) -> Result<PayChannels::requestCloseBySignatureCall> {
    let request = CloseRequest { channel: ChannelId::from_bytes(world.id(terms).0), round, deadline_secs };
    let consent = compact(&request.sign(&domain(world), &secret(signer)?), deadline_secs);
    Ok(PayChannels::requestCloseBySignatureCall { channel: terms.clone(), consent })
}

fn domain(world: &World) -> Domain {
    Domain::new(CHAIN_ID, Address::from_bytes(world.chain.channels.into_array()))
}

fn secret(signer: &PrivateKeySigner) -> Result<SecretKey> {
    Ok(SecretKey::from_bytes(&signer.to_bytes().0)?)
}

fn compact(signature: &Signature, deadline_secs: u64) -> Consent {
    let bytes = signature.as_bytes();
    let (r, mut vs) = (B256::from_slice(&bytes[..32]), B256::from_slice(&bytes[32..64]));
    vs.0[0] |= (bytes[64] - 27) << 7;
    Consent { deadline: U40::from(deadline_secs), r, vs }
}

/// The payee's word on the channel as it is now, with a voucher for the amount.
pub(crate) async fn signed_close(
    world: &World,
    terms: &Channel,
    amount: u128,
) -> Result<PayChannels::closeBySignatureCall> {
    let state = (world.state(terms).await?, world.round(terms).await?);
    let consent = close_consent(world, &world.payee, terms, amount, state, NEVER)?;
    Ok(PayChannels::closeBySignatureCall { claim_: world.voucher(terms, amount, amount)?, consent })
}

fn withdraw(terms: &Channel) -> PayChannels::withdrawCall {
    PayChannels::withdrawCall { channel: terms.clone() }
}

#[tokio::test]
async fn the_payer_brings_the_payees_close_and_pays_for_the_gas() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.claim(world.voucher(&terms, 100, 100)?).await?;
    let close = signed_close(&world, &terms, 600).await?;
    let receipt = world.send(terms.payer, &close).await?;
    assert_eq!(world.balances().await?, (400, 600, 0));
    assert_eq!(world.state(&terms).await?, State { deposited: 600, claimed: 600, close_at: 0 });
    let [event] = &events::<PayChannels::Closed>(&receipt)[..] else { panic!("one close, one event") };
    assert_eq!((event.channelId, event.token, event.refund), (world.id(&terms), terms.token, 400));
    Ok(())
}

#[tokio::test]
async fn a_signed_close_of_a_channel_that_bought_nothing_needs_no_voucher() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let mut close = signed_close(&world, &terms, 0).await?;
    close.claim_ = Claim { channel: terms.clone(), ..Claim::default() };
    world.send(world.stranger.address(), &close).await?;
    assert_eq!(world.balances().await?, (1_000, 0, 0), "whoever brings it, the money goes where it belongs");
    Ok(())
}

#[tokio::test]
async fn a_signed_close_never_takes_back_what_the_payee_earned_after_it() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    // Claimed beyond the signed total.
    let close = signed_close(&world, &terms, 200).await?;
    world.claim(world.voucher(&terms, 300, 300)?).await?;
    world.refuses::<PayChannels::Outdated>(terms.payer, &close).await?;
    // Topped up.
    let close = signed_close(&world, &terms, 300).await?;
    world.open(&terms, 500).await?;
    world.refuses::<PayChannels::BadConsent>(terms.payer, &close).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 1_500, claimed: 300, close_at: 0 });
    // Exactly the signed total is no obstacle: it was claimed by the payee itself.
    let close = signed_close(&world, &terms, 300).await?;
    world.send(terms.payer, &close).await?;
    assert_eq!(world.balances().await?, (1_200, 300, 0));
    Ok(())
}

#[tokio::test]
async fn a_signed_close_does_not_come_back_when_the_channel_is_filled_again_to_the_same_sum() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let close = signed_close(&world, &terms, 0).await?;
    world.send(terms.payer, &close).await?;
    world.open(&terms, 1_000).await?;
    // Deposited and claimed are what they were when it was signed; what was earned since is not on the chain.
    assert_eq!(world.state(&terms).await?, State { deposited: 1_000, claimed: 0, close_at: 0 });
    world.refuses::<PayChannels::BadConsent>(terms.payer, &close).await?;
    // The same after a withdrawal.
    let close = signed_close(&world, &terms, 0).await?;
    let close_at = world.request_close(&terms).await?;
    world.chain.mine_at(close_at).await?;
    world.send(terms.payer, &withdraw(&terms)).await?;
    world.open(&terms, 1_000).await?;
    world.refuses::<PayChannels::BadConsent>(terms.payer, &close).await
}

#[tokio::test]
async fn a_signed_close_counts_to_the_amount_the_signer_and_the_second() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let state = (world.state(&terms).await?, world.round(&terms).await?);
    let deadline = world.chain.now().await? + HOUR;
    let consent = close_consent(&world, &world.payee, &terms, 500, state, deadline)?;
    let with =
        |claim_, consent: &Consent| PayChannels::closeBySignatureCall { claim_, consent: consent.clone() };
    for amount in [0, 499, 501] {
        let call = with(world.voucher(&terms, amount, amount)?, &consent);
        world.refuses::<PayChannels::BadConsent>(terms.payer, &call).await?;
    }
    let good = world.voucher(&terms, 500, 500)?;
    for other in [&world.payer, &world.stranger] {
        let forged = close_consent(&world, other, &terms, 500, state, deadline)?;
        world.refuses::<PayChannels::BadConsent>(terms.payer, &with(good.clone(), &forged)).await?;
    }
    let later = Consent { deadline: U40::from(deadline + 1), ..consent.clone() };
    world.refuses::<PayChannels::BadConsent>(terms.payer, &with(good.clone(), &later)).await?;
    // The voucher is still the signer's to give.
    let forged = with(world.voucher_by(&world.stranger, &terms, 500, 500)?, &consent);
    world.refuses::<PayChannels::BadSignature>(terms.payer, &forged).await?;
    let short = with(world.voucher(&terms, 499, 500)?, &consent);
    world.refuses::<PayChannels::AmountAboveVoucher>(terms.payer, &short).await?;

    world.chain.mine_at(deadline + 1).await?;
    world.refuses::<PayChannels::Expired>(terms.payer, &with(good, &consent)).await
}

#[tokio::test]
async fn a_signed_close_counts_in_its_last_second() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let state = (world.state(&terms).await?, world.round(&terms).await?);
    let deadline = world.chain.now().await? + HOUR;
    let consent = close_consent(&world, &world.payee, &terms, 500, state, deadline)?;
    let close = PayChannels::closeBySignatureCall { claim_: world.voucher(&terms, 500, 500)?, consent };
    world.chain.mine_at(deadline - 1).await?;
    world.chain.request::<_, ()>("evm_setNextBlockTimestamp", (deadline,)).await?;
    world.send(terms.payer, &close).await.map(drop)
}

#[tokio::test]
async fn anyone_brings_the_request_of_payer_or_signer_and_of_nobody_else() -> Result<()> {
    let world = World::start().await?;
    let session = key("a session key");
    for (number, signer) in [(1, &world.payer), (2, &session)] {
        let terms = Channel { signer: session.address(), ..world.terms_number(number) };
        world.open(&terms, 100).await?;
        for other in [&world.payee, &world.stranger] {
            let call = close_request(&world, other, &terms, 0, NEVER)?;
            world.refuses::<PayChannels::BadConsent>(terms.payer, &call).await?;
        }
        let receipt =
            world.send(world.stranger.address(), &close_request(&world, signer, &terms, 0, NEVER)?).await?;
        let close_at = world.state(&terms).await?.close_at;
        assert_eq!(close_at, world.chain.now().await? + DAY);
        let [event] = &events::<PayChannels::CloseRequested>(&receipt)[..] else { panic!("one event") };
        assert_eq!((event.channelId, event.closeAt.to::<u64>()), (world.id(&terms), close_at));
    }
    Ok(())
}

#[tokio::test]
async fn a_signed_request_is_void_after_its_deadline_and_once_the_channel_was_emptied() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let late = close_request(&world, &world.payer, &terms, 0, world.chain.now().await? + HOUR)?;
    let request = close_request(&world, &world.payer, &terms, 0, NEVER)?;
    world.chain.mine_at(world.chain.now().await? + HOUR + 1).await?;
    world.refuses::<PayChannels::Expired>(terms.payer, &late).await?;

    world.send(world.stranger.address(), &request).await?;
    world.refuses::<PayChannels::CloseAlreadyRequested>(world.stranger.address(), &request).await?;
    world.chain.mine_at(world.state(&terms).await?.close_at).await?;
    world.send(world.stranger.address(), &withdraw(&terms)).await?;
    world.refuses::<PayChannels::BadConsent>(world.stranger.address(), &request).await?;
    world.open(&terms, 1_000).await?;
    world.refuses::<PayChannels::BadConsent>(world.stranger.address(), &request).await?;
    assert_eq!(world.state(&terms).await?.close_at, 0, "the new deposit is not closing");
    // For an empty channel a request is refused as one sent by the payer is.
    let empty = world.terms_number(9);
    let request = close_request(&world, &world.payer, &empty, 0, NEVER)?;
    world.refuses::<PayChannels::NotOpen>(world.stranger.address(), &request).await
}

#[tokio::test]
async fn signatures_of_other_forms_are_no_consent() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let good = close_request(&world, &world.payer, &terms, 0, NEVER)?;
    let s: U256 = U256::from_be_bytes(good.consent.vs.0) & (U256::MAX >> 1);
    let high: U256 = ORDER - s;
    let parity = good.consent.vs.0[0] >> 7;
    let mut twin = high.to_be_bytes::<32>();
    twin[0] |= (1 - parity) << 7;
    for (r, vs) in
        [(good.consent.r, B256::from(twin)), (B256::ZERO, B256::ZERO), (good.consent.vs, good.consent.r)]
    {
        let mut call = good.clone();
        (call.consent.r, call.consent.vs) = (r, vs);
        world.refuses::<PayChannels::BadConsent>(terms.payer, &call).await?;
    }
    // A voucher is no request, and a request no close.
    let voucher = world.voucher(&terms, 1_000, 1_000)?;
    let mut call = good;
    (call.consent.r, call.consent.vs) = (voucher.r, voucher.vs);
    world.refuses::<PayChannels::BadConsent>(terms.payer, &call).await
}

#[tokio::test]
async fn a_buyer_without_ether_leaves_an_owner_that_vanished() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.claim(world.voucher(&terms, 250, 250)?).await?;
    let friend = world.stranger.address();
    world.send(friend, &close_request(&world, &world.payer, &terms, 0, NEVER)?).await?;
    world.refuses::<PayChannels::TooEarly>(friend, &withdraw(&terms)).await?;
    world.chain.mine_at(world.state(&terms).await?.close_at).await?;
    let receipt = world.send(friend, &withdraw(&terms)).await?;
    assert_eq!(world.balances().await?, (750, 250, 0));
    assert_eq!(world.balance(friend).await?, 0, "the friend only paid for the gas");
    let [event] = &events::<PayChannels::Withdrawn>(&receipt)[..] else { panic!("one event") };
    assert_eq!((event.payer, event.refund), (terms.payer, 750));
    Ok(())
}
