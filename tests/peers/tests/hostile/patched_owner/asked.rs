//! An owner that is asked to close its channel and does, while its payer never hears its answer.

use farthing_chain::ClaimRow;
use farthing_control::endpoint;
use farthing_tests::calls::on_a_fixed_port;

use super::{claimed::chain_of, *};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_closed_as_asked_is_none_that_closed_unasked_although_its_answer_was_lost() -> Result<()>
{
    // The owner finds the node again after its restart.
    let consumer_settings = on_a_fixed_port()?;
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    // It knows the details of the service over its later death.
    world.consumer.stop().await?;
    world.consumer.restart(Vec::new()).await?;
    world.wait_until_met().await?;
    let refused: Answers = |_, _, _| Some(busy());
    let (owner, _network) = Owner::replaces(&mut world, refused).await?;
    let PayeeChannelRow { config, best, best_signature, .. } = owner.channel;
    let signature = best_signature.context("no voucher")?;
    let row = ClaimRow { config, cumulative: best, amount: best, signature };
    let chain = chain_of(&world).await?;
    chain.track(config).await?;

    // Asked to close it is busy, so its payer asks again for some seconds, and is killed meanwhile.
    let (control, id) = (world.consumer.control().clone(), owner.channel.id);
    let at = endpoint::CloseChannel.of(id).with("force", false);
    let asking = tokio::spawn(async move { control.ask(at).await });
    eventually("the owner is asked", async || Ok(owner.state.lock().shown.is_some())).await?;
    world.consumer.kill().await?;
    ensure!(asking.await?.is_err(), "it was answered");
    chain.close(row).await?;
    world.consumer.restart_until_ready(Vec::new()).await?;

    // The second close is of its own accord. A call fills the channel after one of these, and only after one a day.
    for _ in 0..2 {
        eventually("the payer sees the close", async || Ok(world.channel().await?.state.is_closed())).await?;
        eventually("a call fills the channel", async || {
            let answer = world.get("/ok").await?;
            ensure!(answer.problem() != "over-limit", "{answer:?}");
            Ok(!world.channel().await?.state.is_closed())
        })
        .await?;
        chain.close(row).await?;
    }
    eventually("the payer sees the last close", async || Ok(world.channel().await?.state.is_closed()))
        .await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.problem() == "over-limit", "it has closed unasked twice: {answer:?}");
    Ok(())
}
