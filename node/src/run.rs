//! `farthing run`: the ports around a [`Node`], from the first bind to the last drained request.

use std::{net::SocketAddr, path::Path};

use anyhow::Context;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, TlsMode},
    control, gateway,
    node::{Node, gateway_url},
    serve::{Hosts, Limits, Port, Tls, guarded},
    tls,
};

/// Runs the node until SIGTERM or SIGINT, then drains: running calls end, what they promised is stored.
///
/// # Errors
/// What is missing or broken, with what to do.
pub async fn run(mut config: Config) -> anyhow::Result<()> {
    tls::install_provider();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;

    // Bound before anything else is touched, so that a second node fails at once and changes nothing.
    let listener = bind(config.gateway.listen).await?;
    config.gateway.listen = listener.local_addr()?;
    let data_dir = config.node.data_dir.clone();
    let tls_mode = config.gateway.tls.clone();
    let hosts = config.gateway.hosts.clone();
    let port_limits = Limits {
        connections_max: config.gateway.connections_max,
        connections_per_ip_max: config.gateway.connections_per_ip_max,
        ..Limits::default()
    };
    let trusted_proxies = config.gateway.trusted_proxies.clone();

    let node = Node::start(config).await?;
    let tls = server_tls(&tls_mode, &data_dir, &hosts)?;
    let url = gateway_url(listener.local_addr()?, tls.is_some());
    tracing::info!(wallet = %node.wallet, gateway = %url, network = %node.network_name, "the node is up");

    let stop = CancellationToken::new();
    let port = Port {
        router: guarded(gateway::router(node.gateway()), Hosts::new(&hosts)),
        tls,
        trusted_proxies,
        limits: port_limits,
    };
    let gateway_task = tokio::spawn(port.serve(listener, stop.clone()));
    let control_task = tokio::spawn({
        let (router, data_dir, stop) = (control::routes::router(node.clone()), data_dir.clone(), stop.clone());
        async move { control::serve(&data_dir, router, stop).await }
    });

    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: draining"),
        _ = interrupt.recv() => tracing::info!("interrupted: draining"),
    }
    stop.cancel();
    gateway_task.await.context("the gateway ended badly")?;
    node.shutdown().await;
    control_task.await.context("the control socket ended badly")??;
    tracing::info!("stopped");
    Ok(())
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("port {} of {} cannot be used for the gateway; choose another one with gateway.listen", address.port(), address.ip())
    })
}

fn server_tls(mode: &TlsMode, data_dir: &Path, hosts: &[String]) -> anyhow::Result<Option<Tls>> {
    let made = match mode {
        TlsMode::OwnAuthority => tls::own(data_dir, hosts)?,
        TlsMode::Files { cert_file, key_file } => tls::from_files(cert_file, key_file)?,
        TlsMode::Off => return Ok(None),
    };
    Ok(Some(Tls { config: made.config, ca_file: made.ca_file }))
}
