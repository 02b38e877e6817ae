//! Nodes without a chain that know each other, and what they find.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_control::types::{
    Api, CatalogHit, CatalogPage, CatalogQuery, CatalogSamples, CatalogService, PriceRequest, SamplesFile,
    ServiceFile, SourceFile, SourceKind,
};
use farthing_testnet::{NodeOptions, NodeProcess, demo::metrics};
use farthing_values::{ServiceId, Usdc};

use crate::{wait::eventually, world::PRICE};

/// Nodes in a folder of their own.
#[derive(Debug)]
pub struct Nodes {
    folder: tempfile::TempDir,
    settings: Vec<(String, String)>,
    started: usize,
}

impl Nodes {
    pub fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, settings: Vec::new(), started: 0 })
    }

    /// Nothing is gossiped; everything must be found all the same.
    pub fn without_gossip() -> Result<Self> {
        let settings = vec![("network.gossip".to_owned(), "false".to_owned())];
        Ok(Self { settings, ..Self::new()? })
    }

    /// A node that joins through others.
    pub async fn join(&mut self, through: &[&NodeProcess]) -> Result<NodeProcess> {
        self.join_with(through, Vec::new()).await
    }

    /// The same with further environment.
    pub async fn join_with(
        &mut self,
        through: &[&NodeProcess],
        environment: Vec<(String, String)>,
    ) -> Result<NodeProcess> {
        self.started += 1;
        let mut options = NodeOptions::new(self.folder.path().join(format!("node-{}", self.started)));
        for node in through {
            options = options.bootstrap([node.loopback_address().await?]);
        }
        options.settings.clone_from(&self.settings);
        options.environment = environment;
        NodeProcess::start_on(no_chain(), options).await
    }

    /// The next node to join is a copy of the last one, which must be stopped while its folder is copied.
    pub fn copy_of_last(&self) -> Result<()> {
        let folder = |number: usize| self.folder.path().join(format!("node-{number}"));
        copy(&folder(self.started), &folder(self.started + 1))
    }

    /// The first, and `count - 1` that know it alone.
    pub async fn star(&mut self, count: usize) -> Result<Vec<NodeProcess>> {
        let mut nodes = vec![self.join(&[]).await?];
        for _ in 1..count {
            let node = self.join(&[&nodes[0]]).await?;
            nodes.push(node);
        }
        for node in &nodes {
            eventually("every node has company", async || Ok(node.status().await?.peers > 0)).await?;
        }
        Ok(nodes)
    }
}

/// Settings of a node that lives without a chain: nothing listens there.
pub fn no_chain() -> Vec<(String, String)> {
    let chain = [
        ("chain.preset", "local"),
        ("chain.rpc_urls", "http://127.0.0.1:9"),
        ("chain.token", "0x00000000000000000000000000000000000000aa"),
    ];
    chain.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// Copies a file, or a folder with its files and folders; what is neither, or not there, is left out.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
    } else if from.is_file() {
        std::fs::copy(from, to)?;
    }
    Ok(())
}

/// Sums the sizes of all files in a folder.
pub fn bytes_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// An API of one operation, with an example of its answer.
const API: &str = r#"{
  "openapi": "3.1.0", "info": {"title": "Ground", "version": "1", "description": "Where and when."},
  "paths": {"/ok": {"get": {"operationId": "listTremors", "summary": "Tremors of the last week",
    "parameters": [{"name": "magnitude", "in": "query", "schema": {"type": "number"}}],
    "responses": {"200": {"description": "ok", "content": {"application/json": {
      "schema": {"type": "object"}, "example": {"place": "Hualian", "magnitude": 4.7}}}}}}}}
}"#;

/// A service that could be sold. It names no server but `upstream`.
pub fn offer(name: &str, upstream: &str) -> ServiceFile {
    ServiceFile {
        name: name.to_owned(),
        summary: "Where the ground shook".to_owned(),
        category: "Geology".to_owned(),
        tags: vec!["earth".to_owned(), "hazard".to_owned()],
        samples: SamplesFile::Described,
        upstream: upstream.to_owned(),
        source: Some(SourceFile::given(SourceKind::Openapi, API.to_owned(), "the test's own".to_owned())),
        ..ServiceFile::priced(PRICE)
    }
}

/// Registers a service with a node.
pub async fn publish(node: &NodeProcess, file: &ServiceFile) -> Result<Api> {
    Ok(node.control().tell(endpoint::AddApi, file).await?)
}

/// A search for words.
pub fn words(words: &str) -> CatalogQuery {
    CatalogQuery { words: words.to_owned(), ..CatalogQuery::default() }
}

/// The first page that a node finds.
pub async fn search(node: &NodeProcess, query: &CatalogQuery) -> Result<CatalogPage> {
    Ok(node.control().tell(endpoint::CatalogSearch, query).await?)
}

/// Waits until every node finds exactly `count` services for `query`.
pub async fn all_find(nodes: &[NodeProcess], query: &CatalogQuery, count: usize) -> Result<()> {
    for node in nodes {
        let mut seen = usize::MAX;
        let found = eventually("the service is found", async || {
            seen = search(node, query).await?.total;
            Ok(seen == count)
        });
        found.await.with_context(|| format!("{seen} and not {count} services:\n{}", node.log()))?;
    }
    Ok(())
}

/// Something that the node counts, by its name in `/metrics`.
pub async fn counted(node: &NodeProcess, name: &str) -> Result<u64> {
    let counts = metrics(node).await?;
    counts.get(name).copied().with_context(|| format!("no {name} among {counts:?}"))
}

/// A service, as a node shows it.
pub async fn show(node: &NodeProcess, id: ServiceId) -> Result<CatalogService> {
    Ok(node.control().ask(endpoint::CatalogService.of(id)).await?)
}

pub async fn samples(node: &NodeProcess, id: ServiceId) -> Result<CatalogSamples> {
    Ok(node.control().ask(endpoint::CatalogSamples.of(id)).await?)
}

/// The one hit of a page.
pub fn only(page: &CatalogPage) -> Result<&CatalogHit> {
    ensure!(page.total == 1, "{} services", page.total);
    page.hits.first().context("no hit")
}

/// Gives a service another price.
pub async fn set_price(node: &NodeProcess, api: &Api, price: Usdc) -> Result<Api> {
    let request = PriceRequest { price: price.into(), operation: None };
    Ok(node.control().tell(endpoint::PriceApi.of(api.id.0), &request).await?)
}
