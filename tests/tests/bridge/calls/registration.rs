//! From a description to a service for sale, and what becomes of it when the description changes.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use farthing_control::{
    ControlError, endpoint,
    types::{
        Api, CatalogKind, DescriptionOrigin, EditRequest, OperationFile, PriceRequest, Rescan, RescanRequest,
        ServiceFile, SourceFile, SourceKind, Text, TryRequest,
    },
};
use farthing_tests::{
    command::farthing,
    recorder::{Recorder, Scripted},
    wait::eventually,
    world::{FUNDS, World},
};
use farthing_values::{Method, Usdc, limits::LISTINGS_PER_OWNER_MAX};
use reqwest::StatusCode;
use serde_json::json;

use super::support::{call, described_at, described_by, planets};

fn document(paths: &str) -> Scripted {
    Scripted::json(
        200,
        &format!(r#"{{"openapi":"3.1.0","info":{{"title":"Tides","version":"1"}},"paths":{{{paths}}}}}"#),
    )
}

const TIDES: &str = r#""/tides":{"get":{"parameters":[{"name":"port","in":"query","schema":{"type":"string"}}],"responses":{"200":{"description":"Tides"}}}}"#;
const PORTS: &str = r#""/ports":{"get":{"responses":{"200":{"description":"Ports"}}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_rescan_says_what_changed_and_publishes_it_when_asked_to() -> Result<()> {
    let world = World::start().await?;
    let recorder = Recorder::start().await?;
    recorder.answer_with(document(TIDES));
    let source = format!("{}/openapi.json", recorder.url());
    let file = ServiceFile { upstream: recorder.url(), ..described_at(SourceKind::Openapi, source) };
    let api = world.publish(&file).await?;
    ensure!(api.name == "Tides" && api.listing_version == 1);

    let at = endpoint::RescanApi.of(api.id);
    let rescan = async |apply: bool| -> Result<Rescan> {
        Ok(world.owner.control().tell(at.clone(), &RescanRequest { source: None, apply }).await?)
    };
    let same = rescan(true).await?;
    ensure!(same.changes.is_empty() && !same.applied && same.api.listing_version == 1, "{same:?}");

    recorder.answer_with(document(&format!("{},{PORTS}", TIDES.replace("\"string\"", "\"integer\""))));
    let seen = rescan(false).await?;
    ensure!(seen.changes.added == ["GET /ports"] && !seen.applied, "{seen:?}");
    ensure!(seen.changes.changed[0].what == ["parameter `port` changed from string to integer"], "{seen:?}");
    let not_yet = call(&world, &api, "GET", "/ports", json!({})).await?;
    ensure!(not_yet.status == StatusCode::NOT_FOUND, "{not_yet:?}");

    let applied = rescan(true).await?;
    ensure!(applied.applied && applied.api.listing_version == 2, "{applied:?}");
    recorder.answer_with(Scripted::json(200, "[]"));
    // A consumer asks an owner for news of one service every two seconds at most.
    eventually("the new version is known to the consumer", async || {
        Ok(call(&world, &api, "GET", "/ports", json!({})).await?.status == StatusCode::OK)
    })
    .await?;
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_from_a_file_is_read_again_from_a_newer_one() -> Result<()> {
    let world = World::start().await?;
    let file = ServiceFile {
        upstream: "http://127.0.0.1:9".to_owned(),
        ..described_by(SourceKind::Openapi, super::rest::LIBRARY)
    };
    let api = world.publish(&file).await?;
    let again = endpoint::RescanApi.of(api.id);
    let nothing = world.owner.control().tell(again.clone(), &RescanRequest::default()).await;
    let error = nothing.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(error.contains("--source") && error.contains("the test's own"), "{error}");
    let newer = described_by(SourceKind::Openapi, &super::rest::LIBRARY.replace("/search:", "/find:"));
    let rescan =
        world.owner.control().tell(again, &RescanRequest { source: newer.source, apply: true }).await?;
    ensure!(rescan.applied && rescan.changes.removed == ["GET /search"], "{rescan:?}");
    ensure!(rescan.changes.added == ["GET /find"], "{rescan:?}");

    let upstream = "http://127.0.0.1:9".to_owned();
    let schema = described_by(SourceKind::Graphql, "type Query { a: Int }");
    let api = world.publish(&ServiceFile { upstream, ..schema }).await?;
    // The command line does not know what kind of file it was given.
    let newer = described_by(SourceKind::Openapi, "type Query { a: Int b: Int }");
    let request = RescanRequest { source: newer.source, apply: true };
    let rescan = world.owner.control().tell(endpoint::RescanApi.of(api.id), &request).await?;
    ensure!(rescan.applied && rescan.changes.added == ["GET /b"], "{rescan:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_is_kept_and_samples_are_at_hand() -> Result<()> {
    let world = World::start().await?;
    let (_, api) = planets(&world).await?;
    let shown = world.owner.control().ask(endpoint::ShowApi.of(api.id)).await?;
    ensure!(shown.kind.0 == CatalogKind::Graphql && shown.report.bridged == shown.offers.len(), "{shown:?}");
    let skipped: Vec<_> = shown.report.skipped.list.iter().map(|finding| finding.place.as_str()).collect();
    ensure!(skipped.contains(&"POST /addNote"), "{skipped:?}");
    ensure!(!shown.samples.is_empty(), "samples are made from the description");
    let recorded = ServiceFile {
        samples: farthing_control::types::SamplesFile::Recorded,
        ..described_at(SourceKind::Graphql, shown.api.upstream.clone())
    };
    let api = world.publish(&recorded).await?;
    let shown = world.owner.control().ask(endpoint::ShowApi.of(api.id)).await?;
    let recorded: Vec<_> =
        shown.samples.iter().filter(|sample| sample.sample.body.contains("TRANSIT")).collect();
    ensure!(!recorded.is_empty(), "an answer of the service itself: {:?}", shown.samples);
    assert_eq!(shown.origin, DescriptionOrigin::Url);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_offered_is_refused_with_the_field() -> Result<()> {
    let world = World::start().await?;
    let text = super::rest::LIBRARY;
    let base = || ServiceFile {
        upstream: "http://127.0.0.1:9".to_owned(),
        ..described_by(SourceKind::Openapi, text)
    };
    let with = |edit: &dyn Fn(&mut ServiceFile)| {
        let mut file = base();
        edit(&mut file);
        file
    };
    for (file, words) in [
        (with(&|file| file.upstream.clear()), &["upstream"][..]),
        (
            with(&|file| file.operations = vec![OperationFile::named(Method::Get, "/serch".to_owned())]),
            &["operations[0]", "GET /search"],
        ),
        (
            with(&|file| {
                file.source = Some(SourceFile {
                    kind: SourceKind::Openapi,
                    url: None,
                    text: None,
                    file: String::new(),
                });
            }),
            &["source", "url"],
        ),
        (
            described_by(SourceKind::Openapi, "openapi: 3.1.0\ninfo: {title: x, version: 1}\npaths: {}\n"),
            &["operation"],
        ),
        (described_by(SourceKind::Openapi, "a: b: c"), &[":1:"]),
        (described_by(SourceKind::Graphql, "type Query { a: Missing }"), &["Missing", ":1:17"]),
        (described_by(SourceKind::Graphql, text), &["source", "--openapi"]),
        (described_by(SourceKind::Openapi, "type Query { a: Int }"), &["source", "--graphql"]),
        (described_at(SourceKind::Openapi, "http://127.0.0.1:9/openapi.json".to_owned()), &["127.0.0.1:9"]),
        (
            described_at(SourceKind::Openapi, "http://169.254.169.254/openapi.json".to_owned()),
            &["169.254.169.254"],
        ),
    ] {
        let error = world.publish(&file).await.err().map(|error| error.to_string()).unwrap_or_default();
        for word in words {
            ensure!(error.contains(word), "`{error}` does not say `{word}`");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_more_than_any_node_keeps_of_one_owner_is_refused_and_fits_when_one_retires() -> Result<()>
{
    let world = World::start().await?;
    let upstream = "http://127.0.0.1:9".to_owned();
    let file = ServiceFile { upstream, ..described_by(SourceKind::Openapi, super::rest::LIBRARY) };
    let own = async || Ok::<Vec<Api>, ControlError>(world.owner.control().ask(endpoint::Apis).await?);
    // The world sells one already.
    for _ in own().await?.len()..LISTINGS_PER_OWNER_MAX {
        world.publish(&file).await?;
    }
    let refused = world.publish(&file).await.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(
        refused.contains("already offers 64 services") && refused.contains("farthing api remove"),
        "{refused}"
    );
    let all = own().await?;
    ensure!(all.len() == LISTINGS_PER_OWNER_MAX, "nothing is stored: {}", all.len());

    let price = PriceRequest { price: Text(Usdc::from_micros(7)), operation: None };
    let at = endpoint::PriceApi.of(all[0].id);
    let priced: Api = world.owner.control().tell(at, &price).await?;
    ensure!(priced.listing_version == all[0].listing_version + 1, "a new version is none more");
    let gone = endpoint::RemoveApi.of(all[1].id);
    world.owner.control().ask(gone).await?;
    world.publish(&file).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_registers_an_api_is_told_of_each_operation_that_may_not_work_and_why() -> Result<()> {
    const DOCUMENT: &str = r#"{"openapi":"3.0.3","info":{"title":"Doubtful","version":"1"},"paths":{
        "/events":{"get":{"responses":{"200":{"description":"","content":{"text/event-stream":{}}}}}},
        "/export":{"get":{"responses":{"200":{"description":"","content":{"application/zip":{}}}}}},
        "/moved":{"get":{"responses":{"301":{"description":""}}}}}}"#;
    let world = World::start().await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("doubtful.json");
    std::fs::write(&path, DOCUMENT)?;
    let path = path.display().to_string();
    let said = ["api", "add", "--openapi", &path, "--upstream", "http://127.0.0.1:9", "--price", "0.002"];
    let added = farthing(&world.owner, &[&said[..], &["--yes"]].concat()).await?;
    added.ends_with(0)?;
    let text = format!("{}{}", added.out, added.err);
    for words in [
        "GET /events: a stream (text/event-stream) is sent only when it has ended",
        "GET /export: an answer of type application/zip may be large; an answer of more than 8 MiB is refused",
        "GET /moved: a redirect is not followed",
    ] {
        ensure!(text.contains(words), "`{words}` is not said:\n{text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_writes_is_offered_by_name_and_a_later_reading_keeps_what_is_offered() -> Result<()> {
    let world = World::start().await?;
    let control = world.owner.control();
    let upstream = "http://127.0.0.1:9".to_owned();
    let operations = vec![OperationFile::named(Method::Post, "/books".to_owned())];
    let described = described_by(SourceKind::Openapi, super::rest::LIBRARY);
    let api = world.publish(&ServiceFile { upstream, operations, ..described.clone() }).await?;
    let writes = |api: &Api| {
        let all = api.operations.iter().filter(|operation| !operation.method.0.is_safe());
        let mut names: Vec<String> =
            all.map(|operation| format!("{} {}", operation.method, operation.path)).collect();
        names.sort();
        names
    };
    ensure!(writes(&api) == ["POST /books"] && api.operations.len() == 4, "{api:?}");
    let shown = control.ask(endpoint::ShowApi.of(api.id)).await?;
    let mut skipped = shown.report.skipped.list.iter();
    let told = skipped.any(|found| found.place == "DELETE /books/{id}" && found.what.contains("--writes"));
    ensure!(told, "{:?}", shown.report);
    assert_eq!(shown.origin, DescriptionOrigin::File);

    let newer = described_by(SourceKind::Openapi, &super::rest::LIBRARY.replace("/search:", "/find:"));
    let request = RescanRequest { source: newer.source.clone(), apply: true };
    let rescan = control.tell(endpoint::RescanApi.of(api.id), &request).await?;
    ensure!(
        rescan.changes.removed == ["GET /search"] && writes(&rescan.api) == ["POST /books"],
        "{rescan:?}"
    );

    let offer = |operation: (&str, &str)| -> Result<EditRequest> {
        let named = json!({ "method": operation.0, "path": operation.1 });
        Ok(serde_json::from_value(json!({ "offer": [named], "source": newer.source }))?)
    };
    let missing = control.tell(endpoint::EditApi.of(api.id), &offer(("DELETE", "/nothing"))?).await;
    let error = missing.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(error.contains("`offer` has DELETE /nothing, which is not in the source"), "{error}");
    let edited = control.tell(endpoint::EditApi.of(api.id), &offer(("DELETE", "/books/{id}"))?).await?;
    ensure!(writes(&edited.api) == ["DELETE /books/{id}", "POST /books"], "{edited:?}");

    let all = ServiceFile { upstream: "http://127.0.0.1:9".to_owned(), writes: true, ..described };
    ensure!(writes(&world.publish(&all).await?).len() == 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_tried_and_published_as_it_was_previewed_of_one_reading() -> Result<()> {
    let world = World::start().await?;
    let control = world.owner.control();
    let recorder = Recorder::start().await?;
    let source = format!("{}/openapi.json", recorder.url());
    let file = ServiceFile { upstream: recorder.url(), ..described_at(SourceKind::Openapi, source) };
    let readings = || recorder.seen().iter().filter(|seen| seen.target == "/openapi.json").count();

    recorder.answer_with(document(PORTS));
    let preview = control.tell(endpoint::PreviewApi, &file).await?;
    let request = TryRequest { file: file.clone(), operation: None, params: BTreeMap::new() };
    let tried = control.tell(endpoint::TryApi, &request).await?;
    ensure!(preview.offers.len() == 1 && tried.operation == "GET /ports", "{preview:?} {tried:?}");
    recorder.answer_with(document(TIDES));
    let api = control.tell(endpoint::AddApi, &file).await?;
    ensure!(api.operations[0].path == "/ports" && readings() == 1, "{} readings, {api:?}", readings());

    let unseen = control.tell(endpoint::AddApi, &file).await?;
    ensure!(unseen.operations[0].path == "/tides" && readings() == 2, "{} readings, {unseen:?}", readings());
    control.tell(endpoint::PreviewApi, &file).await?;
    let other = ServiceFile { name: "Another".to_owned(), ..file };
    control.tell(endpoint::AddApi, &other).await?;
    ensure!(readings() == 4, "what was previewed is another file: {} readings", readings());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_before_its_owner_has_seen_it_and_said_yes() -> Result<()> {
    let world = World::start().await?;
    let recorder = Recorder::start().await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ports.json");
    let document = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"Ports","version":"1"}},"paths":{{{PORTS},
        "/berths":{{"post":{{"responses":{{"201":{{"description":"Made"}}}}}}}}}}}}"#
    );
    std::fs::write(&path, document)?;
    let (path, url) = (path.display().to_string(), recorder.url());
    let add = async |more: &[&str]| {
        let said = ["api", "add", "--openapi", &path, "--upstream", &url, "--price", "0.002"];
        farthing(&world.owner, &[&said[..], more].concat()).await
    };
    let published =
        async || Ok::<usize, ControlError>(world.owner.control().ask(endpoint::Apis).await?.len());
    let before = published().await?;

    recorder.answer_with(Scripted::json(200, "[]"));
    let dry = add(&["--dry-run"]).await?;
    let said = format!("{}{}", dry.ends_with(0)?.out, dry.err);
    for words in ["/ports", "POST /berths: it writes", "GET /ports: 200, 2 bytes", "Nothing was published."] {
        ensure!(said.contains(words), "`{words}` is not said:\n{said}");
    }
    ensure!(recorder.seen().len() == 1 && recorder.seen()[0].target == "/ports", "{:?}", recorder.seen());
    let dry = add(&["--dry-run", "--json"]).await?.ok()?.json()?;
    ensure!(
        dry["live"]["status"] == 200 && dry["offers"].as_array().is_some_and(|all| all.len() == 1),
        "{dry}"
    );

    recorder.answer_with(Scripted::json(500, "{}"));
    let asked = add(&[]).await?.fails(2, &["Publish “Ports”, though its first call failed?", "--yes"])?;
    ensure!(asked.err.contains("GET /ports: 500"), "{asked:?}");
    ensure!(published().await? == before, "nothing is published");
    let told = add(&["--yes", "--include", "POST /berths"]).await?.ok()?;
    ensure!(told.err.contains("the first call to your server failed. GET /ports: 500"), "{told:?}");
    ensure!(told.out.contains("/berths") && published().await? == before + 1, "{told:?}");
    Ok(())
}
