//! A wallet without money: told what to send where, and served as soon as it arrived.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_chain::deploy::{Deployer, dev_account};
use farthing_control::{
    endpoint,
    types::{AlertKind, Api, ChannelState, Charge},
};
use farthing_testnet::{NodeOptions, NodeProcess, anvil::Anvil};
use farthing_tests::{
    agreement,
    calls::{
        cost, expect_free, expect_served, fixed_owner, on_a_fixed_port, posing_as_public, setting, with,
    },
    command::farthing,
    nodes,
    wait::eventually,
    world::{Answer, FUNDS, PRICE, Setup, World, service_file},
};
use farthing_values::Usdc;

#[tokio::test]
async fn an_empty_wallet_is_told_what_to_send_where_and_the_same_call_works_then() -> Result<()> {
    // Its owner pays gas for nobody.
    let owner_settings = setting("settlement.sponsor", "false");
    let world = World::with(Setup { funds: Usdc::ZERO, owner_settings, ..Setup::default() }).await?;
    let call = with(world.body("GET", "/ok"), "call_id", "the same");
    let wallet = world.consumer_wallet.to_string();
    let says = |answer: &Answer, parts: &[&str]| -> Result<()> {
        let detail = answer.json()["detail"].as_str().context("no detail")?.to_owned();
        for part in parts {
            ensure!(detail.contains(part), "`{detail}` does not say {part}");
        }
        Ok(())
    };

    let answer = world.call(&call).await?;
    expect_free("no USDC and no ETH", &answer, 402, "insufficient-funds")?;
    says(&answer, &[&wallet, "send at least 0.40 USDC", "local"])?;

    // The chain's first development account mints the token.
    let minter = Deployer::connect(&world.chain.rpc_url(), Anvil::CHAIN_ID, dev_account(0)?).await?;
    minter.mint(world.chain.token, world.consumer_wallet, FUNDS).await?;
    eventually("the wallet lacks ETH alone", async || {
        let answer = world.call(&call).await?;
        expect_free("no ETH", &answer, 402, "insufficient-funds")?;
        let detail = answer.json()["detail"].as_str().context("no detail")?.to_owned();
        // Its record says so, or its answer, whichever comes first.
        let is_refused = detail.contains("does not offer that") || detail.contains("settlement.sponsor");
        let is_about_eth = is_refused && detail.contains("0.0002 ETH");
        Ok(is_about_eth && detail.contains(&wallet) && !detail.contains("USDC"))
    })
    .await?;

    world.chain.fund(world.consumer_wallet, Usdc::ZERO).await?;
    eventually("the call is served", async || {
        let answer = world.call(&call).await?;
        if !answer.status.is_success() {
            expect_free("the ETH is not seen yet", &answer, 402, "insufficient-funds")?;
        }
        Ok(answer.status.is_success())
    })
    .await?;
    expect_served(&world.call(&call).await?)?;
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE).await
}

