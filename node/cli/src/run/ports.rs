//! The servers behind the ports: gateway, console, x402 clients and control socket, with their TLS and their limits.

use std::path::PathBuf;

use axum::Router;
use farthing_commands::{self as commands, settings::RunningNode};
use farthing_config::{Config, TlsMode, gateway_url};
use farthing_console::{Access, ConsoleState, Parts, socket::About};
use farthing_control::Local;
use farthing_gateway::{Gateway, problem::turned_away, x402};
use farthing_node::handles::Handles;
use farthing_serve::{
    Hosts, Limits, Port, Tls, finished, guarded,
    tls::{self, ServerTls, TlsError},
};
use tokio_util::sync::CancellationToken;

use super::agents;
use crate::failure::{Exit, Failure};

/// A console is used by a person with a few browsers.
const PANEL_CONNECTIONS_MAX: usize = 64;
const PANEL_CONNECTIONS_PER_IP_MAX: usize = 32;
/// Clients of strangers wait here for blocks of the chain.
const X402_CONNECTIONS_MAX: usize = 256;
const X402_CONNECTIONS_PER_IP_MAX: usize = 64;

/// The ports, ready to serve.
pub(super) struct Ports {
    pub(super) gateway: Port,
    /// The same for programs of this machine, without TLS.
    pub(super) plain: Port,
    pub(super) panel: Port,
    /// For x402 clients.
    pub(super) x402: Port,
    /// Of the control socket.
    pub(super) routes: Router,
    pub(super) console: About,
    pub(super) ca_file: Option<PathBuf>,
}

impl Ports {
    /// # Errors
    /// A certificate, or the console's access, that cannot be used.
    pub(super) async fn new(
        config: &Config,
        running: RunningNode,
        stopping: CancellationToken,
    ) -> Result<Self, Failure> {
        let own = config.clone();
        // Reads files, makes keys and hashes a password.
        let credentials = tokio::task::spawn_blocking(move || Credentials::open(&own)).await;
        let credentials = credentials.map_err(|error| Failure::new(Exit::Failure, error))??;
        let console = credentials.about(config);
        let node = running.node.clone();
        let commands = finished(commands::router(node.clone()).merge(commands::settings::router(running)));
        let panel = ConsoleState::new(Parts {
            access: credentials.access.clone(),
            node: Local::new(commands.clone()),
            hosts: config.panel.hosts.clone(),
            name: credentials.name(config),
            tls: config.panel.tls,
            ca_pem: credentials.ca_pem.clone(),
            stopping,
        });
        let (gateway, plain) = gateway_ports(config, &node, &commands, &credentials);
        let panel = Port {
            router: farthing_console::router(panel),
            tls: credentials.port_tls(config.panel.tls),
            trusted_proxies: config.panel.trusted_proxies.clone(),
            budget: gateway.budget.clone(),
            wording: turned_away,
            limits: Limits {
                connections_max: PANEL_CONNECTIONS_MAX,
                connections_per_ip_max: PANEL_CONNECTIONS_PER_IP_MAX,
                ..Limits::default()
            },
        };
        let x402 = Port {
            router: x402::router(x402::Door::of(&node)),
            tls: credentials.port_tls(config.x402.tls),
            trusted_proxies: config.x402.trusted_proxies.clone(),
            // A quarter: strangers leave the rest to this node's own calls, and to those of the network.
            budget: node.budget.part(node.budget.bytes_max() / 4),
            wording: turned_away,
            limits: Limits {
                connections_max: X402_CONNECTIONS_MAX,
                connections_per_ip_max: X402_CONNECTIONS_PER_IP_MAX,
                ..Limits::default()
            },
        };
        Ok(Self {
            gateway,
            plain,
            panel,
            x402,
            routes: commands.merge(farthing_console::socket::router(console.clone())),
            console,
            ca_file: credentials.tls.and_then(|tls| tls.ca_file),
        })
    }
}

/// The port of calls, and the same for programs of this machine, without TLS.
fn gateway_ports(
    config: &Config,
    node: &Handles,
    commands: &Router,
    credentials: &Credentials,
) -> (Port, Port) {
    let calls = Gateway::of(node);
    let plain_url = config.gateway.plain.map(|address| gateway_url(address, false));
    let plain_calls = Gateway {
        url: plain_url.unwrap_or_else(|| "http://localhost".to_owned()),
        is_behind_proxy: false,
        ..calls.clone()
    };
    // One for both ports: a question that was asked at one is answered at either.
    let agents = agents::routes(calls.clone(), commands.clone());
    let guarded_calls = |calls| {
        let routes = farthing_gateway::router(calls).merge(agents.clone());
        guarded(routes, Hosts::new(&config.gateway.hosts), turned_away)
    };
    let gateway = Port {
        router: guarded_calls(calls),
        tls: credentials.port_tls(config.gateway.tls),
        trusted_proxies: config.gateway.trusted_proxies.clone(),
        // Half: what local programs send leaves the rest to the calls of others.
        budget: node.budget.part(node.budget.bytes_max() / 2),
        wording: turned_away,
        limits: Limits {
            connections_max: config.gateway.connections_max,
            connections_per_ip_max: config.gateway.connections_per_ip_max,
            ..Limits::default()
        },
    };
    let plain = Port {
        router: guarded_calls(plain_calls),
        tls: None,
        trusted_proxies: Vec::new(),
        ..gateway.clone()
    };
    (gateway, plain)
}

/// The parts of the data folder that the ports need.
struct Credentials {
    access: Access,
    tls: Option<ServerTls>,
    ca_pem: Option<String>,
}

impl Credentials {
    fn open(config: &Config) -> Result<Self, Failure> {
        let access = Access::open(&config.node.data_dir, config.panel.password.as_ref())
            .map_err(|error| Failure::new(Exit::Failure, &error).next(error.next_step()))?;
        let tls = server_tls(config)?;
        let ca_file = tls.as_ref().and_then(|tls| tls.ca_file.as_ref());
        let ca_pem = ca_file.and_then(|file| std::fs::read_to_string(file).ok());
        Ok(Self { access, tls, ca_pem })
    }

    fn port_tls(&self, wanted: bool) -> Option<Tls> {
        let tls = self.tls.as_ref().filter(|_| wanted)?;
        Some(Tls { config: tls.config.clone(), ca_file: tls.ca_file.clone() })
    }

    /// The console's own name, below localhost.
    fn name(&self, config: &Config) -> Option<String> {
        self.tls.as_ref().filter(|_| config.panel.tls).and_then(|tls| tls.own_name.clone())
    }

    fn about(&self, config: &Config) -> About {
        let url = gateway_url(config.panel.listen, config.panel.tls);
        let name = self.name(config).filter(|_| url.contains("//localhost:"));
        About {
            access: self.access.clone(),
            led_to: name.map(|name| format!("{}/panel", url.replacen("localhost", &name, 1))),
            url: format!("{url}/panel"),
            ca_fingerprint: self.tls.as_ref().and_then(|tls| tls.ca_fingerprint.clone()),
        }
    }
}

/// One certificate serves both ports: it holds the names of both.
fn server_tls(config: &Config) -> Result<Option<ServerTls>, TlsError> {
    match &config.gateway.tls_mode() {
        TlsMode::Files { cert_file, key_file } => tls::from_files(cert_file, key_file).map(Some),
        TlsMode::Off if !config.panel.tls && !config.x402.tls => Ok(None),
        TlsMode::Off | TlsMode::OwnAuthority => tls::own(&config.node.data_dir, &config.hosts()).map(Some),
    }
}
