//! Rules of the chain's settings. Which chain is named decides how far its endpoints are believed, and whether its money counts
//! as real: on `local` what they show counts at once, because nobody lies on a chain of one's own, so neither a public chain nor
//! a stranger's endpoint passes for one, and no main network for a test network.

use farthing_bounds::is_near_host;
use url::Url;

use super::settings::ChainConfig;

/// A chain that everybody can reach.
#[derive(Debug)]
struct PublicChain {
    name: &'static str,
    /// EIP-155.
    id: u64,
    is_testnet: bool,
}

/// The public chains, each a line of their list.
fn public_chains() -> impl Iterator<Item = PublicChain> {
    include_str!("chain/public.txt").lines().filter_map(public_chain)
}

/// The chain of a line; `None` for a comment.
fn public_chain(line: &'static str) -> Option<PublicChain> {
    let mut words = line.split_whitespace();
    let id = words.next()?.parse().ok()?;
    let is_testnet = words.next()? == "testnet";
    Some(PublicChain { name: words.next()?, id, is_testnet })
}

/// Returns the public chain that has a number.
fn public_chain_of(id: u64) -> Option<PublicChain> {
    public_chains().find(|public| public.id == id)
}

/// A setting that has to be mended, and the reason.
type Wrong = (&'static str, String);

/// Returns the number of a public chain by its name; `None` for `local` and `custom`.
pub fn public_chain_id(name: &str) -> Option<u64> {
    public_chains().find(|public| public.name == name).map(|public| public.id)
}

/// Lists what is wrong with the chain's settings.
pub(super) fn problems(chain: &ChainConfig) -> Vec<Wrong> {
    let wrong = match chain.preset.as_str() {
        "custom" => vec![
            missing(chain.rpc_urls.is_empty(), "chain.rpc_urls", "must be set for a custom chain"),
            missing(chain.chain_id.is_none(), "chain.chain_id", "must be set for a custom chain"),
            no_token(chain),
            real_money(chain),
        ],
        "local" => vec![
            missing(
                chain.rpc_urls.is_empty(),
                "chain.rpc_urls",
                "must be set for a local chain, for instance http://127.0.0.1:8545",
            ),
            no_token(chain),
            endpoint_elsewhere(chain),
            public_number(chain),
            needless_kind(chain),
        ],
        _ => vec![other_number(chain), needless_kind(chain)],
    };
    wrong.into_iter().flatten().collect()
}

fn missing(is_missing: bool, name: &'static str, what: &str) -> Option<Wrong> {
    is_missing.then(|| (name, what.to_owned()))
}

fn no_token(chain: &ChainConfig) -> Option<Wrong> {
    let what = "must be set for a local or custom chain: the address of its USDC contract";
    missing(chain.token.is_none(), "chain.token", what)
}

/// An endpoint of a local chain that strangers may run.
fn endpoint_elsewhere(chain: &ChainConfig) -> Option<Wrong> {
    let host = chain.rpc_urls.iter().find_map(|url| host_elsewhere(url))?;
    let what = format!(
        "{host} may be somewhere else, but a local chain must be on this machine or in a private network: use an \
         address such as 127.0.0.1 or 10.0.0.7, or a name without dots; for another chain set chain.preset to its name \
         or to custom, and chain.kind to testnet if its money is worth nothing"
    );
    Some(("chain.rpc_urls", what))
}

/// The host of an endpoint that may be neither on this machine nor in a private network, as names with dots may. One without
/// dots may lead elsewhere as well: no such address is connected to.
fn host_elsewhere(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host()?;
    (!is_near_host(&host)).then(|| host.to_string())
}

/// A local chain with the number of a public one.
fn public_number(chain: &ChainConfig) -> Option<Wrong> {
    let PublicChain { name, id: given, .. } = public_chain_of(chain.chain_id?)?;
    let what = format!(
        "{given} is the public chain {name}, but a local chain is your own: set chain.preset to its name, or to custom \
         if it has none, or give your chain another id"
    );
    Some(("chain.chain_id", what))
}

/// A custom chain whose money is said to be worth nothing, with the number of a main network.
fn real_money(chain: &ChainConfig) -> Option<Wrong> {
    let is_called_testnet = chain.kind.as_deref() == Some("testnet");
    let public = public_chain_of(chain.chain_id?).filter(|public| is_called_testnet && !public.is_testnet)?;
    let what = format!(
        "is testnet, but chain.chain_id {} is the main network {}, whose money is real: remove chain.kind, or correct \
         chain.chain_id",
        public.id, public.name
    );
    Some(("chain.kind", what))
}

/// A preset with the number of another chain.
fn other_number(chain: &ChainConfig) -> Option<Wrong> {
    let (given, preset) = (chain.chain_id?, &chain.preset);
    let id = public_chain_id(preset).filter(|id| *id != given)?;
    let what =
        format!("{given} is another chain than {preset}, which is {id}: remove it, or change chain.preset");
    Some(("chain.chain_id", what))
}

/// A kind beside a name that says it.
fn needless_kind(chain: &ChainConfig) -> Option<Wrong> {
    chain.kind.as_ref()?;
    let what = format!("is for a custom chain only, but chain.preset is {}: remove it", chain.preset);
    Some(("chain.kind", what))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_endpoint_that_is_not_near_is_named_by_its_host_alone() {
        for (far, host) in [
            ("https://me:pw@rpc.example/v2/very-secret", "rpc.example"),
            ("http://chain.local:8545", "chain.local"),
            ("http://host.docker.internal:8545", "host.docker.internal"),
            ("http://134744072", "8.8.8.8"),
            ("http://[2606:4700::1111]", "[2606:4700::1111]"),
        ] {
            assert_eq!(host_elsewhere(far).as_deref(), Some(host), "{far}");
        }
        for near in [
            "http://localhost:8545",
            "http://localhost.:8545",
            "http://anvil.localhost:8545",
            "https://192.168.1.4/key",
            "http://[::1]:8545",
            "http://0.0.0.0:8545",
            "http://[::]:8545",
            "http://chain:8545",
        ] {
            assert_eq!(host_elsewhere(near), None, "{near}");
        }
    }

    #[test]
    fn the_list_of_public_chains_is_whole_and_names_each_once() {
        let lines = include_str!("chain/public.txt").lines().filter(|line| !line.starts_with('#'));
        for line in lines.clone() {
            let words: Vec<_> = line.split_whitespace().collect();
            let &[id, kind, name] = &*words else { panic!("{line}: id, kind and name") };
            let public = public_chain(line).unwrap();
            assert!(["mainnet", "testnet"].contains(&kind), "{line}");
            assert_eq!((public.id.to_string().as_str(), public.name), (id, name));
            assert_eq!(public.is_testnet, kind == "testnet");
        }
        let count = lines.count();
        let numbers: BTreeSet<_> = public_chains().map(|public| public.id).collect();
        let names: BTreeSet<_> = public_chains().map(|public| public.name).collect();
        assert_eq!((numbers.len(), names.len()), (count, count));
        assert!(public_chains().filter(|public| !public.is_testnet).count() > 40);
        assert!(!numbers.contains(&1_337) && !numbers.contains(&31_337), "development chains are one's own");
    }
}
