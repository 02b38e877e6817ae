//! The size of a picture: `curl --form image=@photo.png localhost:4003/size`.

use std::net::SocketAddr;

use clap::Parser;
use farthing_demo_services::{image_size, serve};

/// Answers an image with its width and height. Its API description is at /openapi.json.
#[derive(Debug, Parser)]
#[command(name = "image-size", version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one. The address is printed on standard output
    #[arg(long, default_value = "127.0.0.1:4003", value_name = "ADDRESS")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    serve::log_to_stderr();
    serve::run(arguments.listen, image_size::router()).await
}
