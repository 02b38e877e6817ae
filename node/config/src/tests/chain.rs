//! Rules of the chain's settings, as whoever writes a file meets them.

use super::*;

#[test]
fn a_custom_chain_says_what_it_is() {
    let refusal = Setup::new().set("chain.preset=custom").refusal();
    for name in ["chain.rpc_urls", "chain.chain_id", "chain.token"] {
        assert!(refusal.contains(name), "{refusal}");
    }
    let local = Setup::new().set("chain.preset=local").set("chain.rpc_urls=http://127.0.0.1:8545");
    assert!(local.refusal().contains("chain.token: must be set for a local or custom chain"));
    let ethereum = Setup::new().set("chain.preset=ethereum").load().unwrap();
    assert_eq!(ethereum.config.spending.deposit_max.to_string(), "20.00");
}

const TOKEN: &str = "chain.token=0x00000000000000000000000000000000000000aa";

#[test]
fn a_local_chain_is_near_and_has_a_number_of_its_own() {
    let local = |url: &str| Setup::new().set("chain.preset=local").set(TOKEN).set(url);
    let near = || local("chain.rpc_urls=http://chain:8545, http://10.0.0.7:8545");
    assert!(near().load().is_ok());
    let refusal =
        local("chain.rpc_urls=http://127.0.0.1:8545, https://a:b@rpc.example/v2/very-secret").refusal();
    assert!(refusal.contains("flag --set: chain.rpc_urls: rpc.example may be somewhere else"), "{refusal}");
    assert!(refusal.contains("or to custom") && !refusal.contains("very-secret"), "{refusal}");

    for own in ["31337", "777", "1337"] {
        assert!(near().set(&format!("chain.chain_id={own}")).load().is_ok(), "{own}");
    }
    for (public, name) in [
        ("1", "ethereum"),
        ("10", "optimism"),
        ("137", "polygon"),
        ("8453", "base"),
        ("84532", "base-sepolia"),
        ("11155111", "sepolia"),
        ("42161", "arbitrum"),
        ("421614", "arbitrum-sepolia"),
        ("56", "bnb-chain"),
        ("43114", "avalanche"),
        ("59144", "linea"),
        ("17000", "holesky"),
    ] {
        let refusal = near().set(&format!("chain.chain_id={public}")).refusal();
        let told = format!("flag --set: chain.chain_id: {public} is the public chain {name},");
        assert!(refusal.contains(&told), "{refusal}");
    }
}

#[test]
fn the_number_beside_a_presets_name_is_that_chains_or_nothing_starts() {
    let beside = |id: &str| Setup::new().set("chain.preset=base").set(&format!("chain.chain_id={id}"));
    assert_eq!(beside("8453").load().unwrap().config.chain.chain_id, Some(8_453));
    let refusal = beside("84532").refusal();
    assert!(refusal.contains("chain.chain_id: 84532 is another chain than base, which is 8453"), "{refusal}");
}

fn custom(chain_id: &str) -> Setup {
    let custom = Setup::new().set("chain.preset=custom").set("chain.rpc_urls=https://rpc.example");
    custom.set(TOKEN).set(&format!("chain.chain_id={chain_id}"))
}

#[test]
fn the_kind_of_a_chain_is_said_of_a_custom_one_alone() {
    assert_eq!(custom("777").load().unwrap().config.chain.kind, None);
    assert_eq!(
        custom("777").set("chain.kind=testnet").load().unwrap().config.chain.kind.as_deref(),
        Some("testnet")
    );
    assert!(custom("777").set("chain.kind=local").refusal().contains("expected one of mainnet, testnet"));
    let local = Setup::new().set("chain.preset=local").set("chain.rpc_urls=http://127.0.0.1:8545").set(TOKEN);
    for preset in [Setup::new(), Setup::new().set("chain.preset=base-sepolia"), local] {
        let refusal = preset.set("chain.kind=testnet").refusal();
        assert!(refusal.contains("chain.kind: is for a custom chain only"), "{refusal}");
    }
}

#[test]
fn real_money_is_not_called_test_money() {
    for (id, name) in [
        ("1", "ethereum"),
        ("8453", "base"),
        ("137", "polygon"),
        ("100", "gnosis"),
        ("324", "zksync"),
        ("626", "battlechain"),
        ("25363", "fluent"),
        ("61166", "treasure"),
        ("9", "quai"),
        ("185", "mint"),
        ("239", "tac"),
        ("964", "bittensor"),
        ("1777", "gauss"),
        ("1923", "swellchain"),
        ("5464", "saga"),
        ("16661", "0g"),
        ("723487", "radius"),
    ] {
        let refusal = custom(id).set("chain.kind=testnet").refusal();
        let told = format!("chain.kind: is testnet, but chain.chain_id {id} is the main network {name},");
        assert!(refusal.contains(&told), "{refusal}");
        assert!(custom(id).load().is_ok() && custom(id).set("chain.kind=mainnet").load().is_ok(), "{id}");
    }
    for testnet in ["80002", "17000", "84532", "777", "31337"] {
        assert!(custom(testnet).set("chain.kind=testnet").load().is_ok(), "{testnet}");
    }
}