#[tokio::test]
async fn a_wallet_that_runs_dry_buys_what_it_can_and_not_one_call_more() -> Result<()> {
    let funds = Usdc::from_micros(cost(10).micros() + 1_999);
    let small = [setting("spending.deposit_min", "0.004"), setting("spending.deposit_prices", "3")].concat();
    let world = World::with(Setup { funds, consumer_settings: small, ..Setup::default() }).await?;
    for n in 1..=10 {
        expect_served(&world.get("/ok").await.with_context(|| format!("call {n}"))?)?;
    }
    for _ in 0..3 {
        let answer = world.get("/ok").await?;
        expect_free("nothing left", &answer, 402, "insufficient-funds")?;
    }
    assert_eq!(world.upstream.hits(), 10);

    world.chain.fund(world.consumer_wallet, cost(5)).await?;
    eventually("the new money is used", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    assert_eq!(world.upstream.hits(), 11);
    let total = Usdc::from_micros(funds.micros() + cost(5).micros());
    assert_eq!(world.settle_and_check(total).await?, cost(11));
    Ok(())
}

#[tokio::test]
async fn a_listing_that_binds_money_for_longer_than_its_buyer_allows_gets_none_and_the_catalog_says_so()
-> Result<()> {
    gets_no_money(setting("chain.close_delay_secs", "2592000"), "30 days", "spending.close_delay_max_secs")
        .await
}

#[tokio::test]
async fn a_listing_that_asks_for_the_whole_wallet_gets_none_of_it_and_the_catalog_says_so() -> Result<()> {
    let all = FUNDS.to_string();
    gets_no_money(setting("settlement.channel_min", &all), &format!("{all} USDC"), "spending.deposit_max")
        .await
}

/// An owner with these settings asks for something that the consumer's own setting forbids.
async fn gets_no_money(owner_settings: Vec<(String, String)>, asks: &str, forbidden_by: &str) -> Result<()> {
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let service = world.api.id.to_string();
    for _ in 0..2 {
        let answer = world.get("/ok").await?;
        expect_free(asks, &answer, 402, "terms-refused")?;
        let detail = answer.json()["detail"].to_string();
        ensure!(detail.contains(asks) && detail.contains(forbidden_by), "{detail}");
    }
    // Nor by hand.
    let open = farthing(&world.consumer, &["channel", "open", &service, "--deposit", "0.1"]).await?;
    ensure!(open.code != 0 && open.err.contains(asks), "{open:?}");
    for command in [&["catalog", "show", &service][..], &["catalog", "search", "Test"]] {
        // A search for words has a service as soon as its index does.
        let mut told = None;
        eventually("the command tells it", async || {
            let ran = farthing(&world.consumer, command).await?;
            ran.ends_with(0)?;
            let is_told = ran.out.contains("does not buy") && ran.out.contains(asks);
            told = Some(ran);
            Ok(is_told)
        })
        .await
        .with_context(|| format!("{told:?}"))?;
    }
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, FUNDS, "no money moved");
    assert_eq!(world.upstream.hits(), 0);
    world.settle_for(Usdc::ZERO).await
}

