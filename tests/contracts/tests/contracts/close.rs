//! Ending a channel: together and at once, or by the payer alone after the delay. And filling it again.

use alloy::primitives::U256;
use anyhow::Result;
use farthing_contract_tests::{
    MINTER,
    PayChannels::{self, Channel, Claim},
    TestUsdc, events,
};

use crate::world::{DAY, State, World, key};

fn close(claim_: Claim) -> PayChannels::closeCall {
    PayChannels::closeCall { claim_ }
}

fn request_close(terms: &Channel) -> PayChannels::requestCloseCall {
    PayChannels::requestCloseCall { channel: terms.clone() }
}

fn withdraw(terms: &Channel) -> PayChannels::withdrawCall {
    PayChannels::withdrawCall { channel: terms.clone() }
}

/// Asks to close, and lets the delay pass.
async fn let_the_delay_pass(world: &World, terms: &Channel) -> Result<()> {
    let close_at = world.request_close(terms).await?;
    world.chain.mine_at(close_at).await
}

#[tokio::test]
async fn the_payee_closes_with_a_last_claim_and_the_payer_is_refunded_at_once() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.claim(world.voucher(&terms, 200, 200)?).await?;
    let receipt = world.send(terms.payee, &close(world.voucher(&terms, 700, 600)?)).await?;
    assert_eq!(world.balances().await?, (400, 600, 0));
    assert_eq!(world.state(&terms).await?, State { deposited: 600, claimed: 600, close_at: 0 });
    let [event] = &events::<PayChannels::Closed>(&receipt)[..] else { panic!("one close, one event") };
    assert_eq!((event.channelId, event.payer, event.payee), (world.id(&terms), terms.payer, terms.payee));
    assert_eq!(event.refund, 400);
    Ok(())
}

#[tokio::test]
async fn a_close_that_claims_nothing_new_needs_no_voucher() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let nothing = Claim { channel: terms.clone(), ..Claim::default() };
    world.send(terms.payee, &close(nothing)).await?;
    assert_eq!(world.balances().await?, (1_000, 0, 0));
    Ok(())
}

#[tokio::test]
async fn nobody_but_the_payee_closes_at_once() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    for other in [&world.payer, &world.stranger] {
        for total in [0, 500] {
            let call = close(world.voucher(&terms, total, total)?);
            world.refuses::<PayChannels::NotPayee>(other.address(), &call).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_close_with_a_bad_claim_is_refused_as_a_whole() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let forged = close(world.voucher_by(&world.stranger, &terms, 500, 500)?);
    world.refuses::<PayChannels::BadSignature>(terms.payee, &forged).await?;
    let above = close(world.voucher(&terms, 500, 501)?);
    world.refuses::<PayChannels::AmountAboveVoucher>(terms.payee, &above).await
}

#[tokio::test]
async fn what_holds_nothing_cannot_be_closed() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let last = world.voucher(&terms, 1_000, 1_000)?;
    let unopened = world.terms_number(9);
    world.refuses::<PayChannels::NotOpen>(terms.payee, &close(world.voucher(&unopened, 5, 5)?)).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &request_close(&unopened)).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &withdraw(&unopened)).await?;

    world.send(terms.payee, &close(last.clone())).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payee, &close(last)).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &request_close(&terms)).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &withdraw(&terms)).await
}

#[tokio::test]
async fn payer_and_signer_may_ask_to_close_and_nobody_else() -> Result<()> {
    let world = World::start().await?;
    let session = key("a session key");
    for (number, caller) in [(1, world.payer.address()), (2, session.address())] {
        let terms = Channel { signer: session.address(), ..world.terms_number(number) };
        world.open(&terms, 100).await?;
        for other in [&world.payee, &world.stranger] {
            world.refuses::<PayChannels::NotPayerOrSigner>(other.address(), &request_close(&terms)).await?;
        }
        let receipt = world.send(caller, &request_close(&terms)).await?;
        let close_at = world.state(&terms).await?.close_at;
        assert_eq!(close_at, world.chain.now().await? + DAY);
        let [event] = &events::<PayChannels::CloseRequested>(&receipt)[..] else { panic!("one event") };
        assert_eq!((event.channelId, event.closeAt.to::<u64>()), (world.id(&terms), close_at));

        world.chain.mine_at(close_at).await?;
        let before = world.balance(terms.payer).await?;
        world.send(caller, &withdraw(&terms)).await?;
        assert_eq!(world.balance(terms.payer).await? - before, 100, "the money goes to the payer");
        assert_eq!(world.balance(session.address()).await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn asking_again_neither_moves_nor_restarts_the_date() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let close_at = world.request_close(&terms).await?;
    for time in [close_at - 1, close_at, close_at + DAY] {
        world.chain.mine_at(time).await?;
        world.refuses::<PayChannels::CloseAlreadyRequested>(terms.payer, &request_close(&terms)).await?;
    }
    assert_eq!(world.state(&terms).await?.close_at, close_at);
    Ok(())
}

#[tokio::test]
async fn nothing_is_withdrawn_before_the_delay_is_over() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &withdraw(&terms)).await?;
    let close_at = world.request_close(&terms).await?;
    world.refuses::<PayChannels::TooEarly>(terms.payer, &withdraw(&terms)).await?;
    world.chain.mine_at(close_at - 1).await?;
    world.refuses::<PayChannels::TooEarly>(terms.payer, &withdraw(&terms)).await?;
    world.chain.mine_at(close_at).await?;
    let receipt = world.send(terms.payer, &withdraw(&terms)).await?;
    assert_eq!(world.balances().await?, (1_000, 0, 0));
    let [event] = &events::<PayChannels::Withdrawn>(&receipt)[..] else { panic!("one event") };
    assert_eq!((event.channelId, event.refund), (world.id(&terms), 1_000));
    world.refuses::<PayChannels::NotOpen>(terms.payer, &withdraw(&terms)).await
}

