//! Rules of the chain's settings. Which chain is named decides how far its endpoints are believed: on `local` what they show
//! counts at once, because nobody lies on a chain of one's own, so neither a public chain nor a stranger's endpoint passes
//! for one.

use std::net::IpAddr;

use url::{Host, Url};

use super::settings::ChainConfig;

/// Public chains and their numbers (EIP-155): the presets, and one that is well known besides.
const PUBLIC_CHAINS: &[(&str, u64)] = &[
    ("base", 8_453),
    ("base-sepolia", 84_532),
    ("arbitrum", 42_161),
    ("arbitrum-sepolia", 421_614),
    ("optimism", 10),
    ("ethereum", 1),
    ("sepolia", 11_155_111),
    ("polygon", 137),
];

/// A setting that has to be mended, and the reason.
type Wrong = (&'static str, String);

/// Returns the number of a public chain by its name; `None` for `local` and `custom`.
pub fn public_chain_id(name: &str) -> Option<u64> {
    PUBLIC_CHAINS.iter().find(|(public, _)| *public == name).map(|(_, id)| *id)
}

/// Lists what is wrong with the chain's settings.
pub(super) fn problems(chain: &ChainConfig) -> Vec<Wrong> {
    let wrong = match chain.preset.as_str() {
        "custom" => vec![
            missing(chain.rpc_urls.is_empty(), "chain.rpc_urls", "must be set for a custom chain"),
            missing(chain.chain_id.is_none(), "chain.chain_id", "must be set for a custom chain"),
            no_token(chain),
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
        "{host} is neither on this machine nor in a private network, and a local chain is: name an address such as \
         127.0.0.1 or 10.0.0.7, or a name without dots; for another chain set chain.preset to its name, or to custom"
    );
    Some(("chain.rpc_urls", what))
}

/// The host of an endpoint that is neither on this machine nor in a private network. Names without dots are those of a
/// private network, such as that of containers.
fn host_elsewhere(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host()?;
    let is_near = match host {
        Host::Domain(name) => !name.contains('.'),
        Host::Ipv4(ip) => is_private(ip.into()),
        Host::Ipv6(ip) => is_private(ip.into()),
    };
    (!is_near).then(|| host.to_string())
}

fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// A local chain with the number of a public one.
fn public_number(chain: &ChainConfig) -> Option<Wrong> {
    let given = chain.chain_id?;
    let (name, _) = PUBLIC_CHAINS.iter().find(|(_, id)| *id == given)?;
    let what = format!(
        "{given} is the public chain {name}, and a local chain is your own: set chain.preset to its name, or to custom \
         where there is none, or give your chain another id"
    );
    Some(("chain.chain_id", what))
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
    let what = format!("is for a custom chain alone, and chain.preset is {}: remove it", chain.preset);
    Some(("chain.kind", what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_near_on_this_machine_and_in_private_networks_alone() {
        for near in [
            "http://localhost:8545",
            "http://127.0.0.1:8545",
            "http://127.8.9.10",
            "http://10.0.0.7:8545",
            "http://172.16.0.1",
            "http://172.31.255.255",
            "https://192.168.1.4/key",
            "http://169.254.3.4",
            "http://[::1]:8545",
            "http://[fd12:3456::1]",
            "http://[fe80::1]",
            "http://[::ffff:10.0.0.7]",
            "http://chain:8545",
        ] {
            assert_eq!(host_elsewhere(near), None, "{near}");
        }
        for (far, host) in [
            ("https://me:pw@rpc.example/v2/very-secret", "rpc.example"),
            ("http://localhost.example", "localhost.example"),
            ("http://chain.local:8545", "chain.local"),
            ("http://8.8.8.8:8545", "8.8.8.8"),
            ("http://172.15.255.255", "172.15.255.255"),
            ("http://172.32.0.0", "172.32.0.0"),
            // A number is an address, written otherwise.
            ("http://134744072", "8.8.8.8"),
            ("http://[2606:4700::1111]", "[2606:4700::1111]"),
            ("http://[::ffff:8.8.8.8]", "[::ffff:808:808]"),
        ] {
            assert_eq!(host_elsewhere(far).as_deref(), Some(host), "{far}");
        }
    }
}
