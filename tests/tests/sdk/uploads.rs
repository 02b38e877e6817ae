//! Every language buys the size of an image that it uploads: as a part of a form, as the whole body, and in a form that is sent
//! twice under one id. What this form would have as its boundary stands in a part of it. So does the code that the sandbox shows of
//! a form and of a whole body.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_bridge::description::ApiDescription;
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_demo_services::image_size;
use farthing_sdk::{Language, Options, generate};
use farthing_testnet::demo::Demo;
use farthing_tests::upstream::serve;
use farthing_values::Usdc;
use serde_json::{Value, json};

use super::{
    languages::Toolchain,
    market::{self, Variables, in_every_language},
    sandbox,
};

const PRICE: Usdc = Usdc::from_micros(1_000);
/// What a language's own program pays for: a form, a raw image, and one call that is sent twice.
const PAID: u64 = 3;

/// The head of a PNG of 640 × 480, which is no text, and something behind it.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0\0\xff";
/// Its file's name, whose quotes are escaped on their way.
const FILE: &str = "a \"dot\".png";
/// The same under a name that needs no escapes.
const PLAIN_FILE: &str = "dot.png";
const EXPECTED: [&str; 4] = [
    "form 640 480 image/png a %22dot%22.png true 31 0.001",
    "raw 640 480 image/png 31 0.001",
    "again 640",
    "again 640",
];

/// What the service says of itself, and two operations that nobody calls: every kind of part has to compile.
fn described() -> Result<String> {
    let mut document: Value =
        serde_json::from_str(include_str!("../../../demo-services/src/image_size/openapi.json"))?;
    let file = json!({ "type": "string", "format": "binary" });
    let text = json!({ "type": "string" });
    let form = json!({
        "type": "object", "required": ["photo \"1\"", "more", "count", "class", "day"],
        "properties": {
            "photo \"1\"": file, "cover": file, "more": { "type": "array", "items": file },
            "others": { "type": "array", "items": file }, "tags": { "type": "array", "items": text },
            "count": { "type": "integer" }, "huge": { "type": "integer", "format": "uint64" }, "ratio": { "type": "number" },
            "on": { "type": "boolean" }, "class": text, "thing": { "type": "object", "properties": { "a": text } },
            "day": { "type": "string", "enum": ["mon", "tue"] }, "by name": { "type": "object", "additionalProperties": text },
            "anything": {}, "either": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
        },
        "additionalProperties": file,
    });
    let operation = |id: &str, required: bool, content: Value| {
        json!({ "post": {
            "operationId": id,
            "requestBody": { "required": required, "content": { "multipart/form-data": content } },
            "responses": { "200": { "description": "Bytes", "content": { "image/png": {} } } },
        } })
    };
    document["paths"]["/many"] = operation("many", false, json!({ "schema": form }));
    document["paths"]["/whatever"] = operation("whatever", true, json!({}));
    document["paths"]["/page"] = json!({
        "get": { "operationId": "page", "responses": { "200": { "description": "A page", "content": { "text/html": {} } } } },
        "head": { "operationId": "pageHead", "responses": { "200": { "description": "Its head" } } },
    });
    Ok(document.to_string())
}

/// Starts the service and sells it from the earthquakes' node.
async fn publish(demo: &Demo) -> Result<String> {
    let source = SourceFile::at(SourceKind::Openapi, serve(image_size::router()).await? + "/openapi.json");
    let file = ServiceFile {
        name: "Sizes".to_owned(),
        source: Some(source),
        writes: true,
        ..ServiceFile::priced(PRICE)
    };
    let id = demo.earthquakes.node.control().tell(endpoint::AddApi, &file).await?.id.to_string();
    market::until_known(&demo.consumer, &id).await?;
    Ok(id)
}

/// Writes the client and what is uploaded with it.
fn write(sizes: &ApiDescription, language: Language, options: &Options, folder: &Path) -> Result<()> {
    market::write(&generate(sizes, language, options)?, &folder.join("sizes"))?;
    for name in [FILE, PLAIN_FILE] {
        fs::write(folder.join(name), IMAGE)?;
    }
    Ok(())
}

/// Compiles and runs the language's program with the client, and the sandbox's code. What they cost.
async fn upload(toolchain: Toolchain, id: String, gateway: String, mut variables: Variables) -> Result<Usdc> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let sizes = market::described(described()?.as_bytes())?;
    let address = format!("{gateway}/services/{id}");
    let options = Options { service_id: id, package: Some("sizes".to_owned()), ..Options::default() };
    let folder = tempfile::tempdir()?;
    write(&sizes, language, &options, folder.path())?;
    let out = toolchain.run_one(folder.path(), ("sizes", "uploads"), &variables).await?;
    let said: Vec<&str> = out.lines().map(str::trim_end).collect();
    ensure!(toolchain.is_parsed_only || said == EXPECTED, "it says:\n{out}");
    let mut paid = PAID;
    let programs = tempfile::tempdir()?;
    variables.push(("PROGRAMS", programs.path().display().to_string()));
    for program in sandbox::programs(&sizes, language, &options, &address, (FILE, PLAIN_FILE))? {
        let folder = tempfile::tempdir()?;
        write(&sizes, language, &options, folder.path())?;
        fs::write(programs.path().join(sandbox::file_name(language)), &program.text)?;
        let ran = toolchain.run_one(folder.path(), ("sizes", "snippet"), &variables).await;
        let out = ran.with_context(|| program.text.clone())?;
        if !toolchain.is_parsed_only {
            program.check(language, &out)?;
        }
        paid += program.calls;
    }
    Ok(if toolchain.is_parsed_only { Usdc::ZERO } else { PRICE.saturating_mul(paid) })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_language_uploads_an_image_in_a_form_and_as_a_body_and_pays_a_repeated_form_once() -> Result<()>
{
    let folder = tempfile::tempdir()?;
    let demo = market::open(folder.path()).await?;
    let id = publish(&demo).await?;
    let variables = market::variables(&demo);
    let upload = |toolchain| upload(toolchain, id.clone(), demo.gateway_url.clone(), variables.clone());
    in_every_language(&demo, upload).await?;
    farthing_tests::agreement::end(demo).await
}
