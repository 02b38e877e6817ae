//! Signed closes, brought to the chain by the payer.

use farthing_chain::ChainError;
use farthing_values::CloseConsent;

use crate::world::{Deposits, World, until, usdc};

const NEVER: u64 = 100_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_brings_the_close_that_its_payee_signed_and_pays_for_the_gas() {
    let (world, payer, payee) = World::with_both().await;
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
