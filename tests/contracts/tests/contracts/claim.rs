//! Claiming: what a voucher is worth, to whom, and how a batch treats rows that cannot pay.

use alloy::{
    primitives::{Address, B256, U256, uint},
    signers::SignerSync as _,
    sol_types::{Eip712Domain, SolStruct as _},
};
use anyhow::Result;
use farthing_contract_tests::{
    CHAIN_ID, MINTER,
    PayChannels::{self, Channel, Claim},
    TestUsdc, Voucher, events,
};
use farthing_values::{ChannelId, Domain, SecretKey, Usdc};

use crate::world::{State, World, key, with_signature};

/// The order of secp256k1.
pub(crate) const ORDER: U256 = uint!(0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141_U256);

#[tokio::test]
async fn a_claim_pays_what_was_charged_and_not_the_signed_headroom() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let receipt = world.claim(world.voucher(&terms, 500, 300)?).await?;
    assert_eq!(world.balances().await?, (0, 300, 700));
    assert_eq!(world.state(&terms).await?, State { deposited: 1_000, claimed: 300, close_at: 0 });

    let [event] = &events::<PayChannels::Claimed>(&receipt)[..] else { panic!("one claim, one event") };
    assert_eq!((event.channelId, event.payer, event.payee), (world.id(&terms), terms.payer, terms.payee));
    assert_eq!((event.amount, event.claimed), (300, 300));

    world.claim(world.voucher(&terms, 500, 500)?).await?;
    assert_eq!(world.balances().await?.1, 500, "the rest of the same voucher pays the difference only");
    Ok(())
}

#[tokio::test]
async fn nobody_but_the_payee_claims() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let claim_ = world.voucher(&terms, 500, 500)?;
    for other in [&world.payer, &world.stranger] {
        let call = PayChannels::claimCall { claim_: claim_.clone() };
        world.refuses::<PayChannels::NotPayee>(other.address(), &call).await?;
        let many = PayChannels::claimManyCall { token: terms.token, claims: vec![claim_.clone()] };
        assert_eq!(world.view(other.address(), &many).await?, U256::ZERO);
    }
    Ok(())
}

#[tokio::test]
async fn a_stale_voucher_pays_nothing() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.claim(world.voucher(&terms, 500, 500)?).await?;
    for total in [0, 1, 499, 500] {
        let call = PayChannels::claimCall { claim_: world.voucher(&terms, total, total)? };
        world.refuses::<PayChannels::NothingToClaim>(terms.payee, &call).await?;
    }
    let call = PayChannels::claimCall { claim_: world.voucher(&terms, 501, 501)? };
    assert_eq!(world.view(terms.payee, &call).await?, 1);
    Ok(())
}

#[tokio::test]
async fn an_amount_above_the_voucher_is_refused() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let claim = |amount| world.voucher(&terms, 500, amount).map(|claim_| PayChannels::claimCall { claim_ });
    assert_eq!(world.view(terms.payee, &claim(499)?).await?, 499);
    assert_eq!(world.view(terms.payee, &claim(500)?).await?, 500);
    world.refuses::<PayChannels::AmountAboveVoucher>(terms.payee, &claim(501)?).await?;
    world.refuses::<PayChannels::AmountAboveVoucher>(terms.payee, &claim(u128::MAX)?).await
}

#[tokio::test]
async fn a_voucher_above_the_deposit_pays_the_deposit_and_the_rest_after_a_top_up() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    for huge in [1_001, u128::MAX] {
        let call = PayChannels::claimCall { claim_: world.voucher(&terms, huge, huge)? };
        assert_eq!(world.view(terms.payee, &call).await?, 1_000);
    }
    let over = world.voucher(&terms, 1_400, 1_400)?;
    world.claim(over.clone()).await?;
    assert_eq!(world.balances().await?, (0, 1_000, 0));
    let call = PayChannels::claimCall { claim_: over.clone() };
    world.refuses::<PayChannels::NothingToClaim>(terms.payee, &call).await?;

    world.open(&terms, 1_000).await?;
    world.claim(over).await?;
    assert_eq!(world.balances().await?, (0, 1_400, 600));
    Ok(())
}

#[tokio::test]
async fn a_channel_that_was_never_opened_pays_nothing() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    for unopened in [world.terms_number(2), Channel { signer: Address::ZERO, ..terms.clone() }] {
        let call = PayChannels::claimCall { claim_: world.voucher(&unopened, 500, 500)? };
        world.refuses::<PayChannels::NothingToClaim>(terms.payee, &call).await?;
    }
    Ok(())
}

