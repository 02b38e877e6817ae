//! The program `farthing`: arguments, log, run, exit code.

use std::{ffi::OsStr, io::IsTerminal, process::ExitCode};

use farthing::{self, Cli, Command, LogFormat};
use farthing_os::process;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = farthing::parse();
    let json = cli.global.json;
    start_log(&cli);
    process::keep_memory_private();
    process::allow_open_files();
    // Client code and manual pages are for others as well.
    if !matches!(cli.command, Command::Sdk(_) | Command::Man(_)) {
        process::keep_files_private();
    }
    quieten_openings();
    farthing_serve::tls::install_provider();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("farthing: no threads could be started ({error}); free some memory and try again");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(farthing::execute(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            failure.exit.into()
        }
    }
}

/// Libraries' own words are for their programmers: what matters of them this program says in its own. Strangers can cause
/// warnings for every message that they send and, of streams within a connection, errors for every connection: a log that
/// lets them through can be filled by anybody.
const DEFAULT_LOG: &str = "error,farthing=info,yamux=off";

/// Log on standard error, filtered by `FARTHING_LOG`; commands other than `run` tell only what went wrong, and with
/// `--json` as their error alone.
fn start_log(cli: &Cli) {
    let default = match cli.command {
        Command::Run => DEFAULT_LOG,
        _ if cli.global.json => "off",
        _ => "warn",
    };
    let filter = EnvFilter::try_from_env("FARTHING_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written, say on a full disk, must not end the task that wrote to it.
        .log_internal_errors(false)
        .with_ansi(is_coloured(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref()));
    match cli.global.log_format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Tells whether the log has colours: on a terminal whose user has not said otherwise (no-color.org).
fn is_coloured(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Files that can be made anew are opened on threads called `opening`. Reading one that was tampered with may panic
/// within a library; whoever opens it catches that and says in the log what was done, so that the panic itself tells
/// nobody anything.
fn quieten_openings() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some("opening") {
            print(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_colours_on_a_terminal_unless_they_are_refused() {
        for (is_terminal, no_color, coloured) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (true, Some("0"), false),
            (false, None, false),
        ] {
            assert_eq!(is_coloured(is_terminal, no_color.map(OsStr::new)), coloured, "{no_color:?}");
        }
    }
}