#[tokio::test]
async fn the_payee_may_claim_during_the_delay_and_until_the_withdrawal() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let close_at = world.request_close(&terms).await?;
    world.claim(world.voucher(&terms, 300, 300)?).await?;
    world.chain.mine_at(close_at + DAY).await?;
    world.claim(world.voucher(&terms, 400, 400)?).await?;
    assert_eq!(world.state(&terms).await?.close_at, close_at, "a claim does not touch the pending close");
    world.send(terms.payer, &withdraw(&terms)).await?;
    assert_eq!(world.balances().await?, (600, 400, 0));
    let late = PayChannels::claimCall { claim_: world.voucher(&terms, 500, 500)? };
    world.refuses::<PayChannels::NothingToClaim>(terms.payee, &late).await
}

#[tokio::test]
async fn the_payee_may_close_while_the_payers_close_is_pending() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.request_close(&terms).await?;
    world.send(terms.payee, &close(world.voucher(&terms, 300, 300)?)).await?;
    assert_eq!(world.balances().await?, (700, 300, 0));
    assert_eq!(world.state(&terms).await?, State { deposited: 300, claimed: 300, close_at: 0 });
    Ok(())
}

#[tokio::test]
async fn a_drained_channel_leaves_its_pending_close_by_either_side() -> Result<()> {
    let world = World::start().await?;
    for (number, by_payer) in [(1, true), (2, false)] {
        let terms = world.terms_number(number);
        world.open(&terms, 100).await?;
        let close_at = world.request_close(&terms).await?;
        let last = world.voucher(&terms, 100, 100)?;
        world.claim(last.clone()).await?;
        if by_payer {
            world.chain.mine_at(close_at).await?;
            world.send(terms.payer, &withdraw(&terms)).await?;
        } else {
            world.send(terms.payee, &close(last)).await?;
        }
        assert_eq!(world.state(&terms).await?, State { deposited: 100, claimed: 100, close_at: 0 });
    }
    Ok(())
}

#[tokio::test]
async fn claimed_stays_through_withdrawal_and_a_new_deposit() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let old = world.voucher(&terms, 300, 300)?;
    world.claim(old.clone()).await?;
    let_the_delay_pass(&world, &terms).await?;
    world.send(terms.payer, &withdraw(&terms)).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 300, claimed: 300, close_at: 0 });

    world.open(&terms, 500).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 800, claimed: 300, close_at: 0 });
    world
        .refuses::<PayChannels::NothingToClaim>(terms.payee, &PayChannels::claimCall { claim_: old })
        .await?;
    world.claim(world.voucher(&terms, 450, 450)?).await?;
    assert_eq!(world.balance(terms.payee).await?, 450, "the new voucher pays what the old one did not");
    Ok(())
}

#[tokio::test]
async fn a_withdrawal_that_the_token_refuses_can_be_repeated() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let_the_delay_pass(&world, &terms).await?;
    let before = world.state(&terms).await?;
    world.usdc(MINTER, &TestUsdc::pauseCall {}).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payer, &withdraw(&terms)).await?;
    world.usdc(MINTER, &TestUsdc::unpauseCall {}).await?;
    world.blacklist(terms.payer).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payer, &withdraw(&terms)).await?;
    world.unblacklist(terms.payer).await?;
    assert_eq!(world.state(&terms).await?, before);
    world.send(terms.payer, &withdraw(&terms)).await?;
    assert_eq!(world.balances().await?, (1_000, 0, 0));
    Ok(())
}

#[tokio::test]
async fn channels_of_one_pair_do_not_touch_each_other() -> Result<()> {
    let world = World::start().await?;
    let (first, second) = (world.terms_number(1), world.terms_number(2));
    world.open(&first, 1_000).await?;
    world.open(&second, 1_000).await?;
    let_the_delay_pass(&world, &first).await?;
    world.send(first.payer, &withdraw(&first)).await?;
    assert_eq!(world.state(&second).await?, State { deposited: 1_000, ..State::default() });
    world.claim(world.voucher(&second, 1_000, 1_000)?).await?;
    let supply = world.chain.read(world.chain.usdc, &TestUsdc::totalSupplyCall {}).await?;
    assert_eq!(supply, U256::from(2_000));
    assert_eq!(world.balances().await?, (1_000, 1_000, 0));
    Ok(())
}
