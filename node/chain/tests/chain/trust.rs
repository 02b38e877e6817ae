//! Chains that are not what they should be: nothing is signed for them.

use std::sync::Arc;

use farthing_chain::{ChainError, ChainSpec, ChainStatus, MemoryJournal, pay_channels_address};
use farthing_values::ChannelConfig;
use serde_json::{Value, json};

use crate::{
    proxy::Mode,
    world::{Deposits, World, deployer, start, until, until_deposited, usdc},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_another_domain_separator_is_refused() {
    let world = World::new().await;
    // The token now answers another name than the one its separator was made with: slot 0 holds the name as
    // a short string, its bytes first and twice its length last.
    let mut name = [0; 32];
    name[..8].copy_from_slice(b"USD Coin");
    name[31] = 16;
    let name = alloy::primitives::hex::encode_prefixed(name);
    let slot = format!("0x{:064x}", 0);
    world.anvil.rpc("anvil_setStorageAt", json!([world.token.to_string(), slot, name])).await;
    let chain = start(world.spec(), &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| *status != ChainStatus::Connecting).await;
    let ChainStatus::Refused { reason } = status else { panic!("{status:?}") };
    assert!(reason.contains("another EIP-712 domain") && reason.contains("`USD Coin`"), "{reason}");
    let error = chain.open_or_top_up(world.terms(1), usdc(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
    let error = chain.send_usdc(world.payee.address(), usdc(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
    assert_eq!(world.nonce(&world.payer).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_token_is_refused() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.token = world.payee.address();
    let chain = start(spec, &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| *status != ChainStatus::Connecting).await;
    assert!(matches!(&status, ChainStatus::Refused { reason } if reason.contains("no token")), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_with_other_code_is_refused() {
    let world = World::new().await;
    let contract = pay_channels_address();
    let code = world.anvil.rpc("eth_getCode", json!([contract.to_string(), "latest"])).await;
    let forged = format!("{}00", code.as_str().unwrap());
    world.anvil.rpc("anvil_setCode", json!([contract.to_string(), forged])).await;
    let chain = start(world.spec(), &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| *status != ChainStatus::Connecting).await;
    let ChainStatus::Refused { reason } = status else { panic!("{status:?}") };
    assert!(reason.contains("is not the PayChannels contract"), "{reason}");
    let error = chain.open_or_top_up(world.terms(1), usdc(1)).await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_in_another_token_is_not_counted_as_money() {
    let world = World::new().await;
    let deployer = deployer(&world.anvil, 0).await;
    let worthless = deployer.test_usdc("USDC", deployer.address()).await.unwrap();
    deployer.mint(worthless, world.payer.address(), usdc(1_000_000)).await.unwrap();
    // The payer's own node uses the worthless token as if it were USDC.
    let mut spec = world.spec();
    spec.token = worthless;
    let payer = start(spec, &world.payer, Arc::new(MemoryJournal::default())).await;
    let mut config = world.terms(1);
    config.token = worthless;
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(500_000)).await.unwrap();
    assert!(payer.channel(&id).is_some());

    let payee = world.payee_chain().await;
    payee.track(config).await.unwrap();
    payee.refresh().await.unwrap();
    assert!(payee.channels().borrow().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_authorizations_of_deposits_that_failed_one_can_be_used_at_most() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let spec = ChainSpec { gas_price_cap_wei: 1, ..world.spec_at(&[proxy.url()]) };
    let chain = world.payer_at(spec).await;
    let config = world.terms(1);
    for amount in [250_000, 300_000, 300_001] {
        let error = chain.open_or_top_up(config, usdc(amount)).await.unwrap_err();
        assert!(matches!(error, ChainError::GasTooDear { .. }), "{error}");
    }
    let handed_out = proxy.simulated();
    assert_eq!(handed_out.len(), 3);
    assert_eq!(brought(&world, handed_out).await, 1);
    let payer = world.payer_chain().await;
    let deposited = payer.read_channel(config).await.unwrap().deposited;
    assert_eq!(
        payer.balances_of(world.payer.address()).await.unwrap().usdc,
        usdc(100_000_000 - deposited.micros())
    );

    // What builds on the new deposit is another one.
    payer.deposit_onto(config, (0, deposited), usdc(100_000)).await.unwrap();
    assert_eq!(payer.read_channel(config).await.unwrap().deposited, usdc(deposited.micros() + 100_000));
}

/// How many of the deposits that an endpoint was shown it can make, when it brings them all.
async fn brought(world: &World, handed_out: Vec<String>) -> u64 {
    let someone = world.anvil.rpc("eth_accounts", json!([])).await[1].clone();
    let mut used = 0;
    for data in handed_out {
        let contract = pay_channels_address().to_string();
        let transaction = json!({ "from": someone, "to": contract, "data": data, "gas": "0x7a120" });
        let hash = world.anvil.rpc("eth_sendTransaction", json!([transaction])).await;
        let mut receipt = Value::Null;
        while receipt.is_null() {
            receipt = world.anvil.rpc("eth_getTransactionReceipt", json!([hash])).await;
        }
        used += u64::from(receipt["status"] == "0x1");
    }
    used
}

#[tokio::test(flavor = "multi_thread")]
async fn one_decision_to_deposit_has_one_authorization_whatever_the_channel_is_said_to_hold_meanwhile() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let spec = ChainSpec { gas_price_cap_wei: 1, ..world.spec_at(&[proxy.url()]) };
    let chain = world.payer_at(spec).await;
    let (config, decided) = (world.terms(1), (0, usdc(0)));
    assert!(chain.deposit_onto(config, decided, usdc(250_000)).await.is_err());
    // The channel holds something else when the same decision is tried again.
    let payer = world.payer_chain().await;
    payer.deposit_onto(config, decided, usdc(100_000)).await.unwrap();
    assert!(chain.deposit_onto(config, decided, usdc(300_000)).await.is_err());
    let handed_out = proxy.simulated();
    assert_eq!(handed_out.len(), 2);
    assert_eq!(brought(&world, handed_out).await, 0, "what was deposited is all");
    assert_eq!(payer.read_channel(config).await.unwrap().deposited, usdc(100_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_onto_more_than_a_channel_holds_is_refused_before_it_is_signed() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let spec = world.spec_at(&[proxy.url()]);
    let chain = world.payer_at(spec).await;
    for decided in [(0, usdc(1)), (1, usdc(0))] {
        let refused = chain.deposit_onto(world.terms(1), decided, usdc(250_000)).await.unwrap_err();
        assert!(
            matches!(&refused, ChainError::Invalid(reason) if reason.contains("holds less")),
            "{refused}"
        );
        // Nothing can be brought of it, so nothing stands for it.
        assert!(!chain.is_deposit_taken(world.terms(1), decided).await.unwrap());
    }
    assert_eq!(proxy.simulated(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_another_key_signs_for_is_neither_followed_nor_filled() {
    let (world, payer) = World::with_payer().await;
    let own = world.terms(1);
    let other = ChannelConfig { signer: world.payee.address(), ..own };
    payer.track(other).await.unwrap();
    payer.open_or_top_up(own, usdc(1)).await.unwrap();
    let [own_id, other_id] = [own, other].map(|config| config.id(&payer.domain()));
    until_deposited(&payer, own_id, 1).await;
    assert!(!payer.channels().borrow().contains_key(&other_id), "all that is followed is shown together");
    let nonce = world.nonce(&world.payer).await;
    let error = payer.open_or_top_up(other, usdc(1)).await.unwrap_err();
    assert!(error.to_string().contains("another key signs"), "{error}");
    assert_eq!(world.nonce(&world.payer).await, nonce);
}
