//! The test token has USDC's surface: what a node relies on there holds here.

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    signers::{Signature, SignerSync as _},
    sol,
    sol_types::SolStruct,
};
use anyhow::Result;
use farthing_contract_tests::{MINTER, TestAccount, TestUsdc, TransferWithAuthorization};

use crate::world::{NEVER, World, digest};

sol! {
    struct CancelAuthorization { address authorizer; bytes32 nonce; }
    struct Permit { address owner; address spender; uint256 value; uint256 nonce; uint256 deadline; }
}

/// The payer's signature over a struct in the token's domain.
async fn sign(world: &World, message: &impl SolStruct) -> Result<Signature> {
    let separator = world.chain.read(world.chain.usdc, &TestUsdc::DOMAIN_SEPARATORCall {}).await?;
    Ok(world.payer.sign_hash_sync(&digest(separator, message.eip712_hash_struct()))?)
}

fn bytes(signature: &Signature) -> Bytes {
    Bytes::from(signature.as_bytes())
}

fn words(signature: &Signature) -> (u8, B256, B256) {
    (27 + u8::from(signature.v()), signature.r().into(), signature.s().into())
}

fn transfer_message(world: &World, value: u64, nonce: B256) -> TransferWithAuthorization {
    TransferWithAuthorization {
        from: world.payer.address(),
        to: world.payee.address(),
        value: U256::from(value),
        validAfter: U256::ZERO,
        validBefore: U256::from(NEVER),
        nonce,
    }
}

fn transfer_bytes(
    message: &TransferWithAuthorization,
    signature: Bytes,
) -> TestUsdc::transferWithAuthorization_0Call {
    let TransferWithAuthorization { from, to, value, validAfter, validBefore, nonce } = message.clone();
    TestUsdc::transferWithAuthorization_0Call { from, to, value, validAfter, validBefore, nonce, signature }
}

async fn funded() -> Result<World> {
    let world = World::start().await?;
    world.mint(world.payer.address(), 1_000).await?;
    Ok(world)
}

#[tokio::test]
async fn the_token_describes_itself_as_usdc_does() -> Result<()> {
    let world = World::start().await?;
    let usdc = world.chain.usdc;
    assert_eq!(world.chain.read(usdc, &TestUsdc::nameCall {}).await?, "USDC");
    assert_eq!(world.chain.read(usdc, &TestUsdc::symbolCall {}).await?, "USDC");
    assert_eq!(world.chain.read(usdc, &TestUsdc::versionCall {}).await?, "2");
    assert_eq!(world.chain.read(usdc, &TestUsdc::decimalsCall {}).await?, 6);
    let coin = world.chain.deploy_token("USD Coin", "2").await?;
    let separator = alloy::sol_types::eip712_domain! {
        name: "USD Coin", version: "2", chain_id: farthing_contract_tests::CHAIN_ID, verifying_contract: coin,
    };
    assert_eq!(world.chain.read(coin, &TestUsdc::DOMAIN_SEPARATORCall {}).await?, separator.separator());
    Ok(())
}

#[tokio::test]
async fn an_authorized_transfer_works_in_both_flavours_and_once() -> Result<()> {
    let world = funded().await?;
    let relayer = world.stranger.address();
    let first = transfer_message(&world, 100, B256::repeat_byte(1));
    let call = transfer_bytes(&first, bytes(&sign(&world, &first).await?));
    world.usdc(relayer, &call).await?;
    world.refuses_at::<TestUsdc::AuthorizationUsedOrCanceled>(world.chain.usdc, relayer, &call).await?;

    let second = transfer_message(&world, 200, B256::repeat_byte(2));
    let (v, r, s) = words(&sign(&world, &second).await?);
    let TransferWithAuthorization { from, to, value, validAfter, validBefore, nonce } = second;
    let call = TestUsdc::transferWithAuthorization_1Call {
        from,
        to,
        value,
        validAfter,
        validBefore,
        nonce,
        v,
        r,
        s,
    };
    world.usdc(relayer, &call).await?;
    assert_eq!(world.balances().await?, (700, 300, 0));
    let used = TestUsdc::authorizationStateCall { authorizer: from, nonce };
    assert!(world.chain.read(world.chain.usdc, &used).await?);
    Ok(())
}