#[tokio::test]
async fn only_the_channels_signer_makes_a_voucher() -> Result<()> {
    let world = World::start().await?;
    let signer = key("a session key");
    let terms = Channel { signer: signer.address(), ..world.terms() };
    world.open(&terms, 1_000).await?;
    for other in [&world.payer, &world.payee, &world.stranger] {
        let claim_ = world.voucher_by(other, &terms, 500, 500)?;
        let call = PayChannels::claimCall { claim_ };
        world.refuses::<PayChannels::BadSignature>(terms.payee, &call).await?;
    }
    world.claim(world.voucher_by(&signer, &terms, 500, 500)?).await?;
    Ok(())
}

#[tokio::test]
async fn a_signature_for_anything_else_is_no_voucher() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let good = world.voucher(&terms, 500, 500)?;
    let sign_in = |domain: &Eip712Domain, channel: &Channel| -> Result<Claim> {
        let voucher =
            Voucher { channelId: channel.eip712_signing_hash(&world.chain.domain()), cumulative: 500 };
        let signature = world.payer.sign_hash_sync(&voucher.eip712_signing_hash(domain))?;
        Ok(with_signature(&terms, 500, 500, &signature.as_erc2098()))
    };
    let domain = world.chain.domain();
    let other_chain = Eip712Domain { chain_id: Some(U256::from(1)), ..domain.clone() };
    let other_contract = Eip712Domain { verifying_contract: Some(terms.token), ..domain.clone() };
    let other_version = Eip712Domain { version: Some("2".into()), ..domain.clone() };

    let mut forged = vec![
        sign_in(&other_chain, &terms)?,
        sign_in(&other_contract, &terms)?,
        sign_in(&other_version, &terms)?,
        sign_in(&domain, &world.terms_number(2))?,
        Claim { cumulative: 501, ..good.clone() },
        Claim { cumulative: u128::MAX, amount: u128::MAX, ..good.clone() },
        Claim { r: B256::ZERO, vs: B256::ZERO, ..good.clone() },
        Claim { r: B256::repeat_byte(0xff), vs: B256::repeat_byte(0xff), ..good.clone() },
    ];
    for bit in [0, 100, 255] {
        let flipped = |word: B256| B256::from(U256::from_be_bytes(word.0) ^ (U256::from(1) << bit));
        forged.push(Claim { r: flipped(good.r), ..good.clone() });
        forged.push(Claim { vs: flipped(good.vs), ..good.clone() });
    }
    for claim_ in forged {
        let call = PayChannels::claimCall { claim_ };
        world.refuses::<PayChannels::BadSignature>(terms.payee, &call).await?;
    }
    world.claim(good).await?;
    Ok(())
}

