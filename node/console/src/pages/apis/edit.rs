//! Changing a service that is registered: its texts, its server, and which operations are offered.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::Path,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{ApiShown, CatalogKind, Charge, EditRequest},
};
use serde::Deserialize;

use super::one::{change, changed};
use crate::{
    failure::{Failure, Page},
    form::{Form, upload::Upload},
    frame::{Frame, Section, Visit},
    page::answer,
    pages::{
        catalog::categories,
        register::{
            details::operation_sent,
            draft::{charge_sent, charges, tags},
            mendable,
        },
        service::service_id,
    },
    show,
};

#[derive(Template)]
#[template(path = "api-edit.html")]
struct EditTemplate {
    frame: Frame,
    id: String,
    name: String,
    kind: CatalogKind,
    fields: EditFields,
    /// Names of what is added to requests now.
    secrets: Vec<String>,
    /// Suggestions.
    categories: Vec<String>,
    /// Value, words, chosen.
    charges: [(&'static str, &'static str, bool); 2],
    problem: Option<String>,
}

/// As they are typed.
#[derive(Debug, Default, Deserialize)]
pub(in crate::pages) struct EditFields {
    #[serde(default)]
    version: u64,
    name: String,
    summary: String,
    description: String,
    category: String,
    tags: String,
    upstream: String,
    charge: String,
    #[serde(default)]
    header_name: String,
    #[serde(default)]
    header_value: String,
    #[serde(default)]
    query_name: String,
    #[serde(default)]
    query_value: String,
}

impl EditFields {
    fn of(shown: &ApiShown) -> Self {
        Self {
            version: shown.api.listing_version,
            name: shown.api.name.clone(),
            summary: shown.summary.clone(),
            description: shown.description.clone(),
            category: shown.category.clone(),
            tags: shown.tags.join(", "),
            upstream: shown.api.upstream.clone(),
            charge: if shown.charge == Charge::Answered { "answered" } else { "success" }.to_owned(),
            ..Self::default()
        }
    }

    fn request(&self, now: &ApiShown) -> Result<EditRequest, String> {
        let secret = |what: &str, name: &str, value: &str| match (name.trim(), value) {
            ("", "") => Ok(BTreeMap::new()),
            ("", _) => Err(format!("{what} has a value but no name.")),
            (name, "") => Err(format!("{what} “{}” has no value.", show::visible(name))),
            (name, value) => Ok(BTreeMap::from([(name.to_owned(), value.to_owned())])),
        };
        let differs = |new: &str, old: &str| (new.trim() != old.trim()).then(|| new.trim().to_owned());
        let description = self.description.replace("\r\n", "\n");
        let tags = tags(&self.tags);
        let charge = charge_sent(&self.charge);
        if self.name.trim().is_empty() {
            return Err("The name is empty. Enter a name.".to_owned());
        }
        Ok(EditRequest {
            name: differs(&self.name, &now.api.name),
            summary: differs(&self.summary, &now.summary),
            category: differs(&self.category, &now.category),
            tags: (tags != now.tags).then_some(tags),
            description: differs(&description, &now.description),
            upstream: differs(&self.upstream, &now.api.upstream),
            upstream_headers: secret("The secret header", &self.header_name, &self.header_value)?,
            upstream_query: secret("The secret query parameter", &self.query_name, &self.query_value)?,
            charge: (charge != now.charge).then_some(charge),
            version: Some(self.version),
            ..EditRequest::default()
        })
    }
}

pub(in crate::pages) async fn show(visit: Visit, Path(text): Path<String>) -> Page {
    let shown = visit.panel.node().ask(endpoint::ShowApi.of(service_id(&text)?)).await?;
    let fields = EditFields::of(&shown);
    page(&visit, &shown, fields, None).await
}

async fn page(visit: &Visit, shown: &ApiShown, fields: EditFields, problem: Option<String>) -> Page {
    let page = EditTemplate {
        frame: visit.frame(Section::Apis).await?,
        id: shown.api.id.to_string(),
        name: show::visible(&shown.api.name),
        kind: shown.kind.0,
        secrets: shown.secrets.iter().map(|name| show::visible(name)).collect(),
        categories: categories(visit.panel.node()).await?,
        charges: charges(charge_sent(&fields.charge)),
        // A secret is never shown again, typed or not.
        // Whoever sends it again has seen what is there now.
        fields: EditFields {
            version: shown.api.listing_version,
            header_value: String::new(),
            query_value: String::new(),
            ..fields
        },
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

pub(in crate::pages) async fn save(Path(text): Path<String>, form: Form<EditFields>) -> Page {
    let (node, id) = (form.visit.panel.node(), service_id(&text)?);
    let shown = node.ask(endpoint::ShowApi.of(id)).await?;
    let request = form.fields.request(&shown);
    match &request {
        Ok(request) if decides_who_gets_keys(request) => {
            let _ = form.confirmed()?;
        }
        Ok(request) if !is_empty(request) => {
            let _ = form.reauthenticated()?;
        }
        Ok(_) | Err(_) => {}
    }
    let outcome = match request {
        Ok(request) if is_empty(&request) => Ok(None),
        Ok(request) => mendable(node.tell(endpoint::EditApi.of(id), &request).await)?.map(Some),
        Err(problem) => Err(problem),
    };
    match outcome {
        Ok(None) => Ok(Redirect::to(&format!("/panel/apis/{id}")).into_response()),
        Ok(Some(edited)) => Ok(changed(id, &edited).into_response()),
        Err(problem) => page(&form.visit, &shown, form.fields, Some(problem)).await,
    }
}

/// Returns whether a change names another server, or what that server is sent.
fn decides_who_gets_keys(request: &EditRequest) -> bool {
    request.upstream.is_some() || !request.upstream_headers.is_empty() || !request.upstream_query.is_empty()
}

/// Returns whether the request changes nothing, whatever the version.
fn is_empty(request: &EditRequest) -> bool {
    *request == EditRequest { version: request.version, ..EditRequest::default() }
}

#[derive(Deserialize)]
pub(in crate::pages) struct RemoveFields {
    name: String,
    /// Ticked: the server works without it.
    sure: Option<String>,
}

/// Stops adding a secret to requests.
pub(in crate::pages) async fn remove_secret(Path(text): Path<String>, form: Form<RemoveFields>) -> Page {
    if form.fields.sure.is_none() {
        let visit = &form.visit;
        let shown = visit.panel.node().ask(endpoint::ShowApi.of(service_id(&text)?)).await?;
        let problem = "Confirm that your server works without it: a removed secret cannot be shown again.";
        return page(visit, &shown, EditFields::of(&shown), Some(problem.to_owned())).await;
    }
    let proof = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let request = EditRequest { remove_secrets: vec![fields.name], ..EditRequest::default() };
    change(&visit, &text, request, proof).await
}

/// Hides an operation, or offers it again; the second may need the description's file.
pub(in crate::pages) async fn offer(Path(text): Path<String>, mut upload: Upload) -> Page {
    let proof = upload.reauthenticated()?;
    let named = operation_sent(upload.text("operation"))?;
    let source = upload.source();
    let request = match upload.text("go") {
        "hide" => EditRequest { hide: vec![named], ..EditRequest::default() },
        "offer" => EditRequest { offer: vec![named], source, ..EditRequest::default() },
        _ => return Err(Failure::unreadable("`go` is neither `hide` nor `offer`.")),
    };
    change(&upload.visit, &text, request, proof).await
}
