//! `farthing config`: what holds, where it comes from, and what is wrong with it.

use super::{Context, args, failure::Failure, output::table};
use crate::config::{Shown, example, load};

pub(super) fn config(context: &Context, verb: &args::Config) -> Result<(), Failure> {
    match verb {
        args::Config::Example => context.output.text(&example()),
        args::Config::Check => {
            load(&context.sources())?;
            context.output.prose("The configuration is right.");
            Ok(())
        }
        args::Config::Show { origin } => {
            let shown = load(&context.sources())?.shown();
            context.output.data(&shown, |shown| text(shown, *origin))
        }
    }
}

fn text(shown: &[Shown], origin: bool) -> String {
    if origin {
        let rows =
            shown.iter().map(|shown| [shown.name.to_owned(), shown.value.clone(), shown.origin.clone()]);
        return table(["SETTING", "VALUE", "ORIGIN"], rows);
    }
    table(["SETTING", "VALUE"], shown.iter().map(|shown| [shown.name.to_owned(), shown.value.clone()]))
}
