//! Fills a node for [`farthing_tests::full::fill`]: `farthing-fill DATA-FOLDER WALLET`.

use std::{env, path::Path};

use anyhow::{Context, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let (data_dir, wallet) = arguments.next().zip(arguments.next()).context("a folder and a wallet")?;
    farthing_peers::full::fill(Path::new(&data_dir), wallet.parse()?).await
}
