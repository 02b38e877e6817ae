//! Client code in every language: generated from what the network publishes, compiled strictly, and run against paid
//! calls of two services.

mod document;
mod dropping;
mod languages;

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use farthing::testnet::demo::{Demo, Setup};
use farthing_bridge::{description::ApiDescription, read};
use farthing_protocol::Usdc;
use farthing_sdk::{Language, Options, generate};
use farthing_tests::tell::tell;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    dropping::Dropping,
    languages::{TOOLCHAINS, Toolchain},
};

/// Compilers are hungry: no more of them at a time.
const AT_A_TIME: usize = 2;

/// Set by `make sdk-test`: ten compilers are much for everybody's `make test`.
const SWITCH: &str = "FARTHING_SDK_TEST";

/// The services as their consumer sees them, and what they say when nobody's code is between.
struct Offers {
    quakes: (String, ApiDescription),
    planets: (String, ApiDescription),
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
        let description = |text: &[u8]| match read(text) {
            Ok(reading) => Ok(reading.description),
            Err(error) => Err(anyhow::anyhow!("{error:?}")),
        };
        // Both documents are free.
        let openapi = bought(demo, &quakes, "/openapi.json", json!({})).await?;
        let schema = bought(demo, &planets, "/schema.graphql", json!({})).await?;
        let nasty = include_bytes!("../../../bridge/sdk/src/tests/nasty.json");
        let events = bought(demo, &quakes, "/v1/earthquakes/recent", json!({ "limit": "3" })).await?;
        let found = json!({ "discoveryMethod": "Transit", "limit": "2" });
        let found = bought(demo, &planets, "/planets", found).await?;
        let expected = expected(&serde_json::from_slice(&events)?, &serde_json::from_slice(&found)?)?;
        Ok(Self {
            quakes: (quakes, description(&openapi)?),
            planets: (planets, description(&schema)?),
            nasty: description(nasty)?,
            expected,
        })
    }

    /// Writes the code of all three below `folder`.
    fn write(&self, language: Language, folder: &Path) -> Result<()> {
        let nasty = (String::new(), self.nasty.clone());
        for (package, (id, description)) in
            [("quakes", &self.quakes), ("planets", &self.planets), ("nasty", &nasty)]
        {
            let options = Options {
                service_id: id.clone(),
                service_name: package.to_owned(),
                package: Some(package.to_owned()),
                ..Options::default()
            };
            for file in generate(description, language, &options)?.files {
                let path = folder.join(package).join(file.path);
                fs::create_dir_all(path.parent().context("no folder")?)?;
                fs::write(path, file.text)?;
            }
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
    ])
}

/// Generates, compiles and runs one language.
async fn try_out(
    toolchain: Toolchain,
    offers: Arc<Offers>,
    mut variables: Vec<(&'static str, String)>,
) -> Result<()> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let folder = tempfile::tempdir()?;
    offers.write(language, folder.path())?;
    let gateway = variables.iter().find(|(name, _)| *name == "FARTHING_URL").context("no gateway")?;
    let dropping = Dropping::start(&gateway.1).await?;
    variables.push(("DROPPING_URL", dropping.url.clone()));
    let out = toolchain.run(folder.path(), &variables).await?;
    if toolchain.is_parsed_only {
        return Ok(());
    }
    for line in &offers.expected {
        ensure!(out.lines().any(|said| said.starts_with(line.as_str())), "{line} is missing in:\n{out}");
    }
    ensure!(out.contains("receipt 0x"), "no receipt:\n{out}");
    ensure!(dropping.connections() > 1, "nothing was sent again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_of_every_language_buys_is_refused_free_and_pays_a_repeated_call_once() -> Result<()> {
    if std::env::var_os(SWITCH).is_none() {
        tell("\n  SKIPPED: client code in all languages; `make sdk-test` compiles and runs it\n");
        return Ok(());
    }
    let toolchains: Vec<Toolchain> = TOOLCHAINS
        .into_iter()
        .filter_map(|toolchain| toolchain.is_here().map(|is_here| is_here.then_some(toolchain)).transpose())
        .collect::<Result<_>>()?;
    let folder = tempfile::tempdir()?;
    let demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let offers = Arc::new(Offers::of(&demo).await?);
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
        let (slots, offers, variables) = (Arc::clone(&slots), Arc::clone(&offers), variables.clone());
        running.spawn(async move {
            let _slot = slots.acquire().await?;
            try_out(toolchain, offers, variables).await.with_context(|| toolchain.language)
        });
    }
    let mut problems = Vec::new();
    while let Some(ended) = running.join_next().await {
        problems.extend(ended?.err().map(|problem| format!("{problem:#}")));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    // Two calls of one service and one of the other, however often they were sent.
    let run = toolchains.iter().filter(|toolchain| !toolchain.is_parsed_only).count();
    let each = Usdc::from_micros(2 * 2_000 + 3_000);
    let spent =
        demo.consumer.status().await?.spent_today.0.checked_sub(spent_before).context("less than before")?;
    ensure!(spent.micros() == each.micros() * u64::try_from(run)?, "{run} languages spent {spent} USDC");
    demo.stop().await
}
