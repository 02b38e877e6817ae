//! Probes an endpoint before it is put into the settings.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    reader::Reader,
    rpc::{Purpose, Rpc, RpcError},
    spec::ChainSpec,
};

/// The answer of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointProbe {
    /// Host and port: the address itself may hold an access key.
    pub endpoint: String,
    /// It answers, and for another chain.
    pub wrong_chain: bool,
    /// The state that it serves, or the reason that it cannot be used.
    pub outcome: Result<EndpointHead, String>,
}

/// An endpoint of the right chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointHead {
    /// Number of the newest block.
    pub head: u64,
    /// The time at which that block was made, in seconds since the Unix epoch.
    pub head_secs: u64,
    /// From the question to the answer.
    pub took: Duration,
}

/// Asks each endpoint of `spec` by itself for its chain and its newest block, all at once.
pub async fn probe(spec: &ChainSpec) -> Vec<EndpointProbe> {
    let each = spec.rpc_urls.iter().map(|url| one(ChainSpec { rpc_urls: vec![url.clone()], ..spec.clone() }));
    futures::future::join_all(each).await
}

async fn one(spec: ChainSpec) -> EndpointProbe {
    let rpc = match Rpc::new(&spec) {
        Ok(rpc) => rpc,
        Err(reason) => {
            return EndpointProbe {
                endpoint: "an address".to_owned(),
                wrong_chain: false,
                outcome: Err(reason),
            };
        }
    };
    let endpoint = rpc.shown().to_owned();
    let reader = Reader { rpc: rpc.into(), spec: spec.into(), purpose: Purpose::OnDemand };
    let began = Instant::now();
    let answer = reader.head().await;
    let wrong_chain = matches!(answer, Err(RpcError::WrongChain(_)));
    let outcome = match answer {
        Ok(head) => {
            Ok(EndpointHead { head: head.number(), head_secs: head.timestamp_secs(), took: began.elapsed() })
        }
        Err(error) => {
            let reason = error.to_string();
            Err(reason.strip_prefix(&format!("{endpoint} ")).unwrap_or(&reason).to_owned())
        }
    };
    EndpointProbe { endpoint, wrong_chain, outcome }
}
