//! `farthing chain` and `farthing restart`: how the chain is reached, and starting with it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use farthing_control::{
    endpoint,
    types::{ChainSettings, ChainSettingsRequest},
};

use super::{Context, failure::Failure, input, output::pairs};

#[derive(Debug, Subcommand)]
pub enum Chain {
    /// Show the endpoints (hosts only) and the number of confirmations for a deposit
    Show,
    /// Change endpoints or confirmations; tests every endpoint first. Takes effect at the next start
    Set(NewChain),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct NewChain {
    /// File with endpoint addresses, one per line in order of preference; - for standard input. Addresses may contain
    /// access keys, so they are not given on the command line
    #[arg(long, value_name = "FILE")]
    pub rpc_urls_file: Option<PathBuf>,
    /// Number of blocks until a deposit counts
    #[arg(long, value_name = "BLOCKS")]
    pub confirmations: Option<u64>,
    /// Go back to the configured values first
    #[arg(long)]
    pub reset: bool,
    /// Restart the node now
    #[arg(long)]
    pub restart: bool,
}

/// Sixteen addresses, not a document.
const URLS_BYTES_MAX: u64 = 64 * 1024;

pub(super) async fn chain(context: &Context, verb: Chain) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        Chain::Show => {
            let settings = node.ask(endpoint::ChainSettings).await?;
            context.output.data(&settings, text)
        }
        Chain::Set(new) => {
            let saved = node.tell(endpoint::SetChainSettings, &request(&new)?).await?;
            for tested in &saved.tested {
                let mark = if tested.good { "  " } else { "! " };
                context.output.prose(&format!("{mark}{} {}", tested.endpoint, tested.detail));
            }
            context.output.data(&saved, |saved| text(&saved.settings))?;
            if new.restart {
                return restart(context).await;
            }
            if !saved.settings.in_force {
                context.output.prose("This takes effect at the next start: `farthing restart`.");
            }
            Ok(())
        }
    }
}

pub(super) async fn restart(context: &Context) -> Result<(), Failure> {
    context.node()?.ask(endpoint::Restart).await?;
    context.output.prose("The node restarts when its running calls have ended.");
    Ok(())
}

fn request(new: &NewChain) -> Result<ChainSettingsRequest, Failure> {
    let rpc_urls = new.rpc_urls_file.as_deref().map(read).transpose()?;
    Ok(ChainSettingsRequest { rpc_urls, confirmations: new.confirmations, reset: new.reset })
}

fn read(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::text(path, URLS_BYTES_MAX)?;
    Ok(text.split_whitespace().map(ToOwned::to_owned).collect())
}

fn text(settings: &ChainSettings) -> String {
    pairs([
        ("Preset", settings.preset.clone()),
        ("Endpoints", format!("{} ({})", settings.endpoints.join(" "), settings.endpoints_from)),
        ("Confirmations", format!("{} ({})", settings.confirmations, settings.confirmations_from)),
        ("In force", if settings.in_force { "yes".into() } else { "after the next start".into() }),
    ])
}
