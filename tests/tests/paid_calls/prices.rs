//! Prices that change while scripts run: never more than the caller accepted, never an error for less.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_control::types::{
    Api, CatalogService, Charge, EditRequest, OperationName, PriceRequest, RescanRequest, ServiceFile,
    SourceFile, SourceKind, Text,
};
use farthing_tests::{
    calls::{expect_free, expect_served, fixed_owner, setting, with},
    command::farthing,
    wait::eventually,
    world::{PRICE, Setup, World},
};
use farthing_values::{Method, Usdc};
use serde_json::json;

const MICROS: fn(u64) -> Usdc = Usdc::from_micros;

async fn reprice(world: &World, price: Usdc, operation: Option<&str>) -> Result<Api> {
    let operation = operation.map(|path| OperationName { method: Text(Method::Get), path: path.to_owned() });
    let at = endpoint::PriceApi.of(world.api.id);
    Ok(world.owner.control().tell(at, &PriceRequest { price: price.into(), operation }).await?)
}

/// What the user of the consumer's node accepts for all calls.
async fn accept(world: &World, up_to: Usdc) -> Result<()> {
    let (service, up_to) = (world.api.id.to_string(), up_to.to_string());
    farthing(&world.consumer, &["spending", "accept", &service, "--up-to", &up_to]).await?.ends_with(0)?;
    Ok(())
}

/// What the consumer's catalog says a call costs: of the service, and of its first operation.
async fn shown(world: &World) -> Result<(Usdc, Usdc)> {
    let at = endpoint::CatalogService.of(world.api.id);
    let shown: CatalogService = world.consumer.control().ask(at).await?;
    Ok((shown.hit.price.0, shown.offers.first().context("no operation")?.price.0))
}

#[tokio::test]
async fn the_catalog_shows_a_new_price_whole_before_a_call_is_charged_it() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    for (price, max_price, asks) in [(3_000, None, true), (4_000, Some("0.004"), false), (1_000, None, false)]
    {
        let price = MICROS(price);
        reprice(&world, price, None).await?;
        eventually("the catalog has heard of the price", async || Ok(shown(&world).await?.0 == price))
            .await?;
        assert_eq!(shown(&world).await?, (price, price));
        let mut call = world.body("GET", "/ok");
        if let Some(max_price) = max_price {
            call = with(call, "max_price", max_price);
        }
        if asks {
            expect_free("raised", &world.call(&call).await?, 409, "price-changed")?;
            accept(&world, price).await?;
        }
        let answer = world.call(&call).await?;
        expect_served(&answer)?;
        assert_eq!(answer.header("x-farthing-charged"), price.to_string());
    }
    assert_eq!(world.upstream.hits(), 4);
    world.settle_for(MICROS(2_000 + 3_000 + 4_000 + 1_000)).await
}

#[tokio::test]
async fn a_price_that_rose_above_a_limit_names_the_limit_and_no_vain_repeat() -> Result<()> {
    let consumer_settings = setting("spending.price_max", "0.0025");
    let world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    let call = world.body("GET", "/ok");
    for (price, call, named, limit) in [
        (2_400, with(call.clone(), "max_price", "0.0021"), "max_price", None),
        (2_600, call, "your limit per call is 0.0025 USDC", Some("per-call")),
    ] {
        reprice(&world, MICROS(price), None).await?;
        let answer = world.call(&call).await?;
        expect_free(named, &answer, 409, "price-changed")?;
        let answer = answer.json();
        let (detail, next) = (answer["detail"].to_string(), answer["next"].to_string());
        ensure!(detail.contains(named), "{detail}");
        ensure!(answer["limit"].as_str() == limit, "{answer}");
        ensure!(!next.contains("Send the call again"), "{next}");
    }
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE).await
}

#[tokio::test]
async fn a_raised_price_is_refused_however_often_a_script_repeats_until_the_nodes_user_accepts_it()
-> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    let plain = world.body("GET", "/ok");
    let refused = async |world: &World| -> Result<()> {
        for _ in 0..3 {
            let answer = world.call(&plain).await?;
            expect_free("raised", &answer, 409, "price-changed")?;
            let (detail, next) = (answer.json()["detail"].to_string(), answer.json()["next"].to_string());
            ensure!(detail.contains("0.003") && detail.contains("0.002"), "{detail}");
            ensure!(next.contains("max_price") && next.contains("spending accept"), "{next}");
        }
        Ok(())
    };

    reprice(&world, MICROS(3_000), None).await?;
    refused(&world).await?;
    // A call that names the price pays it, and changes nothing for the others.
    let named = world.call(&with(plain.clone(), "max_price", "0.003")).await?;
    expect_served(&named)?;
    assert_eq!(named.header("x-farthing-charged"), "0.003");
    refused(&world).await?;
    restart(&mut world).await?;
    refused(&world).await.context("after a restart")?;
    assert_eq!(world.upstream.hits(), 2);

    accept(&world, MICROS(3_000)).await?;
    restart(&mut world).await?;
    let answer = world.get("/ok").await?;
    expect_served(&answer)?;
    assert_eq!(answer.header("x-farthing-charged"), "0.003");
    // What rises further is another price.
    reprice(&world, MICROS(3_001), None).await?;
    expect_free("raised again", &world.get("/ok").await?, 409, "price-changed")?;
    assert_eq!(world.upstream.hits(), 3);
    world.settle_for(MICROS(2_000 + 3_000 + 3_000)).await
}

