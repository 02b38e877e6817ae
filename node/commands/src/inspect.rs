//! Before publishing: what a description offers, how strangers will see the service, whether its server answers.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use farthing_bridge::description::{ApiDescription, Operation, RootKind};
use farthing_control::types::{
    ApiPreview, CallRequest, CatalogKind, InspectRequest, InspectedCandidate, InspectedOperation, Inspection,
    ServiceFile, SourceFile, TestRequest, Tested, Text, Tried, TryRequest,
};
use farthing_discovery::method_of;
use farthing_gateway::call::read_order;
use farthing_node::{
    consumer::{Order, spending::Grant},
    handles::Handles,
    secrets::DEFAULT_SECRET,
};
use farthing_os::{clock, secret::SecretText};
use farthing_owner::{
    inspect::{self as probing, Inspected, ProbeAnswer, TestCall, found_source},
    intake::Candidate,
};
use farthing_protocol::ServiceId;

use super::{
    Failed, Reply,
    services::{distance, offer_parameters, shown},
};

answer!(InspectApi: inspect);
async fn inspect(State(node): State<Handles>, Json(request): Json<InspectRequest>) -> Reply<Inspection> {
    let headers = request.upstream_headers.into_iter();
    let headers = headers.map(|(name, value)| (name, SecretText::new(value))).collect();
    let inspected = node.reader().inspect(request.source, headers).await?;
    Ok(Json(inspection(inspected)))
}

answer!(PreviewApi: preview);
async fn preview(State(node): State<Handles>, Json(file): Json<ServiceFile>) -> Reply<ApiPreview> {
    let new = node.previews.read(&node.reader(), file).await?;
    let service = node.registry.preview(new)?;
    let shown = shown(&node, &service).await?;
    Ok(Json(ApiPreview {
        name: shown.api.name,
        kind: shown.kind,
        summary: shown.summary,
        category: shown.category,
        tags: shown.tags,
        description: shown.description,
        price: shown.api.price,
        upstream: shown.api.upstream,
        secrets: shown.secrets,
        report: shown.report,
        offers: shown.offers,
        samples: shown.samples,
    }))
}

answer!(TryApi: try_out);
async fn try_out(State(node): State<Handles>, Json(request): Json<TryRequest>) -> Reply<Tried> {
    let reader = node.reader();
    let mut service = node.previews.to_try(&reader, request.file).await?;
    service.secrets = node.registry.secrets_of(&service);
    let wanted = request.operation.map(|operation| (operation.method.0, operation.path));
    Ok(Json(tried(reader.try_out(&service, wanted, &request.params).await?)))
}

answer!(TestApi: test);
async fn test(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<TestRequest>,
) -> Reply<Tested> {
    let service = node.registry.find(id.0)?;
    let wanted = request.into_call(id).as_ref().map(as_called).transpose()?;
    let tested = probing::test(&service, wanted).await.map_err(|error| {
        let next = "`farthing api show` lists the operations with their parameters.";
        Failed::new(StatusCode::BAD_REQUEST, &error, next)
    })?;
    Ok(Json(Tested {
        tried: tried(tested.answer),
        price: tested.price.into(),
        would_charge: tested.charge.into(),
    }))
}

/// Reads a call as a caller's node does, with its headers and its body.
fn as_called(call: &CallRequest) -> Result<TestCall, Failed> {
    let read = |text: &[u8]| read_order(Arc::new(Grant::unlimited(DEFAULT_SECRET)), &HeaderMap::new(), text);
    let text = serde_json::to_vec(call).expect("texts and numbers are always JSON");
    let order = read(&text).map_err(|problem| Failed::new(problem.status, &problem.detail, problem.next))?;
    let Order { method, path, params, headers, body, .. } = order;
    Ok(TestCall { method, path, params, headers, body })
}

fn tried(trial: ProbeAnswer) -> Tried {
    Tried {
        operation: trial.operation,
        answered: trial.answered,
        status: trial.status,
        reason: trial.reason.to_owned(),
        took_us: clock::micros(trial.elapsed),
        upstream_class: distance(trial.class),
        media_type: trial.media_type,
        bytes: trial.bytes as u64,
        beginning: trial.beginning,
    }
}

fn inspection(inspected: Inspected) -> Inspection {
    let Inspected { intake, source, candidates } = inspected;
    let kind = CatalogKind::from(intake.kind()).into();
    let reading = intake.reading;
    let description = &reading.description;
    Inspection {
        source: SourceFile { text: None, ..source },
        kind,
        title: description.title.clone(),
        version: description.version.clone(),
        description: description.description.clone(),
        upstreams: intake.upstreams.iter().map(ToString::to_string).collect(),
        operations: description.operations.iter().map(|one| operation(description, one)).collect(),
        security: reading.security,
        report: reading.report,
        candidates: candidates.iter().map(candidate).collect(),
    }
}

fn operation(description: &ApiDescription, operation: &Operation) -> InspectedOperation {
    InspectedOperation {
        method: method_of(operation).into(),
        path: operation.path.clone(),
        summary: operation.summary.clone(),
        deprecated: operation.deprecated,
        mutation: operation.root.as_ref().is_some_and(|root| root.kind == RootKind::Mutation),
        parameters: offer_parameters(description, operation),
        body: operation.body.as_ref().map(|body| description.type_name(&body.schema)),
    }
}

fn candidate(candidate: &Candidate) -> InspectedCandidate {
    let reading = &candidate.intake.reading;
    InspectedCandidate {
        source: found_source(&candidate.intake),
        format: reading.report.format.clone(),
        title: reading.description.title.clone(),
        operations: reading.description.operations.len() as u64,
        found: candidate.found.to_string(),
    }
}
