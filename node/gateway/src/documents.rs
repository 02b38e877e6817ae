//! Free documents as answers: written one at a time beside the tasks that serve calls, and held within a part of the
//! memory for bodies.
//!
//! They cost nothing, so whoever has any consumer secret may ask for as many as it likes, and read them slowly.

use std::sync::Arc;

use axum::{
    body::Bytes,
    response::{IntoResponse, Response},
};
use farthing_bounds::ByteBudget;
use farthing_control::types::{HEADER_CHARGED, HEADER_PRICE};
use farthing_discovery::{Catalog, KnownService, Queuer, documents};
use farthing_node::consumer::{BuyError, Order};

use super::problem::Problem;

/// Writes documents. A cheap handle.
#[derive(Clone, Debug)]
pub struct Documents {
    budget: ByteBudget,
    catalog: Catalog,
}

#[derive(Debug)]
pub(super) struct WrittenDocument {
    content_type: &'static str,
    body: Bytes,
}

impl Documents {
    pub const fn new(budget: ByteBudget, catalog: Catalog) -> Self {
        Self { budget, catalog }
    }

    /// Waits for a turn of the order's secret, and writes. `server` is the service's address as the caller sees it.
    ///
    /// # Errors
    /// A parameter that the document does not have; no room.
    pub(super) async fn write(
        &self,
        order: &Order,
        known: Arc<KnownService>,
        document: &'static str,
        server: String,
    ) -> Result<WrittenDocument, Problem> {
        let (params, queuer) = (order.params.clone(), Queuer::Secret(order.grant.name.clone()));
        let write = move || documents::write_document(&known, document, &server, &params);
        let written = self.catalog.in_turn(queuer, write).await;
        let written = written.map_err(|_| Problem::no_room())?;
        let documents::ServiceDocument { content_type, body } =
            written.map_err(|error| Problem::from(&BuyError::from(error)))?;
        let room = self.budget.take(body.len()).ok_or_else(Problem::no_room)?;
        Ok(WrittenDocument { content_type, body: room.attach(body.into()) })
    }
}

impl IntoResponse for WrittenDocument {
    fn into_response(self) -> Response {
        let headers = [("content-type", self.content_type), (HEADER_PRICE, "0"), (HEADER_CHARGED, "0")];
        (headers, self.body).into_response()
    }
}
