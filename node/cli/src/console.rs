//! `farthing console`: where the console is, and a way back in.

use super::{Context, failure::Failure, output::pairs};
use clap::Subcommand;
use farthing_control::{endpoint, types};

#[derive(Debug, Subcommand)]
pub enum Console {
    /// Print the console's address, and the setup code while it has no password
    Url,
    /// Remove the console's password and log everybody out; prints a new setup code
    ResetPassword {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn console(context: &Context, verb: &Console) -> Result<(), Failure> {
    let node = context.node()?;
    let shown: types::Console = match verb {
        Console::Url => node.ask(endpoint::ShowConsole).await?,
        Console::ResetPassword { yes } => {
            if !*yes {
                context.output.confirm("Remove the console's password and log everybody out?")?;
            }
            let reset = node.ask(endpoint::ResetConsole).await?;
            context.output.prose("The password is removed and everybody is logged out.");
            reset
        }
    };
    context.output.data(&shown, text)
}

fn text(console: &types::Console) -> String {
    let setup_code = console.setup_code.as_deref().unwrap_or("used; log in with the password");
    let fingerprint = console.ca_fingerprint.as_deref().unwrap_or("unknown; the certificate is your own");
    pairs([
        ("Console", console.url.clone()),
        ("Setup code", setup_code.to_owned()),
        ("SHA-256", fingerprint.to_owned()),
    ])
}
