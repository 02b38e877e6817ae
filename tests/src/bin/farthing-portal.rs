//! The inner end of a portal (`tests/src/portal.rs`): `farthing-portal 127.0.0.1:8080 /path/of/socket`.

use anyhow::{Context, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().context("the address to listen on is missing")?.parse()?;
    let socket = arguments.next().context("the socket's path is missing")?.into();
    farthing_tests::portal::pass_out(listen, socket).await
}
