//! Client code in every language: generated from what the network publishes, compiled strictly, and run against paid
//! calls of two services.

mod document;
mod dropping;
mod hostile;
mod languages;
mod pages;
mod shelf;
mod twins;

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use farthing::testnet::demo::{Demo, Setup};
use farthing_bridge::{description::ApiDescription, read};
use farthing_protocol::Usdc;
use farthing_sdk::{Language, Options, generate};
use farthing_tests::command::farthing;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    dropping::Dropping,
    languages::{TOOLCHAINS, Toolchain},
};

/// Compilers are hungry: no more of them at a time.
const AT_A_TIME: usize = 2;

/// The services, what nobody would offer, and what the services say when nobody's code is between.
struct Offers {
    quakes: String,
    planets: String,
    nasty: ApiDescription,
    /// What every language must print.
    expected: Vec<String>,
}

/// `GET path` through port 3000.
async fn bought(demo: &Demo, id: &str, path: &str, params: Value) -> Result<Vec<u8>> {
    let client = demo.consumer.https_client()?;
    let order = json!({ "api_id_public": id, "method": "GET", "path": path, "params": params });
    let url = format!("{}/internal/call", demo.gateway_url);
    let answer = client.post(url).bearer_auth(&demo.secret).json(&order).send().await?.error_for_status()?;
    Ok(answer.bytes().await?.to_vec())
}

impl Offers {
    async fn of(demo: &Demo) -> Result<Self> {
        let (quakes, planets) = (demo.earthquakes.api.id.to_string(), demo.planets.api.id.to_string());
        let nasty = read(include_bytes!("../../../bridge/sdk/src/tests/nasty.json"));
        let nasty = nasty.map_err(|error| anyhow::anyhow!("{error:?}"))?.description;
        let events = bought(demo, &quakes, "/v1/earthquakes/recent", json!({ "limit": "3" })).await?;
        let found = json!({ "discoveryMethod": "Transit", "limit": "2" });
        let found = bought(demo, &planets, "/planets", found).await?;
        let expected = expected(&serde_json::from_slice(&events)?, &serde_json::from_slice(&found)?)?;
        Ok(Self { quakes, planets, nasty, expected })
    }

    /// Writes the code of all three below `folder`: of the services as their consumer does it.
    async fn write(&self, demo: &Demo, language: Language, folder: &Path) -> Result<()> {
        for (package, id) in [("quakes", &self.quakes), ("planets", &self.planets)] {
            let output = folder.join(package).display().to_string();
            let arguments =
                ["sdk", "generate", id, "-l", language.name(), "-o", &output, "--package", package];
            farthing(&demo.consumer, &arguments).await?.ends_with(0)?;
        }
        let options = Options {
            service_name: "nasty".to_owned(),
            package: Some("nasty".to_owned()),
            ..Options::default()
        };
        for file in generate(&self.nasty, language, &options)?.files {
            let path = folder.join("nasty").join(file.path);
            fs::create_dir_all(path.parent().context("no folder")?)?;
            fs::write(path, file.text)?;
        }
        Ok(())
    }
}

/// The lines of a program that heard what the services say.
fn expected(events: &Value, found: &Value) -> Result<Vec<String>> {
    let first = &events["features"][0];
    let magnitude = first["properties"]["mag"].as_f64().context("no magnitude")?;
    let (id, time) = (first["id"].as_str().context("no id")?, &first["properties"]["time"]);
    let (name, year) = (found[0]["name"].as_str().context("no name")?, &found[0]["discoveryYear"]);
    Ok(vec![
        format!("recent 3 {id} {time} {} 0.002", (magnitude * 10.0).round()),
        "again 40 0.002".to_owned(),
        "refused bad-parameter false true".to_owned(),
        "budget price-above-cap false".to_owned(),
        "untrusted  false".to_owned(),
        format!("planets 2 {name} {year} 0.003"),
        "planets-again 40 0.003".to_owned(),
        "planets-refused bad-parameter false true".to_owned(),
        "planets-budget price-above-cap false".to_owned(),
        "planets-untrusted  false".to_owned(),
    ])
}

/// Generates, compiles and runs one language.
async fn try_out(
    toolchain: Toolchain,
    demo: Arc<Demo>,
    offers: Arc<Offers>,
    mut variables: Vec<(&'static str, String)>,
) -> Result<()> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let folder = tempfile::tempdir()?;
    offers.write(&demo, language, folder.path()).await?;
    let dropping = [Dropping::start(&demo.gateway_url).await?, Dropping::start(&demo.gateway_url).await?];
    variables.push(("DROPPING_URL", dropping[0].url.clone()));
    variables.push(("DROPPING_PLANETS_URL", dropping[1].url.clone()));
    let out = toolchain.run(folder.path(), &variables).await?;
    if toolchain.is_parsed_only {
        return Ok(());
    }
    for line in &offers.expected {
        ensure!(out.lines().any(|said| said.starts_with(line.as_str())), "{line} is missing in:\n{out}");
    }
    ensure!(out.contains("receipt 0x"), "no receipt:\n{out}");
    ensure!(dropping.iter().all(|dropping| dropping.connections() > 1), "nothing was sent again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_of_every_language_buys_is_refused_free_and_pays_a_repeated_call_once() -> Result<()> {
    let toolchains: Vec<Toolchain> = TOOLCHAINS
        .into_iter()
        .filter_map(|toolchain| toolchain.is_here().map(|is_here| is_here.then_some(toolchain)).transpose())
        .collect::<Result<_>>()?;
    let folder = tempfile::tempdir()?;
    let demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let (demo, offers) = {
        let offers = Offers::of(&demo).await?;
        (Arc::new(demo), Arc::new(offers))
    };
    let spent_before = demo.consumer.status().await?.spent_today.0;
    let stranger = farthing::tls::own(&folder.path().join("stranger"), &[])?;
    let stranger = stranger.ca_file.context("an authority of its own")?;
    let variables = vec![
        ("FARTHING_URL", demo.gateway_url.clone()),
        ("CONSUMER_SECRET", demo.secret.clone()),
        ("FARTHING_CA_FILE", demo.consumer.ca_file().display().to_string()),
        ("WRONG_CA_FILE", stranger.display().to_string()),
    ];
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    let mut running = JoinSet::new();
    for toolchain in toolchains.clone() {
        let (slots, demo, offers) = (Arc::clone(&slots), Arc::clone(&demo), Arc::clone(&offers));
        let variables = variables.clone();
        running.spawn(async move {
            let _slot = slots.acquire().await?;
            try_out(toolchain, demo, offers, variables).await.with_context(|| toolchain.language)
        });
    }
    let mut problems = Vec::new();
    while let Some(ended) = running.join_next().await {
        problems.extend(ended?.err().map(|problem| format!("{problem:#}")));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    // Two calls of each service, however often they were sent.
    let run = toolchains.iter().filter(|toolchain| !toolchain.is_parsed_only).count();
    let each = Usdc::from_micros(2 * 2_000 + 2 * 3_000);
    let spent =
        demo.consumer.status().await?.spent_today.0.checked_sub(spent_before).context("less than before")?;
    ensure!(spent.micros() == each.micros() * u64::try_from(run)?, "{run} languages spent {spent} USDC");
    Arc::into_inner(demo).context("somebody still uses the demo")?.stop().await
}
