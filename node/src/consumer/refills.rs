//! Deposits that calls make into channels which had been emptied. Each costs its payer gas: so many at once are borne, and one
//! more in each stretch of time, over restarts too.
//!
//! An owner that closes a channel without being asked has one a day. To tell such a close from others, the rounds of a channel
//! are noted in which this node asked for a close, and in which it was filled again.

use std::collections::BTreeMap;

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Address, ChannelId, wire};
use minicbor::{Decode, Encode};
use tokio::sync::Mutex;

const AT_ONCE: u64 = 6;
const EVERY_SECS: u64 = 6 * 3_600;
/// An owner that goes out of business, or changes its terms, closes its channel once.
const AFTER_UNASKED_CLOSE_EVERY_SECS: u64 = 24 * 3_600;

/// An emptied channel, and the number of times that it was emptied.
pub type EmptiedRound = (ChannelId, u32);

/// The refills of each owner's channels, in the ledger: each of them cost gas, so there are few.
#[derive(Debug)]
pub struct Refills {
    ledger: Ledger,
    /// The number of times that this node asked for a close of each channel since the start. Held while a document is changed.
    asks: Mutex<BTreeMap<ChannelId, u64>>,
}

/// A note that this node asks for a close, with what stood in its place.
#[derive(Clone, Copy, Debug)]
pub struct AskNote {
    owner: Address,
    channel: ChannelId,
    nth: u64,
    before: u32,
}

/// The document of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct OwnerRefills {
    /// The second until which refills are paid off, but for those after a close that nobody asked for.
    #[n(0)]
    paid_off_secs: u64,
    /// The second from which on another one is borne after a close that nobody asked for.
    #[n(1)]
    after_unasked_secs: u64,
    #[n(2)]
    channels: BTreeMap<ChannelId, KnownRounds>,
}

/// The rounds of a channel, counted by how often it was emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct KnownRounds {
    /// The newest one that began because this node asked for a close.
    #[n(0)]
    asked: u32,
    /// The newest one in which the channel was filled.
    #[n(1)]
    filled: u32,
}

impl OwnerRefills {
    /// Tells whether one of these channels was closed since it was filled last, and this node did not ask.
    fn is_unasked(&self, emptied: &[EmptiedRound]) -> bool {
        emptied.iter().any(|(id, round)| {
            let known = self.channels.get(id).copied().unwrap_or_default();
            *round > known.asked.max(known.filled)
        })
    }

    /// The time until another one is borne: no more than those that were made can take, however far ahead the clock was then.
    fn wait_secs(&self, is_unasked: bool, now_secs: u64) -> u64 {
        match is_unasked {
            true => self.after_unasked_secs.saturating_sub(now_secs).min(AFTER_UNASKED_CLOSE_EVERY_SECS),
            false => self.left_secs(now_secs).saturating_sub(EVERY_SECS * (AT_ONCE - 1)),
        }
    }

    fn count(&mut self, is_unasked: bool, now_secs: u64) {
        if is_unasked {
            self.after_unasked_secs = now_secs.saturating_add(AFTER_UNASKED_CLOSE_EVERY_SECS);
        } else {
            self.paid_off_secs = now_secs.saturating_add(self.left_secs(now_secs)).saturating_add(EVERY_SECS);
        }
    }

    fn left_secs(&self, now_secs: u64) -> u64 {
        self.paid_off_secs.saturating_sub(now_secs).min(EVERY_SECS * AT_ONCE)
    }
}

