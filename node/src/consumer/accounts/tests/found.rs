//! Receipts whose totals were seen before: of calls that were forgotten and asked for again, or of an owner that lost some.

use super::{
    days::{Books, ID, WALLET, promise, usdc},
    *,
};

#[tokio::test]
async fn what_is_signed_while_such_a_receipt_is_stored_covers_its_charge() {
    let books = Books::new().await;
    let owner = books.owner.address();
    let channels = Arc::new(PayerChannels::default());
    let accounts = Accounts::new(books.ledger.clone(), channels.clone(), (WALLET, books.domain));
    accounts.observe(books.channel(), None).await.unwrap();
    // The owner told of 100 before it lost its books.
    channels.hear(ID, usdc(100));
    let held = channels.reserve(owner, usdc(10), 1).unwrap();
    assert_eq!(held.cumulative, usdc(10));
    let mut promise = promise(1, 10, 10, owner);
    promise.request.payment =
        Payment::Channel { channel: ID, cumulative: held.cumulative, signature: None, receipted: None };
    books.ledger.promise(promise.clone()).await.unwrap().await.unwrap();
    let attempt = Attempt { reservation: Some(held), ..Attempt::of(promise.clone()) };
    let acknowledgement = books.receipt(&promise, usdc(10), usdc(20));
    let counted = accounts.count(&attempt, &acknowledgement.receipt);
    assert!(counted.found.is_some());

    let mut storing = std::pin::pin!(accounts.store(&attempt, &counted, acknowledgement));
    assert!(futures::poll!(storing.as_mut()).is_pending(), "the ledger writes in a thread of its own");
    assert_eq!(
        channels.reserve(owner, usdc(10), 1).unwrap().cumulative,
        usdc(20),
        "the call before and this one"
    );
    storing.await;
    assert_eq!(channels.reserve(owner, usdc(10), 1).unwrap().cumulative, usdc(30));
    assert!(books.ledger.unresolved().unwrap().is_empty());
}
