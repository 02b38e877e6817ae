//! Parts of a node for tests that link none: `farthing-peers fill DATA-FOLDER WALLET CALLS` for [`farthing_tests::full::fill`],
//! and `farthing-peers leaving`.

mod leaving;

use std::{env, path::Path};

use anyhow::{Result, bail};
use farthing_peers::full;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fill", data_dir, wallet, calls] => {
            full::fill(Path::new(data_dir), wallet.parse()?, calls.parse()?).await
        }
        ["leaving"] => leaving::run().await,
        _ => bail!("expected `fill DATA-FOLDER WALLET CALLS` or `leaving`"),
    }
}
