//! The command line: `farthing <noun> <verb>`.
//!
//! Arguments are read here; each noun has a file. `run`, `init`, `config`, `tls`, `bridge`, `mcp install`, `version` and
//! `testnet` work by themselves, all others ask the running node over its control socket. Data goes to standard output,
//! prose to standard error, and every error ends with the next step.

mod alert;
mod api;
mod args;
mod backup;
mod bridge;
mod call;
mod calls;
mod catalog;
mod chain;
mod channel;
mod config;
mod console;
mod contract;
mod failure;
mod init;
mod input;
mod log;
mod logs;
mod mcp;
mod net;
mod output;
mod pick;
mod place;
mod run;
mod sdk;
mod secret;
mod shell;
mod spending;
mod status;
mod testnet;
mod tls;
mod version;
mod visible;
mod wallet;
mod x402;

use std::{ffi::OsString, sync::Arc, time::Duration};

use clap::Parser;
use farthing_control::ControlClient;

use self::output::Output;
pub use self::{
    args::{Cli, Command, Global, LogFormat},
    failure::{Exit, Failure},
    log::Log,
};

/// The flags, the output and the log that a command works with.
struct Context {
    global: Global,
    output: Output,
    log: Arc<Log>,
}

impl Context {
    fn sources(&self) -> farthing_config::Sources {
        let Global { data, config, set, .. } = &self.global;
        farthing_config::Sources::with_environment(data.clone(), config.clone(), set.clone())
    }

    /// Tells people how the node is doing; in the log when that is for programs, who read nothing else there.
    fn tell(&self, text: &str) {
        match self.global.log_format {
            LogFormat::Text => self.output.prose(text),
            LogFormat::Json => tracing::info!("{text}"),
        }
    }

    /// The running node of the data folder in use. It has read its settings: a mistake that is in a file now must not keep
    /// anybody from stopping it.
    fn node(&self) -> Result<ControlClient, Failure> {
        let folder = farthing_config::node_folder(&self.sources())?;
        let node = ControlClient::in_folder(&folder.path).started_with(&place::named_folder(&folder));
        Ok(if self.global.json { node } else { node.when_slow(SLOW_AFTER, still_waiting) })
    }
}

/// Longer than any question takes on a node that is well.
const SLOW_AFTER: Duration = Duration::from_secs(5);

fn still_waiting() {
    Output::new(false).prose("Still waiting for the node …");
}

/// Does what takes a moment, such as unlocking a wallet, where nothing waits for it.
async fn on_the_side<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Send + 'static,
    Failure: From<E>,
{
    Ok(tokio::task::spawn_blocking(work).await.map_err(anyhow::Error::from)??)
}

/// Carries out `cli`.
pub async fn execute(cli: Cli, log: Arc<Log>) -> Result<(), Failure> {
    let output = Output::new(cli.global.json);
    let context = Context { global: cli.global, output, log };
    match cli.command {
        Command::Run { new } => run::run(&context, new).await,
        Command::Init(arguments) => init::init(&context, arguments).await,
        Command::Status => status::status(&context).await,
        Command::Doctor => status::doctor(&context).await,
        Command::Logs(arguments) => logs::logs(&context, arguments).await,
        Command::Healthcheck => status::healthcheck(&context).await,
        Command::Audit { with, offline } => status::audit(&context, with, offline).await,
        Command::Call(arguments) => call::call(&context, arguments).await,
        Command::Mcp(arguments) => mcp::mcp(&context, arguments).await,
        Command::Calls(arguments) => calls::calls(&context, arguments).await,
        Command::Wallet(verb) => wallet::wallet(&context, verb).await,
        Command::Api(verb) => api::api(&context, verb).await,
        Command::Catalog(verb) => catalog::catalog(&context, verb).await,
        Command::Sdk(verb) => sdk::sdk(&context, verb).await,
        Command::Bridge(verb) => bridge::bridge(&context, verb).await,
        Command::Channel(verb) => channel::channel(&context, verb).await,
        Command::Settle { when: _ } => channel::settle(&context).await,
        Command::Alert(verb) => alert::alert(&context, verb).await,
        Command::Backup(verb) => backup::backup(&context, verb).await,
        Command::Completions { shell } => shell::completions(&context, shell),
        Command::Man(arguments) => shell::man(&context, &arguments),
        Command::Spending(verb) => spending::spending(&context, verb).await,
        Command::Secret(verb) => secret::secret(&context, verb).await,
        Command::Chain(verb) => chain::chain(&context, verb).await,
        Command::Contract(verb) => contract::contract(&context, verb).await,
        Command::Restart => chain::restart(&context).await,
        Command::Net(verb) => net::net(&context, verb).await,
        Command::Tls(verb) => tls::tls(&context, &verb),
        Command::Console(verb) => console::console(&context, &verb).await,
        Command::Config(verb) => config::config(&context, &verb),
        Command::Testnet(verb) => testnet::testnet(&context, verb).await,
        Command::X402(verb) => x402::x402(&context, verb).await,
        Command::Version => version::version(&context).await,
    }
}

/// Reads the command line; ends the process with code 2 when it cannot be understood.
pub fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        // What cannot be read has no flags yet; help and version are no errors.
        if error.use_stderr() && is_for_programs(std::env::args_os()) {
            let failure = Failure::of_command_line(&error);
            failure.tell(true);
            std::process::exit(failure.exit as i32);
        }
        error.exit()
    })
}

/// Tells whether a program reads what is written for these arguments.
fn is_for_programs(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_log = |pair: &[OsString]| pair[0] == "--log-format" && pair[1] == "json";
    arguments.iter().any(|argument| argument == "--json" || argument == "--log-format=json")
        || arguments.windows(2).any(is_log)
}

#[cfg(test)]
mod tests;
