//! What a payer gets from an owner whose books are older than what the chain has paid out.

use std::path::Path;

use farthing_control::endpoint;
use farthing_protocol::{books::Shown, call::ChannelSync};
use farthing_tests::calls::{back_up, restore_owner};

use super::*;

#[tokio::test]
async fn an_owner_restored_from_a_backup_gives_nothing_away_and_claims_what_it_serves() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    let mut payer = Payer::join(&world, 0x63, cost(10)).await?;

    payer.served(payer.request("1", cost(1))).await?;
    back_up(&world.owner, folder.path()).await?;
    for n in 2..=4 {
        payer.served(payer.request(&format!("{n}"), cost(n))).await?;
    }
    let settled = world.owner.control().ask(endpoint::Settle).await?;
    assert_eq!(settled.claimed.0, cost(4));
    restore_owner(&mut world, folder.path()).await?;
    payer.looks_again(&world).await?;

    // What was paid out already buys nothing, neither at once nor later.
    for n in 0..3 {
        let old = CallRequest {
            method: Method::Post,
            path: "/slow/1".to_owned(),
            ..payer.request(&format!("old/{n}"), cost(4))
        };
        let code = match payer.send(old).await? {
            Reply::Refused(refusal) => refusal.code,
            other => bail!("{other:?}"),
        };
        ensure!([RefusalCode::InsufficientVoucher, RefusalCode::UnknownChannel].contains(&code), "{code:?}");
    }
    assert_eq!(world.upstream.hits(), 4);
    eventually("it serves what is paid", async || {
        Ok(matches!(payer.send(payer.request("5", cost(5))).await?, Reply::Served(_)))
    })
    .await?;
    let settled = world.owner.control().ask(endpoint::Settle).await?;
    assert_eq!(settled.claimed.0, PRICE);
    expect_paid(&world, 5).await
}

impl Payer {
    /// Takes the version that a restored owner offers, which is above those of before.
    async fn looks_again(&mut self, world: &World) -> Result<()> {
        let before = self.listing.seq;
        eventually("the restored owner's listing", async || {
            if let Ok(listing) = listing_of(&self.network, world).await {
                self.listing = listing;
            }
            Ok(self.listing.seq > before)
        })
        .await
    }