#[tokio::test]
async fn money_at_rest_with_an_owner_stays_within_its_limit_until_the_owner_claims() -> Result<()> {
    let small = [
        setting("spending.deposit_min", "0.004"),
        setting("spending.deposit_max", "0.01"),
        setting("spending.deposit_prices", "3"),
        setting("spending.at_rest_per_owner", "0.015"),
    ];
    let world = World::with(Setup { consumer_settings: small.concat(), ..Setup::default() }).await?;
    let at_rest = async || -> Result<Usdc> {
        let left = world.chain.usdc_of(world.consumer_wallet).await?;
        let claimed = world.chain.usdc_of(world.owner_wallet).await?;
        FUNDS.checked_sub(left).and_then(|gone| gone.checked_sub(claimed)).context("money appeared")
    };
    // Seven calls fit into what may lie there; a top-up of the wallet's would go on for ever.
    for n in 1..=7 {
        expect_served(&world.get("/ok").await?).with_context(|| format!("call {n}"))?;
        ensure!(at_rest().await? <= Usdc::from_micros(15_000), "{} USDC lie there", at_rest().await?);
    }
    let answer = world.get("/ok").await?;
    expect_free("the limit", &answer, 402, "over-limit")?;
    let detail = answer.json()["detail"].to_string();
    ensure!(detail.contains("spending.at_rest_per_owner") && detail.contains("0.015"), "{detail}");
    assert_eq!(at_rest().await?, Usdc::from_micros(15_000));
    let shown = farthing(&world.consumer, &["spending", "show", "--json"]).await?;
    let shown = shown.ends_with(0)?.json()?;
    assert_eq!(
        (&shown["at_rest"]["now"], &shown["at_rest"]["per_owner"]),
        (&"0.015".into(), &"0.015".into())
    );

    farthing(&world.owner, &["settle"]).await?.ends_with(0)?;
    eventually("there is room again", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    ensure!(at_rest().await? <= Usdc::from_micros(15_000), "{} USDC lie there", at_rest().await?);
    assert_eq!(world.upstream.hits(), 8);
    world.settle_for(cost(8)).await
}

/// One more owner that the consumer is connected to, and its service.
async fn another_owner(world: &World, data: &Path) -> Result<(NodeProcess, Api)> {
    let options = NodeOptions::new(data).bootstrap([world.consumer.loopback_address().await?]);
    let options = options.set("settlement.channel_min", &"0.000001");
    let node = NodeProcess::start(&world.chain, options).await?;
    let wallet = node.status().await?.address.0;
    world.chain.fund(wallet, Usdc::ZERO).await?;
    node.wait_until_ready().await?;
    // It knows of its ETH then.
    node.wait_for_usdc(Usdc::ZERO).await?;
    let api = nodes::publish(&node, &service_file(&world.upstream.url(), Charge::Success)).await?;
    eventually("the consumer knows the service and is connected", async || {
        let peers = world.consumer.control().ask(endpoint::Peers).await?;
        let is_known = nodes::show(&world.consumer, api.id.0).await.is_ok();
        Ok(is_known && peers.iter().any(|peer| peer.wallet.0 == wallet))
    })
    .await?;
    Ok((node, api))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_at_rest_with_several_owners_stays_within_the_limit_of_all_together() -> Result<()> {
    const MAX: Usdc = Usdc::from_micros(10_000);
    let small = [
        setting("spending.deposit_min", "0.006"),
        setting("spending.deposit_max", "0.006"),
        setting("spending.at_rest_per_owner", "0.006"),
        setting("spending.at_rest_max", "0.01"),
    ];
    let world = World::with(Setup { consumer_settings: small.concat(), ..Setup::default() }).await?;
    let folder = tempfile::tempdir()?;
    let (second, of_second) = another_owner(&world, &folder.path().join("second")).await?;
    let (third, of_third) = another_owner(&world, &folder.path().join("third")).await?;
    let wallets = [
        world.consumer_wallet,
        world.owner_wallet,
        second.status().await?.address.0,
        third.status().await?.address.0,
    ];
    let at_rest = async || -> Result<Usdc> {
        let mut elsewhere = Usdc::ZERO;
        for wallet in wallets {
            elsewhere = elsewhere.saturating_add(world.chain.usdc_of(wallet).await?);
        }
        FUNDS.checked_sub(elsewhere).context("money appeared")
    };
    let refused = |answer: &Answer| -> Result<()> {
        expect_free("the limit in all", answer, 402, "over-limit")?;
        let detail = answer.json()["detail"].to_string();
        ensure!(detail.contains("spending.at_rest_max") && detail.contains("at most 0.01 USDC"), "{detail}");
        Ok(())
    };
    for n in 1..=3 {
        expect_served(&world.get("/ok").await?).with_context(|| format!("call {n}"))?;
    }
    assert_eq!(at_rest().await?, Usdc::from_micros(6_000), "as much as may lie with one owner");

    // What is left is enough for either of the others, and not for both.
    let (one, two) =
        futures::try_join!(world.call_of(&of_second, "GET", "/ok"), world.call_of(&of_third, "GET", "/ok"))?;
    let (served, paid, told, unpaid) = if one.status.is_success() {
        (one, &of_second, two, &of_third)
    } else {
        (two, &of_third, one, &of_second)
    };
    expect_served(&served)?;
    refused(&told)?;
    assert_eq!(at_rest().await?, MAX, "the rest of it, which is less than was wanted");
    expect_served(&world.call_of(paid, "GET", "/ok").await?)?;
    for api in [paid, unpaid] {
        refused(&world.call_of(api, "GET", "/ok").await?)?;
    }
    let by_hand = ["channel", "open", &unpaid.id.to_string(), "--deposit", "0.002"];
    let open = farthing(&world.consumer, &by_hand).await?;
    ensure!(open.code != 0 && open.err.contains("spending.at_rest_max"), "{open:?}");
    assert_eq!(at_rest().await?, MAX);
    let shown = farthing(&world.consumer, &["spending", "show", "--json"]).await?;
    let shown = shown.ends_with(0)?.json()?;
    assert_eq!((&shown["at_rest"]["now"], &shown["at_rest"]["max"]), (&"0.01".into(), &"0.01".into()));

    // What one owner claims makes room for another.
    farthing(&world.owner, &["settle"]).await?.ends_with(0)?;
    eventually("there is room again", async || {
        Ok(world.call_of(unpaid, "GET", "/ok").await?.status.is_success())
    })
    .await?;
    ensure!(at_rest().await? <= MAX, "{} USDC lie there", at_rest().await?);
    assert_eq!(world.upstream.hits(), 6);
    agreement::check_at_rest(&[&world.owner, &world.consumer, &second, &third]).await
}

/// Has an owner serve a call, and close the channel at once.
async fn call_and_close(world: &World, owner: &NodeProcess, api: &Api) -> Result<()> {
    expect_served(&world.call_of(api, "GET", "/ok").await?)?;
    world.wait_until_decided().await?;
    let channels = owner.control().ask(endpoint::Channels).await?;
    owner.control().ask(endpoint::CloseChannel.of(channels[0].id)).await?;
    agreement::until_closed(&world.consumer).await
}

/// Waits until the consumer's alerts name these owners as those that closed unasked, and no other.
async fn until_named(world: &World, owners: &BTreeSet<String>) -> Result<()> {
    eventually("the alerts name who closed", async || {
        let alerts = world.consumer.control().ask(endpoint::Alerts).await?;
        let closed = alerts.into_iter().filter(|alert| alert.kind == AlertKind::ClosedUnasked);
        Ok(closed.map(|alert| alert.subject).collect::<BTreeSet<_>>() == *owners)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_close_each_channel_at_once_are_named_and_keep_no_other_from_being_paid() -> Result<()> {
    // What three owners have had back comes to 1.188 USDC: not even a call's price is left beside its whole.
    let limits = [
        setting("spending.deposit_min", "0.2"),
        setting("spending.deposit_max", "0.2"),
        setting("spending.at_rest_per_owner", "0.4"),
        setting("spending.at_rest_max", "1.189"),
    ];
    let consumer_settings = [posing_as_public(), limits.concat()].concat();
    let mut world = World::with(Setup { consumer_settings, ..fixed_owner()? }).await?;
    let folder = tempfile::tempdir()?;
    let mut closing = Vec::new();
    for name in ["second", "third", "fourth"] {
        closing.push(another_owner(&world, &folder.path().join(name)).await?);
    }
    let mut named = BTreeSet::new();
    for (owner, api) in &closing {
        // The first deposit, and one more of the day.
        for _ in 0..2 {
            call_and_close(&world, owner, api).await?;
        }
        let refused = world.call_of(api, "GET", "/ok").await?;
        expect_free("closed too often", &refused, 402, "over-limit")?;
        named.insert(owner.status().await?.address.0.to_string());
    }
    assert_eq!(named.len(), 3);
    until_named(&world, &named).await?;
    let at_rest = world.consumer.control().ask(endpoint::Spending).await?.at_rest;
    let quarter = Usdc::from_micros(3 * (400_000 - cost(2).micros()) / 4);
    assert_eq!([at_rest.now.0, at_rest.returned.0], [quarter; 2]);
    // Nothing lies there that a close would bring back.
    let (_, of_second) = &closing[0];
    let by_hand = ["channel", "open", &of_second.id.to_string(), "--deposit", "0.2"];
    let open = farthing(&world.consumer, &by_hand).await?;
    for part in ["that came back", "wait 24 h", "spending.at_rest_per_owner"] {
        ensure!(open.code != 0 && open.err.contains(part), "{part}: {open:?}");
    }
    ensure!(!open.err.contains("channel close"), "{open:?}");

    world.buy(1).await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    until_named(&world, &named).await?;
    world.wait_until_met().await?;
    expect_served(&world.get("/ok").await?)?;
    let mut nodes = vec![&world.owner, &world.consumer];
    nodes.extend(closing.iter().map(|(owner, _)| owner));
    agreement::check_at_rest(&nodes).await
}

#[tokio::test]
async fn a_deposit_by_hand_without_eth_signs_nothing_and_takes_no_place_among_the_money_at_rest() -> Result<()>
{
    let owner_settings = setting("settlement.sponsor", "false");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let service = world.api.id.to_string();
    eventually("the owner's record is here, which says that it pays gas for nobody", async || {
        let shown = farthing(&world.consumer, &["catalog", "show", &service, "--json"]).await?;
        Ok(shown.code == 0 && shown.json()?["state"] == "online")
    })
    .await?;
    let has_eth = async |wei: &str, told: &str| -> Result<()> {
        world.set_eth(world.consumer_wallet, wei).await?;
        eventually("the node knows it", async || {
            let balance = farthing(&world.consumer, &["wallet", "balance", "--json"]).await?;
            Ok(balance.ends_with(0)?.json()?["eth"] == told)
        })
        .await
    };
    let open = async || farthing(&world.consumer, &["channel", "open", &service, "--deposit", "0.1"]).await;
    has_eth("0x0", "0").await?;
    let refused = open().await?;
    ensure!(refused.code != 0 && refused.err.contains("0.0002 ETH"), "{refused:?}");
    let shown = farthing(&world.consumer, &["spending", "show", "--json"]).await?;
    assert_eq!(
        shown.ends_with(0)?.json()?["at_rest"]["now"],
        "0.00",
        "what is refused may not be made later"
    );
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, FUNDS);

    has_eth("0xde0b6b3a7640000", "1").await?;
    open().await?.ends_with(0)?;
    expect_served(&world.get("/ok").await?)?;
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn an_owner_that_asks_for_a_longer_delay_gets_nothing_more_into_a_channel_of_before() -> Result<()> {
    let small = [setting("spending.deposit_min", "0.004"), setting("spending.deposit_prices", "2")].concat();
    let delay = setting("chain.close_delay_secs", "3600");
    let owner_settings = [on_a_fixed_port()?, delay].concat();
    let setup = Setup { consumer_settings: small, owner_settings, ..Setup::default() };
    let mut world = World::with(setup).await?;
    expect_served(&world.get("/ok").await?)?;
    world.owner.restart(vec![("FARTHING_CHAIN__CLOSE_DELAY_SECS".to_owned(), "7200".to_owned())]).await?;
    world.owner.wait_until_ready().await?;
    let service = world.api.id.to_string();
    eventually("the new terms are known", async || {
        let shown = farthing(&world.consumer, &["catalog", "show", &service, "--json"]).await?;
        Ok(shown.ends_with(0)?.json()?["version"] == 2)
    })
    .await?;

    // The channel is low all the time, so each call that spent of it would fill it.
    let left = world.chain.usdc_of(world.consumer_wallet).await?;
    for n in 1..=3 {
        let refused = world.get("/ok").await?;
        expect_free(&format!("call {n}"), &refused, 402, "channel-delay-too-short")?;
    }
    let open = farthing(&world.consumer, &["channel", "open", &service, "--deposit", "0.1"]).await?;
    ensure!(open.code != 0 && open.err.contains("channel close"), "{open:?}");
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, left, "no money moved");
    assert_eq!(world.upstream.hits(), 1);

    // What it says to do helps.
    let id = world.channel().await?.id.to_string();
    let unasked = farthing(&world.consumer, &["channel", "close", &id]).await?;
    ensure!(unasked.ends_with(2)?.err.contains("--yes"), "it is asked about: {unasked:?}");
    farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?.ends_with(0)?;
    expect_served(&world.get("/ok").await?)?;
    world.settle_for(cost(2)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_waits_for_a_deposit_that_is_being_made_and_gives_that_back_too() -> Result<()> {
    let world = World::start().await?;
    world.buy(1).await?;
    world.mine_by_hand().await?;
    let service = world.api.id.to_string();
    let deposit = async {
        let open = ["channel", "open", &service, "--deposit", "0.1"];
        farthing(&world.consumer, &open).await?.ends_with(0)?;
        anyhow::Ok(())
    };
    let close = async {
        world.wait_for_pending().await?;
        let id = world.consumer.control().ask(endpoint::Channels).await?[0].id;
        let closed = async { anyhow::Ok(world.consumer.control().ask(endpoint::CloseChannel.of(id)).await?) };
        let meanwhile = async {
            // An owner that has signed a close serves nothing.
            for _ in 0..50 {
                expect_served(&world.get("/ok").await?)?;
            }
            world.mine_at_once().await
        };
        tokio::try_join!(closed, meanwhile)
    };
    let ((), (closed, ())) = tokio::try_join!(deposit, close)?;
    ensure!(closed.state == ChannelState::CloseBrought, "{closed:?}");
    world.settle_for(cost(51)).await
}
