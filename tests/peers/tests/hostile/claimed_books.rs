//! Books that say more was claimed than the contract paid.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_ledger::{Ledger, OpenMode, PayeeChannelFacts, PayerChannelFacts};
use farthing_protocol::Usdc;
use farthing_tests::{
    command::farthing,
    wait::eventually,
    world::{PRICE, World},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_that_say_more_was_claimed_than_the_contract_paid_follow_the_contract_on_each_side()
-> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let claimed = Usdc::from_micros(1);
    for is_owner in [true, false] {
        let node = if is_owner { &mut world.owner } else { &mut world.consumer };
        node.stop().await?;
        let ledger = Ledger::open(&node.data_dir().join("ledger.redb"), OpenMode::Existing)?;
        if is_owner {
            let row = *ledger.payee_channels()?.first().context("a channel")?;
            let (id, config, deposited) = (row.id, row.config, row.deposited);
            ledger
                .put_payee_channel(PayeeChannelFacts { id, config, deposited, claimed, closing: false })
                .await?;
        } else {
            let row = *ledger.payer_channels()?.first().context("a channel")?;
            let (id, config, deposited) = (row.id, row.config, row.deposited);
            ledger
                .put_payer_channel(PayerChannelFacts {
                    id,
                    config,
                    deposited,
                    claimed,
                    round: Some(0),
                    stopped: false,
                })
                .await?;
        }
        drop(ledger);
        node.restart_until_ready(Vec::new()).await?;
        // As after a block of a claim that the chain replaced.
        eventually("the books follow", async || {
            let channels = node.control().ask(endpoint::Channels).await?;
            Ok(channels[0].claimed.0.is_zero())
        })
        .await?;
        let ran = farthing(node, &["audit", "--json"]).await?;
        ensure!(ran.code == 0 && ran.json()?["violations_total"] == 0, "{ran:?}");
        world.wait_until_met().await?;
    }
    world.settle_for(PRICE).await
}
