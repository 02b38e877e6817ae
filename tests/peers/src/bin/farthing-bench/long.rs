//! A long load of paid calls, after which the books of both nodes have to agree, call by call.

use std::time::Instant;

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    agreement::{self, Books},
    report::memory_mib,
};

use crate::{
    calls::Turns,
    market::{Market, Way},
};

const CALLERS: usize = 64;
/// Answered calls, unless another number is asked for.
pub const CALLS: u64 = 200_000;
/// Turns between two lines of what is printed.
const TOLD_EVERY: u64 = 10;

/// Buys until so many calls are answered; prints how it goes, and how the books agree.
pub async fn measure(market: &Market, calls: u64) -> Result<()> {
    let (payer, owner) = (&market.demo.consumer, &market.demo.earthquakes.node);
    println!("\n| calls | calls/s | p50 / p99, ms | memory, MiB: consumer, owner |\n|---:|---:|---|---|");
    let (mut done, mut turns, started) = (0, 0_u64, Instant::now());
    while done < calls {
        let turn = Turns::take(market, Way::Paid, CALLERS).await?;
        done += turn.calls;
        if turns.is_multiple_of(TOLD_EVERY) || done >= calls {
            let row = turn.row(CALLERS, None, None);
            let (payer_mib, owner_mib) = (memory_mib(payer)?, memory_mib(owner)?);
            println!(
                "| {done} | {} | {} / {} | {payer_mib}, {owner_mib} |",
                row.calls_per_second, row.p50_ms, row.p99_ms
            );
        }
        turns += 1;
    }
    println!("\n{done} calls after {:.0} s. Comparing the books …", started.elapsed().as_secs_f64());
    agreement::until_at_rest(&[payer, owner]).await?;
    let (paid, earned) = (Books::of(payer).await?, Books::of(owner).await?);
    let differences = agreement::compare(&paid, &earned);
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    let (bought, served) = (paid.bought, earned.served);
    let charged = bought.values().filter(|call| !call.amount.0.is_zero()).count();
    ensure!(
        u64::try_from(charged)? >= done,
        "{done} calls were answered and {charged} charges are in the books"
    );
    println!("{} calls bought, {} served, {charged} charged: equal call by call", bought.len(), served.len());
    for node in [payer, owner] {
        println!("{}", audit(node).await?);
    }
    Ok(())
}

/// What the node's own audit says.
async fn audit(node: &NodeProcess) -> Result<String> {
    let audit = node.control().ask(endpoint::Audit.with("offline", true)).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(format!(
        "audit: no violations, {} adjustments, {} undecided",
        audit.adjustments, audit.calls_undecided
    ))
}
