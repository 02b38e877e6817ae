//! What a payer tries to get beyond what it pays for: the same call again and again, and effects without an answer.

use super::*;
use farthing_control::endpoint;

#[tokio::test]
async fn one_charge_buys_one_further_execution_and_none_after_a_restart() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x55, cost(10)).await?;
    // Answers of this size are not kept.
    let large =
        |id: &str, calls| CallRequest { path: "/large/1100000".to_owned(), ..payer.request(id, cost(calls)) };
    payer.served(payer.request("small", cost(1))).await?;
    payer.served(large("dearer", 2)).await?;
    let receipt = payer.served(large("large", 3)).await?.receipt;
    assert_eq!(payer.served(large("large", 3)).await?.receipt.charged, receipt.charged);
    for _ in 0..20 {
        assert_eq!(payer.receipt(large("large", 3)).await?, receipt);
    }
    assert_eq!(world.upstream.hits(), 4);

    let (control, id) = (world.owner.control(), world.api.id);
    control.ask(endpoint::PauseApi.of(id)).await?;
    payer.refused("paused", large("dearer", 2), RefusalCode::ServicePaused).await?;
    control.ask(endpoint::ResumeApi.of(id)).await?;
    let dearer = PriceRequest { price: cost(2).into(), operation: None };
    control.tell(endpoint::PriceApi.of(id), &dearer).await?;
    payer.receipt(large("dearer", 2)).await?;
    let cheaper = PriceRequest { price: PRICE.into(), operation: None };
    control.tell(endpoint::PriceApi.of(id), &cheaper).await?;
    assert_eq!(world.upstream.hits(), 4, "a pause and a higher price stop further executions");

    // A restart forgets the answers that were kept in memory, and no right that was used up.
    for is_first in [true, false] {
        world.owner.stop().await?;
        world.owner.restart(Vec::new()).await?;
        world.owner.wait_until_ready().await?;
        payer.receipt(large("large", 3)).await?;
        let small = payer.request("small", cost(1));
        let other = CallRequest { path: "/status/200".to_owned(), ..small.clone() };
        payer.refused("another call of that id", other, RefusalCode::CallIdConflict).await?;
        if is_first {
            payer.served(small).await?;
        } else {
            payer.receipt(small).await?;
        }
        assert_eq!(world.upstream.hits(), 5);
    }
    expect_charged(&world, 3).await
}

#[tokio::test]
async fn a_deadline_of_a_millisecond_makes_neither_an_effect_nor_an_answer_free() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x56, cost(10)).await?;
    let hasty = |id: &str, method, calls| CallRequest {
        method,
        path: "/slow/400".to_owned(),
        deadline_ms: 1,
        ..payer.request(id, cost(calls))
    };
    let post = hasty("post", Method::Post, 1);
    let first = payer.send(post.clone()).await?;
    ensure!(matches!(first, Reply::Status(CallStatus::Running)), "the answer is shortened: {first:?}");
    eventually("the effect is charged", async || {
        match payer.ask(CallMessage::Status(post.call_id)).await? {
            Reply::Served(response) => Ok(response.receipt.charged == PRICE),
            Reply::Status(CallStatus::Running) => Ok(false),
            other => bail!("{other:?}"),
        }
    })
    .await?;
    let get = payer.served(hasty("get", Method::Get, 2)).await?;
    assert_eq!((get.status, get.receipt.charged), (200, PRICE));
    expect_paid(&world, 2).await
}

#[tokio::test]
async fn what_became_of_a_call_with_effects_is_told_with_its_answer_after_a_restart() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x57, cost(10)).await?;
    let post = CallRequest { method: Method::Post, ..payer.request("post", cost(1)) };
    let bought = payer.served(post.clone()).await?;
    ensure!(bought.body_bytes > 0, "{bought:?}");
    world.owner.stop().await?;
    world.owner.restart(Vec::new()).await?;
    world.owner.wait_until_ready().await?;
    match payer.ask(CallMessage::Status(post.call_id)).await? {
        Reply::Served(told) => {
            assert_eq!((told.receipt, told.body_bytes), (bought.receipt, bought.body_bytes));
        }
        other => bail!("the receipt alone: {other:?}"),
    }
    expect_charged(&world, 1).await
}
