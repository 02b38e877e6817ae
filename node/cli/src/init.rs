//! `farthing init`: what the first start makes, without running.

use farthing_node::{config, home::Home};
use farthing_serve::tls;
use serde::Serialize;

use super::{Context, failure::Failure, on_the_side, output::pairs};

#[derive(Serialize)]
struct Made {
    address: String,
    data_dir: String,
    created: bool,
    ca_file: Option<String>,
}

pub(super) async fn init(context: &Context) -> Result<(), Failure> {
    let config = config::load(&context.sources())?.config;
    // The protection of a wallet with a passphrase of its own takes a second of one core.
    let made = on_the_side(move || make(&config)).await?;
    context.output.data(&made, |made| {
        pairs([
            ("Wallet", made.address.clone()),
            ("Folder", made.data_dir.clone()),
            ("Trust", made.ca_file.clone().unwrap_or_else(|| "own certificate, or none".into())),
        ])
    })?;
    let next = if made.created { "Made." } else { "All of it was there already." };
    context.output.prose(&format!("{next} Start the node with `farthing run --data {}`.", made.data_dir));
    Ok(())
}

fn make(config: &config::Config) -> anyhow::Result<Made> {
    let data_dir = &config.node.data_dir;
    let opened = Home::open(config)?.opened;
    let ca_file = match config.gateway.tls_mode() {
        config::TlsMode::OwnAuthority => tls::own(data_dir, &config.hosts())?.ca_file,
        _ => None,
    };
    Ok(Made {
        address: opened.wallet.address().to_string(),
        data_dir: data_dir.display().to_string(),
        created: opened.created,
        ca_file: ca_file.map(|path| path.display().to_string()),
    })
}
