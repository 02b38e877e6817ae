//! Samples of a service: what an answer looks like, free for everyone and without asking the upstream.
//!
//! Either the description's own examples (or made up from its schemas, and labelled so), or answers recorded
//! from the owner's server at registration, with the owner's consent. One small JSON document per service, pinned
//! by the details.

use std::{collections::BTreeMap, time::Duration};

use farthing_bridge::{
    Api, Request,
    api::Call,
    description::{ApiDescription, Method},
    limits::SAMPLES_BYTES_MAX,
    samples::{self, Origin, Sample, Steps},
};
use farthing_control::types::{OperationName, OperationSample};
use farthing_protocol::Outcome;

use super::{probe, upstream::Upstream};

/// Calls made to record samples: enough to show what a service is like.
const RECORDED_MAX: usize = 12;
/// A recorded answer that is longer is left out; half an answer is no sample.
const RECORDED_BYTES_MAX: usize = 16 * 1024;
const RECORDING_DEADLINE: Duration = Duration::from_secs(10);

/// The samples document of what the description says; `None` when it says nothing.
pub fn described(api: &ApiDescription) -> Option<Vec<u8>> {
    let mut steps = samples::steps_of_service();
    document((0..api.operations.len()).filter_map(|index| described_one(api, index, &mut steps)))
}

fn described_one(api: &ApiDescription, index: usize, steps: &mut Steps) -> Option<OperationSample> {
    Some(OperationSample { operation: name(api, index)?, sample: samples::for_operation(api, index, steps)? })
}

/// The same with answers of the upstream to calls that need no parameters; the rest as [`described`].
pub async fn recorded(api: &ApiDescription, upstream: &Upstream) -> Option<Vec<u8>> {
    let planner = Api::new(api.clone()).ok()?;
    let mut all = Vec::new();
    let (mut calls, mut steps) = (0, samples::steps_of_service());
    for index in 0..api.operations.len() {
        let asks_nothing = api.operations[index].method == Method::Get && calls < RECORDED_MAX;
        let sample = if asks_nothing {
            let request = request(&planner, index);
            calls += usize::from(request.is_some());
            match request {
                Some(request) => answer(upstream, request).await,
                None => None,
            }
        } else {
            None
        };
        match (sample, name(api, index)) {
            (Some(sample), Some(operation)) => all.push(OperationSample { operation, sample }),
            _ => all.extend(described_one(api, index, &mut steps)),
        }
    }
    document(all.into_iter())
}

/// The call without any parameter, where that is allowed.
fn request(api: &Api, index: usize) -> Option<Request> {
    let operation = api.description().operations.get(index)?;
    let (params, method) = (BTreeMap::new(), operation.method.as_str());
    let call = Call { method, path: &operation.path, params: &params, content_type: None, body: &[] };
    Some(api.plan(&call).ok()?.request)
}

async fn answer(upstream: &Upstream, request: Request) -> Option<Sample> {
    let answer = probe::ask(upstream, (request, false), "application/json", RECORDING_DEADLINE).await;
    if answer.outcome != Outcome::Answered || answer.body.len() > RECORDED_BYTES_MAX {
        return None;
    }
    Some(Sample {
        origin: Origin::Recorded,
        status: answer.status,
        media_type: answer.headers.get("content-type")?.clone(),
        body: String::from_utf8(answer.body.into()).ok()?,
    })
}

fn name(api: &ApiDescription, index: usize) -> Option<String> {
    let operation = api.operations.get(index)?;
    Some(format!("{} {}", operation.method, operation.path))
}

/// As many samples as fit.
fn document(samples: impl Iterator<Item = OperationSample>) -> Option<Vec<u8>> {
    // Brackets and commas included.
    let mut bytes = 2;
    let mut kept = Vec::new();
    for sample in samples {
        let size = serde_json::to_vec(&sample).map_or(usize::MAX, |json| json.len() + 1);
        if bytes + size <= SAMPLES_BYTES_MAX {
            bytes += size;
            kept.push(sample);
        }
    }
    if kept.is_empty() { None } else { serde_json::to_vec(&kept).ok() }
}

/// The document without the samples of these operations; `None` when none is left.
pub(super) fn without(document: &[u8], hidden: &[OperationName]) -> Option<Vec<u8>> {
    if document.is_empty() || hidden.is_empty() {
        return Some(document.to_vec()).filter(|document| !document.is_empty());
    }
    let names: Vec<String> =
        hidden.iter().map(|hidden| format!("{} {}", hidden.method, hidden.path)).collect();
    self::document(read(document).into_iter().filter(|sample| !names.contains(&sample.operation)))
}

/// Reads a samples document; one that cannot be read has no samples.
pub fn read(document: &[u8]) -> Vec<OperationSample> {
    serde_json::from_slice(document).unwrap_or_default()
}
