//! Questions that `farthing init` asks a person, each with what most people answer.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use farthing_config::keys::CHAIN_PRESETS;
use farthing_protocol::Address;

use crate::failure::Failure;

/// A way to ask: a question, and the answer that an empty line stands for.
pub(super) type Ask<'a> = dyn FnMut(&str, &str) -> Result<String, Failure> + 'a;

const LOCAL_RPC_URL: &str = "http://127.0.0.1:8545";

/// Chains in the order in which a newcomer should think of them. Others are chosen by their names.
const CHAINS: [(&str, &str); 3] = [
    ("base-sepolia", "test money: try everything for free"),
    ("base", "real money; Farthing has not been audited"),
    ("local", "a chain of your own"),
];

/// Asks for the folder of a node; `None` for the usual one.
pub(super) fn folder(ask: &mut Ask<'_>, usual: &Path) -> Result<Option<PathBuf>, Failure> {
    let answer = PathBuf::from(ask("Folder for the node and its wallet", &usual.display().to_string())?);
    // No shell has read this.
    let folder = match (answer.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(inside), Some(home)) => PathBuf::from(home).join(inside),
        _ => answer.clone(),
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    Ok(Some(folder).filter(|folder| folder != usual))
}

/// Asks for the chain until one is named.
pub(super) fn chain(ask: &mut Ask<'_>) -> Result<String, Failure> {
    let mut question = "Chain that settles calls:\n".to_owned();
    for (number, (name, about)) in (1..).zip(CHAINS) {
        question += &format!("  {number}  {name:12}  {about}\n");
    }
    question += "Number or name";
    let names = CHAIN_PRESETS.join(", ");
    let mut asked = question.clone();
    loop {
        let answer = ask(&asked, "1")?;
        let by_number = (1..).zip(CHAINS).find(|(number, _)| number.to_string() == answer);
        let by_name = CHAIN_PRESETS.iter().copied().find(|name| *name == answer);
        if let Some(chain) = by_number.map(|(_, (name, _))| name).or(by_name) {
            return Ok(chain.to_owned());
        }
        asked = again(&question, &answer, &format!("neither a number from the list nor a chain ({names})"));
    }
}

/// The settings that a chain of one's own needs and has not. Where nobody can be asked, the endpoint is the usual one.
pub(super) fn local_chain(
    mut ask: Option<&mut Ask<'_>>,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut settings = Vec::new();
    if !is_chosen("chain.rpc_urls") {
        let url = match ask.as_deref_mut() {
            Some(ask) => ask("Address of the chain", LOCAL_RPC_URL)?,
            None => LOCAL_RPC_URL.to_owned(),
        };
        settings.push(("chain.rpc_urls", url));
    }
    if let Some(ask) = ask
        && !is_chosen("chain.token")
    {
        const QUESTION: &str = "Address of the chain's USDC contract (0x…)";
        let mut asked = QUESTION.to_owned();
        let token = loop {
            let answer = ask(&asked, "")?;
            if answer.parse::<Address>().is_ok() {
                break answer;
            }
            asked = again(QUESTION, &answer, "not an address: an address is 0x and 40 hexadecimal digits");
        };
        settings.push(("chain.token", token));
    }
    Ok(settings)
}

/// Asks for the address to listen on until it is one.
pub(super) fn listen(ask: &mut Ask<'_>) -> Result<IpAddr, Failure> {
    const QUESTION: &str = "Who can reach the gateway (3000) and the console (3002)?\n  1  only programs on this \
                            machine\n  2  everybody on its networks\nNumber, or an IP address of this machine";
    let mut asked = QUESTION.to_owned();
    loop {
        let answer = ask(&asked, "1")?;
        let ip = match answer.as_str() {
            "1" => Some(Ipv4Addr::LOCALHOST.into()),
            "2" => Some(Ipv4Addr::UNSPECIFIED.into()),
            other => other.parse().ok(),
        };
        if let Some(ip) = ip {
            return Ok(ip);
        }
        asked = again(QUESTION, &answer, "neither 1 nor 2 nor an IP address, such as 192.168.1.4");
    }
}

/// A question once more, after the reason that its answer was not taken.
fn again(question: &str, answer: &str, is: &str) -> String {
    let answer = if answer.is_empty() { "An empty line".to_owned() } else { format!("`{answer}`") };
    format!("{answer} is {is}.\n{question}")
}
