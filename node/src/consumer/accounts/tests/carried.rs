//! What the chain alone shows as paid, before anything more is promised.

use farthing_protocol::SecretKey;

use super::{
    days::{Books, ID, usdc},
    *,
};

/// What is signed for the next call at a price of 10, once the owner has answered `sync`. An endpoint says that the channel
/// was emptied by a claim of 500, and filled again.
async fn signed_after(sync: impl FnOnce(&Books, &SecretKey) -> Option<ChannelSync>) -> Usdc {
    let (books, wallet) = (Books::new().await, SecretKey::from_bytes(&[3; 32]).unwrap());
    let (owner, channels) = (books.owner.address(), Arc::new(PayerChannels::default()));
    let accounts = Accounts::new(books.ledger.clone(), channels.clone(), (wallet.address(), books.domain));
    let paid =
        |deposited| PayerChannelFacts { deposited: usdc(deposited), claimed: usdc(500), ..books.channel() };
    for deposited in [500, 2_000] {
        accounts.observe(paid(deposited), None).await.unwrap();
    }
    let sync = sync(&books, &wallet);
    accounts.prove_carried(owner, ID, sync.as_ref()).await.unwrap();
    assert_eq!(books.ledger.audit(None).unwrap().violations, []);
    // Nothing is asked twice.
    accounts.prove_carried(owner, ID, None).await.unwrap();
    channels.reserve(owner, usdc(10), 1).unwrap().cumulative
}

#[tokio::test]
async fn nothing_is_signed_for_what_an_endpoint_alone_says_was_paid() {
    assert_eq!(signed_after(|_, _| None).await, usdc(10), "the owner does not know the channel");
    let shown = |books: &Books, best, best_signature| {
        let (config, deposited, claimed) = (books.channel().config, usdc(2_000), usdc(500));
        Some(ChannelSync { config, deposited, claimed, spent: best, best, best_signature, close: None })
    };
    let unsigned = signed_after(|books, _| shown(books, usdc(500), None)).await;
    assert_eq!(unsigned, usdc(10), "the owner says so, too, and shows no signature");
    let proven = signed_after(|books, wallet| {
        let voucher = Voucher { channel: ID, cumulative: usdc(500) };
        shown(books, usdc(500), Some(voucher.sign(&books.domain, wallet)))
    });
    assert_eq!(proven.await, usdc(510), "this wallet signed as much");
}