#[tokio::test]
async fn a_receive_authorization_is_for_its_recipient_alone() -> Result<()> {
    let world = funded().await?;
    let message = farthing_contract_tests::ReceiveWithAuthorization {
        from: world.payer.address(),
        to: world.payee.address(),
        value: U256::from(100),
        validAfter: U256::ZERO,
        validBefore: U256::from(NEVER),
        nonce: B256::repeat_byte(1),
    };
    let (v, r, s) = words(&sign(&world, &message).await?);
    let call = TestUsdc::receiveWithAuthorization_1Call {
        from: message.from,
        to: message.to,
        value: message.value,
        validAfter: message.validAfter,
        validBefore: message.validBefore,
        nonce: message.nonce,
        v,
        r,
        s,
    };
    world
        .refuses_at::<TestUsdc::CallerNotRecipient>(world.chain.usdc, world.stranger.address(), &call)
        .await?;
    world.usdc(world.payee.address(), &call).await?;
    assert_eq!(world.balances().await?, (900, 100, 0));
    Ok(())
}

#[tokio::test]
async fn a_canceled_authorization_moves_nothing() -> Result<()> {
    let world = funded().await?;
    let (payer, relayer, usdc) = (world.payer.address(), world.stranger.address(), world.chain.usdc);
    for (nonce, by_words) in [(B256::repeat_byte(1), true), (B256::repeat_byte(2), false)] {
        let message = transfer_message(&world, 100, nonce);
        let transfer = transfer_bytes(&message, bytes(&sign(&world, &message).await?));
        let cancel = CancelAuthorization { authorizer: payer, nonce };
        let signature = sign(&world, &cancel).await?;
        if by_words {
            let (v, r, s) = words(&signature);
            world
                .usdc(relayer, &TestUsdc::cancelAuthorization_0Call { authorizer: payer, nonce, v, r, s })
                .await?;
        } else {
            let signature = bytes(&signature);
            world
                .usdc(relayer, &TestUsdc::cancelAuthorization_1Call { authorizer: payer, nonce, signature })
                .await?;
        }
        world.refuses_at::<TestUsdc::AuthorizationUsedOrCanceled>(usdc, relayer, &transfer).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_account_with_code_answers_for_its_own_signatures() -> Result<()> {
    let world = funded().await?;
    let (relayer, usdc) = (world.stranger.address(), world.chain.usdc);
    let account = world.chain.deploy(TestAccount::BYTECODE.clone()).await?;
    world.mint(account, 500).await?;
    let message = TransferWithAuthorization { from: account, ..transfer_message(&world, 100, B256::ZERO) };
    let call = transfer_bytes(&message, Bytes::from_static(b"any"));
    world.refuses_at::<TestUsdc::InvalidSignature>(usdc, relayer, &call).await?;
    world.chain.send(relayer, account, &TestAccount::setAcceptsCall { accepts_: true }).await?;
    world.usdc(relayer, &call).await?;
    assert_eq!(world.balance(account).await?, 400);
    Ok(())
}

#[tokio::test]
async fn a_permit_is_an_allowance_by_signature_and_holds_once() -> Result<()> {
    let world = funded().await?;
    let (payer, spender, usdc) = (world.payer.address(), world.payee.address(), world.chain.usdc);
    let deadline = U256::from(NEVER);
    let permit = |nonce: u64| Permit {
        owner: payer,
        spender,
        value: U256::from(60),
        nonce: U256::from(nonce),
        deadline,
    };
    let (v, r, s) = words(&sign(&world, &permit(0)).await?);
    let by_words = TestUsdc::permit_1Call { owner: payer, spender, value: U256::from(60), deadline, v, r, s };
    world.usdc(spender, &by_words).await?;
    world.refuses_at::<TestUsdc::InvalidSignature>(usdc, spender, &by_words).await?;
    let spend = TestUsdc::transferFromCall { from: payer, to: spender, value: U256::from(60) };
    world.usdc(spender, &spend).await?;
    world.refuses_at::<TestUsdc::InsufficientAllowance>(usdc, spender, &spend).await?;

    let signature = bytes(&sign(&world, &permit(1)).await?);
    let by_bytes =
        TestUsdc::permit_0Call { owner: payer, spender, value: U256::from(60), deadline, signature };
    world.usdc(spender, &by_bytes).await?;
    let late = TestUsdc::permit_0Call { deadline: U256::from(1), ..by_bytes };
    world.refuses_at::<TestUsdc::PermitExpired>(usdc, spender, &late).await
}

#[tokio::test]
async fn allowances_grow_shrink_and_are_used_up() -> Result<()> {
    let world = funded().await?;
    let (payer, spender, usdc) = (world.payer.address(), world.payee.address(), world.chain.usdc);
    world.usdc(payer, &TestUsdc::approveCall { spender, value: U256::from(50) }).await?;
    world.usdc(payer, &TestUsdc::increaseAllowanceCall { spender, increment: U256::from(20) }).await?;
    world.usdc(payer, &TestUsdc::decreaseAllowanceCall { spender, decrement: U256::from(30) }).await?;
    let too_much = TestUsdc::decreaseAllowanceCall { spender, decrement: U256::from(41) };
    world.refuses_at::<TestUsdc::InsufficientAllowance>(usdc, payer, &too_much).await?;
    let spend = |value| TestUsdc::transferFromCall { from: payer, to: spender, value: U256::from(value) };
    world.refuses_at::<TestUsdc::InsufficientAllowance>(usdc, spender, &spend(41)).await?;
    world.usdc(spender, &spend(40)).await?;
    assert_eq!(
        world.chain.read(usdc, &TestUsdc::allowanceCall { _0: payer, _1: spender }).await?,
        U256::ZERO
    );
    let all = TestUsdc::transferCall { to: spender, value: U256::from(961) };
    world.refuses_at::<TestUsdc::InsufficientBalance>(usdc, payer, &all).await
}

#[tokio::test]
async fn a_pause_stops_every_movement() -> Result<()> {
    let world = funded().await?;
    let (payer, usdc) = (world.payer.address(), world.chain.usdc);
    let message = transfer_message(&world, 1, B256::ZERO);
    let authorized = transfer_bytes(&message, bytes(&sign(&world, &message).await?));
    let value = U256::from(1);
    let to = world.payee.address();
    world.usdc(MINTER, &TestUsdc::pauseCall {}).await?;
    world.refuses_at::<TestUsdc::IsPaused>(usdc, payer, &TestUsdc::transferCall { to, value }).await?;
    world
        .refuses_at::<TestUsdc::IsPaused>(usdc, to, &TestUsdc::transferFromCall { from: payer, to, value })
        .await?;
    world
        .refuses_at::<TestUsdc::IsPaused>(usdc, payer, &TestUsdc::approveCall { spender: to, value })
        .await?;
    world.refuses_at::<TestUsdc::IsPaused>(usdc, payer, &authorized).await?;
    world.refuses_at::<TestUsdc::IsPaused>(usdc, MINTER, &TestUsdc::mintCall { to, amount: value }).await?;
    world.usdc(MINTER, &TestUsdc::unpauseCall {}).await?;
    world.usdc(payer, &authorized).await?;
    Ok(())
}

#[tokio::test]
async fn a_blacklisted_account_neither_sends_nor_receives() -> Result<()> {
    let world = funded().await?;
    let (payer, payee, usdc) = (world.payer.address(), world.payee.address(), world.chain.usdc);
    let send = TestUsdc::transferCall { to: payee, value: U256::from(1) };
    for account in [payer, payee] {
        world.blacklist(account).await?;
        assert!(world.chain.read(usdc, &TestUsdc::isBlacklistedCall { account }).await?);
        world.refuses_at::<TestUsdc::AccountBlacklisted>(usdc, payer, &send).await?;
        world.unblacklist(account).await?;
    }
    world.usdc(payer, &send).await?;
    Ok(())
}

#[tokio::test]
async fn only_the_minter_has_roles() -> Result<()> {
    let world = funded().await?;
    let (anyone, usdc) = (world.payer.address(), world.chain.usdc);
    let one = U256::from(1);
    world
        .refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::mintCall { to: anyone, amount: one })
        .await?;
    world.refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::burnCall { amount: one }).await?;
    world.refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::pauseCall {}).await?;
    world.refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::unpauseCall {}).await?;
    world
        .refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::blacklistCall { account: anyone })
        .await?;
    world
        .refuses_at::<TestUsdc::NotMinter>(usdc, anyone, &TestUsdc::unBlacklistCall { account: anyone })
        .await?;

    world.mint(MINTER, 10).await?;
    world.usdc(MINTER, &TestUsdc::burnCall { amount: U256::from(4) }).await?;
    assert_eq!(world.chain.read(usdc, &TestUsdc::totalSupplyCall {}).await?, U256::from(1_006));
    let too_much = TestUsdc::burnCall { amount: U256::from(7) };
    world.refuses_at::<TestUsdc::InsufficientBalance>(usdc, MINTER, &too_much).await?;
    let beyond = TestUsdc::mintCall { to: anyone, amount: U256::MAX >> 8 };
    world.refuses_at::<TestUsdc::SupplyTooLarge>(usdc, MINTER, &beyond).await?;
    let nowhere = TestUsdc::mintCall { to: Address::ZERO, amount: one };
    world.refuses_at::<TestUsdc::ZeroAddress>(usdc, MINTER, &nowhere).await
}
