//! Requests that are saved under a name: the form as it stands is kept on the node, and filled in again when it is opened.

use axum::response::{IntoResponse, Response};
use farthing_control::{
    Local, endpoint,
    types::{CallForm, CatalogService, NewSavedRequest, RequestFields, SavedRequest},
};
use farthing_values::ServiceId;
use http::StatusCode;

use crate::{
    failure::Failure,
    frame::Visit,
    page::encoded,
    pages::{operations::name_of as operation_of, register::told, saved},
    show,
    texts::Done,
};

use super::{address, name_of};

/// The button that saves.
pub(super) const SAVE: &str = "save";
/// The field of the name.
pub(super) const SAVED_NAME: &str = "saved_name";
/// Of the operation that a service no longer has.
const OPERATION_CHARS_MAX: usize = 200;
const LEFT_OUT_SHOWN: usize = 20;
const LEFT_OUT_CHARS_MAX: usize = 60;

/// The field for the name of a request, and the reason that it was not saved.
#[derive(Debug, Default)]
pub(super) struct SaveField {
    pub(super) name: String,
    pub(super) problem: Option<String>,
}

/// The saved request that fills the form.
#[derive(Debug)]
pub(super) struct OpenedRequest {
    pub(super) id: String,
    pub(super) name: String,
    /// The address at which it is renamed and deleted.
    pub(super) manage: String,
    /// Names of the fields that are not kept.
    pub(super) left_out: Vec<String>,
}

impl OpenedRequest {
    pub(super) fn new(opened: &SavedRequest) -> Self {
        let names = opened.left_out.iter().take(LEFT_OUT_SHOWN);
        Self {
            id: opened.title.id.clone(),
            name: show::visible(&opened.title.name),
            manage: saved::address(Some(opened.title.service.0)),
            left_out: names.map(|name| show::beginning(name, LEFT_OUT_CHARS_MAX)).collect(),
        }
    }
}

/// Finds a saved request of a service that still has its operation.
///
/// # Errors
/// The reason that it cannot be filled in.
pub(super) async fn opened(
    node: &Local,
    service: &CatalogService,
    id: &str,
) -> Result<SavedRequest, Failure> {
    let found = node.ask(endpoint::SavedRequest.of(id)).await?;
    if found.title.service != service.hit.id {
        return Err(Failure::not_found());
    }
    let operation = &found.title.operation;
    let is_known =
        service.offers.is_empty() || service.offers.iter().any(|offer| operation_of(offer) == *operation);
    if !is_known {
        let shown = show::beginning(operation, OPERATION_CHARS_MAX);
        return Err(Failure::new(
            StatusCode::NOT_FOUND,
            "The service no longer has this operation",
            format!("The saved request is for “{shown}”, which the service does not list now."),
            "Delete the saved request, or choose another operation of the service.",
        ));
    }
    Ok(found)
}

/// Saves a request and goes on to it; the inner error is the reason that it was not saved.
pub(super) async fn save(
    visit: &Visit,
    service: ServiceId,
    form: &CallForm,
    name: &str,
    fields: RequestFields,
) -> Result<Result<Response, String>, Failure> {
    let new =
        NewSavedRequest { name: name.to_owned(), service: service.into(), operation: name_of(form), fields };
    let saved = told(visit.panel.node(), endpoint::SaveRequest, Ok(new)).await?;
    Ok(saved.map(|saved| {
        let place = format!("{}?saved={}", address(service), encoded(&saved.title.id));
        Done::RequestSaved.at(&place).into_response()
    }))
}