#[tokio::test]
async fn a_signature_with_a_high_s_is_refused() -> Result<()> {
    // The twin of a valid signature has s above half the order. The compact form has 255 bits for s, so
    // only the few values between that half and 2^255 can be written down at all.
    let (world, terms) = World::with_channel(1_000).await?;
    let good = world.voucher(&terms, 500, 500)?;
    for s in [(ORDER >> 1) + U256::from(1), (U256::from(1) << 255) - U256::from(1)] {
        for parity in [U256::ZERO, U256::from(1) << 255] {
            let call =
                PayChannels::claimCall { claim_: Claim { vs: B256::from(s | parity), ..good.clone() } };
            world.refuses::<PayChannels::BadSignature>(terms.payee, &call).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_voucher_signed_by_the_node_is_accepted_by_the_contract() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let node_key = SecretKey::from_bytes(&world.payer.to_bytes().0)?;
    let contract = farthing_values::Address::from_bytes(world.chain.channels.into_array());
    let voucher = farthing_values::channel::Voucher {
        channel: ChannelId::from_bytes(world.id(&terms).0),
        cumulative: Usdc::from_micros(500),
    };
    let signature = voucher.sign(&Domain::new(CHAIN_ID, contract), &node_key);
    let signature = alloy::primitives::Signature::from_raw_array(signature.as_bytes())?;
    world.claim(with_signature(&terms, 500, 500, &signature.as_erc2098())).await?;
    assert_eq!(world.balances().await?.1, 500);
    Ok(())
}

#[tokio::test]
async fn a_batch_pays_every_channel_with_one_transfer() -> Result<()> {
    let world = World::start().await?;
    let mut claims = Vec::new();
    for number in 1..=3 {
        let terms = world.terms_number(number);
        world.open(&terms, 1_000).await?;
        claims.push(world.voucher(&terms, 900, 100 * u128::from(number))?);
    }
    let call = PayChannels::claimManyCall { token: world.chain.usdc, claims: claims.clone() };
    assert_eq!(world.view(world.payee.address(), &call).await?, U256::from(600));
    let receipt = world.send(world.payee.address(), &call).await?;

    assert_eq!(world.balances().await?, (0, 600, 2_400));
    assert_eq!(events::<TestUsdc::Transfer>(&receipt).len(), 1);
    let paid: Vec<u128> = events::<PayChannels::Claimed>(&receipt).iter().map(|event| event.amount).collect();
    assert_eq!(paid, [100, 200, 300]);
    assert_eq!(world.view(world.payee.address(), &call).await?, U256::ZERO, "the same batch pays once");
    Ok(())
}

#[tokio::test]
async fn rows_that_cannot_pay_are_skipped_and_block_nobody() -> Result<()> {
    let world = World::start().await?;
    let payee = world.payee.address();
    let open = async |number, deposit| -> Result<Channel> {
        let terms = world.terms_number(number);
        world.open(&terms, deposit).await?;
        Ok(terms)
    };
    let (good, drained, stale, forged) =
        (open(1, 1_000).await?, open(2, 100).await?, open(3, 1_000).await?, open(4, 1_000).await?);
    world.claim(world.voucher(&drained, 100, 100)?).await?;
    world.claim(world.voucher(&stale, 200, 200)?).await?;
    let foreign = Channel { payee: world.stranger.address(), ..world.terms_number(5) };
    world.open(&foreign, 1_000).await?;
    let other_token =
        Channel { token: world.chain.deploy_token("USDC", "2").await?, ..world.terms_number(6) };

    let good_row = world.voucher(&good, 600, 500)?;
    let claims = vec![
        world.voucher(&drained, 500, 500)?,
        world.voucher(&stale, 200, 200)?,
        world.voucher_by(&world.stranger, &forged, 500, 500)?,
        world.voucher(&foreign, 500, 500)?,
        world.voucher(&other_token, 500, 500)?,
        world.voucher(&world.terms_number(7), 500, 500)?,
        Claim { amount: 601, ..good_row.clone() },
        good_row.clone(),
        good_row,
    ];
    let before = world.balance(payee).await?;
    let receipt = world.send(payee, &PayChannels::claimManyCall { token: world.chain.usdc, claims }).await?;
    assert_eq!(world.balance(payee).await? - before, 500);
    let paid = events::<PayChannels::Claimed>(&receipt);
    assert_eq!(paid.iter().map(|event| event.channelId).collect::<Vec<_>>(), [world.id(&good)]);
    Ok(())
}

#[tokio::test]
async fn a_batch_without_a_paying_row_moves_nothing() -> Result<()> {
    let (world, terms) = World::with_channel(100).await?;
    world.claim(world.voucher(&terms, 100, 100)?).await?;
    for claims in [vec![], vec![world.voucher(&terms, 100, 100)?]] {
        let receipt =
            world.send(terms.payee, &PayChannels::claimManyCall { token: terms.token, claims }).await?;
        assert!(receipt.logs().is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_that_the_token_refuses_leaves_the_books_as_they_were() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let claim_ = world.voucher(&terms, 500, 500)?;
    let before = world.state(&terms).await?;
    let one = PayChannels::claimCall { claim_: claim_.clone() };
    let many = PayChannels::claimManyCall { token: terms.token, claims: vec![claim_.clone()] };
    let close = PayChannels::closeCall { claim_ };

    world.usdc(MINTER, &TestUsdc::pauseCall {}).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payee, &one).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payee, &many).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payee, &close).await?;
    world.usdc(MINTER, &TestUsdc::unpauseCall {}).await?;
    world.blacklist(terms.payee).await?;
    world.refuses::<PayChannels::TransferFailed>(terms.payee, &one).await?;
    world.unblacklist(terms.payee).await?;

    assert_eq!(world.state(&terms).await?, before);
    world.send(terms.payee, &one).await?;
    Ok(())
}