    /// What the owner says of the channel when it is shown something.
    async fn shows(&self, channel: ChannelId, shown: Shown) -> Result<ChannelSync> {
        let question = CallMessage::Sync(channel, Some(shown));
        match self.network.call(self.owner, question, Bytes::new(), DEADLINE).await? {
            (CallReply::Channel(books), ..) => Ok(books),
            (other, ..) => bail!("an answer to another question: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_restored_owner_takes_its_own_word_alone_and_serves_nothing_before_it_is_shown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    let mut payer = Payer::join(&world, 0x64, cost(10)).await?;
    let mut words = Vec::new();
    for n in 1..=4 {
        words.push(payer.served(payer.request(&format!("{n}"), cost(n))).await?);
        if n == 1 {
            back_up(&world.owner, folder.path()).await?;
        }
    }
    restore_owner(&mut world, folder.path()).await?;
    payer.looks_again(&world).await?;

    // A payer that names what it holds is not served; one that keeps it to itself is, for less than it owes.
    let names = |id: &str, receipted| {
        let signature = Some(payer.voucher(payer.channel, cost(5)));
        let payment = Payment::Channel {
            channel: payer.channel,
            cumulative: cost(5),
            signature,
            receipted: Some(receipted),
        };
        CallRequest { payment, ..payer.request(id, cost(5)) }
    };
    eventually("the channel is known again", async || match payer.send(names("5", cost(4))).await? {
        Reply::Refused(refusal) if refusal.code == RefusalCode::UnknownChannel => Ok(false),
        Reply::Refused(refusal) if refusal.code == RefusalCode::BooksBehind => Ok(true),
        other => bail!("{other:?}"),
    })
    .await?;
    assert_eq!(world.upstream.hits(), 4);

    let domain = payer.chain.domain();
    let last = words.last().context("four were served")?;
    let own = |total| payer.voucher(payer.channel, total);
    let honest = Shown {
        receipt: last.receipt,
        receipt_signature: last.signature,
        promised: cost(4),
        voucher_signature: own(cost(4)),
    };
    let raised = Receipt { spent_total: cost(9), ..last.receipt };
    for (what, shown) in [
        (
            "the payer's own receipt",
            Shown {
                receipt_signature: raised.sign(&domain, &payer.key),
                receipt: raised,
                promised: cost(9),
                voucher_signature: own(cost(9)),
            },
        ),
        (
            "a receipt that was raised",
            Shown { receipt: raised, promised: cost(9), voucher_signature: own(cost(9)), ..honest },
        ),
        ("a promise of less than it says", Shown { voucher_signature: own(cost(3)), ..honest }),
        (
            "an older one",
            Shown {
                receipt: words[0].receipt,
                receipt_signature: words[0].signature,
                promised: cost(1),
                voucher_signature: own(cost(1)),
            },
        ),
    ] {
        let books = payer.shows(payer.channel, shown).await?;
        ensure!(books.spent == cost(1), "{what}: {books:?}");
    }
    let books = payer.shows(payer.channel, honest).await?;
    assert_eq!((books.spent, books.best, books.best_signature), (cost(4), cost(4), Some(own(cost(4)))));
    payer.served(names("5", cost(4))).await?;
    let books = payer.shows(payer.channel, honest).await?;
    assert_eq!(books.spent, cost(5), "it counts once");
    expect_paid(&world, 5).await
}

/// A payer with two calls, the answer to the second, and an owner that was restored from before that one and runs in `folder`.
async fn restored_below_the_second_call(payer: u8, folder: &Path) -> Result<(World, Payer, CallResponse)> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, payer, cost(10)).await?;
    payer.served(payer.request("1", cost(1))).await?;
    back_up(&world.owner, folder).await?;
    let last = payer.served(payer.request("2", cost(2))).await?;
    restore_owner(&mut world, folder).await?;
    Ok((world, payer, last))
}

#[tokio::test]
async fn a_restored_owner_that_is_shown_its_word_with_a_close_is_paid_for_what_it_lost() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (world, payer, last) = restored_below_the_second_call(0x65, folder.path()).await?;
    let shown = Shown {
        receipt: last.receipt,
        receipt_signature: last.signature,
        promised: cost(2),
        voucher_signature: payer.voucher(payer.channel, cost(2)),
    };
    let question = CallMessage::Close(payer.channel, Some(shown));
    eventually("it signs a close over both calls", async || {
        let answer = payer.network.call(payer.owner, question.clone(), Bytes::new(), DEADLINE).await;
        let Ok((CallReply::Channel(books), ..)) = answer else { return Ok(false) };
        let close = books.close.context("two calls do not pay for its gas")?;
        ensure!(close.consent.amount == cost(2), "{close:?}");
        Ok(true)
    })
    .await?;
    expect_paid(&world, 2).await
}

#[tokio::test]
async fn an_owner_that_cannot_look_at_its_word_now_ends_no_channel_below_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (_world, payer, last) = restored_below_the_second_call(0x66, folder.path()).await?;
    let shown = |promised| Shown {
        receipt: last.receipt,
        receipt_signature: last.signature,
        promised: cost(2),
        voucher_signature: payer.voucher(payer.channel, promised),
    };
    eventually("the channel is known again", async || {
        let question = CallMessage::Sync(payer.channel, None);
        let answer = payer.network.call(payer.owner, question, Bytes::new(), DEADLINE).await;
        Ok(matches!(answer, Ok((CallReply::Channel(_), ..))))
    })
    .await?;
    for _ in 0..30 {
        let books = payer.shows(payer.channel, shown(cost(1))).await?;
        assert_eq!(books.spent, cost(1));
    }
    for _ in 0..3 {
        let question = CallMessage::Close(payer.channel, Some(shown(cost(2))));
        match payer.network.call(payer.owner, question, Bytes::new(), DEADLINE).await? {
            (CallReply::Refused(refusal), ..) if refusal.code == RefusalCode::Busy => {}
            other => bail!("{other:?}"),
        }
    }
    Ok(())
}
