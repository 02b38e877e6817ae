//! Very many channels of strangers: they keep out nobody, and reading them costs little. And what a layer 1 charges.

use std::sync::Arc;

use alloy::{primitives::U256, primitives::hex, sol, sol_types::SolCall as _};
use farthing_chain::{ChainHandle, ChainSpec, L1Fee, MemoryJournal, pay_channels_address};
use farthing_values::{Address, ChannelConfig, ChannelId, SecretKey};
use serde_json::{Value, json};

use crate::world::{
    Deposits, World, deployer, new_key, start_ready, until, until_deposited, until_true, usdc,
};

sol! {
    function go(address channels, address token, address payee, uint128 amount, uint256 from, uint256 count);
}

/// Where the chain has Multicall3, and where an OP-stack chain has the oracle of its fees.
pub(crate) const MULTICALL3: &str = "0xcA11bde05977b3631167028862bE2a173976CA11";
const GAS_PRICE_ORACLE: &str = "0x420000000000000000000000000000000000000F";
pub(crate) const MULTICALL3_CODE: &str = include_str!("multicall3.hex");
/// Channels that fit into one transaction.
const AT_ONCE: u64 = 180;

/// A stranger with a contract that opens channels with the payee.
struct Stranger<'a> {
    world: &'a World,
    account: Value,
    contract: String,
}

impl<'a> Stranger<'a> {
    async fn new(world: &'a World) -> Self {
        let artifact = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/contracts/fixtures/Dust.json");
        let artifact: Value = serde_json::from_str(&std::fs::read_to_string(artifact).unwrap()).unwrap();
        let account = world.anvil.rpc("eth_accounts", json!([])).await[0].clone();
        let deployment = json!({ "from": account, "data": artifact["bytecode"] });
        let contract = sent(world, deployment).await["contractAddress"].as_str().unwrap().to_owned();
        let stranger = contract.parse().unwrap();
        let minter = deployer(&world.anvil, 0).await;
        minter.mint(world.token, stranger, usdc(1_000_000_000)).await.unwrap();
        Self { world, account, contract }
    }

    /// Opens `count` channels of `micros` each, from the salt `from` on.
    async fn open(&self, micros: u64, from: u64, count: u64) {
        let of = |address: Address| alloy::primitives::Address::from(*address.as_bytes());
        for first in (from..from + count).step_by(usize::try_from(AT_ONCE).unwrap()) {
            let call = goCall {
                channels: of(pay_channels_address()),
                token: of(self.world.token),
                payee: of(self.world.payee.address()),
                amount: micros.into(),
                from: U256::from(first),
                count: U256::from(AT_ONCE.min(from + count - first)),
            };
            let data = hex::encode_prefixed(call.abi_encode());
            let gas = format!("{:#x}", 16_700_000);
            sent(self.world, json!({ "from": self.account, "to": self.contract, "data": data, "gas": gas }))
                .await;
        }
    }
}

/// Sends a transaction of the chain's own account, and returns its receipt once it is mined.
pub(crate) async fn sent(world: &World, transaction: Value) -> Value {
    let hash = world.anvil.rpc("eth_sendTransaction", json!([transaction])).await;
    let receipt = async || world.anvil.rpc("eth_getTransactionReceipt", json!([hash])).await;
    until_true(|| async { !receipt().await.is_null() }).await;
    let receipt = receipt().await;
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}

async fn start(spec: &ChainSpec, key: &SecretKey) -> ChainHandle {
    start_ready(spec.clone(), key, Arc::new(MemoryJournal::default())).await
}

