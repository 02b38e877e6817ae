//! Opening a channel and adding to it, by allowance and by authorization.

use alloy::primitives::{Address, B256, Bytes, U256};
use anyhow::Result;
use farthing_contract_tests::{
    CHAIN_ID, HostileToken,
    PayChannels::{self, Channel},
    TestUsdc, events,
};
use farthing_values::{ChannelConfig, Domain};

use crate::world::{DAY, HOUR, State, U40, World};

#[tokio::test]
async fn a_deposit_moves_the_payers_allowance_into_the_channel() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 1_000, ..State::default() });
    assert_eq!(world.balances().await?, (0, 0, 1_000));

    world.open(&terms, 500).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 1_500, ..State::default() }, "a top-up adds");
    Ok(())
}

#[tokio::test]
async fn a_deposit_event_holds_all_that_rebuilds_the_channel() -> Result<()> {
    let world = World::start().await?;
    let terms = Channel { signer: world.stranger.address(), ..world.terms_number(7) };
    world.open(&terms, 600).await?;
    let receipt = world.open(&terms, 400).await?;

    let [event] = &events::<PayChannels::Deposited>(&receipt)[..] else { panic!("one deposit, one event") };
    let rebuilt = Channel {
        payer: event.payer,
        payee: event.payee,
        token: event.token,
        signer: event.signer,
        closeDelay: event.closeDelay,
        salt: event.salt,
    };
    assert_eq!(world.id(&rebuilt), event.channelId);
    assert_eq!((event.amount, event.deposited), (400, 1_000));
    Ok(())
}

#[tokio::test]
async fn either_side_finds_its_channels_from_logs_alone_and_nothing_of_other_tokens() -> Result<()> {
    let world = World::start().await?;
    let terms = [world.terms_number(1), world.terms_number(2)];
    for channel in &terms {
        world.open(channel, 100).await?;
    }
    // Somebody names both of them in events about a token of its own.
    let token = world.chain.deploy(HostileToken::BYTECODE.clone()).await?;
    let mint = HostileToken::mintCall { to: world.payer.address(), value: U256::from(100) };
    world.chain.send(world.stranger.address(), token, &mint).await?;
    let forged = PayChannels::depositWithAuthorizationCall {
        channel: Channel { token, ..world.terms_number(3) },
        amount: 100,
        ..Default::default()
    };
    world.send(world.stranger.address(), &forged).await?;
    for (position, account) in [(1, world.payer.address()), (2, world.payee.address())] {
        let mut topics = vec![serde_json::Value::Null; 4];
        topics[3] = serde_json::to_value(world.chain.usdc.into_word())?;
        topics[position] = serde_json::to_value(account.into_word())?;
        let filter = serde_json::json!({
            "fromBlock": "earliest", "address": world.chain.channels, "topics": topics,
        });
        let logs: Vec<alloy::rpc::types::Log> = world.chain.request("eth_getLogs", (filter,)).await?;
        let found: Vec<B256> = logs.iter().map(|log| B256::from_slice(&log.inner.data.data[..32])).collect();
        assert_eq!(found, terms.each_ref().map(|channel| world.id(channel)));
    }
    Ok(())
}

#[tokio::test]
async fn contract_node_and_eip_712_agree_on_a_channels_id() -> Result<()> {
    let world = World::start().await?;
    let terms = Channel { signer: world.stranger.address(), salt: B256::repeat_byte(0xa5), ..world.terms() };
    let on_chain = world.view(Address::ZERO, &PayChannels::channelIdCall { channel: terms.clone() }).await?;
    assert_eq!(on_chain, world.id(&terms));

    let address = |a: Address| farthing_values::Address::from_bytes(a.into_array());
    let domain = Domain::new(CHAIN_ID, address(world.chain.channels));
    let config = ChannelConfig {
        payer: address(terms.payer),
        payee: address(terms.payee),
        token: address(terms.token),
        signer: address(terms.signer),
        close_delay_secs: terms.closeDelay.to(),
        salt: terms.salt.0,
    };
    assert_eq!(on_chain.0, *config.id(&domain).as_bytes());
    let separator = world.view(Address::ZERO, &PayChannels::DOMAIN_SEPARATORCall {}).await?;
    assert_eq!(separator, world.chain.domain().separator());
    assert_eq!(separator.0, *domain.separator());
    Ok(())
}

