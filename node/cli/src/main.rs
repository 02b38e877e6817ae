//! The program `farthing`: arguments, log, run, exit code.

use std::process::ExitCode;

use farthing::{Command, Log};
use farthing_os::process;

fn main() -> ExitCode {
    let cli = farthing::parse();
    let json = cli.global.json;
    let log = Log::start(&cli);
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
    match runtime.block_on(farthing::execute(cli, log)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            failure.exit.into()
        }
    }
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
