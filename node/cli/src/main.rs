//! The program `farthing`: arguments, log, run, exit code.

use std::{process::ExitCode, sync::Arc};

use farthing::{Command, Log, LogFormat};
use farthing_os::process;

fn main() -> ExitCode {
    let cli = farthing::parse();
    // What the node writes to its log is then all of one form, from the first byte to the last.
    let logs_json = matches!(cli.command, Command::Run { .. }) && cli.global.log_format == LogFormat::Json;
    let json = cli.global.json || logs_json;
    let log = Arc::new(Log::start(&cli));
    process::keep_memory_private();
    process::allow_open_files();
    // Client code and manual pages are for others as well.
    if !matches!(cli.command, Command::Sdk(_) | Command::Man(_)) {
        process::keep_files_private();
    }
    tell_panics(logs_json);
    farthing_serve::tls::install_provider();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = farthing::Failure::no_threads(&error);
            failure.tell(json);
            return failure.exit.into();
        }
    };
    let done = runtime.block_on(farthing::execute(cli, Arc::clone(&log)));
    log.flush();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            failure.exit.into()
        }
    }
}

/// Files that can be made anew are opened on threads called `opening`. Reading one that was tampered with may panic
/// within a library; whoever opens it catches that and says in the log what was done, so that the panic itself tells
/// nobody anything. Every other panic is told, in the log when that is for programs.
fn tell_panics(logs_json: bool) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match std::thread::current().name() {
        Some("opening") => {}
        _ if logs_json => tracing::error!(%panic, "the program has a bug"),
        _ => print(panic),
    }));
}
