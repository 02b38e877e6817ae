//! Clients of endpoints: where an endpoint may be, and by which way it is asked.
//!
//! A local chain is believed at once, so it is connected to on this machine and in private networks alone, wherever its names
//! lead. A proxy of the environment is for what is outside: none is asked for an endpoint that is near.

use std::{io, net::SocketAddr, time::Duration};

use farthing_bounds::{is_localhost, is_near, is_near_host};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use super::way::describe;
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
            builder = builder.no_proxy().dns_resolver(NearResolver { is_local: self.is_local });
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

/// Resolves names that look near, for a local chain to addresses of this machine and of private networks alone.
struct NearResolver {
    is_local: bool,
}

impl Resolve for NearResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_local = self.is_local;
        Box::pin(async move {
            // Many systems know this machine by this one name alone.
            let name = if is_localhost(name.as_str()) { "localhost" } else { name.as_str() };
            let found = tokio::net::lookup_host((name, 0)).await.map_err(NotNear::NotFound)?;
            let found = if is_local { near(found)? } else { found.collect() };
            Ok(Box::new(found.into_iter()) as Addrs)
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
        "its name leads outside this machine and its private networks, but a local chain must be there; correct \
         chain.rpc_urls, or set chain.preset to custom"
    )]
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        thread,
    };

    use super::*;

    #[tokio::test]
    async fn every_name_of_this_machine_is_connected_to_whether_the_system_knows_it_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut connection in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&connection).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let _ = connection.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
            }
        });
        for kind in [ChainKind::Local, ChainKind::Testnet] {
            let mut clients = Clients::of(kind);
            for host in ["localhost", "localhost.", "anvil.localhost", "deep.anvil.localhost."] {
                let client = clients.of_host(&Host::Domain(host)).unwrap();
                let answer = client.get(format!("http://{host}:{port}/")).send().await;
                assert_eq!(answer.unwrap().status(), 204, "{host}");
            }
        }
    }

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
