//! `farthing completions` and `man`: this program, for shells and for `man`.

use clap::CommandFactory;

use super::{
    Cli, Context,
    args::Man,
    failure::{Exit, Failure},
};

pub(super) fn completions(context: &Context, shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "farthing", &mut script);
    context.output.text(&String::from_utf8_lossy(&script))
}

pub(super) fn man(context: &Context, arguments: &Man) -> Result<(), Failure> {
    let Some(folder) = &arguments.to else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        return context.output.text(&String::from_utf8_lossy(&page));
    };
    clap_mangen::generate_to(Cli::command(), folder).map_err(|error| {
        Failure::usage(format!("{} cannot be written ({error})", folder.display()))
            .next("choose an existing folder")
    })
}
