//! What is on offer, its code in every way that people ask for it, and what a program must hear.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_sdk::{Language, Options, PlainCall, SnippetBody, generate, plain, snippet};
use farthing_testnet::demo::Demo;
use farthing_tests::command::farthing;
use farthing_values::Usdc;
use serde_json::{Value, json};

use super::{
    leaving,
    market::{described, until_known, write},
    texts::many,
    things::{self, Things},
};

/// What nobody would offer has as many operations.
const OPERATIONS: usize = 300;
const QUAKES: &[u8] = include_bytes!("../../../demo-services/src/earthquakes/openapi.json");
const NASTY: &[u8] = include_bytes!("../../../bridge/sdk/src/tests/nasty.json");

/// The services, what nobody would offer, and what the services say when nobody's code is between.
pub struct Offers {
    quakes: String,
    planets: String,
    things: String,
    pub keeper: Things,
    gateway_url: String,
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
    /// Publishes one more service beside those of the demo, and asks the demo's what they say.
    pub async fn of(demo: &Demo) -> Result<Self> {
        let keeper = Things::start().await?;
        let api = demo.earthquakes.node.control().tell(endpoint::AddApi, &keeper.service_file()).await?;
        let things = api.id.to_string();
        until_known(&demo.consumer, &things).await?;
        let (quakes, planets) = (demo.earthquakes.api.id.to_string(), demo.planets.api.id.to_string());
        let events = bought(demo, &quakes, "/v1/earthquakes/recent", json!({ "limit": "3" })).await?;
        let found = json!({ "discoveryMethod": "Transit", "limit": "2" });
        let found = bought(demo, &planets, "/planets", found).await?;
        let expected = expected(&serde_json::from_slice(&events)?, &serde_json::from_slice(&found)?)?;
        Ok(Self { quakes, planets, things, keeper, gateway_url: demo.gateway_url.clone(), expected })
    }

    /// Writes below `folder`: packages of the services and a single file, as their consumer makes them; what nobody would
    /// offer, with 300 operations as a package and as it is in one file; calls as the sandbox shows them.
    pub async fn write(&self, demo: &Demo, language: Language, folder: &Path) -> Result<()> {
        let packages = [("quakes", &self.quakes), ("planets", &self.planets), ("things", &self.things)];
        let single = ("alone", &self.quakes);
        for (package, id) in packages.into_iter().chain([single]) {
            let output = folder.join(package).display().to_string();
            let mut arguments =
                vec!["sdk", "generate", id, "-l", language.name(), "-o", &output, "--package", package];
            if package == single.0 {
                arguments.push("--single-file");
            }
            farthing(&demo.consumer, &arguments).await?.ends_with(0)?;
        }
        let nasty = described(NASTY)?;
        let options = |package: &str, single_file| Options {
            service_name: package.to_owned(),
            package: Some(package.to_owned()),
            single_file,
            ..Options::default()
        };
        write(&generate(&nasty, language, &options("loner", true))?, &folder.join("loner"))?;
        let many = many(nasty, OPERATIONS);
        ensure!(many.operations.len() == OPERATIONS);
        write(&generate(&many, language, &options("nasty", false))?, &folder.join("nasty"))?;
        self.write_snippets(language, &folder.join("snippets"))
    }

    /// A call with typed values, a call with a JSON body, and, where there is one, a call without client code.
    fn write_snippets(&self, language: Language, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let call = |name: &str, id: &str, text: &[u8], operation: &str, values, body: Option<&str>| {
            let description = described(text)?;
            let index = description.operations.iter().position(|one| one.id == operation);
            let options = Options {
                service_id: id.to_owned(),
                package: Some(name.to_owned()),
                base_url: self.gateway_url.clone(),
                ..Options::default()
            };
            let index = index.context("no such operation")?;
            let body = body.map(SnippetBody::Text);
            let code = snippet(&description, index, &values, body, language, &options)?.context("no code")?;
            anyhow::Ok(fs::write(folder.join(name), code)?)
        };
        let limit = BTreeMap::from([("limit".to_owned(), "1".to_owned())]);
        call("quakes", &self.quakes, QUAKES, "recentEarthquakes", limit, None)?;
        let body = r#"{"label": "it's \"x\" $(id) `id` ${HOME} \\ äöü #", "count": 1, "nullable": null}"#;
        let text = things::DESCRIPTION.as_bytes();
        call("things", &self.things, text, "keepThing", BTreeMap::new(), Some(body))?;
        let params = [("limit".to_owned(), "1".to_owned())];
        let call = PlainCall {
            gateway: &self.gateway_url,
            service: &self.quakes,
            method: "GET",
            path: "/v1/earthquakes/recent",
            params: &params,
            body: None,
            content_type: None,
        };
        if let Some(code) = plain(&call, language)? {
            fs::write(folder.join("plain"), code)?;
        }
        Ok(())
    }

    /// Checks what a language's programs printed, and that what they sent arrived as it was meant.
    pub fn check(&self, language: Language, out: &str) -> Result<()> {
        let is_said = |line: &&String| out.lines().any(|said| said.starts_with(line.as_str()));
        let missing: Vec<_> = self.expected.iter().filter(|line| !is_said(line)).collect();
        ensure!(missing.is_empty(), "{missing:?} is missing in:\n{out}");
        if takes_any_value(language) {
            // One row of the two members that were asked for.
            ensure!(out.lines().any(|said| said.trim_end() == "chosen 1 2 0.003"), "{out}");
        }
        // The program's, and those of three examples: two packages and a single file.
        let receipts = out.matches("receipt 0x").count();
        ensure!(receipts >= 4, "{receipts} receipts:\n{out}");
        let kept = self.keeper.kept(language.name());
        ensure!(kept == [things::exact(language.name())], "{kept:?}");
        Ok(())
    }
}

/// Whether its `call` takes any value for a parameter, a list of fields as well, and not texts alone.
fn takes_any_value(language: Language) -> bool {
    matches!(
        language,
        Language::Python | Language::TypeScript | Language::JavaScript | Language::Ruby | Language::Php
    )
}

/// What the programs of one language spend, however often a call is sent: of earthquakes two by the program, two by
/// examples, one or two by code of the sandbox; of planets two and one, and one with a
/// list of fields; of things three and one, and a deep one.
pub fn spent_by(language: Language) -> Usdc {
    let things = 4 + u64::from(language == Language::Python);
    let quakes = 5 + u64::from(Language::PLAIN.contains(&language));
    let planets = 3 + u64::from(takes_any_value(language));
    Usdc::from_micros(quakes * 2_000 + planets * 3_000 + things * things::PRICE.micros())
}

/// The lines of programs that heard what the services say.
fn expected(events: &Value, found: &Value) -> Result<Vec<String>> {
    let first = &events["features"][0];
    let magnitude = first["properties"]["mag"].as_f64().context("no magnitude")?;
    let (id, time) = (first["id"].as_str().context("no id")?, &first["properties"]["time"]);
    let (name, year) = (found[0]["name"].as_str().context("no name")?, &found[0]["discoveryYear"]);
    let mut lines = vec![
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
        format!("exact 9007199254740993 {} Rex 7 0.004", u64::MAX),
        "missing 404 true".to_owned(),
        "unknown null".to_owned(),
        "dripping null".to_owned(),
        "dripping-headers null".to_owned(),
        "settings refused".to_owned(),
    ];
    lines.extend(leaving::expected());
    Ok(lines)
}
