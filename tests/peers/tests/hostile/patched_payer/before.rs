//! A payer of before: it speaks `call/1` alone, and keeps to every rule.

use super::*;
use crate::{bare, before};

/// More than leaves with its head.
const LARGE_BYTES: usize = 100_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_that_speaks_call_1_alone_buys_from_a_node_of_today() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x6b, cost(10)).await?;
    let mut swarm = before::swarm(&payer.key)?;
    let owner = bare::connect(&mut swarm, &world.owner).await?;
    for n in 1..=3 {
        let message = CallMessage::Call(payer.request(&format!("{n}"), cost(n)));
        let (reply, body) = before::ask(&mut swarm, owner, message, &[]).await?;
        let CallReply::Response(response) = reply else { bail!("call {n} is not served: {reply:?}") };
        assert_eq!((response.status, response.receipt.spent_total), (200, cost(n)));
        ensure!(!body.is_empty(), "the answer of call {n} has no body");
    }

    let body = format!("\"{}\"", "m".repeat(LARGE_BYTES)).into_bytes();
    let large = CallRequest {
        method: Method::Post,
        path: "/echo".to_owned(),
        headers: BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]),
        body_bytes: body.len() as u64,
        ..payer.request("large", cost(4))
    };
    let (reply, echoed) = before::ask(&mut swarm, owner, CallMessage::Call(large), &body).await?;
    ensure!(matches!(reply, CallReply::Response(_)), "the large call is not served: {reply:?}");
    ensure!(echoed == body, "another answer than what was sent");
    expect_paid(&world, 4).await
}
