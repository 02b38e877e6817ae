//! Clients of endpoints: where an endpoint may be, and by which way it is asked.
//!
//! A local chain is believed at once, so it is connected to on this machine and in private networks alone, wherever its names
//! lead. A proxy of the environment is for what is outside: none is asked for an endpoint that is near.

use std::{io, net::SocketAddr, time::Duration};

use farthing_bounds::{is_near, is_near_host};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use super::describe;
use crate::spec::ChainKind;

/// The clients of one chain's endpoints. Each is made when an endpoint first needs it, because it reads the system's certificates.
pub(super) struct Clients {
    is_local: bool,
    near: Option<reqwest::Client>,
    far: Option<reqwest::Client>,
}

impl Clients {
    pub(super) fn of(kind: ChainKind) -> Self {
        Self { is_local: kind == ChainKind::Local, near: None, far: None }
    }

    /// The client for an endpoint on this host.
    pub(super) fn of_host(&mut self, host: &Host<&str>) -> Result<reqwest::Client, String> {
        let is_near = self.is_local || is_near_host(host);
        let made = if is_near { &mut self.near } else { &mut self.far };
        if let Some(client) = made {
            return Ok(client.clone());
        }
        let mut builder = builder();
        if is_near {
            builder = builder.no_proxy();
        }
        if self.is_local {
            builder = builder.dns_resolver(NearResolver);
        }
        let client =
            builder.build().map_err(|error| format!("the HTTP client cannot start: {}", describe(&error)))?;
        Ok(made.insert(client).clone())
    }
}

fn builder() -> reqwest::ClientBuilder {
    // The process may have chosen a provider already; then that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .pool_idle_timeout(Duration::from_secs(60))
        .redirect(reqwest::redirect::Policy::none())
}

/// Resolves names to addresses of this machine and of private networks alone.
struct NearResolver;

impl Resolve for NearResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(NotNear::NotFound)?;
            Ok(Box::new(near(found)?.into_iter()) as Addrs)
        })
    }
}

/// Keeps the addresses that are near.
fn near(found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, NotNear> {
    let near: Vec<_> = found.filter(|address| is_near(address.ip())).collect();
    if near.is_empty() { Err(NotNear::Elsewhere) } else { Ok(near) }
}

/// The reason that a name has no address to connect to.
#[derive(Debug, thiserror::Error)]
enum NotNear {
    #[error("its name is not found: {0}")]
    NotFound(io::Error),
    #[error(
        "its name leads outside of this machine and its private networks, where a local chain lies; correct \
         chain.rpc_urls, or set chain.preset to custom"
    )]
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_local_chain_leads_nowhere_but_to_this_machine_and_private_networks() {
        let resolved = |addresses: &[&str]| {
            let found = addresses.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0));
            near(found).map(|near| near.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        for own in ["127.0.0.1", "172.18.0.2", "10.0.0.7", "::1", "fd12::1"] {
            assert_eq!(resolved(&[own]).unwrap(), [own]);
        }
        assert_eq!(resolved(&["9.9.9.9", "10.0.0.7", "2620:fe::fe"]).unwrap(), ["10.0.0.7"]);
        for far in [&["9.9.9.9"][..], &["9.9.9.9", "2620:fe::fe"], &["::ffff:9.9.9.9"], &[]] {
            assert!(matches!(resolved(far), Err(NotNear::Elsewhere)), "{far:?}");
        }
    }
}
