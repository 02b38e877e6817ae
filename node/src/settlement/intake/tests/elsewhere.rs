//! A book with channels of another chain and of another token than the settings name.

use farthing_ledger::{SettlementRow, SettlementState};

use super::*;

const DEPOSIT: Usdc = usdc(5_000);
/// Paid out of each before the settings were changed.
const CLAIMED: Usdc = usdc(1_000);
/// Of the channel on another chain.
const SALT: [u8; 32] = [7; 32];

/// Takes over a channel of another chain and one of another token, as a start does.
async fn restore_elsewhere(
    owner: &ChainHandle,
    config: ChannelConfig,
    (ledger, book): (&Ledger, &Book),
    ending: Ending,
) -> [ChannelId; 2] {
    let mut other_chain = owner.spec().escrow();
    other_chain.chain_id += 1;
    let on_other_chain = ChannelConfig { salt: SALT, ..config };
    let of_other_token = ChannelConfig { token: Address::from_bytes([9; 20]), ..config };
    let ids = [on_other_chain.id(&other_chain.domain()), of_other_token.id(&owner.domain())];
    for (id, config) in ids.into_iter().zip([on_other_chain, of_other_token]) {
        let facts = PayeeChannelFacts { id, config, deposited: DEPOSIT, claimed: CLAIMED, closing: false };
        ledger.put_payee_channel(facts).await.unwrap();
        let row = ledger.end_payee_channel(id, ending).await.unwrap();
        book.restore(&row, None, true);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_close_of_another_chain_is_not_void_by_the_clock_of_this_one() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, payer), (_, owner)) = (wallet(&chain, 2).await, wallet(&chain, 1).await);
    let Books { ledger, book, intake, .. } = Books::with_places(&owner, 3);
    let (config, here) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_stored);
    let signed = Ending::SignedAway { until_secs: 1, round: 0 };
    let elsewhere = restore_elsewhere(&owner, config, (&ledger, &book), signed).await;
    let ((_requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let payee = payee(&owner, &ledger, &book, intake);
    let task = tokio::spawn(payee.run(receiver, asked, Duration::from_millis(50)));
    // Each look goes through all of them once: at the end of the second, the first is over.
    for _ in 0..2 {
        assert!(book.sign_away(here, 1, 0));
        let is_served = || book.get(here).is_some_and(|entry| entry.ending == Ending::None);
        until("the channel here is served again", is_served).await;
    }
    task.abort();
    for id in elsewhere {
        assert_eq!(ledger.payee_channel(id).unwrap().unwrap().ending, signed, "the next start knows of it");
        assert_eq!(book.get(id).unwrap().ending, signed);
    }
    owner.refresh().await.unwrap();
    let namesake = ChannelConfig { salt: SALT, ..config }.id(&owner.domain());
    assert_eq!(owner.channel(&namesake), None, "another channel is not followed in its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_under_way_on_another_chain_is_not_given_up_by_a_claim_on_this_one() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, payer), (_, owner)) = (wallet(&chain, 2).await, wallet(&chain, 1).await);
    owner.base_fee().wait_for(Option::is_some).await.unwrap();
    let Books { ledger, book, intake, .. } = Books::with_places(&owner, 3);
    let (config, here) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_stored);
    let elsewhere = restore_elsewhere(&owner, config, (&ledger, &book), Ending::None).await;
    let mut claims = Vec::new();
    for channel in elsewhere {
        let row = SettlementRow { channel, from: Usdc::ZERO, to: CLAIMED };
        claims.push(ledger.open_settlement(vec![row], 1).await.unwrap().id);
    }
    let row = SettlementRow { channel: here, from: Usdc::ZERO, to: Usdc::ZERO };
    let given_up = ledger.open_settlement(vec![row], 1).await.unwrap().id;
    let payee = payee(&owner, &ledger, &book, intake);
    let ((requests, receiver), (_closes, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let task = tokio::spawn(payee.run(receiver, asked, Duration::from_secs(3_600)));
    let (answer, done) = oneshot::channel();
    requests.send(SettlementRequest::Claim(answer)).await.unwrap();
    done.await.unwrap().unwrap();
    task.abort();
    let settlements = ledger.settlements(10).unwrap();
    let state = |id: u64| settlements.iter().find(|one| one.id == id).unwrap().state;
    assert_eq!(claims.iter().map(|id| state(*id)).collect::<Vec<_>>(), [SettlementState::Pending; 2]);
    assert_ne!(state(given_up), SettlementState::Pending, "one here is not left open");
}
