//! Names of upstreams that lead somewhere else later, or where no upstream may be.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, Charge},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_served, fixed_owner},
    command::farthing,
    wait::eventually,
    world::{Answer, World, service_file},
};
use tokio::process::Command;

/// What the owner's node takes for the answers of its name server; the test changes them.
pub struct Names {
    folder: tempfile::TempDir,
}

impl Names {
    pub async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/paid_calls/names.c");
        let library = folder.path().join("names.so");
        // Whatever links this test links that.
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let compiled = compiled.output().await.context("cc cannot be run")?;
        ensure!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let names = Self { folder };
        names.lead(&[])?;
        Ok(names)
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |name: &str| self.folder.path().join(name).display().to_string();
        vec![("LD_PRELOAD".to_owned(), text("names.so")), ("NAMES_FILE".to_owned(), text("names"))]
    }

    /// Where names lead from now on. A file that is read is never half written.
    pub fn lead(&self, names: &[(&str, &str)]) -> Result<()> {
        let lines: Vec<String> = names.iter().map(|(name, address)| format!("{name} {address}\n")).collect();
        let (new, file) = (self.folder.path().join("new"), self.folder.path().join("names"));
        fs::write(&new, lines.concat())?;
        Ok(fs::rename(new, file)?)
    }
}

/// What a call is answered with once the consumer's node has met the restarted owner again.
pub async fn found(world: &World, api: &Api) -> Result<Answer> {
    let mut answer = None;
    eventually("the service is known", async || {
        let last = world.call_of(api, "GET", "/ok").await?;
        let is_known = !matches!(last.problem().as_str(), "unknown-service" | "owner-unreachable");
        answer = is_known.then_some(last);
        Ok(is_known)
    })
    .await?;
    answer.context("no answer")
}

#[tokio::test]
async fn an_address_or_a_name_that_leads_where_no_upstream_may_be_is_refused_at_registration() -> Result<()> {
    let names = Names::new().await?;
    let mut world = World::with(fixed_owner()?).await?;
    world.owner.restart(names.environment()).await?;
    let gateway_url = world.owner.status().await?.gateway_url;
    let own_port = gateway_url.rsplit(':').next().unwrap_or_default();
    for address in ["169.254.169.254", "fd20:ce::254", "::ffff:0:169.254.169.254", "127.0.0.1", "::1"] {
        names.lead(&[("shop.test", address)])?;
        let is_loopback = matches!(address, "127.0.0.1" | "::1");
        let port = if is_loopback { own_port } else { "80" };
        let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        let (of_name, of_address) = if is_loopback {
            (
                "shop.test cannot be an upstream: it leads to a port of this node".to_owned(),
                format!("port {own_port} of this machine belongs to this node"),
            )
        } else {
            (
                "shop.test cannot be an upstream: the name leads only to link-local, metadata".to_owned(),
                "cannot be an upstream: link-local, metadata".to_owned(),
            )
        };
        for (url, why) in
            [(format!("http://shop.test:{port}"), of_name), (format!("http://{host}:{port}"), of_address)]
        {
            let refused = world.publish(&service_file(&url, Charge::Success)).await;
            let refused = format!("{:#}", refused.err().with_context(|| format!("{url} is accepted"))?);
            ensure!(refused.contains(&why), "{url} → {address}: `{why}` is not said: {refused}");
        }
    }
    let apis = world.owner.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1, "nothing was published: {apis:?}");
    Ok(())
}

#[tokio::test]
async fn a_name_that_leads_closer_after_registration_is_not_followed_over_restarts_either() -> Result<()> {
    let names = Names::new().await?;
    let mut world = World::with(fixed_owner()?).await?;
    world.owner.restart_until_ready(names.environment()).await?;
    let port = world.upstream.url().rsplit(':').next().unwrap_or_default().to_owned();
    let served = |name: &str| service_file(&format!("http://{name}:{port}"), Charge::Success);
    // No machine has this address, which belongs to a LAN.
    names.lead(&[("stays.test", "127.0.0.1"), ("moves.test", "fd12:3456:789a::1")])?;
    let stays = world.publish(&served("stays.test")).await?;
    let moves = world.publish(&served("moves.test")).await?;
    // A name that nobody knows may turn out to be public.
    let unknown = world.publish(&served("unknown.invalid")).await?;

    names.lead(&[
        ("stays.test", "127.0.0.1"),
        ("moves.test", "127.0.0.1"),
        ("unknown.invalid", "127.0.0.1"),
    ])?;
    for round in ["before", "after"] {
        expect_served(&found(&world, &stays).await?)?;
        for api in [&moves, &unknown] {
            let answer = found(&world, api).await?;
            expect_free(&format!("{} {round} the restart", api.upstream), &answer, 502, "upstream-failed")?;
        }
        if round == "before" {
            // What changes of a service beside its upstream does not let its name lead elsewhere.
            let priced = farthing(&world.owner, &["api", "price", &moves.id.to_string(), "0.001"]).await?;
            ensure!(priced.code == 0, "{priced:?}");
            world.owner.restart_until_ready(names.environment()).await?;
        }
    }
    assert_eq!(world.upstream.hits(), 2, "only the name that stayed");
    ensure!(moves.upstream_class == "LAN" && unknown.upstream_class == "public", "{moves:?} {unknown:?}");
    world.settle_for(cost(2)).await
}
