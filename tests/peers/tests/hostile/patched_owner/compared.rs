//! `farthing audit --with`: the books of both sides, call by call, and an owner whose books say something else.

use farthing_control::{endpoint, types::Api};
use farthing_ledger::ServedRow;
use farthing_protocol::ChannelId;
use farthing_tests::{
    command::{Ran, farthing},
    world::Setup,
};

use super::*;

/// What the owner's ledger has of its payer's calls.
pub(super) fn records_of(world: &World) -> Result<Vec<CallRecord>> {
    let ledger = Ledger::open(&world.owner.data_dir().join("ledger.redb"), OpenMode::Existing)?;
    let record = |row| match row {
        ServedRow::Accepted(_) => None,
        ServedRow::Done(row) => Some(CallRecord {
            call_id: row.call.call_id,
            channel: row.receipt.channel,
            outcome: Some(row.call.outcome),
            price: row.call.price,
            charged: row.call.charged,
            time_secs: row.call.time_secs,
        }),
    };
    Ok(ledger.calls_of(world.consumer_wallet, None, 1_000, 1_000, record)?.0)
}

pub(super) async fn audit_with(world: &World) -> Result<Ran> {
    let owner = world.owner_wallet.to_string();
    farthing(&world.consumer, &["audit", "--with", &owner, "--json"]).await
}

/// The difference that is told of a call.
fn told(compared: &Value, id: &str) -> Result<String> {
    let call = format!("call {}: ", CallId::from_idempotency_key(id));
    let all = compared["differences"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mine: Vec<&str> = all.filter_map(|line| line.strip_prefix(call.as_str())).collect();
    ensure!(mine.len() == 1, "{id}: {compared:#}");
    Ok(mine[0].to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_are_compared_call_by_call_and_each_kind_of_difference_is_named() -> Result<()> {
    let mut world = World::with(Setup::default()).await?;
    for id in ["same", "hidden", "dearer", "failed", "elsewhere"] {
        expect_served(&world.call(&with(world.body("GET", "/ok"), "call_id", id)).await?)?;
    }
    let at = endpoint::PauseApi.of(world.api.id);
    let _: Api = world.owner.control().ask(at).await?;
    let refused = world.call(&with(world.body("GET", "/ok"), "call_id", "refused")).await?;
    ensure!(refused.charged() == json!(false), "{refused:?}");
    world.wait_until_decided().await?;

    let honest = audit_with(&world).await?;
    let compared = honest.ends_with(0)?.json()?["compared"].clone();
    ensure!(compared["differences_total"] == 0 && compared["calls"].as_u64() >= Some(5), "{compared:#}");
    ensure!(compared["channels"] == 1 && compared["channels_left_out"] == json!([]), "{compared:#}");

    let nobody = format!("0x{}", "11".repeat(20));
    let away = farthing(&world.consumer, &["audit", "--with", &nobody]).await?;
    ensure!(away.ends_with(3)?.err.contains("could not be compared"), "{away:?}");

    let no_call: Answers = |_, _, _| None;
    let (owner, _network) = Owner::replaces(&mut world, no_call).await?;
    let mut records = records_of(&world)?;
    ensure!(records.len() == 5, "{records:?}");
    let id = CallId::from_idempotency_key;
    records.retain(|record| record.call_id != id("hidden"));
    let same = *records.iter().find(|record| record.call_id == id("same")).context("the first call")?;
    for record in &mut records {
        match record.call_id {
            call if call == id("dearer") => record.charged = cost(2),
            call if call == id("failed") => record.outcome = Some(Outcome::TimedOut),
            call if call == id("elsewhere") => record.channel = ChannelId::from_bytes([9; 32]),
            _ => {}
        }
    }
    records.extend(["refused", "made up"].map(|name| CallRecord { call_id: id(name), ..same }));
    records.sort_by_key(|record| record.call_id);
    owner.state.lock().records = records;

    let mut patched = audit_with(&world).await?;
    // A call that ended in the second in which the owner is asked may have ended after it answered.
    eventually("the hidden call counts", async || {
        patched = audit_with(&world).await?;
        Ok(patched.json()?["compared"]["calls"] == 7)
    })
    .await?;
    ensure!(patched.code == 1, "differences are a failure: {patched:?}");
    let compared = patched.json()?["compared"].clone();
    for (name, word) in [
        ("hidden", "the owner has no such call"),
        ("dearer", "your receipt says 0.002 USDC, but the owner's ledger 0.004"),
        ("failed", "your receipt says Answered, but the owner's ledger TimedOut"),
        ("elsewhere", "your receipt has the channel"),
        ("refused", "your ledger says that it was free, but the owner charged 0.002"),
        ("made up", "your ledger has neither the call nor an adjustment"),
    ] {
        let told = told(&compared, name)?;
        ensure!(told.contains(word), "{name}: {told}");
    }
    ensure!(compared["differences_total"] == 6, "{compared:#}");
    ensure!(patched.err.contains("ledger differs from yours: 6"), "{patched:?}");
    // The channel's total is still the real owner's.
    ensure!(compared["spent_here"] == "0.01" && compared["earned_there"] == "0.01", "{compared:#}");
    Ok(())
}