async fn restart(world: &mut World) -> Result<()> {
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("it has found the other node", async || Ok(world.consumer.status().await?.peers > 0)).await
}

#[tokio::test]
async fn a_first_call_that_names_its_price_also_accepts_it_for_those_that_name_none() -> Result<()> {
    let world = World::start().await?;
    let call = world.body("GET", "/ok");
    expect_served(&world.call(&with(call.clone(), "max_price", PRICE.to_string())).await?)?;
    reprice(&world, MICROS(9_000), None).await?;
    // The node learns of the new price from this one.
    let named = with(call.clone(), "max_price", PRICE.to_string());
    expect_free("the price that it names", &world.call(&named).await?, 409, "price-changed")?;
    for again in 0..2 {
        expect_free(&format!("no price, {again}"), &world.call(&call).await?, 409, "price-changed")?;
    }
    accept(&world, MICROS(9_000)).await?;
    expect_served(&world.call(&call).await?)?;
    world.settle_for(MICROS(2_000 + 9_000)).await
}

#[tokio::test]
async fn a_call_pays_up_to_the_price_that_it_names_and_not_more() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;

    // Who named a price that covers it is not bothered; who named less is refused.
    reprice(&world, MICROS(4_000), None).await?;
    let call = world.body("GET", "/ok");
    expect_free(
        "above",
        &world.call(&with(call.clone(), "max_price", "0.003999")).await?,
        409,
        "price-changed",
    )?;
    expect_free(
        "known above",
        &world.call(&with(call.clone(), "max_price", "0.003999")).await?,
        402,
        "price-above-cap",
    )?;
    reprice(&world, MICROS(5_000), None).await?;
    let answer = world.call(&with(call, "max_price", "0.005")).await?;
    expect_served(&answer)?;
    assert_eq!(answer.header("x-farthing-charged"), "0.005");
    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(MICROS(2_000 + 5_000)).await
}

#[tokio::test]
async fn a_lowered_price_is_taken_without_a_word() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    reprice(&world, MICROS(500), None).await?;
    let answer = world.get("/ok").await?;
    expect_served(&answer)?;
    assert_eq!(answer.header("x-farthing-charged"), "0.0005");

    // One operation may cost something else, even nothing.
    reprice(&world, Usdc::ZERO, Some("/ok")).await?;
    let free = world.get("/ok").await?;
    expect_served(&free)?;
    assert_eq!((free.header("x-farthing-price-usdc"), free.header("x-farthing-charged")), ("0.00", "0.00"));
    let other = world.get("/large/10").await?;
    assert_eq!(other.header("x-farthing-charged"), "0.0005");
    assert_eq!(world.upstream.hits(), 4);
    world.settle_for(MICROS(PRICE.micros() + 500 + 500)).await
}

#[tokio::test]
async fn a_repeat_keeps_the_price_of_its_first_time() -> Result<()> {
    let world = World::start().await?;
    let call = with(world.body("GET", "/ok"), "call_id", "bought at the old price");
    let first = world.call(&call).await?;
    expect_served(&first)?;
    reprice(&world, MICROS(9_000), None).await?;
    for _ in 0..2 {
        let again = world.call(&call).await?;
        expect_served(&again)?;
        assert_eq!(again.header("x-farthing-charged"), "0.002");
        assert_eq!(again.body, first.body);
    }
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE).await
}

#[tokio::test]
async fn an_offer_that_is_remembered_as_too_dear_is_asked_for_again_before_a_call_is_refused() -> Result<()> {
    let world = World::start().await?;
    reprice(&world, MICROS(900_000), None).await?;
    // The consumer may have heard of the first price before, and takes the second for a raise then.
    let answer = world.get("/ok").await?;
    match answer.status.as_u16() {
        409 => expect_free("raised", &answer, 409, "price-changed")?,
        _ => expect_free("too dear", &answer, 402, "over-limit")?,
    }
    reprice(&world, PRICE, None).await?;
    // The owner is asked at most every two seconds, and well before the next round of the catalog.
    let started = std::time::Instant::now();
    while !world.get("/ok").await?.status.is_success() {
        ensure!(started.elapsed().as_secs() < 30, "the old price is still believed");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE).await
}

/// A description whose operations are these paths, each with its one parameter.
fn described(paths: &[(&str, Option<&str>)]) -> SourceFile {
    let operation = |(path, parameter): &(&str, Option<&str>)| {
        let parameters = parameter.map_or(String::new(), |name| {
            format!(r#""parameters":[{{"name":"{name}","in":"path","required":true,"schema":{{"type":"string"}}}}],"#)
        });
        format!(r#""{path}":{{"get":{{{parameters}"responses":{{"200":{{"description":"said so"}}}}}}}}"#)
    };
    let paths: Vec<String> = paths.iter().map(operation).collect();
    let text = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"Renamed","version":"1"}},"paths":{{{}}}}}"#,
        paths.join(",")
    );
    SourceFile::given(SourceKind::Openapi, text, "openapi.json".to_owned())
}

