//! An owner that changes its offer while calls are under way: what it brings is read once, however many calls it refuses.

use std::time::Duration;

use farthing_network::InboundInfo;
use farthing_protocol::{
    Hash, Listing, Signed, Verified,
    call::{ChargePolicy, Method},
    info::{InfoRequest, InfoResponse},
    listing::{Details, OperationPrice},
    wire,
};

use super::*;

/// Calls that are refused together.
const CALLS: usize = 16;

/// An offer that refusals bring.
#[derive(Clone)]
pub(super) struct Offer {
    listing: Signed<Listing>,
    hash: Hash,
    details: Vec<u8>,
}

impl Owner {
    /// Answers with the details of the offer that it makes, after a while.
    pub(super) fn tell_offer(&self, info: InboundInfo) {
        let offer = self.state.lock().offer.clone();
        let Some(offer) = offer.filter(|offer| info.request == InfoRequest::Blob(offer.hash)) else { return };
        self.state.lock().offers_asked += 1;
        tokio::spawn(async move {
            // Each of the calls can ask meanwhile.
            tokio::time::sleep(Duration::from_secs(2)).await;
            info.reply.send(InfoResponse::Blob(Some(offer.details.into())));
        });
    }
}

fn refused_with_offer(owner: &Owner, _: &CallRequest, _: usize) -> Option<CallReply> {
    let offer = owner.state.lock().offer.clone()?;
    let refusal = Refusal::new(RefusalCode::PriceChanged, "there is another offer");
    Some(CallReply::Refused(Refusal { listing: Some(offer.listing), ..refusal }))
}

/// An owner that refuses every call with the offer that this makes of the one of before, in place of the real one.
async fn offering(
    world: &mut World,
    change: impl FnOnce(Listing) -> Listing,
) -> Result<(Arc<Owner>, NetworkHandle)> {
    let (owner, network) = Owner::replaces(world, refused_with_offer).await?;
    let before = known_offer(world, &network).await?;
    let now = change(Listing { seq: before.seq + 1, ..Listing::clone(&before) });
    let listing = Signed::sign(&now, &owner.key)?;
    let offer = Offer { listing, hash: before.details_hash, details: Vec::new() };
    owner.state.lock().offer = Some(offer);
    Ok((owner, network))
}

/// The service's offer of before, which the consumer has.
async fn known_offer(world: &World, network: &NetworkHandle) -> Result<Verified<Listing>> {
    let services = network.ask(world.consumer_wallet, InfoRequest::Services(vec![world.api.id.0])).await?;
    let InfoResponse::Listings(listings) = services else { anyhow::bail!("{services:?}") };
    Ok(listings.into_iter().next().context("no listing")?.verify()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_an_owner_retires_with_its_refusal_is_told_as_retired() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = offering(&mut world, |before| Listing { tombstone: true, ..before }).await?;

    for _ in 0..2 {
        let answer = world.get("/ok").await?;
        ensure!(answer.status == 410 && answer.problem() == "service-retired", "{answer:?}");
        ensure!(answer.charged() == json!(false), "{answer:?}");
    }
    // The second call does not leave its buyer.
    assert_eq!(owner.state.lock().calls.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_call_does_not_accept_that_failures_are_charged_when_its_refusal_brings_that() -> Result<()> {
    let mut world = World::start().await?;
    // A call that names its price accepts nothing for others.
    let capped = with(world.body("GET", "/ok"), "max_price", PRICE.to_string());
    expect_served(&world.call(&capped).await?)?;
    world.wait_until_decided().await?;
    let charge_policy = ChargePolicy::Answered;
    let (owner, _network) = offering(&mut world, |before| Listing { charge_policy, ..before }).await?;

    let answer = world.get("/ok").await?;
    ensure!(answer.status == 409 && answer.problem() == "price-changed", "{answer:?}");
    ensure!(answer.json()["detail"].to_string().contains("400 to 499"), "{answer:?}");
    assert_eq!(owner.state.lock().calls.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_that_many_refusals_bring_is_asked_for_once() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, network) = Owner::replaces(&mut world, refused_with_offer).await?;
    let consumer = world.consumer_wallet;

    let before = known_offer(&world, &network).await?;
    let blob = network.ask(consumer, InfoRequest::Blob(before.details_hash)).await?;
    let InfoResponse::Blob(Some(blob)) = blob else { anyhow::bail!("{blob:?}") };
    let mut details: Details = wire::decode(&blob)?;
    let method = Method::Get;
    details.prices.push(OperationPrice { method, path: "/raw".to_owned(), price: cost(3) });
    let (details, hash) = details.to_blob();
    let now = Listing {
        seq: before.seq + 1,
        details_hash: hash,
        details_bytes: u32::try_from(details.len())?,
        ..Listing::clone(&before)
    };
    let listing = Signed::sign(&now, &owner.key)?;
    owner.state.lock().offer = Some(Offer { listing, hash, details });

    let calls = (0..CALLS).map(|_| world.get("/ok"));
    for answer in futures::future::try_join_all(calls).await? {
        ensure!(answer.charged() == json!(false), "{answer:?}");
    }
    let state = owner.state.lock();
    assert_eq!(state.calls.len(), CALLS);
    ensure!(
        state.offers_asked <= 2,
        "asked {} times: once for the calls, and once ahead of them",
        state.offers_asked
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_offer_that_an_owner_does_not_bring_is_told_as_changed_and_not_as_unreachable() -> Result<()>
{
    let mut world = World::start().await?;
    world.buy(1).await?;
    let without_offer: Answers =
        |_, _, _| Some(CallReply::Refused(Refusal::new(RefusalCode::PriceChanged, "it is dearer now")));
    let (_owner, _network) = Owner::replaces(&mut world, without_offer).await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.status == 409 && answer.problem() == "price-changed", "{answer:?}");
    ensure!(answer.charged() == json!(false), "{answer:?}");
    Ok(())
}