#[tokio::test]
async fn only_the_payer_deposits_from_its_allowance() -> Result<()> {
    let world = World::start().await?;
    world.prepare_deposit(1_000).await?;
    let call = PayChannels::depositCall { channel: world.terms(), amount: 1_000 };
    for other in [&world.payee, &world.stranger] {
        world.refuses::<PayChannels::NotPayer>(other.address(), &call).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_deposit_needs_allowance_balance_and_an_amount() -> Result<()> {
    let world = World::start().await?;
    world.prepare_deposit(1_000).await?;
    let payer = world.payer.address();
    let deposit = |amount| PayChannels::depositCall { channel: world.terms(), amount };
    world.refuses::<PayChannels::TransferFailed>(payer, &deposit(1_001)).await?;
    world.refuses::<PayChannels::NothingReceived>(payer, &deposit(0)).await?;
    world.usdc(payer, &TestUsdc::transferCall { to: world.payee.address(), value: U256::from(1) }).await?;
    world.refuses::<PayChannels::TransferFailed>(payer, &deposit(1_000)).await?;
    world.send(payer, &deposit(999)).await?;
    Ok(())
}

#[tokio::test]
async fn terms_outside_their_limits_open_no_channel() -> Result<()> {
    let world = World::start().await?;
    let payer = world.payer.address();
    world.prepare_deposit(1_000).await?;
    let usual = world.terms();
    let delay = |seconds: u64| Channel { closeDelay: U40::from(seconds), ..usual.clone() };
    let bad = [
        Channel { payee: Address::ZERO, ..usual.clone() },
        Channel { signer: Address::ZERO, ..usual.clone() },
        delay(0),
        delay(HOUR - 1),
        delay(30 * DAY + 1),
        delay((1 << 40) - 1),
    ];
    for channel in bad {
        let authorized = world.authorize(&channel, 1_000, 1).await?;
        world.refuses::<PayChannels::BadTerms>(payer, &authorized).await?;
        world
            .refuses::<PayChannels::BadTerms>(payer, &PayChannels::depositCall { channel, amount: 1 })
            .await?;
    }
    let nobody = Channel { payer: Address::ZERO, ..usual.clone() };
    let call = PayChannels::depositCall { channel: nobody, amount: 1 };
    world.refuses::<PayChannels::BadTerms>(Address::ZERO, &call).await?;
    for channel in [delay(HOUR), delay(30 * DAY)] {
        world.send(payer, &PayChannels::depositCall { channel, amount: 1 }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_token_without_code_opens_no_channel() -> Result<()> {
    let world = World::start().await?;
    let channel = Channel { token: world.stranger.address(), ..world.terms() };
    let call = PayChannels::depositCall { channel, amount: 1 };
    assert!(world.chain.call(world.payer.address(), world.chain.channels, &call).await?.is_err());
    Ok(())
}

#[tokio::test]
async fn the_largest_total_fits_its_slot_and_one_unit_more_is_refused() -> Result<()> {
    let world = World::start().await?;
    let payer = world.payer.address();
    let token = world.chain.deploy(HostileToken::BYTECODE.clone()).await?;
    let largest = (1_u128 << 96) - 1;
    let mint = HostileToken::mintCall { to: payer, value: U256::MAX >> 1 };
    world.chain.send(payer, token, &mint).await?;
    let deposit = |number, amount| PayChannels::depositCall {
        channel: Channel { token, ..world.terms_number(number) },
        amount,
    };
    world.refuses::<PayChannels::DepositTooLarge>(payer, &deposit(1, largest + 1)).await?;
    world.refuses::<PayChannels::DepositTooLarge>(payer, &deposit(1, u128::MAX)).await?;
    world.send(payer, &deposit(1, largest)).await?;
    assert_eq!(world.state(&deposit(1, 0).channel).await?.deposited, largest);
    world.refuses::<PayChannels::DepositTooLarge>(payer, &deposit(1, 1)).await?;

    world.send(payer, &deposit(2, largest - 1)).await?;
    world.send(payer, &deposit(2, 1)).await?;
    Ok(())
}

#[tokio::test]
async fn anyone_may_relay_an_authorized_deposit() -> Result<()> {
    let world = World::start().await?;
    world.mint(world.payer.address(), 1_000).await?;
    let terms = world.terms();
    let call = world.authorize(&terms, 700, 1).await?;
    world.send(world.stranger.address(), &call).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 700, ..State::default() });
    assert_eq!(world.balances().await?, (300, 0, 700));
    Ok(())
}

#[tokio::test]
async fn an_authorized_deposit_cannot_be_redirected_or_changed() -> Result<()> {
    let world = World::start().await?;
    world.mint(world.payer.address(), 1_000).await?;
    let stranger = world.stranger.address();
    let signed = world.authorize(&world.terms(), 700, 1).await?;

    let redirect = |channel| PayChannels::depositWithAuthorizationCall { channel, ..signed.clone() };
    let mut changed = vec![
        redirect(Channel { payee: stranger, ..world.terms() }),
        redirect(Channel { signer: stranger, ..world.terms() }),
        redirect(Channel { closeDelay: U40::from(HOUR), ..world.terms() }),
        redirect(world.terms_number(2)),
    ];
    changed.push(PayChannels::depositWithAuthorizationCall { amount: 701, ..signed.clone() });
    changed.push(PayChannels::depositWithAuthorizationCall { authSalt: B256::ZERO, ..signed.clone() });
    changed.push(PayChannels::depositWithAuthorizationCall { validBefore: U256::MAX, ..signed.clone() });
    changed.push(PayChannels::depositWithAuthorizationCall { signature: Bytes::new(), ..signed.clone() });
    for call in &changed {
        world.refuses::<TestUsdc::InvalidSignature>(stranger, call).await?;
    }
    world.send(stranger, &signed).await?;
    Ok(())
}

#[tokio::test]
async fn an_authorized_deposit_cannot_be_taken_out_of_the_contracts_hands() -> Result<()> {
    let world = World::start().await?;
    let (payer, stranger) = (world.payer.address(), world.stranger.address());
    world.mint(payer, 1_000).await?;
    let terms = world.terms();
    let signed = world.authorize(&terms, 700, 1).await?;
    let nonce = world.authorization_nonce(&terms, 1);

    let receive = TestUsdc::receiveWithAuthorization_0Call {
        from: payer,
        to: world.chain.channels,
        value: U256::from(700),
        validAfter: signed.validAfter,
        validBefore: signed.validBefore,
        nonce,
        signature: signed.signature.clone(),
    };
    world.refuses_at::<TestUsdc::CallerNotRecipient>(world.chain.usdc, stranger, &receive).await?;
    let transfer = TestUsdc::transferWithAuthorization_0Call {
        from: payer,
        to: world.chain.channels,
        value: U256::from(700),
        validAfter: signed.validAfter,
        validBefore: signed.validBefore,
        nonce,
        signature: signed.signature.clone(),
    };
    world.refuses_at::<TestUsdc::InvalidSignature>(world.chain.usdc, stranger, &transfer).await?;
    Ok(())
}

#[tokio::test]
async fn one_authorization_is_one_deposit() -> Result<()> {
    let world = World::start().await?;
    world.mint(world.payer.address(), 2_000).await?;
    let terms = world.terms();
    let call = world.authorize(&terms, 700, 1).await?;
    world.send(world.stranger.address(), &call).await?;
    world.refuses::<TestUsdc::AuthorizationUsedOrCanceled>(world.stranger.address(), &call).await?;
    world.send(world.stranger.address(), &world.authorize(&terms, 700, 2).await?).await?;
    assert_eq!(world.state(&terms).await?.deposited, 1_400);
    Ok(())
}

#[tokio::test]
async fn an_authorization_holds_only_between_its_dates() -> Result<()> {
    let world = World::start().await?;
    let relayer = world.stranger.address();
    world.mint(world.payer.address(), 1_000).await?;
    let start = world.chain.now().await? + 100;
    let call = world.authorize_by(&world.payer, &world.terms(), 100, 1, start, start + 10).await?;
    world.chain.mine_at(start).await?;
    world.refuses::<TestUsdc::AuthorizationNotYetValid>(relayer, &call).await?;
    world.chain.mine_at(start + 1).await?;
    world.view(relayer, &call).await?;
    world.chain.mine_at(start + 9).await?;
    world.view(relayer, &call).await?;
    world.chain.mine_at(start + 10).await?;
    world.refuses::<TestUsdc::AuthorizationExpired>(relayer, &call).await
}
