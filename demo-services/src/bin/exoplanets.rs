//! The confirmed planets of other stars over GraphQL: `POST /graphql` with `{"query": "{ planets { name } }"}`.

use std::net::SocketAddr;

use anyhow::Context;
use clap::Parser;
use farthing_demo_services::{exoplanets, serve};

/// Serves the NASA Exoplanet Archive's confirmed planets over GraphQL. Its schema is at /schema.graphql.
#[derive(Debug, Parser)]
#[command(name = "exoplanets", version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one. The address is printed on standard output
    #[arg(long, default_value = "127.0.0.1:4002", value_name = "ADDRESS")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    serve::log_to_stderr();
    let catalog = exoplanets::embedded().context("cannot read the embedded data")?;
    serve::run(arguments.listen, exoplanets::router(catalog)).await
}
