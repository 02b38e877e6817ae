//! `farthing console`: where the console is, and a way back in.

use super::{Context, args, failure::Failure, output::pairs};
use farthing_control::{endpoint, types::Console};

pub(super) async fn console(context: &Context, verb: &args::Console) -> Result<(), Failure> {
    let node = context.node()?;
    let shown: Console = match verb {
        args::Console::Url => node.ask(endpoint::ShowConsole).await?,
        args::Console::ResetPassword { yes } => {
            if !*yes {
                context.output.confirm("Forget the console's password and log everybody out?")?;
            }
            let reset = node.ask(endpoint::ResetConsole).await?;
            context.output.prose("The password is forgotten and everybody is logged out.");
            reset
        }
    };
    context.output.data(&shown, text)
}

fn text(console: &Console) -> String {
    let setup_code = console.setup_code.as_deref().unwrap_or("used; log in with the password");
    let fingerprint = console.ca_fingerprint.as_deref().unwrap_or("of a certificate from elsewhere");
    pairs([
        ("Console", console.url.clone()),
        ("Setup code", setup_code.to_owned()),
        ("SHA-256", fingerprint.to_owned()),
    ])
}
