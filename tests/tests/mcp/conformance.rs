//! The scenarios of the protocol's own conformance package that ask a server for nothing but the protocol, at the node's port. Others
//! want tools that only their example server has.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_testnet::demo::Demo;
use farthing_tests::upstream::serve;
use tempfile::TempDir;
use tokio::process::Command;

use super::{agent::tools_with, confirmed::confirming, start};

const PACKAGE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const SCENARIOS: [&str; 3] = ["server-initialize", "ping", "tools-list"];
/// The headers that the protocol has.
const FORWARDED: [&str; 4] = ["content-type", "accept", "mcp-protocol-version", "mcp-session-id"];
/// More than any request of these scenarios has.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Far longer than a scenario takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// The node's port for a program that knows no secret and no certificate.
#[derive(Clone)]
struct Door {
    http: reqwest::Client,
    url: String,
    secret: String,
}

impl Door {
    async fn open(demo: &Demo) -> Result<String> {
        let url = format!("{}/mcp", demo.gateway_url);
        let door =
            Self { http: demo.consumer.https_client()?, url, secret: confirming(demo, "judge").await? };
        let forward = move |request: Request| async move {
            let answer = door.forward(request).await;
            answer.unwrap_or_else(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response())
        };
        Ok(format!("{}/mcp", serve(Router::new().fallback(forward)).await?))
    }

    async fn forward(&self, request: Request) -> Result<Response> {
        let (head, body) = request.into_parts();
        let mut headers = HeaderMap::new();
        for name in FORWARDED {
            if let Some(value) = head.headers.get(name) {
                headers.insert(name, value.clone());
            }
        }
        let body = to_bytes(body, REQUEST_BYTES_MAX).await?;
        let request = self.http.request(head.method, &self.url).headers(headers).bearer_auth(&self.secret);
        let answer = request.body(body).send().await?;
        let media_type = answer.headers().get(header::CONTENT_TYPE).cloned();
        let mut response = (answer.status(), answer.bytes().await?).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        if let Some(media_type) = media_type {
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        }
        Ok(response)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_passes_the_scenarios_of_the_conformance_package() -> Result<()> {
    let Some(tools) = tools_with(PACKAGE)? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let url = Door::open(&demo).await?;
    for scenario in SCENARIOS {
        let mut judge = Command::new("node");
        judge.arg(tools.join(PACKAGE)).args(["server", "--url", &url, "--scenario", scenario]);
        judge.current_dir(folder.path()).env("NO_PROXY", "127.0.0.1").kill_on_drop(true);
        let judged = tokio::time::timeout(DEADLINE, judge.output()).await.context("the judge hangs")??;
        let said = String::from_utf8_lossy(&judged.stdout);
        ensure!(judged.status.success() && said.contains("Passed: 1/1"), "{scenario}: {said}");
    }
    farthing_tests::agreement::end(demo).await
}
