//! An owner of before: it speaks `call/1` alone, and keeps to every rule.

use futures::future::try_join_all;

use super::{mislabelled::answer, *};
use crate::{bare, before};

const ONE_BY_ONE: u64 = 3;
const AT_ONCE: u64 = 8;

const SERVED: Answers = |owner, request, _| answer(owner, request, 200, request.price);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_today_buys_from_an_owner_that_speaks_call_1_alone() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _wallet) = Owner::takes_over(&mut world, SERVED).await?;
    // The real one's books end with the first call.
    world.expect_differences(&["X1: "]);
    let mut swarm = before::swarm(&owner.key)?;
    bare::connect(&mut swarm, &world.consumer).await?;
    let serving = Arc::clone(&owner);
    tokio::spawn(before::serve(swarm, move |message| serving.word(message)));
    eventually("the consumer has met the other owner", async || {
        let peers = world.consumer.control().ask(endpoint::Peers).await?;
        Ok(peers.iter().any(|peer| peer.wallet.0 == world.owner_wallet))
    })
    .await?;

    for _ in 0..ONE_BY_ONE {
        expect_served(&world.get("/ok").await?)?;
    }
    for answer in try_join_all((0..AT_ONCE).map(|_| world.get("/ok"))).await? {
        expect_served(&answer)?;
    }
    world.wait_until_decided().await?;
    assert_eq!(spent(&world).await?, cost(1 + ONE_BY_ONE + AT_ONCE));
    let copies: Vec<usize> = owner.state.lock().calls.values().map(|(_, copies)| *copies).collect();
    let is_once = copies.len() as u64 == ONE_BY_ONE + AT_ONCE && copies.iter().all(|copies| *copies == 1);
    ensure!(is_once, "the calls came so often: {copies:?}");
    Ok(())
}
