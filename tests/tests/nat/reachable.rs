//! An owner whose router forwards port 3001 is called from everywhere.

use anyhow::{Result, ensure};

use crate::{
    lab::{HOME_FIRST, Place, router::Forwarded},
    market::{Market, Setup, addresses_at, case},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_behind_a_forwarded_port_is_called_directly_from_everywhere() -> Result<()> {
    let setup = Setup {
        owner: vec![("network.announce", addresses_at(HOME_FIRST).join(","))],
        consumers: vec![Place::Public, Place::BehindPlain, Place::BehindSymmetric, Place::Neighbour],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;

    let from = [
        ("a public host calls the owner", Place::Public),
        ("a consumer behind a plain NAT calls the owner", Place::BehindPlain),
        ("a consumer behind a symmetric NAT calls the owner", Place::BehindSymmetric),
        (
            "hairpin: a consumer in the owner's own LAN calls it through the router's public address",
            Place::Neighbour,
        ),
    ];
    for (promise, place) in from {
        case(promise, is_called_directly(&market, place)).await?;
    }
    case("every call was executed once and charged once", market.check_books(4)).await
}

async fn is_called_directly(market: &Market, place: Place) -> Result<()> {
    let consumer = market.consumer(place);
    market.call_until_served(consumer, "/ok", &format!("{place:?}")).await?;
    let way = market.way_to_owner(consumer).await?;
    let home = format!("/ip4/{HOME_FIRST}/");
    ensure!(way.starts_with(&home), "{place:?} reaches the owner at {way}");
    Ok(())
}
