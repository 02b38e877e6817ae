//! Paths and values that readers might take for something else, through both nodes: a server sees one segment that is
//! the value, or the call is refused and costs nothing.

use anyhow::{Result, ensure};
use farthing_control::types::{OperationFile, ServiceFile};
use farthing_tests::{
    recorder::Recorder,
    world::{Answer, PRICE, World},
};
use farthing_values::Method;
use serde_json::{Value, json};

use super::support::{call, refused};

/// One segment of a path, or a value.
const SERVED: [&str; 9] = [
    "a;b=1",
    "a?b=c",
    "a#b",
    "a&key=1",
    "user:pw@evil.example",
    "...",
    "e\u{301}",
    "\u{ff0e}\u{ff0e}\u{ff0f}",
    "\u{202e}\u{feff}",
];
/// Two segments to a server that decodes a path before it looks for its route; in a query a value like any other.
const LONGER: [&str; 7] =
    ["a/b", "a//b", "a\\b", "%2F", "%252F", "https://evil.example/x", "${jndi:ldap://x}"];
const REFUSED: [&str; 16] = [
    ".",
    "..",
    "a/../b",
    "a\\..\\b",
    "..;/b",
    "%2e%2E",
    "%252e%252e/",
    "%25252e.",
    "..%5c",
    "\0",
    "a\r\nhost: evil.example",
    "\u{7f}",
    "\u{85}",
    "%2e%2e%2f%2e%2e",
    "/..",
    "../",
];
/// Paths as they are written.
const PATHS_REFUSED: [&str; 20] = [
    "/items/%c0%ae%c0%ae",
    "/items/%00",
    "/items/%0d%0ahost:%20evil",
    "/items/a%2Fb",
    "/items/a%5cb",
    "/items/%2e%2e",
    "/items/..",
    "/items/../items/a",
    "/items/./a",
    "/items/..;x/a",
    "//evil.example/items/a",
    "/items//a",
    "/items/a?key=1",
    "/items/a#b",
    "/items/a\\b",
    "http://evil.example/items/a",
    "items/a",
    "/items/%zz",
    "/items/%ff",
    "/items/a\r\n",
];

/// Percent decoding, once.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        let escaped =
            tail.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(escaped) if *byte == b'%' => {
                bytes.push(escaped);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn told(answer: &Answer) -> Value {
    answer.json()["detail"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_one_segment_that_is_the_value_or_nothing_and_that_costs_nothing() -> Result<()> {
    let world = World::start().await?;
    let recorder = Recorder::start().await?;
    let file = ServiceFile {
        name: "Items".to_owned(),
        upstream: format!("{}/base", recorder.url()),
        operations: vec![OperationFile {
            any_params: true,
            ..OperationFile::named(Method::Get, "/items/{id}".to_owned())
        }],
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    for value in SERVED {
        let answer = call(&world, &api, "GET", "/items/{id}", json!({ "id": value, "q": value })).await?;
        ensure!(answer.status == 200, "{value:?}: {}", told(&answer));
        let target = recorder.seen().pop().map(|seen| seen.target).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or_default();
        let segments: Vec<String> = path.split('/').map(decoded).collect();
        ensure!(segments == ["", "base", "items", value], "{value:?} arrived as {target}");
        let pairs: Vec<_> =
            query.split('&').map(|pair| pair.split('=').map(decoded).collect::<Vec<_>>()).collect();
        ensure!(pairs == [["q", value]], "{value:?} arrived as {target}");
    }
    for value in LONGER {
        refused(&call(&world, &api, "GET", "/items/{id}", json!({ "id": value })).await?, &["id"])?;
        let answer = call(&world, &api, "GET", "/items/{id}", json!({ "id": "a", "q": value })).await?;
        ensure!(answer.status == 200, "{value:?}: {}", told(&answer));
        let target = recorder.seen().pop().map(|seen| seen.target).unwrap_or_default();
        ensure!(decoded(&target) == format!("/base/items/a?q={value}"), "{value:?} arrived as {target}");
    }
    let served = recorder.hits();
    ensure!(served == SERVED.len() + LONGER.len());
    for value in REFUSED {
        refused(&call(&world, &api, "GET", "/items/{id}", json!({ "id": value })).await?, &["id"])?;
    }
    for path in PATHS_REFUSED {
        let answer = call(&world, &api, "GET", path, json!({})).await?;
        ensure!(answer.status.is_client_error() && answer.charged() == json!(false), "{path:?}: {answer:?}");
    }
    ensure!(recorder.hits() == served, "{:?}", recorder.seen().last());
    let charged = PRICE.saturating_mul(u64::try_from(served)?);
    world.settle_for(charged).await
}
