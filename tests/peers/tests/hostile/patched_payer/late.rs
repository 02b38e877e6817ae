//! Copies of a call that arrive after its payer was told that it was never served.

use super::*;

/// A connection that has died for its payer, and still delivers: what lay in it comes after the owner's word, which the
/// payer asked for over another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_comes_after_the_owner_s_word_over_an_older_connection_is_not_served() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x63, cost(10)).await?;
    let (anew, _inbound) = connect(&world, payer.key.clone()).await?;
    let request = payer.request("late", cost(1));
    let told = payer.ask_over(&anew, CallMessage::Status(request.call_id)).await?;
    ensure!(matches!(told, Reply::Status(CallStatus::Unknown)), "{told:?}");
    let late = payer.refused("a late copy", request.clone(), RefusalCode::Unavailable).await?;
    ensure!(late.detail.contains("older connection") && late.retry_after_ms.is_some(), "{late:?}");
    assert_eq!(world.upstream.hits(), 0);

    // What the payer sends again on purpose, and any other call, is served.
    let again = payer.ask_over(&anew, CallMessage::Call(request)).await?;
    ensure!(matches!(again, Reply::Served(_)), "{again:?}");
    payer.served(payer.request("another", cost(2))).await?;
    let told = payer.ask(CallMessage::Status(CallId::from_idempotency_key("third"))).await?;
    ensure!(matches!(told, Reply::Status(CallStatus::Unknown)), "{told:?}");
    payer.served(payer.request("third", cost(3))).await?;
    expect_paid(&world, 3).await
}

/// A call that failed for nothing is over for its payer as well, once it has asked for its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_comes_after_the_owner_s_word_that_its_call_failed_is_not_served() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x64, cost(10)).await?;
    let (anew, _inbound) = connect(&world, payer.key.clone()).await?;
    let request = payer.request("late", cost(1));
    world.upstream.fail(true);
    let failed = payer.ask_over(&anew, CallMessage::Call(request.clone())).await?;
    ensure!(matches!(failed, Reply::Served(_)), "{failed:?}");
    let told = payer.ask_over(&anew, CallMessage::Status(request.call_id)).await?;
    ensure!(!matches!(told, Reply::Status(CallStatus::Unknown) | Reply::Refused(_)), "{told:?}");
    world.upstream.fail(false);
    let late = payer.refused("a late copy", request.clone(), RefusalCode::Unavailable).await?;
    ensure!(late.detail.contains("older connection"), "{late:?}");
    assert_eq!(world.upstream.hits(), 0);
    let again = payer.ask_over(&anew, CallMessage::Call(request)).await?;
    ensure!(matches!(again, Reply::Served(_)), "what the payer sends again on purpose: {again:?}");
    expect_paid(&world, 1).await
}
