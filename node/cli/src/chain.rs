//! `farthing chain` and `farthing restart`: how the chain is reached, and starting with it.

use std::path::Path;

use farthing_control::{
    endpoint,
    types::{ChainSettings, ChainSettingsRequest},
};

use super::{
    Context,
    args::{Chain, NewChain},
    failure::Failure,
    input,
    output::pairs,
};

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
                context.output.prose("It holds from the next start on: `farthing restart`.");
            }
            Ok(())
        }
    }
}

pub(super) async fn restart(context: &Context) -> Result<(), Failure> {
    context.node()?.ask(endpoint::Restart).await?;
    context.output.prose("The node restarts; running calls end first.");
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
        ("In force", if settings.in_force { "yes".into() } else { "from the next start on".into() }),
    ])
}
