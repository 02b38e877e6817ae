//! What a payer gets from an owner whose books are older than what the chain has paid out.

use farthing::testnet::{NodeOptions, NodeProcess};
use farthing_tests::command::{farthing, run};
use serde_json::json;

use super::*;
use crate::support::on_a_fixed_port;

#[tokio::test]
async fn an_owner_restored_from_a_backup_gives_nothing_away_and_claims_what_it_serves() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let owner_settings = on_a_fixed_port()?;
    let mut world = World::with(Setup { owner_settings: owner_settings.clone(), ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x63, cost(10)).await?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (file, passphrase, elsewhere) = (text("node.backup"), text("passphrase"), text("restored"));
    std::fs::write(&passphrase, "four random words here\n")?;

    payer.served(payer.request("1", cost(1))).await?;
    let create = ["backup", "create", "--to", &file, "--passphrase-file", &passphrase];
    farthing(&world.owner, &create).await?.ends_with(0)?;
    for n in 2..=4 {
        payer.served(payer.request(&format!("{n}"), cost(n))).await?;
    }
    let settled: Settled = world.owner.control().post(route::SETTLE, &json!({})).await?;
    assert_eq!(settled.claimed.0, cost(4));
    world.owner.kill().await?;
    run(&elsewhere, &["backup", "restore", &file, "--passphrase-file", &passphrase]).await?.ends_with(0)?;
    let mut options = NodeOptions::new(&elsewhere);
    options.settings = setting("settlement.channel_min", "0.000001");
    options.settings.extend(owner_settings);
    world.owner = NodeProcess::start(&world.chain, options).await?;
    world.owner.wait_until_ready().await?;

    // What was paid out already buys nothing, neither at once nor later.
    for n in 0..3 {
        let old = CallRequest {
            method: Method::Post,
            path: "/slow/1".to_owned(),
            ..payer.request(&format!("old/{n}"), cost(4))
        };
        let code = match payer.send(old).await? {
            Reply::Refused(refusal) => refusal.code,
            other => bail!("{other:?}"),
        };
        ensure!([RefusalCode::InsufficientVoucher, RefusalCode::UnknownChannel].contains(&code), "{code:?}");
    }
    assert_eq!(world.upstream.hits(), 4);
    eventually("it serves what is paid", async || {
        Ok(matches!(payer.send(payer.request("5", cost(5))).await?, Reply::Served(_)))
    })
    .await?;
    let settled: Settled = world.owner.control().post(route::SETTLE, &json!({})).await?;
    assert_eq!(settled.claimed.0, PRICE);
    expect_paid(&world, 5).await
}