impl Refills {
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, asks: Mutex::default() }
    }

    /// Returns the seconds until a call may fill a channel of an owner of whom these are empty; none when it may now.
    pub fn wait_secs(
        &self,
        owner: Address,
        emptied: &[EmptiedRound],
        now_secs: u64,
    ) -> Result<u64, LedgerError> {
        let stored = self.of(owner)?;
        Ok(stored.wait_secs(stored.is_unasked(emptied), now_secs))
    }

    /// Tells whether an owner has closed one of these channels since it was filled last, and this node did not ask.
    pub fn is_unasked(&self, owner: Address, emptied: &[EmptiedRound]) -> Result<bool, LedgerError> {
        Ok(self.of(owner)?.is_unasked(emptied))
    }

    /// Takes note of a refill that was made while these channels were empty. One by hand counts for nothing.
    pub async fn note(
        &self,
        owner: Address,
        emptied: &[EmptiedRound],
        is_by_hand: bool,
        now_secs: u64,
    ) -> Result<(), LedgerError> {
        let _turn = self.asks.lock().await;
        let mut stored = self.of(owner)?;
        if !is_by_hand {
            stored.count(stored.is_unasked(emptied), now_secs);
        }
        for (id, round) in emptied {
            stored.channels.entry(*id).or_default().filled = *round;
        }
        self.put(owner, &stored).await
    }

    /// Takes note that this node asks for a close of a channel in this round; `None` when that is noted already.
    pub async fn ask(
        &self,
        owner: Address,
        channel: ChannelId,
        round: u32,
    ) -> Result<Option<AskNote>, LedgerError> {
        let mut asks = self.asks.lock().await;
        let nth = asks.entry(channel).or_default();
        *nth += 1;
        let mut stored = self.of(owner)?;
        let known = stored.channels.entry(channel).or_default();
        let (before, asked) = (known.asked, round.saturating_add(1));
        if before >= asked {
            return Ok(None);
        }
        known.asked = asked;
        self.put(owner, &stored).await?;
        Ok(Some(AskNote { owner, channel, nth: *nth, before }))
    }

    /// Takes a note back, unless this node has asked for a close of the channel since.
    pub async fn unask(&self, note: AskNote) -> Result<(), LedgerError> {
        let asks = self.asks.lock().await;
        if asks.get(&note.channel) != Some(&note.nth) {
            return Ok(());
        }
        let mut stored = self.of(note.owner)?;
        stored.channels.entry(note.channel).or_default().asked = note.before;
        self.put(note.owner, &stored).await
    }

    /// Tells whether this node asked for a close of a channel in this round, or in a later one.
    pub fn is_asked(&self, owner: Address, channel: ChannelId, round: u32) -> Result<bool, LedgerError> {
        Ok(self.of(owner)?.channels.get(&channel).is_some_and(|known| known.asked > round))
    }

    /// A program of before stored the second until which refills are paid off, alone.
    fn of(&self, owner: Address) -> Result<OwnerRefills, LedgerError> {
        let Some(bytes) = self.ledger.get(Namespace::Refills, owner.as_bytes())? else {
            return Ok(OwnerRefills::default());
        };
        Ok(minicbor::decode(&bytes).unwrap_or_else(|_| OwnerRefills {
            paid_off_secs: <[u8; 8]>::try_from(&bytes[..]).map_or(0, u64::from_be_bytes),
            ..OwnerRefills::default()
        }))
    }

    async fn put(&self, owner: Address, refills: &OwnerRefills) -> Result<(), LedgerError> {
        self.ledger.put(Namespace::Refills, owner.as_bytes().to_vec(), wire::encode(refills)).await
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;
    use redb::backends::InMemoryBackend;

    use super::*;

    const NOW: u64 = 1_795_000_000;
    const DAY: u64 = AFTER_UNASKED_CLOSE_EVERY_SECS;
    const CHANNEL: ChannelId = ChannelId::from_bytes([7; 32]);

    const fn owner(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    fn in_memory() -> Refills {
        Refills::new(Ledger::with_backend(InMemoryBackend::new()).unwrap())
    }

    #[tokio::test]
    async fn channels_closed_as_asked_are_filled_so_often_at_once_and_then_now_and_then_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let open = || Refills::new(Ledger::open(&path, OpenMode::Create).unwrap());
        let [one, other] = [1, 2].map(owner);
        let mut emptied = [(CHANNEL, 0)];
        for round in 0..6 {
            let refills = open();
            refills.ask(one, CHANNEL, round).await.unwrap();
            emptied = [(CHANNEL, round + 1)];
            assert_eq!(refills.wait_secs(one, &emptied, NOW).unwrap(), 0);
            refills.note(one, &emptied, false, NOW).await.unwrap();
        }
        let refills = open();
        let wait_secs = |now_secs| refills.wait_secs(one, &emptied, now_secs).unwrap();
        assert_eq!(wait_secs(NOW), EVERY_SECS);
        assert_eq!(refills.wait_secs(other, &emptied, NOW).unwrap(), 0, "each owner by itself");
        assert_eq!(wait_secs(NOW + EVERY_SECS - 1), 1);
        assert_eq!(wait_secs(NOW + EVERY_SECS), 0);
        refills.note(one, &emptied, false, NOW + EVERY_SECS).await.unwrap();
        assert_eq!(wait_secs(NOW + EVERY_SECS), EVERY_SECS);
        assert_eq!(wait_secs(NOW), EVERY_SECS, "the clock went back");
        assert_eq!(wait_secs(1), EVERY_SECS, "the clock was far ahead");
        let closed_unasked = [(CHANNEL, 7)];
        assert_eq!(
            refills.wait_secs(one, &closed_unasked, NOW).unwrap(),
            0,
            "what was asked for counts apart"
        );
    }

    #[tokio::test]
    async fn an_owner_that_closes_unasked_has_its_channels_filled_once_a_day() {
        let refills = in_memory();
        let one = owner(1);
        let wait_secs =
            |emptied: EmptiedRound, now_secs| refills.wait_secs(one, &[emptied], now_secs).unwrap();
        assert_eq!(wait_secs((CHANNEL, 1), NOW), 0, "it may have a reason");
        refills.note(one, &[(CHANNEL, 1)], false, NOW).await.unwrap();
        assert_eq!(wait_secs((CHANNEL, 1), NOW), 0, "paid out to its end, and not closed");
        assert_eq!(wait_secs((CHANNEL, 2), NOW), DAY);
        assert_eq!(wait_secs((ChannelId::NONE, 1), NOW), DAY, "another channel with it");
        assert_eq!(wait_secs((CHANNEL, 2), NOW + DAY - 1), 1);
        assert_eq!(wait_secs((CHANNEL, 2), 1), DAY, "the clock was far ahead");
        assert_eq!(wait_secs((CHANNEL, 2), NOW + DAY), 0);
        refills.note(one, &[(CHANNEL, 2)], false, NOW + DAY).await.unwrap();
        assert_eq!(wait_secs((CHANNEL, 3), NOW + DAY), DAY);

        refills.note(one, &[(CHANNEL, 3)], true, NOW).await.unwrap();
        assert_eq!(wait_secs((CHANNEL, 3), NOW + DAY), 0, "filled by hand, and paid out to its end");
        refills.ask(one, CHANNEL, 3).await.unwrap();
        assert_eq!(wait_secs((CHANNEL, 4), NOW + DAY), 0, "this node asked for that close");
        assert_eq!(wait_secs((CHANNEL, 5), NOW + DAY), DAY, "and not for the next");
        assert!(refills.is_asked(one, CHANNEL, 3).unwrap() && !refills.is_asked(one, CHANNEL, 4).unwrap());
        assert!(!refills.is_asked(owner(2), CHANNEL, 3).unwrap());
    }

    #[tokio::test]
    async fn a_question_that_never_left_excuses_no_close_of_its_round_or_of_one_before() {
        let (refills, one) = (in_memory(), owner(1));
        refills.ask(one, CHANNEL, 0).await.unwrap().unwrap();
        assert!(refills.ask(one, CHANNEL, 0).await.unwrap().is_none(), "it may have heard the first");
        let note = refills.ask(one, CHANNEL, 2).await.unwrap().unwrap();
        assert!(refills.is_asked(one, CHANNEL, 2).unwrap());
        refills.unask(note).await.unwrap();
        assert_eq!(
            [0, 1, 2].map(|round| refills.is_asked(one, CHANNEL, round).unwrap()),
            [true, false, false]
        );
        let older = refills.ask(one, CHANNEL, 2).await.unwrap().unwrap();
        refills.ask(one, CHANNEL, 3).await.unwrap().unwrap();
        refills.unask(older).await.unwrap();
        assert!(refills.is_asked(one, CHANNEL, 3).unwrap(), "a newer note stands");
        let first = refills.ask(one, CHANNEL, 4).await.unwrap().unwrap();
        assert!(refills.ask(one, CHANNEL, 4).await.unwrap().is_none());
        refills.unask(first).await.unwrap();
        assert!(refills.is_asked(one, CHANNEL, 4).unwrap(), "the chain was asked meanwhile");
    }

    #[tokio::test]
    async fn refills_that_a_program_of_before_counted_are_counted_still() {
        let refills = in_memory();
        let paid_off_secs = NOW + AT_ONCE * EVERY_SECS;
        let key = owner(1).as_bytes().to_vec();
        refills.ledger.put(Namespace::Refills, key, paid_off_secs.to_be_bytes().to_vec()).await.unwrap();
        refills.ask(owner(1), CHANNEL, 0).await.unwrap();
        assert_eq!(refills.wait_secs(owner(1), &[(CHANNEL, 1)], NOW).unwrap(), EVERY_SECS);
    }
}
