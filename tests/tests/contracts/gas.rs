//! What each step costs, printed as a table and held to its bound.

use alloy::{primitives::U256, rpc::types::TransactionReceipt};
use anyhow::Result;
use farthing_tests::anvil::contracts::{
    PayChannels::{self, Channel},
    TestUsdc,
};

use crate::world::World;

/// One line of the table: what, its gas, and the most it may be.
type Line = (&'static str, u64, Option<u64>);

const DEPOSIT: u128 = 1_000_000;

async fn open(world: &World, terms: &Channel, number: u64) -> Result<u64> {
    let call = world.authorize(terms, DEPOSIT, number).await?;
    gas(world.send(world.payer.address(), &call).await?)
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
    Ok(gas(world.send(world.payee.address(), &call).await?)?.div_ceil(count))
}

#[allow(clippy::unnecessary_wraps)] // so that callers read as one chain of `?`
fn gas(receipt: TransactionReceipt) -> Result<u64> {
    Ok(receipt.gas_used)
}

async fn measure() -> Result<Vec<Line>> {
    let world = World::start().await?;
    let (payer, payee) = (world.payer.address(), world.payee.address());
    world.mint(payer, 1_000 * DEPOSIT).await?;
    let (first, second, third) = (world.terms_number(1), world.terms_number(2), world.terms_number(3));
    let mut table: Vec<Line> = Vec::new();
    let mut line = |what, gas, bound| table.push((what, gas, bound));

    line("open: the first money the contract ever holds", open(&world, &first, 1).await?, Some(125_000));
    line("open by EIP-3009 authorization", open(&world, &second, 1).await?, Some(125_000));
    line("top-up by authorization", open(&world, &first, 2).await?, None);
    let approve = TestUsdc::approveCall { spender: world.chain.channels, value: U256::from(DEPOSIT) };
    line("approve, once before deposits by allowance", gas(world.usdc(payer, &approve).await?)?, None);
    let deposit = PayChannels::depositCall { channel: third.clone(), amount: DEPOSIT };
    line("open by allowance", gas(world.send(payer, &deposit).await?)?, None);

    let claim = async |total| gas(world.claim(world.voucher(&first, total + 10_000, total)?).await?);
    line("claim by a payee that held no USDC", claim(40_000).await?, None);
    line("claim", claim(80_000).await?, Some(68_000));
    line("claimMany of 10, per channel", claim_many(&world, 1_000, 10).await?, None);
    line("claimMany of 100, per channel", claim_many(&world, 2_000, 100).await?, Some(19_000));
    let close = PayChannels::closeCall { claim_: world.voucher(&first, 150_000, 140_000)? };
    line("close with a claim", gas(world.send(payee, &close).await?)?, Some(85_000));

    let request = PayChannels::requestCloseCall { channel: second.clone() };
    line("requestClose", gas(world.send(payer, &request).await?)?, None);
    world.chain.mine_at(world.state(&second).await?.close_at).await?;
    let withdraw = PayChannels::withdrawCall { channel: second };
    line("withdraw", gas(world.send(payer, &withdraw).await?)?, None);
    let transfer = TestUsdc::transferCall { to: payee, value: U256::from(5) };
    line("for comparison: a plain transfer of the token", gas(world.usdc(payer, &transfer).await?)?, None);
    Ok(table)
}

#[tokio::test]
async fn every_step_costs_at_most_its_bound() -> Result<()> {
    let table = measure().await?;
    println!("| step | gas | bound |\n|---|---:|---:|");
    for (what, gas, bound) in &table {
        println!("| {what} | {gas} | {} |", bound.map_or(String::from("–"), |bound| bound.to_string()));
    }
    for (what, gas, bound) in table {
        assert!(bound.is_none_or(|bound| gas <= bound), "{what}: {gas} gas, more than {bound:?}");
    }
    Ok(())
}
