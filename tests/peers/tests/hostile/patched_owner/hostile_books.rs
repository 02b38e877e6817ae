//! `farthing audit --with` an owner that does not play fair: whatever it says of its books, the comparison ends, is
//! bounded, and tells in words what is wrong.

use farthing_protocol::{ChannelConfig, Voucher};

use super::{compared::audit_with, *};

/// One more than an id.
fn after(id: Option<CallId>) -> CallId {
    let number = id.map_or(0, |id| u128::from_be_bytes(*id.as_bytes()));
    CallId::from_bytes(number.wrapping_add(1).to_be_bytes())
}

fn record(state: &State, call_id: CallId, charged: Usdc) -> CallRecord {
    CallRecord { call_id, charged, ..state.records[0] }
}

fn no_call(_: &Owner, _: &CallRequest, _: usize) -> Option<CallReply> {
    None
}

/// A consumer with one call bought, an owner that says what it likes, and its honest record of the call.
async fn world_of_a_liar() -> Result<(World, Arc<Owner>, NetworkHandle)> {
    let mut world = World::start().await?;
    expect_served(&world.call(&with(world.body("GET", "/ok"), "call_id", "bought")).await?)?;
    world.wait_until_decided().await?;
    let (owner, network) = Owner::replaces(&mut world, no_call).await?;
    let records = compared::records_of(&world)?;
    owner.state.lock().records = records;
    Ok((world, owner, network))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_tells_no_books_is_named_and_waited_for_no_longer_than_it_is_worth() -> Result<()> {
    let lies: [(&str, Pages, &str); 8] = [
        ("nothing at all", |_, _| None, "could not be compared"),
        ("another answer", |_, _| Some(CallReply::Status(CallStatus::Unknown)), "another question"),
        (
            "a refusal of many words",
            |_, _| {
                let words = "\u{1b}[2J\u{202e}spent all of it ".repeat(400);
                Some(CallReply::Refused(Refusal::new(RefusalCode::Unavailable, words)))
            },
            "unavailable",
        ),
        (
            "pages of one call each, without end",
            |state, asked| {
                let id = after(asked.after);
                Some(page(vec![record(state, id, Usdc::ZERO)], Some(id)))
            },
            "many pages that are not full",
        ),
        (
            "empty pages without end",
            |_, asked| Some(page(Vec::new(), Some(after(asked.after)))),
            "many pages that are not full",
        ),
        (
            "the same page again",
            |state, _| {
                let id = after(None);
                Some(page(vec![record(state, id, Usdc::ZERO)], Some(id)))
            },
            "out of order",
        ),
        ("one call twice", |state, _| Some(page(vec![state.records[0]; 2], None)), "out of order"),
        (
            "a page that ends before its calls",
            |state, _| Some(page(vec![state.records[0]], Some(after(None)))),
            "beyond its own end",
        ),
    ];
    let (world, owner, _network) = world_of_a_liar().await?;
    for (what, pages, word) in lies {
        owner.state.lock().pages = Some(pages);
        let ran = audit_with(&world).await?;
        ensure!(ran.code == 3, "{what}: {ran:?}");
        ensure!(ran.err.contains(word) && ran.err.contains("could not be compared"), "{what}: {ran:?}");
        ensure!(ran.err.len() < 4_000 && !ran.err.contains('\u{1b}'), "{what}: {ran:?}");
        ensure!(!ran.err.contains('\u{202e}'), "{what}: {ran:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_made_up_or_kept_back_are_counted_and_named() -> Result<()> {
    /// Other people's calls: a full page and a half, each charged.
    fn of_others(state: &State, asked: CallsAsked) -> Option<CallReply> {
        let (first, calls, next) = match asked.after {
            None => (1_u128, 256_u128, Some(256_u128)),
            Some(_) => (257, 128, None),
        };
        let id = |n: u128| CallId::from_bytes(n.to_be_bytes());
        let mut records: Vec<CallRecord> =
            (first..first + calls).map(|n| record(state, id(n), PRICE)).collect();
        if next.is_none() {
            records.extend(state.records.clone());
        }
        Some(page(records, next.map(id)))
    }
    fn forgets_all(_: &State, _: CallsAsked) -> Option<CallReply> {
        Some(CallReply::Calls(CallsPage {
            records: Vec::new(),
            next: None,
            kept_since_secs: u64::MAX,
            adjusted: None,
        }))
    }
    let (world, owner, _network) = world_of_a_liar().await?;
    let lie = |pages: Pages| owner.state.lock().pages = Some(pages);

    lie(of_others);
    let ran = audit_with(&world).await?;
    let compared = ran.json()?["compared"].clone();
    ensure!(ran.code == 1 && compared["differences_total"] == 384, "{ran:?}");
    let lines = compared["differences"].as_array().context("a list")?;
    let unknown =
        lines.iter().filter(|line| line.as_str().unwrap_or_default().contains("neither the call nor"));
    ensure!(unknown.count() == 384 && compared["calls"] == 385, "{compared:#}");

    lie(forgets_all);
    let mut ran = audit_with(&world).await?;
    // A call that ended in the second in which the owner is asked may have ended after it answered.
    eventually("the call counts", async || {
        ran = audit_with(&world).await?;
        Ok(ran.json()?["compared"]["calls"] == 1)
    })
    .await?;
    let compared = ran.json()?["compared"].clone();
    ensure!(ran.code == 1 && compared["differences_total"] == 1 && compared["not_kept"] == 0, "{ran:?}");
    let told = compared["differences"][0].as_str().unwrap_or_default();
    ensure!(told.contains("the owner has no such call"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_channel_comes_to_is_compared_with_its_proof() -> Result<()> {
    let (world, owner, _network) = world_of_a_liar().await?;
    let lie = |books: Option<Books>| owner.state.lock().books = books;
    let honest = audit_with(&world).await?;
    let compared = honest.ends_with(0)?.json()?["compared"].clone();
    ensure!(compared["channels"] == 1 && compared["differences_total"] == 0, "{compared:#}");
    ensure!(compared["spent_here"] == "0.002" && compared["earned_there"] == "0.002", "{compared:#}");

    let lies: [(&str, Books, &str); 5] = [
        (
            "it earned more",
            |_, told| Some(CallReply::Channel(ChannelSync { spent: cost(2), ..told })),
            "M4: your calls and adjustments add up to 0.002 USDC, but the owner's charges to 0.004",
        ),
        (
            "it earned less",
            |_, told| Some(CallReply::Channel(ChannelSync { spent: Usdc::ZERO, ..told })),
            "M4: your calls and adjustments add up to 0.002 USDC, but the owner's charges to 0",
        ),
        (
            "a promise that the owner signed itself",
            |owner, told| {
                let voucher = Voucher { channel: owner.channel.id, cumulative: cost(9) };
                let best_signature = Some(voucher.sign(&owner.domain, &owner.key));
                Some(CallReply::Channel(ChannelSync { best: cost(9), best_signature, ..told }))
            },
            "your wallet did not sign",
        ),
        (
            "another channel",
            |_, told| {
                let config = ChannelConfig { salt: [9; 32], ..told.config };
                Some(CallReply::Channel(ChannelSync { config, ..told }))
            },
            "another channel",
        ),
        (
            "no channel",
            |_, _| Some(CallReply::Refused(Refusal::new(RefusalCode::UnknownChannel, "which?"))),
            "has no record of this channel",
        ),
    ];
    for (what, books, word) in lies {
        lie(Some(books));
        let ran = audit_with(&world).await?;
        let compared = ran.json()?["compared"].clone();
        let told = compared["differences"][0].as_str().unwrap_or_default();
        ensure!(ran.code == 1 && compared["differences_total"] == 1, "{what}: {ran:?}");
        ensure!(told.starts_with("channel ") && told.contains(word), "{what}: {told}");
    }
    let silent: [(Books, &str); 2] = [
        (|_, _| None, "could not be compared"),
        (|_, _| Some(busy()), "could not be compared: the owner's node refuses it (busy): later"),
    ];
    for (books, word) in silent {
        lie(Some(books));
        let ran = audit_with(&world).await?;
        ensure!(ran.code == 3 && ran.err.contains(word), "{word}: {ran:?}");
    }
    Ok(())
}
