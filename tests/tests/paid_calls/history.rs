//! The history of whole nodes: what was bought, served, moved and settled, searched and exported.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    calls::{cost, expect_served},
    command::farthing,
    world::World,
};
use farthing_values::Usdc;
use serde_json::Value;

#[tokio::test]
async fn everything_that_moved_money_is_in_the_history_of_both_sides_and_adds_up() -> Result<()> {
    let world = World::start().await?;
    let (owner, consumer) = (&world.owner, &world.consumer);
    for _ in 0..3 {
        expect_served(&world.get("/ok").await?)?;
    }
    ensure!(world.get("/status/404").await?.status == 404);
    ensure!(world.get("/status/500").await?.problem() == "upstream-failed");
    farthing(owner, &["settle"]).await?.ends_with(0)?;
    world.wait_until_decided().await?;

    let of = |node, arguments: Vec<&'static str>| async move {
        let told = farthing(node, &[&["wallet", "history", "--json"][..], &arguments].concat()).await?;
        let list = told.ends_with(0).with_context(|| format!("{arguments:?}"))?.json()?;
        anyhow::Ok(list.as_array().context("a list")?.clone())
    };
    // Those of one second have no order that means anything.
    let states = |entries: &[Value]| -> Vec<String> {
        let mut states: Vec<String> =
            entries.iter().map(|entry| entry["state"].as_str().unwrap_or_default().to_owned()).collect();
        states.sort();
        states
    };
    let bought = of(consumer, vec!["--kind", "bought"]).await?;
    assert_eq!(states(&bought), ["charged", "charged", "charged", "failed", "free"]);
    ensure!(
        bought.iter().all(|call| call["secret"] == "default" && call["name"] == "Test service"),
        "{bought:#?}"
    );
    assert_eq!(of(consumer, vec!["--kind", "bought", "--state", "charged"]).await?.len(), 3);
    assert_eq!(of(consumer, vec!["--kind", "bought", "--limit", "2"]).await?, bought[..2]);
    let service = world.api.id.to_string();
    let arguments = ["wallet", "history", "--json", "--service", &service];
    assert_eq!(farthing(consumer, &arguments).await?.json()?.as_array().map(Vec::len), Some(5));
    let elsewhere = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    assert_eq!(of(consumer, vec!["--service", elsewhere]).await?.len(), 0);
    let (seller, nobody) = (world.owner_wallet.to_string(), "0x00000000000000000000000000000000000000aa");
    let with = async |wallet: &str| {
        let told = farthing(consumer, &["wallet", "history", "--json", "--with", wallet]).await?;
        anyhow::Ok(told.ends_with(0)?.json()?.as_array().context("a list")?.clone())
    };
    let of_seller = with(&seller).await?;
    ensure!(of_seller.iter().filter(|entry| entry["kind"] == "bought").count() == 5, "{of_seller:#?}");
    assert_eq!(with(nobody).await?.len(), 0);
    assert_eq!(of(consumer, vec!["--to", "2020-01-01"]).await?.len(), 0);
    assert_eq!(of(consumer, vec!["--from", "2020-01-01"]).await?.len(), of(consumer, vec![]).await?.len());

    let deposits = of(consumer, vec!["--kind", "transaction"]).await?;
    ensure!(
        deposits.iter().any(|entry| entry["what"] == "deposit" && entry["fee"].is_string()),
        "{deposits:#?}"
    );
    let served = of(owner, vec!["--kind", "served"]).await?;
    assert_eq!(states(&served), ["charged", "charged", "charged", "failed", "free"]);
    let failed = served.iter().find(|call| call["state"] == "failed").context("one failed")?;
    assert_eq!(failed["reason"], "the upstream reports an error of its own", "its owner is told exactly");
    let settled = of(owner, vec!["--kind", "settlement"]).await?;
    assert_eq!((&settled[0]["state"], &settled[0]["amount"]), (&"confirmed".into(), &"0.006".into()));
    let number = settled[0]["id"].as_str().context("a number")?;
    let one = farthing(owner, &["wallet", "settlement", number, "--json"]).await?;
    let one = one.ends_with(0)?.json()?;
    assert_eq!((one["calls"].as_array().map(Vec::len), &one["partial"]), (Some(3), &false.into()));
    ensure!(of(owner, vec!["--kind", "transaction"]).await?.iter().any(|entry| entry["what"] == "claim"));

    // Steps of one entry lead through the same list, over all kinds.
    let whole = of(consumer, vec![]).await?;
    let (mut stepped, mut cursor) = (Vec::new(), String::new());
    loop {
        let step = consumer.control().ask(endpoint::History.with("limit", 1).with("cursor", &cursor)).await?;
        for entry in &step.entries {
            stepped.push(serde_json::to_value(entry)?);
        }
        let Some(next) = step.next else { break };
        cursor = next;
    }
    assert_eq!(stepped, whole);

    let csv = farthing(consumer, &["wallet", "history", "--csv"]).await?;
    let lines: Vec<&str> = csv.ends_with(0)?.out.lines().collect();
    assert_eq!(lines.len(), whole.len() + 1);
    ensure!(lines[0].starts_with("time,kind,state,id,amount_usdc"), "{csv:?}");
    for (node, calls, money) in [(consumer, "bought", "spent"), (owner, "served", "earned")] {
        let days = farthing(node, &["wallet", "history", "--by-day", "--json"]).await?;
        let days = days.ends_with(0)?.json()?;
        let days = days.as_array().context("days")?;
        assert_eq!(days.len(), 30);
        // The calls may lie on both sides of midnight.
        let counted: u64 = days.iter().filter_map(|day| day[calls].as_u64()).sum();
        let amounts = days.iter().filter_map(|day| day[money].as_str()?.parse::<Usdc>().ok());
        let sum = amounts.fold(Usdc::ZERO, Usdc::saturating_add);
        assert_eq!((counted, sum), (4, cost(3)), "{money}");
    }
    for (wrong, code) in [
        (&["wallet", "history", "--kind", "sold"][..], 2),
        (&["wallet", "history", "--from", "yesterday"], 2),
        (&["wallet", "history", "--with", "somebody"], 2),
        (&["wallet", "history", "--csv", "--json"], 2),
        (&["wallet", "settlement", "99"], 1),
    ] {
        farthing(consumer, wrong).await?.ends_with(code).with_context(|| format!("{wrong:?}"))?;
    }
    world.settle_for(cost(3)).await
}
