//! `farthing wallet`: address, balance, sending, history.

mod history;
mod keys;

use std::path::PathBuf;

use super::{
    Context,
    failure::{Exit, Failure},
    output::pairs,
};
use clap::{Args, Subcommand};
use farthing_control::{
    ControlError, endpoint,
    types::{Eth, SendAmount, SendRequest, Sent, Text, WalletBalance},
};
use farthing_protocol::{Address, Usdc};

use self::history::History;

#[derive(Debug, Subcommand)]
pub enum Wallet {
    /// Print the address
    Address,
    /// Show USDC, ETH, and the USDC in channels
    Balance,
    /// Send USDC or ETH
    Send {
        /// Wallet to send to, 0x…
        to: Address,
        #[command(flatten)]
        amount: Amount,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// List calls bought and served, transactions and settlements, newest first
    History(History),
    /// Print the backup phrase; works without a running node
    Export {
        /// Print the encrypted wallet file (Web3 keystore v3) instead
        #[arg(long)]
        keystore: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Restore a wallet from its backup phrase into a data folder without a node
    Import {
        /// File with the words; - for standard input
        #[arg(long, value_name = "FILE")]
        phrase_file: PathBuf,
    },
    /// Show a settlement and the calls it paid for
    Settlement {
        /// Number from `history --kind settlement`
        number: u64,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Amount {
    /// Amount of USDC, such as 1.50
    #[arg(long)]
    pub usdc: Option<Usdc>,
    /// Amount of ETH, such as 0.001
    #[arg(long)]
    pub eth: Option<Eth>,
}

pub(super) async fn wallet(context: &Context, verb: Wallet) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        Wallet::Export { keystore, yes } => keys::export(context, keystore, yes).await,
        Wallet::Import { phrase_file } => keys::import(context, &phrase_file).await,
        Wallet::Address => {
            let balance = node.ask(endpoint::Wallet).await?;
            context.output.data(&balance.address, ToString::to_string)
        }
        Wallet::Balance => {
            let balance = node.ask(endpoint::Wallet).await?;
            if let Some(reason) = &balance.stale {
                context.output.prose(&format!("USDC and ETH are the last known amounts: {reason}."));
            }
            context.output.data(&balance, text)
        }
        Wallet::Send { to, amount, yes } => {
            let (amount, shown) = read_amount(&amount)?;
            if !yes {
                context.output.confirm(&format!("Send {shown} to {to}?"))?;
            }
            let sent = node.tell(endpoint::SendMoney, &SendRequest { to: to.into(), amount }).await;
            let sent: Sent = sent.map_err(unsent)?;
            context.output.data(&sent, |sent| sent.transaction.clone())
        }
        Wallet::History(arguments) => history::history(context, &node, arguments).await,
        Wallet::Settlement { number } => history::settlement(context, &node, number).await,
    }
}

/// A node that was asked and did not answer may have made the transfer, or makes it when it runs again.
fn unsent(error: ControlError) -> Failure {
    let lost = match error {
        ControlError::TimedOut(after) => format!("the node did not answer within {} s", after.as_secs()),
        ControlError::BrokenOff { .. } | ControlError::Unreadable(_) => error.to_string(),
        ControlError::NotRunning { .. } | ControlError::NotAllowed { .. } | ControlError::Refused(_) => {
            return error.into();
        }
    };
    let what = format!(
        "{lost}, so the transfer may have been made or may still be made, also after the node restarts"
    );
    Failure::new(Exit::MayHaveBeenMade, what)
        .next("check `farthing wallet history` and `farthing wallet balance` before you send again")
}

fn read_amount(amount: &Amount) -> Result<(SendAmount, String), Failure> {
    match (amount.usdc, amount.eth) {
        (Some(usdc), None) => Ok((SendAmount::Usdc(Text(usdc)), format!("{usdc} USDC"))),
        (None, Some(eth)) => Ok((SendAmount::Eth(Text(eth)), format!("{eth} ETH"))),
        _ => Err(Failure::usage("name one amount: --usdc or --eth")),
    }
}

fn text(balance: &WalletBalance) -> String {
    let known =
        |text: Option<String>| text.unwrap_or_else(|| "unknown; the chain has not answered yet".into());
    pairs([
        ("Address", balance.address.to_string()),
        ("USDC", known(balance.usdc.map(|usdc| usdc.to_string()))),
        ("ETH", known(balance.eth.map(|eth| eth.to_string()))),
        ("In channels", balance.in_channels.to_string()),
        ("Unclaimed", balance.unclaimed.to_string()),
    ])
}
