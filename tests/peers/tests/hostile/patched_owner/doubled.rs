//! An owner that uses a crash of its payer: it counts the calls that were under way once as calls that the payer forgot, and
//! once as what they are.

use farthing_control::types::ChannelState;
use farthing_tests::calls::on_a_fixed_port;

use super::*;

const CALLS: u64 = 5;

/// All that it may claim, with its payer's signature, and twice what the calls under way came to.
#[expect(clippy::needless_pass_by_value, reason = "it takes the place of the true answer")]
fn twice(owner: &Owner, told: ChannelSync) -> Option<CallReply> {
    let state = owner.state.lock();
    let vouchers = state.calls.values().filter_map(|(request, _)| match request.payment {
        Payment::Channel { cumulative, signature, .. } => Some((cumulative, signature)),
        Payment::Free => None,
    });
    let (best, best_signature) = vouchers.max_by_key(|(cumulative, _)| *cumulative)?;
    let spent = cost(1 + 2 * CALLS);
    Some(CallReply::Channel(ChannelSync { best, best_signature, spent, ..told }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_were_under_way_in_a_crash_are_paid_once_however_their_owner_counts_them() -> Result<()> {
    // Where its owner finds it again.
    let consumer_settings = on_a_fixed_port()?;
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    world.expect_differences(&["payee: ", "0.012 USDC paid, 0.002 earned"]);
    let calls = (0..CALLS).map(|n| with(world.body("GET", "/ok"), "call_id", format!("under way {n}")));
    let calls: Vec<_> = calls.collect();
    let under_way = async {
        // They end with the node.
        let _ = futures::future::join_all(calls.iter().map(|call| world.call(call))).await;
    };
    let all_there = eventually("the owner has the calls", async || {
        let state = owner.state.lock();
        Ok(state.calls.len() as u64 == CALLS)
    });
    tokio::select! {
        () = under_way => {}
        there = all_there => there?,
    }
    eventually("the promises are stored", async || {
        Ok(world.consumer.control().ask(endpoint::Audit).await?.calls_undecided == CALLS)
    })
    .await?;
    world.consumer.kill().await?;
    {
        let mut state = owner.state.lock();
        // Its receipts go on from there.
        state.spent = cost(1 + CALLS);
        state.books = Some(twice);
        state.tells = true;
    }
    world.consumer.restart(Vec::new()).await?;
    world.wait_until_decided().await?;
    eventually("the calls are paid", async || Ok(spent(&world).await? >= cost(1 + CALLS))).await?;
    eventually("the owner is found to count what nobody signed for", async || {
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        Ok(channels.iter().any(|channel| channel.state != ChannelState::Open))
    })
    .await?;
    assert_eq!(spent(&world).await?, cost(1 + CALLS), "each call once");
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}
