//! Free documents of a service: what it offers, for people and programs, made from its verified description.
//!
//! `/openapi.json` of any service and `/schema.graphql` of a GraphQL one cost nothing and reach nobody: the
//! consumer's node writes them itself. An operation of that path cannot be offered.

use std::collections::BTreeMap;

use farthing_bridge::{
    description::Operation,
    graphql::print,
    openapi::{Version, WriteOptions, write},
};
use farthing_protocol::{Usdc, call::Method};
use farthing_shared::{blocking::start_blocking, keyed_semaphore::SharedPlaces};

use super::{Catalog, KnownService, PlanError, Queuer};

/// Path of the OpenAPI document below a service.
pub const OPENAPI: &str = "/openapi.json";
/// Path of the GraphQL schema below a service.
pub const SCHEMA: &str = "/schema.graphql";

/// A document to hand out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceDocument {
    pub content_type: &'static str,
    pub body: String,
}

/// Returns whether there may be a document at `path`.
pub fn is_path(path: &str) -> bool {
    [OPENAPI, SCHEMA].contains(&path)
}

/// Returns the document that a call asks for, if it asks for one.
pub fn asked(known: &KnownService, method: Method, path: &str) -> Option<&'static str> {
    let path = [OPENAPI, SCHEMA].into_iter().find(|document| *document == path)?;
    let exists = path == OPENAPI || known.api().description().graphql.is_some();
    (method == Method::Get && exists).then_some(path)
}

/// Writes the document. `server` is the service's address as the caller sees it. `params` may have `version`,
/// `3.1` or `3.0`.
///
/// # Errors
/// [`PlanError`] for a version there is not, or another parameter.
pub fn write_document(
    known: &KnownService,
    document: &str,
    server: &str,
    params: &BTreeMap<String, String>,
) -> Result<ServiceDocument, PlanError> {
    if document == SCHEMA {
        if let Some(name) = params.keys().next() {
            return Err(PlanError::BadParameter(format!(
                "{SCHEMA} takes no parameters, `{}` is one",
                clip(name)
            )));
        }
        let body = known.api().description().graphql.as_ref().map(print::sdl).unwrap_or_default();
        return Ok(ServiceDocument { content_type: "application/graphql; charset=utf-8", body });
    }
    let version = version(params)?;
    Ok(ServiceDocument { content_type: "application/json", body: openapi(known, server, version) })
}

impl Catalog {
    /// Writes what is written of a description: documents, forms and client code, one at a time and beside the tasks
    /// that serve calls, in turns of who asks. A large one takes a second.
    ///
    /// # Errors
    /// [`WritingFailed`] when `write` panics.
    pub async fn in_turn<T: Send + 'static>(
        &self,
        queuer: Queuer,
        write: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WritingFailed> {
        self.0.writer.run(queuer, write).await
    }
}

/// The one place for writing. Each asker has one document in the queue for it, and its others wait before that.
#[derive(Debug)]
pub(super) struct Writer(SharedPlaces<Queuer>);

impl Default for Writer {
    fn default() -> Self {
        Self(SharedPlaces::new(1, 1))
    }
}

impl Writer {
    async fn run<T: Send + 'static>(
        &self,
        queuer: Queuer,
        write: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WritingFailed> {
        let turn = self.0.take(queuer).await;
        let writing = start_blocking(move || {
            // Who stops waiting does not let the next one write beside it.
            let _turn = turn;
            write()
        });
        writing.await.map_err(|_| WritingFailed)
    }
}

/// This node failed while it wrote something of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node failed while it wrote the answer")]
pub struct WritingFailed;

impl WritingFailed {
    #[must_use]
    pub const fn next_step(self) -> &'static str {
        "Read the node's log, and please report the problem."
    }
}

/// The OpenAPI document of a service, as JSON text.
pub fn openapi(known: &KnownService, server: &str, version: Version) -> String {
    let price = |(operation, price): (&Operation, Usdc)| (operation.id.clone(), price.to_string());
    let options = WriteOptions {
        version,
        servers: vec![server.to_owned()],
        service: Some(known.listing().service.to_string()),
        price: Some(known.listing().price.to_string()),
        prices: known.operations().map(price).collect(),
        needs_secret: true,
    };
    let document = write(known.api().description(), &options);
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn version(params: &BTreeMap<String, String>) -> Result<Version, PlanError> {
    if let Some(name) = params.keys().find(|name| *name != "version") {
        return Err(PlanError::BadParameter(format!(
            "`{}` is not a parameter of {OPENAPI}; it takes `version`",
            clip(name)
        )));
    }
    match params.get("version").map(String::as_str) {
        None | Some("3.1") => Ok(Version::V31),
        Some("3.0") => Ok(Version::V30),
        Some(other) => {
            Err(PlanError::BadParameter(format!("`version` is `{}`, expected 3.1 or 3.0", clip(other))))
        }
    }
}

/// A stranger's text in an error: short, and nothing that a terminal would obey.
fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn documents_that_one_secret_waits_for_are_written_after_the_first_of_another() {
        let writer = Writer::default();
        let of = |secret: &str| Queuer::Secret(secret.to_owned());
        let (open, gate) = mpsc::sync_channel::<()>(1);
        let mut first = Box::pin(writer.run(of("many"), move || gate.recv().is_ok()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let order = Arc::new(Mutex::new(Vec::new()));
        let noted = |secret: &'static str| {
            let order = Arc::clone(&order);
            Box::pin(writer.run(of(secret), move || order.lock().push(secret)))
        };
        let mut waiting = ["many", "many", "other"].map(noted);
        for one in &mut waiting {
            assert!(futures::poll!(one.as_mut()).is_pending());
        }
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(true));
        futures::future::join_all(waiting).await;
        assert_eq!(*order.lock(), ["other", "many", "many"]);
    }
}