#[tokio::test]
async fn a_price_is_raised_by_no_other_name_of_the_same_operation() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    for (what, restarts, renamed) in [
        ("its parameter has another name", false, &[("/status/{code}", Some("code"))][..]),
        ("over a restart", true, &[("/status/{code}", Some("code"))][..]),
        (
            "the path has an operation of its own",
            false,
            &[("/status/{status}", Some("status")), ("/status/200", None)][..],
        ),
    ] {
        let file = ServiceFile {
            upstream: world.upstream.url(),
            source: Some(described(&[("/status/{status}", Some("status"))])),
            ..ServiceFile::priced(PRICE)
        };
        let api = world.publish(&file).await?;
        let first = world.call_of(&api, "GET", "/status/200").await?;
        expect_served(&first).context(what)?;
        assert_eq!(first.header("x-farthing-charged"), PRICE.to_string(), "{what}");

        let newer = RescanRequest { source: Some(described(renamed)), apply: true };
        world.owner.control().tell(endpoint::RescanApi.of(api.id), &newer).await?;
        let raised = PriceRequest { price: MICROS(3_000).into(), operation: None };
        world.owner.control().tell(endpoint::PriceApi.of(api.id), &raised).await?;
        if restarts {
            restart(&mut world).await?;
            // It may have stopped between the two changes, and the details of the first are nowhere any more.
            eventually("it knows the raised price", async || {
                let shown = world.consumer.control().ask(endpoint::CatalogService.of(api.id)).await;
                Ok(shown.is_ok_and(|shown| shown.hit.price.0 == MICROS(3_000)))
            })
            .await?;
        }
        for n in 0..3 {
            let answer = world.call_of(&api, "GET", "/status/200").await?;
            ensure!(
                answer.charged() == false,
                "{what}, call {n}: paid {}",
                answer.header("x-farthing-charged")
            );
            expect_free(what, &answer, 409, "price-changed")?;
        }
        // A call that names the price pays it, and accepts it for no other.
        let body = json!({ "api_id_public": api.id.to_string(), "path": "/status/200", "method": "GET" });
        let named = world.call(&with(body, "max_price", "0.003")).await?;
        expect_served(&named).context(what)?;
        assert_eq!(named.header("x-farthing-charged"), "0.003", "{what}");
        let answer = world.call_of(&api, "GET", "/status/200").await?;
        expect_free(what, &answer, 409, "price-changed").context("after a call that named it")?;
        world.owner.control().ask(endpoint::RemoveApi.of(api.id)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn answers_that_were_free_cost_nothing_until_their_charge_is_accepted() -> Result<()> {
    let world = World::start().await?;
    let absent = || world.get("/status/404");
    let polled = absent().await?;
    assert_eq!((polled.status.as_u16(), polled.header("x-farthing-charged")), (404, "0.00"));
    let edit = EditRequest { charge: Some(Charge::Answered), ..EditRequest::default() };
    world.owner.control().tell(endpoint::EditApi.of(world.api.id), &edit).await?;

    let id = world.api.id.to_string();
    eventually("the catalog shows what is charged", async || {
        let shown = farthing(&world.consumer, &["catalog", "show", &id]).await?;
        Ok(shown.ends_with(0)?.out.contains("also for answers with a status from 400 to 499"))
    })
    .await?;
    for n in 0..3 {
        let refused = absent().await?;
        expect_free(&format!("poll {n}"), &refused, 409, "price-changed")?;
        ensure!(refused.json()["detail"].to_string().contains("400 to 499"), "{refused:?}");
    }
    // Nor do answers that always cost something slip by: what a call may cost is not known before it is answered.
    expect_free("another operation", &world.get("/ok").await?, 409, "price-changed")?;
    let capped = with(world.body("GET", "/status/404"), "max_price", PRICE.to_string());
    assert_eq!(world.call(&capped).await?.header("x-farthing-charged"), PRICE.to_string());
    expect_free("the call named it for itself alone", &absent().await?, 409, "price-changed")?;
    accept(&world, PRICE).await?;
    assert_eq!(absent().await?.header("x-farthing-charged"), PRICE.to_string());

    // Less is taken without a word, and what was accepted stays so.
    for (charge, cost) in [(Charge::Success, Usdc::ZERO), (Charge::Answered, PRICE)] {
        let edit = EditRequest { charge: Some(charge), ..EditRequest::default() };
        world.owner.control().tell(endpoint::EditApi.of(world.api.id), &edit).await?;
        assert_eq!(absent().await?.header("x-farthing-charged"), cost.to_string(), "{charge:?}");
    }
    world.settle_for(MICROS(3 * PRICE.micros())).await
}
