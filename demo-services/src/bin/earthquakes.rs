//! Recent earthquakes over HTTP: `GET /v1/earthquakes/recent?minmagnitude=4.5&limit=5`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use farthing_demo_services::earthquakes::{self, Feed};
use farthing_demo_services::serve;

/// Serves the U.S. Geological Survey's recent earthquakes as GeoJSON. Its API description is at /openapi.json.
#[derive(Debug, Parser)]
#[command(name = "earthquakes", version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one. The address is printed on standard output
    #[arg(long, default_value = "127.0.0.1:4001", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Follow a live feed, for example
    /// https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary/all_week.geojson; without it, or until it
    /// first answers, the embedded week of 2018 is served
    #[arg(long, value_name = "URL")]
    feed: Option<reqwest::Url>,

    /// Seconds between two looks at the feed
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    feed_interval: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    serve::log_to_stderr();
    let published = earthquakes::embedded().context("cannot read the embedded data")?;
    if let Some(url) = arguments.feed {
        let feed = Feed::new(url, Duration::from_secs(arguments.feed_interval))
            .context("cannot prepare the feed's client")?;
        tokio::spawn(feed.follow(published.clone()));
    }
    serve::run(arguments.listen, earthquakes::router(published.subscribe())).await
}
