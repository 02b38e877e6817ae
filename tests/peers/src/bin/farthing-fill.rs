//! Fills a node for [`farthing_tests::full::fill`]: `farthing-fill DATA-FOLDER WALLET CALLS`.

use std::{env, path::Path};

use anyhow::{Context, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().context("a folder, a wallet and a number of calls");
    let (data_dir, wallet, calls) = (next()?, next()?, next()?);
    farthing_peers::full::fill(Path::new(&data_dir), wallet.parse()?, calls.parse()?).await
}
