//! The chain that the settings name.

use anyhow::Context;
use farthing_chain::{ChainKind, ChainSpec};
use farthing_config::{ChainConfig, Config};

/// The number that development chains have unless they are told another.
const LOCAL_CHAIN_ID: u64 = 31_337;

/// The chain of the configuration: a preset, or a chain of the user's own, with the user's changes.
///
/// # Errors
/// The setting that a chain of the user's own lacks.
pub fn chain_spec(config: &Config) -> anyhow::Result<ChainSpec> {
    let chain = &config.chain;
    let mut spec = match farthing_chain::preset(&chain.preset) {
        Some(spec) => spec,
        None => own_chain(chain)?,
    };
    if !chain.rpc_urls.is_empty() {
        spec.rpc_urls.clone_from(&chain.rpc_urls);
    }
    spec.token = chain.token.unwrap_or(spec.token);
    spec.contract = chain.contract.unwrap_or(spec.contract);
    spec.confirmations = chain.confirmations.unwrap_or(spec.confirmations);
    spec.safe_tag = chain.safe_tag.unwrap_or(spec.safe_tag);
    if let Some(interval) = chain.poll_interval {
        spec.poll_interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    }
    spec.close_delay_secs = chain.close_delay_secs;
    Ok(spec)
}

/// A chain that no preset names. Only `local` is one's own, where nobody lies: the configuration holds its endpoints to
/// this machine and private networks.
fn own_chain(chain: &ChainConfig) -> anyhow::Result<ChainSpec> {
    let url = chain.rpc_urls.first().context("chain.rpc_urls is needed for a local or custom chain")?;
    let token =
        chain.token.context("chain.token, the USDC contract, is needed for a local or custom chain")?;
    if chain.preset == "local" {
        return Ok(farthing_chain::local(url.clone(), chain.chain_id.unwrap_or(LOCAL_CHAIN_ID), token));
    }
    let chain_id = chain.chain_id.context("chain.chain_id is needed for a custom chain")?;
    let kind = match chain.kind.as_deref() {
        Some("testnet") => ChainKind::Testnet,
        _ => ChainKind::Mainnet,
    };
    Ok(farthing_chain::custom(url.clone(), chain_id, kind, token))
}

/// Tells a person which chain it is, and whether its money is real: `Base Sepolia — test money, worth nothing`.
pub fn in_words(spec: &ChainSpec) -> String {
    let mut name = spec.name.split('-').map(capitalised).collect::<Vec<_>>().join(" ");
    if farthing_chain::preset(&spec.name).is_none() {
        name += &format!(" chain {}", spec.chain_id);
    }
    let money = match spec.kind {
        ChainKind::Mainnet => "real money",
        ChainKind::Testnet => "test money, worth nothing",
        ChainKind::Local => "your own, its money is worth nothing",
    };
    format!("{name} — {money}")
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use farthing_config::{Sources, load, public_chain_id};

    use super::*;

    fn spec(settings: &[&str]) -> ChainSpec {
        let set = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let sources = Sources { data_dir: Some("/nowhere/farthing".into()), set, ..Sources::default() };
        chain_spec(&load(&sources).unwrap().config).unwrap()
    }

    #[test]
    fn a_custom_chain_is_held_to_what_a_public_one_is_and_its_money_is_real_unless_it_is_said_not_to_be() {
        let custom = [
            "chain.preset=custom",
            "chain.rpc_urls=http://127.0.0.1:8545",
            "chain.chain_id=777",
            "chain.token=0x00000000000000000000000000000000000000aa",
        ];
        let real = spec(&custom);
        assert_eq!((real.name.as_str(), real.chain_id, real.kind), ("custom", 777, ChainKind::Mainnet));
        for (preset, kind) in [("base", "chain.kind=mainnet"), ("base-sepolia", "chain.kind=testnet")] {
            let same = ChainSpec {
                name: real.name.clone(),
                chain_id: real.chain_id,
                rpc_urls: real.rpc_urls.clone(),
                token: real.token,
                explorer: None,
                ..spec(&[format!("chain.preset={preset}").as_str()])
            };
            assert_eq!(spec(&[&custom[..], &[kind]].concat()), same, "{preset}");
        }
        let local = spec(&[&custom[..], &["chain.preset=local"]].concat());
        assert_eq!((local.name.as_str(), local.chain_id, local.kind), ("local", 777, ChainKind::Local));
    }

    #[test]
    fn a_person_is_told_which_chain_it_is_and_whether_its_money_is_real() {
        for (name, words) in [
            ("base", "Base — real money"),
            ("base-sepolia", "Base Sepolia — test money, worth nothing"),
            ("ethereum", "Ethereum — real money"),
        ] {
            assert_eq!(in_words(&farthing_chain::preset(name).unwrap()), words);
        }
        let own = [
            "chain.preset=custom",
            "chain.rpc_urls=http://127.0.0.1:8545",
            "chain.chain_id=777",
            "chain.token=0x00000000000000000000000000000000000000aa",
        ];
        assert_eq!(in_words(&spec(&own)), "Custom chain 777 — real money");
        let local = spec(&[&own[..], &["chain.preset=local"]].concat());
        assert_eq!(in_words(&local), "Local chain 777 — your own, its money is worth nothing");
    }

    #[test]
    fn the_configuration_knows_the_numbers_of_all_presets() {
        for name in farthing_chain::preset_names() {
            assert_eq!(
                public_chain_id(name),
                farthing_chain::preset(name).map(|spec| spec.chain_id),
                "{name}"
            );
        }
    }
}