async fn until_followed(payee: &ChainHandle, count: usize) {
    until(payee.channels(), |views| views.len() >= count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_channels_of_dust_keep_out_no_newcomer_and_are_read_in_few_requests() {
    let world = World::with(&["--disable-block-gas-limit"]).await;
    world.anvil.rpc("anvil_setCode", json!([MULTICALL3, MULTICALL3_CODE.trim()])).await;
    let spec = ChainSpec { channel_min: usdc(10_000), ..world.spec() };
    let (payer, payee) = (start(&spec, &world.payer).await, start(&spec, &world.payee).await);
    let id = |config: ChannelConfig| config.id(&payer.domain());
    // A customer of before, with no more than the least.
    let customer = world.terms(1);
    payer.open_or_top_up(customer, usdc(10_000)).await.unwrap();
    until_deposited(&payee, id(customer), 10_000).await;
    payee.track(customer).await.unwrap();

    let stranger = Stranger::new(&world).await;
    stranger.open(10_000, 0, 10_000).await;
    until_followed(&payee, spec.channels_max).await;
    let before = payee.request_counts().watch;
    payee.refresh().await.unwrap();
    let requests = payee.request_counts().watch - before;
    assert!(requests < 100, "{requests} requests to read {} channels", spec.channels_max);

    let newcomer = world.terms(2);
    payer.open_or_top_up(newcomer, usdc(10_001)).await.unwrap();
    until_deposited(&payee, id(newcomer), 10_001).await;
    let views = payee.channels().borrow().clone();
    assert_eq!(views.len(), spec.channels_max, "one made room");
    assert!(views.contains_key(&id(customer)));
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_pay_or_are_kept_never_make_room_and_others_only_for_larger_ones() {
    let world = World::new().await;
    let spec = ChainSpec { channels_max: 4, ..world.spec() };
    let payer = start(&world.spec(), &world.payer).await;
    let journal = Arc::new(MemoryJournal::default());
    let payee = start_ready(spec.clone(), &world.payee, journal.clone()).await;
    let open = async |salt: u8, micros: u64| -> ChannelId {
        payer.open_or_top_up(world.terms(salt), usdc(micros)).await.unwrap();
        world.terms(salt).id(&payer.domain())
    };
    let followed = async |salt: u8, micros: u64| -> ChannelId {
        let id = open(salt, micros).await;
        until_deposited(&payee, id, micros).await;
        id
    };
    let (paid, kept) = (followed(1, 10).await, followed(2, 1).await);
    payee.claim_many(vec![world.row(&payee, world.terms(1), 9)]).await.unwrap();
    payee.track(world.terms(2)).await.unwrap();
    let (less, more) = (followed(3, 20).await, followed(4, 30).await);
    // No more than any of them holds.
    let refused = open(5, 20).await;
    let larger = followed(6, 21).await;
    let views = payee.channels().borrow().clone();
    assert_eq!(views.len(), 4);
    assert!([paid, kept, more, larger].iter().all(|id| views.contains_key(id)), "{views:?}");
    assert!(![less, refused].iter().any(|id| views.contains_key(id)), "{views:?}");
    // Whatever is asked for is followed beside all of them, and a restart remembers who made room.
    payee.track(world.terms(3)).await.unwrap();
    until_deposited(&payee, less, 20).await;
    payee.shutdown().await;
    let payee = start_ready(spec, &world.payee, journal).await;
    until_followed(&payee, 5).await;
    // The deposits of a wallet's own are, however many they are.
    let payer = start(&ChainSpec { channels_max: 2, ..world.spec() }, &world.payer).await;
    until_followed(&payer, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_multicall3_says_is_what_each_channel_says() {
    let (world, payer) = World::with_payer().await;
    for salt in 1..=5 {
        payer.open_or_top_up(world.terms(salt), usdc(u64::from(salt) * 100)).await.unwrap();
    }
    let ids: Vec<ChannelId> = (0..=6).map(|salt| world.terms(salt).id(&payer.domain())).collect();
    let one_by_one = payer.read_contract(&ids).await.unwrap().confirmed;
    // Something else at its place is not asked.
    world.anvil.rpc("anvil_setCode", json!([MULTICALL3, "0x5f5ffd"])).await;
    let other = start(&world.spec(), &new_key()).await;
    assert_eq!(other.read_contract(&ids).await.unwrap().confirmed, one_by_one);
    world.anvil.rpc("anvil_setCode", json!([MULTICALL3, MULTICALL3_CODE.trim()])).await;
    let another = start(&world.spec(), &new_key()).await;
    assert_eq!(another.read_contract(&ids).await.unwrap().confirmed, one_by_one);
    assert_eq!(one_by_one[3].deposited, usdc(300));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_layer_1_charges_for_a_claims_data_is_known_where_there_is_one() {
    let world = World::new().await;
    let plain = start(&world.spec(), &world.payee).await;
    let fee = until(plain.base_fee(), Option::is_some).await.unwrap();
    assert_eq!(fee.l1, L1Fee::default());
    // A thousand wei for each byte of what is asked: CALLDATASIZE × 1,000.
    world.anvil.rpc("anvil_setCode", json!([GAS_PRICE_ORACLE, "0x366103e8025f5260205ff3"])).await;
    let layered = start(&world.spec(), &new_key()).await;
    let fee = until(layered.base_fee(), Option::is_some).await.unwrap();
    // A row is its channel of six words, two amounts and a signature of two.
    assert_eq!(fee.l1.row_wei, 10 * 32 * 1_000);
    assert!((100_000..500_000).contains(&fee.l1.base_wei), "{fee:?}");
    assert!(fee.tip_wei > 0);
}
