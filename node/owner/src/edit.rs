//! Changes that an owner makes to a registered service: its texts, its server, what it offers. Pure.
//!
//! A change of texts, and hiding an operation, start from what is published now. Offering what was hidden needs the
//! source once more: only what is offered is kept of a description.

use farthing_bridge::{
    description::{ApiDescription, Operation},
    graphql,
    report::Report,
};
use farthing_control::types::{Charge, EditRequest, OperationFile, OperationName, ServiceFile, Text};
use farthing_discovery::method_of;
use farthing_protocol::{
    call::{ChargePolicy, Method},
    limits::{LISTING_NAME_CHARS_MAX, LISTING_SUMMARY_CHARS_MAX},
    plain::Line,
};

use super::{
    assemble::{first_of, remove_secret_parameters},
    new_service::{NewService, NewServiceError, UpstreamSecrets, same_origin},
    registry::Registered,
    samples,
};

/// Tells whether the edit means to end a secret that is gone afterwards: by its name, or with others in its place.
pub fn means_to_end(edit: &EditRequest, name: &str) -> bool {
    gives_secrets(edit) || edit.remove_secrets.iter().any(|own| own.trim().eq_ignore_ascii_case(name))
}

fn gives_secrets(edit: &EditRequest) -> bool {
    !edit.upstream_headers.is_empty() || !edit.upstream_query.is_empty()
}

/// Puts the changes into the choices that were made at registration, so that a later reading keeps them.
pub(super) fn apply(edit: &EditRequest, file: &mut ServiceFile) -> Result<(), NewServiceError> {
    let upstream_before = file.upstream.clone();
    let texts = [
        (&mut file.name, &edit.name),
        (&mut file.summary, &edit.summary),
        (&mut file.category, &edit.category),
        (&mut file.description, &edit.description),
        (&mut file.upstream, &edit.upstream),
    ];
    for (text, new) in texts {
        if let Some(new) = new {
            new.trim().clone_into(text);
        }
    }
    if let Some(tags) = &edit.tags {
        file.tags.clone_from(tags);
    }
    if let Some(charge) = edit.charge {
        file.charge = charge;
    }
    if gives_secrets(edit) {
        file.upstream_headers.clone_from(&edit.upstream_headers);
        file.upstream_query.clone_from(&edit.upstream_query);
    }
    for name in &edit.remove_secrets {
        let (headers, query) = (&mut file.upstream_headers, &mut file.upstream_query);
        let before = headers.len() + query.len();
        headers.retain(|own, _| !own.eq_ignore_ascii_case(name.trim()));
        query.retain(|own, _| own != name.trim());
        if headers.len() + query.len() == before {
            let problem =
                format!("has {name}, which your node does not add; `farthing api show` lists what it adds");
            return Err(NewServiceError::new("remove_secrets", problem));
        }
    }
    if !gives_secrets(edit) && !same_origin(&upstream_before, &file.upstream) {
        file.upstream_headers.clear();
        file.upstream_query.clear();
    }
    for OperationName { method: Text(method), path } in &edit.offer {
        // What writes is left out where nobody names it.
        let unnamed = file.source.is_some() && !method.is_safe();
        match chosen(file, *method, path) {
            Some(hidden) if hidden.exclude => hidden.exclude = false,
            None if unnamed => file.operations.push(OperationFile::named(*method, path.clone())),
            _ => {
                let problem = format!("has {method} {path}, which is not hidden");
                return Err(NewServiceError::new("offer", problem));
            }
        }
    }
    for OperationName { method: Text(method), path } in &edit.hide {
        match chosen(file, *method, path) {
            Some(chosen) => chosen.exclude = true,
            None => {
                let named = OperationFile::named(*method, path.clone());
                file.operations.push(OperationFile { exclude: true, ..named });
            }
        }
    }
    Ok(())
}

fn chosen<'f>(file: &'f mut ServiceFile, method: Method, path: &str) -> Option<&'f mut OperationFile> {
    file.operations.iter_mut().find(|chosen| chosen.method.0 == method && chosen.path == path)
}

/// The service as it is published now, with the changes; nothing is read again. `file` has them already.
pub(super) fn edited(
    service: &Registered,
    file: ServiceFile,
    edit: &EditRequest,
) -> Result<NewService, NewServiceError> {
    let listing = service.listing();
    let known = service.known();
    let (mut api, mut report) = (known.api().description().clone(), service.report());
    hide(&edit.hide, &mut api, &mut report)?;
    let secrets =
        UpstreamSecrets { headers: file.upstream_headers.clone(), query: file.upstream_query.clone() };
    if gives_secrets(edit) {
        remove_secret_parameters(&mut api, &mut report, &secrets);
    }
    report.bridged = api.operations.len();
    let name = match &edit.name {
        Some(name) => first_of(name, "", Line::Name, LISTING_NAME_CHARS_MAX),
        None => listing.name.clone(),
    };
    if name.is_empty() {
        let problem =
            format!("is empty; give the service a name of 1 to {LISTING_NAME_CHARS_MAX} characters");
        return Err(NewServiceError::new("name", problem));
    }
    api.title.clone_from(&name);
    if let Some(description) = &edit.description {
        api.description.clone_from(description);
    }
    let summary = match &edit.summary {
        Some(summary) => first_of(summary, &api.description, Line::Prose, LISTING_SUMMARY_CHARS_MAX),
        None => listing.summary.clone(),
    };
    let offers = |method: Method, path: &str| {
        api.operations.iter().any(|operation| method_of(operation) == method && operation.path == path)
    };
    let mut prices = known.details().prices.clone();
    prices.retain(|own| offers(own.method, &own.path));
    let charge_policy = match edit.charge {
        None => listing.charge_policy,
        Some(Charge::Success) => ChargePolicy::Success,
        Some(Charge::Answered) => ChargePolicy::Answered,
    };
    let new = NewService {
        id: Some(listing.service),
        name,
        summary,
        category: edit.category.as_deref().map_or(listing.category.as_str(), str::trim).to_owned(),
        tags: match &edit.tags {
            Some(tags) => tags.iter().map(|tag| tag.trim().to_owned()).collect(),
            None => listing.tags.clone(),
        },
        upstream: edit.upstream.as_deref().map_or(service.upstream_url(), str::trim).to_owned(),
        upstream_is_named: edit.upstream.is_some(),
        secrets,
        secrets_are_all: true,
        price: listing.price,
        charge_policy,
        samples: samples::without(service.samples(), &edit.hide),
        api,
        prices,
        file: super::assemble::remembered(file),
        report,
    };
    new.check()?;
    Ok(new)
}

/// Stops offering operations.
fn hide(
    hidden: &[OperationName],
    api: &mut ApiDescription,
    report: &mut Report,
) -> Result<(), NewServiceError> {
    for OperationName { method: Text(method), path } in hidden {
        let is_it = |operation: &Operation| method_of(operation) == *method && operation.path == *path;
        let before = api.operations.len();
        api.operations.retain(|operation| !is_it(operation));
        if api.operations.len() == before {
            let problem = format!(
                "has {method} {path}, which is not offered; `farthing api show` lists the operations on offer"
            );
            return Err(NewServiceError::new("hide", problem));
        }
        report.skipped.add(format!("{method} {path}"), "not offered, as the owner chose");
    }
    if api.operations.is_empty() {
        let problem = "leaves nothing to offer; pause or retire the service instead";
        return Err(NewServiceError::new("hide", problem));
    }
    if !hidden.is_empty() {
        graphql::prune(api);
    }
    Ok(())
}
