//! What each step costs, printed as a table and held to its bound.

use alloy::{primitives::U256, sol_types::SolValue as _};
use anyhow::Result;
use farthing_contract_tests::{
    PayChannels::{self, Channel},
    Proxy, TestUsdc,
};

use crate::{
    consent::{close_request, signed_close},
    world::{NEVER, World},
};

/// One line of the table: what, its gas, and the most it may be.
type Line = (&'static str, u64, Option<u64>);

const DEPOSIT: u128 = 1_000_000;

async fn open(world: &World, terms: &Channel, number: u64) -> Result<u64> {
    let call = world.authorize(terms, DEPOSIT, number).await?;
    Ok(world.send(world.payer.address(), &call).await?.gas_used)
}

/// Opens `count` channels and claims on all of them at once. Returns the gas per channel.
async fn claim_many(world: &World, first: u64, count: u64) -> Result<u64> {
    let mut claims = Vec::new();
    for number in first..first + count {
        let terms = world.terms_number(number);
        open(world, &terms, 1).await?;
        claims.push(world.voucher(&terms, 5_000, 4_000)?);
    }
    let call = PayChannels::claimManyCall { token: world.chain.usdc, claims };
    Ok(world.send(world.payee.address(), &call).await?.gas_used.div_ceil(count))
}

async fn measure(world: &World) -> Result<Vec<Line>> {
    let (payer, payee) = (world.payer.address(), world.payee.address());
    world.mint(payer, 1_000 * DEPOSIT).await?;
    let (first, second, third) = (world.terms_number(1), world.terms_number(2), world.terms_number(3));
    let mut table: Vec<Line> = Vec::new();
    let mut line = |what, gas, bound| table.push((what, gas, bound));

    // Once per chain and token this pays for the escrow's balance slot, 17,100 gas more.
    line("open: the first money the contract ever holds", open(world, &first, 1).await?, Some(128_000));
    line("open by EIP-3009 authorization", open(world, &second, 1).await?, Some(125_000));
    line("top-up by authorization", open(world, &first, 2).await?, None);
    let approve = TestUsdc::approveCall { spender: world.chain.channels, value: U256::from(DEPOSIT) };
    line("approve, once before deposits by allowance", world.usdc(payer, &approve).await?.gas_used, None);
    let deposit = PayChannels::depositCall { channel: third.clone(), amount: DEPOSIT };
    line("open by allowance", world.send(payer, &deposit).await?.gas_used, None);

    let claim = async |total| world.claim(world.voucher(&first, total + 10_000, total)?).await;
    line("claim by a payee that held no USDC", claim(40_000).await?.gas_used, None);
    line("claim", claim(80_000).await?.gas_used, Some(68_000));
    line("claimMany of 10, per channel", claim_many(world, 1_000, 10).await?, None);
    line("claimMany of 100, per channel", claim_many(world, 2_000, 100).await?, Some(19_000));
    let close = PayChannels::closeCall { claim_: world.voucher(&first, 150_000, 140_000)? };
    line("close with a claim", world.send(payee, &close).await?.gas_used, Some(85_000));

    let request = PayChannels::requestCloseCall { channel: second.clone() };
    line("requestClose", world.send(payer, &request).await?.gas_used, Some(34_000));
    world.chain.mine_at(world.state(&second).await?.close_at).await?;
    let withdraw = PayChannels::withdrawCall { channel: second };
    line("withdraw", world.send(payer, &withdraw).await?.gas_used, Some(59_400));

    // Brought by anybody who pays the gas.
    let (fourth, fifth) = (world.terms_number(4), world.terms_number(5));
    open(world, &fourth, 1).await?;
    open(world, &fifth, 1).await?;
    let close = signed_close(world, &fourth, 5_000).await?;
    line("close by the payee's signature", world.send(payer, &close).await?.gas_used, Some(86_500));
    let round = world.round(&fifth).await?;
    let request = close_request(world, &world.payer, &fifth, round, NEVER)?;
    line("requestClose by the payer's signature", world.send(payee, &request).await?.gas_used, Some(39_500));
    let transfer = TestUsdc::transferCall { to: payee, value: U256::from(5) };
    line("for comparison: a plain transfer of the token", world.usdc(payer, &transfer).await?.gas_used, None);
    Ok(table)
}

/// A world whose token stands behind a proxy, as USDC does on every chain.
async fn world_behind_a_proxy() -> Result<World> {
    let mut world = World::start().await?;
    let init_code = [Proxy::BYTECODE.as_ref(), &world.chain.usdc.abi_encode()].concat();
    world.chain.usdc = world.chain.deploy(init_code.into()).await?;
    Ok(world)
}

#[tokio::test]
async fn every_step_costs_at_most_its_bound() -> Result<()> {
    let plain = measure(&World::start().await?).await?;
    let proxied = measure(&world_behind_a_proxy().await?).await?;
    println!("| step | gas | behind a proxy | bound |\n|---|---:|---:|---:|");
    for ((what, gas, bound), (_, gas_proxied, _)) in plain.iter().zip(&proxied) {
        let bound = bound.map_or_else(String::new, |bound| bound.to_string());
        println!("| {what} | {gas} | {gas_proxied} | {bound} |");
    }
    for (what, gas, bound) in plain.iter().chain(&proxied) {
        assert!(bound.is_none_or(|bound| *gas <= bound), "{what}: {gas} gas, more than {bound:?}");
    }
    Ok(())
}
