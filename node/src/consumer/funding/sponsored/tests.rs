//! Authorizations that are signed for owners to bring, on a real chain.

use farthing_chain::Balances;
use farthing_protocol::CallId;
use farthing_testnet::{LocalChain, rpc};
use serde_json::json;

use super::*;
use crate::consumer::{
    ForeignError,
    channels::tests::usdc,
    funding::tests::{accept, booked, funding, restored, wallet},
};

const FIRST: (u32, Usdc) = (0, Usdc::ZERO);

#[tokio::test(flavor = "multi_thread")]
async fn one_authorization_is_signed_for_a_round_until_it_is_taken_or_lapses() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let [config, lapsing] = [2, 3].map(|n| funding.terms(&accept(&payer, Address::from_bytes([n; 20]))));
    assert_eq!(funding.earlier(config, FIRST).await.unwrap(), None);
    let signed = funding.sign(config, FIRST, usdc(100_000)).await.unwrap();
    // Also after a restart.
    let funding = restored(payer.clone(), funding.0.ledger.clone()).await;
    assert_eq!(funding.earlier(config, FIRST).await.unwrap(), Some(signed), "the same one again");
    let another = funding.earlier(config, (0, usdc(1))).await;
    assert!(matches!(another, Err(NotMade::Before(BuyError::DepositPending(_)))), "{another:?}");
    assert_eq!(funding.earlier(config, (1, Usdc::ZERO)).await.unwrap(), None, "another round");

    payer.deposit_signed(&signed, FIRST).await.unwrap();
    assert_eq!(funding.earlier(config, (0, usdc(100_000))).await.unwrap(), None, "it is taken");

    let signed = funding.sign(lapsing, FIRST, usdc(100_000)).await.unwrap();
    assert_eq!(funding.earlier(lapsing, FIRST).await.unwrap(), Some(signed));
    for (method, params) in [("evm_increaseTime", json!([25 * 3_600])), ("evm_mine", json!([]))] {
        rpc::call(&chain.rpc_url(), method, params).await.unwrap();
    }
    payer.refresh().await.unwrap();
    assert_eq!(funding.earlier(lapsing, FIRST).await.unwrap(), None, "it has lapsed");
    assert!(funding.signed_to_bring().unwrap().is_empty(), "and neither of them can be brought");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_its_owner_may_bring_yet_is_not_promised_to_a_server_as_well() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let config = funding.terms(&accept(&payer, Address::from_bytes([2; 20])));
    funding.sign(config, FIRST, usdc(600_000)).await.unwrap();
    // Also after a restart.
    let funding = restored(payer.clone(), funding.0.ledger.clone()).await;
    let call_id = CallId::from_bytes([1; 16]);
    let refused = funding.pledge(call_id, usdc(400_001)).unwrap_err();
    let BuyError::Foreign(ForeignError::Unfunded { have, .. }) = refused else { panic!("{refused}") };
    assert_eq!(have, usdc(400_000));
    drop(funding.pledge(call_id, usdc(400_000)).unwrap());
    // Once the books show it, it is out of the wallet.
    booked(&funding.0.channels, config.id(&payer.domain()), config, (usdc(600_000), 0));
    drop(funding.pledge(call_id, usdc(1_000_000)).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_without_eth_is_told_of_the_deposit_that_its_owner_may_bring_also_after_a_restart() {
    let chain = LocalChain::start().await.unwrap();
    let payer = wallet(&chain, 1, u128::MAX / 4).await;
    let funding = funding(payer.clone()).await;
    let [owner, other] = [2, 3].map(|n| Address::from_bytes([n; 20]));
    funding.sign(funding.terms(&accept(&payer, owner)), FIRST, usdc(400_000)).await.unwrap();
    let funding = restored(payer.clone(), funding.0.ledger.clone()).await;
    let told = |owner, eth_wei| {
        funding.missing(owner, Balances { usdc: usdc(600_000), eth_wei }, usdc(400_000)).to_string()
    };
    let words = "You signed a deposit of 0.40 USDC";
    assert!(told(owner, 0).contains(words) && told(owner, 0).contains("no ETH"), "{}", told(owner, 0));
    assert!(!told(other, 0).contains(words) && !told(owner, u128::MAX).contains(words));
}

#[test]
fn an_owner_is_asked_again_after_a_time_of_its_own_but_neither_at_once_nor_after_days() {
    for (why, named, secs) in [
        (NotSponsored::Off, None, 600),
        (NotSponsored::TooSmall, None, 60),
        (NotSponsored::TooMany, Some(90), 90),
        (NotSponsored::TooMany, Some(0), 5),
        (NotSponsored::DayIsSpent, Some(86_400), 3_600),
    ] {
        assert_eq!(wait_after(why, named), Duration::from_secs(secs), "{why:?} {named:?}");
    }
}

#[test]
fn an_owners_words_are_one_line_of_bounded_length() {
    assert_eq!(words("too\nsmall\u{7}"), "toosmall");
    assert_eq!(words(&"x".repeat(5_000)).len(), WORDS_CHARS_MAX);
    assert_eq!(words("\n"), "the owner gives no reason");
}
