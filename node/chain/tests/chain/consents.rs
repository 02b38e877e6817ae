//! Signed closes and requests to close, brought to the chain by somebody else.

use std::sync::Arc;

use farthing_chain::{ChainError, MemoryJournal};
use farthing_protocol::{ChannelConfig, CloseConsent, CloseRequest, Usdc};
use serde_json::json;

use crate::world::{Deposits, ETH, World, new_key, start_ready, until, usdc};

const NEVER: u64 = 100_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_brings_the_close_that_its_payee_signed_and_pays_for_the_gas() {
    let world = World::new().await;
    let (payer, payee) = (world.payer_chain().await, world.payee_chain().await);
    let config = world.terms(1);
    let (domain, id) = (payer.domain(), config.id(&payer.domain()));
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    let view = payer.channel(&id).unwrap();
    let consent = CloseConsent {
        channel: id,
        amount: usdc(150_000),
        deposited: view.deposited,
        round: view.round,
        deadline_secs: NEVER,
    };
    let signature = consent.sign(&domain, &world.payee);
    let row = world.row(&payer, config, 150_000);
    let forged = consent.sign(&domain, &world.payer);
    let error = payer.relay_close(row, consent, forged).await.unwrap_err();
    assert!(matches!(error, ChainError::Invalid(_)), "{error}");

    assert!(payer.relay_close(row, consent, signature).await.unwrap().tx_hash.is_some());
    let view = payer.channel(&id).unwrap();
    assert_eq!((view.deposited, view.claimed, view.round), (usdc(150_000), usdc(150_000), 1));
    until(payee.balances(), |balances| balances.is_some_and(|b| b.usdc == usdc(150_000))).await;
    assert_eq!(world.nonce(&world.payee).await, 0, "the payee paid for no gas");
    // Again it is done already; filled again, the old word is not worth a transaction.
    assert!(payer.relay_close(row, consent, signature).await.unwrap().tx_hash.is_none());
    payer.open_or_top_up(config, usdc(250_000)).await.unwrap();
    assert!(payer.relay_close(row, consent, signature).await.unwrap().tx_hash.is_none());
    let [state] = payer.read_contract(&[id]).await.unwrap().confirmed[..] else { panic!("one channel") };
    assert_eq!((state.deposited, state.claimed), (usdc(400_000), usdc(150_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_friend_brings_the_request_of_a_payer_without_ether_and_withdraws_for_it() {
    let world = World::new().await;
    let payer = world.payer_chain().await;
    let friend = new_key();
    payer.send_eth(friend.address(), ETH / 10).await.unwrap();
    let config = world.terms(1);
    let (domain, id) = (payer.domain(), config.id(&payer.domain()));
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    let before = world.nonce(&world.payer).await;

    let request = CloseRequest { channel: id, round: 0, deadline_secs: NEVER };
    let signature = request.sign(&domain, &world.payer);
    let chain = start_ready(world.spec(), &friend, Arc::new(MemoryJournal::default())).await;
    let forged = request.sign(&domain, &friend);
    let error = chain.relay_close_request(config, request, forged).await.unwrap_err();
    assert!(matches!(error, ChainError::Invalid(_)), "{error}");
    let other = ChannelConfig { salt: [9; 32], ..config };
    let error = chain.relay_close_request(other, request, signature).await.unwrap_err();
    assert!(matches!(error, ChainError::Invalid(_)), "{error}");

    chain.relay_close_request(config, request, signature).await.unwrap();
    let views = until(payer.channels(), |views| views[&id].close_at_secs.is_some()).await;
    let close_at_secs = views[&id].close_at_secs.unwrap();
    world.anvil.rpc("evm_mine", json!([{ "timestamp": close_at_secs }])).await;
    chain.withdraw(config).await.unwrap();
    until(payer.channels(), |views| views[&id].deposited == Usdc::ZERO).await;
    until(payer.balances(), |balances| balances.is_some_and(|b| b.usdc == usdc(100_000_000))).await;
    assert_eq!(world.nonce(&world.payer).await, before, "the payer sent nothing");
}
