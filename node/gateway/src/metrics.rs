//! `/metrics`: what the node counts, in the OpenMetrics text format, with the secret, or for this machine where
//! no proxy asks for others.

use std::{fmt, sync::Arc};

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use farthing_discovery::WayCounts;
use farthing_node::status::Readiness;
use farthing_serve::ClientAddress;
use farthing_shared::{blocking::run_blocking, call_ends::Half};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

use super::{Gateway, auth, problem::Problem};

mod machine;
mod money;
mod network;

/// Headers of proxies, which ask for others.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// Everything counted, with its meaning and type above it.
pub async fn show(
    State(gateway): State<Arc<Gateway>>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    secret: Result<auth::Authenticated, Problem>,
) -> Response {
    let is_passed_on = FORWARDED.iter().any(|name| headers.contains_key(*name));
    if let Err(problem) = secret.as_ref()
        && (is_passed_on || gateway.is_behind_proxy || !client.0.ip().to_canonical().is_loopback())
    {
        return problem.clone().into_response();
    }
    // The system is asked for some of it.
    let mut response = run_blocking(move || written(&gateway.readiness)).await.into_response();
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn written(node: &Readiness) -> String {
    let mut registry = Registry::default();
    node.ends.register(&mut registry);
    registry.register_collector(Box::new(Counts(node.clone())));
    let mut text = String::new();
    if let Err(error) = encode(&mut text, &registry) {
        tracing::error!(%error, "the metrics cannot be written");
    }
    text
}

fn one<N: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: N,
) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
}

/// A counter with one value. `_total` is put behind its name.
fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

/// A gauge with a value for each half of the node.
fn halves<N: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: [N; Half::ALL.len()],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (half, value) in Half::ALL.into_iter().zip(values) {
        let labels = [half.label()];
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The counts that are read from the node's parts whenever they are asked for.
#[derive(Debug)]
struct Counts(Readiness);

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (name, help, value) in self.gauges() {
            one(&mut encoder, name, help, None, value)?;
        }
        for (name, help, value) in self.counters() {
            counter(&mut encoder, name, help, value)?;
        }
        let Self(node) = self;
        if let Some(head) = *node.chain.head().borrow() {
            let (help, age) = ("Time since the chain's newest block was seen", head.seen_at.elapsed());
            one(&mut encoder, "farthing_chain_head_age", help, Some(&Unit::Seconds), age.as_secs_f64())?;
        }
        network::encode(node, &mut encoder)?;
        money::encode(node, &mut encoder)?;
        machine::encode(node, &mut encoder)
    }
}

/// Name, help and value.
type Fact = (&'static str, &'static str, u64);

impl Counts {
    fn gauges(&self) -> [Fact; 6] {
        let Self(node) = self;
        let (budget, is_ready) = (&node.budget, node.waiting_for().is_empty());
        let listings = node.catalog.counts().listings;
        [
            ("farthing_ready", "1 when the node can buy and sell", u64::from(is_ready)),
            ("farthing_catalog_listings", "Services known, of the whole network", listings as u64),
            ("farthing_services", "Services offered", node.registry.all().len() as u64),
            ("farthing_bodies_bytes", "Bodies held now, in bytes", budget.held() as u64),
            ("farthing_bodies_bytes_most", "Most bytes of bodies held at once", budget.most() as u64),
            (
                "farthing_bodies_bytes_max",
                "Bytes of bodies that may be held at once: limits.bodies_bytes_max",
                budget.bytes_max() as u64,
            ),
        ]
    }

    /// They never fall while the node runs.
    fn counters(&self) -> [Fact; 10] {
        let Self(node) = self;
        let (ledger, requests) = (node.ledger.stats(), node.chain.request_counts());
        let WayCounts { gossiped, comparisons, comparisons_fruitful, descriptions_read } =
            node.catalog.ways();
        [
            ("farthing_ledger_commits", "Durable commits", ledger.commits),
            ("farthing_ledger_operations", "Operations in those commits", ledger.operations),
            ("farthing_signatures", "Vouchers and receipts signed", node.signer.signed()),
            ("farthing_chain_requests_watch", "Chain requests in the background", requests.watch),
            ("farthing_chain_requests_write", "Chain requests of transactions", requests.write),
            ("farthing_chain_requests_on_demand", "Chain requests someone waited for", requests.on_demand),
            ("farthing_catalog_gossiped", "New listings that a neighbour sent unasked", gossiped),
            (
                "farthing_catalog_comparisons",
                "Comparisons of catalogs with neighbours that finished",
                comparisons,
            ),
            (
                "farthing_catalog_comparisons_fruitful",
                "Comparisons of catalogs that brought something new",
                comparisons_fruitful,
            ),
            (
                "farthing_descriptions_read",
                "Descriptions of services that were needed and not in memory",
                descriptions_read,
            ),
        ]
    }
}
