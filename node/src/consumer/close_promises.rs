//! Closes that owners have promised and the chain does not show yet, or have signed and the chain has not shown for long, each
//! with the second until which the word is trusted, and the round that it is about. Durable, so that a restart neither forgets a
//! promise nor grants it a new term, nor begins the wait for a signed close anew.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use farthing_chain::{ChainHandle, ChainKind, ChannelView};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::{ChannelConfig, ChannelId};
use farthing_shared::chain_view::believed_after;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::AwaitedClose;

/// An owner that closes a channel as it promised usually has within that.
const CLOSED_SOON: Duration = Duration::from_secs(60);
/// An owner looks at least this often, unless its settings say otherwise, whether a close that it signed has stood long enough.
const OWNER_LOOKS_EVERY: Duration = Duration::from_secs(60);

/// An owner's word to close a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseWord {
    /// It is trusted until then.
    pub until_secs: u64,
    /// The round of the channel that it is about; a program of before did not note it.
    pub round: Option<u32>,
    /// The owner signed the close, and this node brings it to the chain, has, or does so once it can. Until that close stays the
    /// owner serves nothing.
    pub is_signed: bool,
    /// Of a signed close: the second since which the chain shows that nothing more is to be waited for.
    pub done_secs: Option<u64>,
}

/// The time since which every look at the chain has shown that a word is done.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct DoneSince {
    at: Instant,
    /// The time that had passed by then, in earlier runs.
    before: Duration,
}

impl DoneSince {
    fn now() -> Self {
        Self { at: Instant::now(), before: Duration::ZERO }
    }

    fn lasted(self) -> Duration {
        self.before + self.at.elapsed()
    }
}

impl CloseWord {
    /// Tells whether it is about an earlier round than this.
    fn is_before(self, round: Option<u32>) -> bool {
        self.round.is_some_and(|about| round > Some(about))
    }

    /// Tells whether the chain shows it as kept, or as needed no more.
    pub fn is_kept(self, view: &ChannelView) -> bool {
        self.is_before(Some(view.round)) || view.close_at_secs.is_some() || view.deposited <= view.claimed
    }

    /// Tells whether the chain shows that nothing of it is to be waited for any more, once that has lasted. What was safe once
    /// stays so: right after a start nobody knows yet what is.
    fn is_done(self, view: &ChannelView) -> bool {
        let is_safe = || self.done_secs.is_some() || self.is_before(Some(view.safe_round));
        self.is_kept(view) && (!self.is_signed || is_safe())
    }

    /// The time for which that has to last.
    fn lasts_for(self, kind: ChainKind) -> Duration {
        match believed_after(kind) {
            believed if self.is_signed && !believed.is_zero() => believed + OWNER_LOOKS_EVERY,
            believed => believed,
        }
    }

    /// The second, where it is known the round, of a close that was signed a byte, and where it is done since when. Numbers are
    /// big-endian.
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.until_secs.to_be_bytes().to_vec();
        bytes.extend(self.round.into_iter().flat_map(u32::to_be_bytes));
        bytes.extend(self.is_signed.then_some(1));
        bytes.extend(self.done_secs.filter(|_| self.is_signed).into_iter().flat_map(u64::to_be_bytes));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (secs, rest) = bytes.split_first_chunk::<8>()?;
        let until_secs = u64::from_be_bytes(*secs);
        if rest.is_empty() {
            return Some(Self { until_secs, round: None, is_signed: false, done_secs: None });
        }
        let (round, signed) = rest.split_first_chunk::<4>()?;
        let done_secs = signed.get(1..).and_then(<[u8]>::first_chunk).map(|secs| u64::from_be_bytes(*secs));
        let round = Some(u32::from_be_bytes(*round));
        Some(Self { until_secs, round, is_signed: !signed.is_empty(), done_secs })
    }
}

/// A cheap handle.
#[derive(Clone, Debug)]
pub struct ClosePromises {
    ledger: Ledger,
    words: Arc<Mutex<BTreeMap<ChannelId, CloseWord>>>,
    /// The times at which words were given, of those since the start.
    given: Arc<Mutex<BTreeMap<ChannelId, Instant>>>,
    done_since: Arc<Mutex<BTreeMap<ChannelId, DoneSince>>>,
}

/// Tells whether a word that is trusted `until_secs` still is. A clock that was far ahead when the word was given does
/// not make it last longer than a term.
pub const fn lasts(until_secs: u64, now_secs: u64, term_secs: u64) -> bool {
    let left_secs = until_secs.saturating_sub(now_secs);
    0 < left_secs && left_secs <= term_secs
}

impl ClosePromises {
    /// Goes on with the words of before the start.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let (mut promised, mut done_since) = (BTreeMap::new(), BTreeMap::new());
        let now_secs = clock::now_secs();
        for (key, value) in ledger.list(Namespace::Closes)? {
            let (Ok(id), Some(word)) = (<[u8; 32]>::try_from(&key[..]), CloseWord::from_bytes(&value)) else {
                continue;
            };
            let id = ChannelId::from_bytes(id);
            promised.insert(id, word);
            if let Some(done_secs) = word.done_secs {
                // A clock that was ahead then has it begin anew.
                let before = Duration::from_secs(now_secs.saturating_sub(done_secs));
                done_since.insert(id, DoneSince { before, ..DoneSince::now() });
            }
        }
        let (words, done_since) = (Mutex::new(promised), Mutex::new(done_since));
        Ok(Self { ledger, words: Arc::new(words), given: Arc::default(), done_since: Arc::new(done_since) })
    }

    /// Returns an owner's last word on a channel.
    pub fn word(&self, channel: ChannelId) -> Option<CloseWord> {
        self.words.lock().get(&channel).copied()
    }

    /// Notes an owner's word. Asking again in the same round does not prolong a promise; that the owner signed the close comes
    /// in its place.
    pub async fn note(&self, channel: ChannelId, word: CloseWord) -> u64 {
        if let Some(known) =
            self.word(channel).filter(|known| !known.is_before(word.round) && !word.is_signed)
        {
            return known.until_secs;
        }
        self.words.lock().insert(channel, word);
        self.given.lock().insert(channel, Instant::now());
        self.done_since.lock().remove(&channel);
        self.store(channel, word).await;
        word.until_secs
    }

    async fn store(&self, channel: ChannelId, word: CloseWord) {
        let key = channel.as_bytes().to_vec();
        if let Err(error) = self.ledger.put(Namespace::Closes, key, word.to_bytes()).await {
            tracing::warn!(%channel, %error, "an owner's answer about a close could not be stored");
        }
    }

    /// Tells whether the chain shows a word as kept now, or, where it shows nothing, the channel `holds_deposit` no more.
    /// What every look has shown as done for as long as is believed, and one more reading does too, is forgotten: an endpoint
    /// that has fallen silent shows for long what it said last.
    pub async fn look(
        &self,
        chain: &ChainHandle,
        config: ChannelConfig,
        holds_deposit: bool,
        word: CloseWord,
    ) -> bool {
        let id = config.id(&chain.domain());
        let view = chain.channel(&id);
        let is_kept = view.map_or(!holds_deposit, |view| word.is_kept(&view));
        let is_done = view.map_or(!holds_deposit, |view| word.is_done(&view));
        let done_since = self.see(id, word, is_done).await;
        let is_believed = done_since.is_some_and(|since| since.lasted() >= word.lasts_for(chain.spec().kind));
        // No call waits past its term for what no endpoint tells to be safe.
        let is_past = word.is_signed && is_kept && word.until_secs <= clock::now_secs();
        if is_past || (is_believed && chain.read_channel(config).await.is_ok_and(|now| word.is_kept(&now))) {
            self.forget(id).await;
        }
        is_kept
    }

    /// Takes note of whether the chain shows that a word is done now, and tells since when it does. Of a signed close that is
    /// stored: calls wait for it.
    async fn see(&self, channel: ChannelId, word: CloseWord, is_done: bool) -> Option<DoneSince> {
        let seen = {
            let mut done_since = self.done_since.lock();
            if is_done {
                Some(*done_since.entry(channel).or_insert_with(DoneSince::now))
            } else {
                done_since.remove(&channel);
                None
            }
        };
        let done_secs = is_done.then(|| word.done_secs.unwrap_or_else(clock::now_secs));
        if word.is_signed && done_secs != word.done_secs {
            let newer = CloseWord { done_secs, ..word };
            if self.replace(channel, word, newer) {
                self.store(channel, newer).await;
            }
        }
        seen
    }

    /// Takes back that a signed close is brought, which it was not: the word of `before` stands again.
    pub async fn take_back(&self, channel: ChannelId, before: Option<CloseWord>) {
        let Some(word) = before else { return self.forget(channel).await };
        self.words.lock().insert(channel, word);
        self.store(channel, word).await;
    }

    /// Puts a word in the place of another, unless that is not the last any more.
    fn replace(&self, channel: ChannelId, word: CloseWord, newer: CloseWord) -> bool {
        let mut words = self.words.lock();
        let is_last = words.get(&channel) == Some(&word);
        if is_last {
            words.insert(channel, newer);
        }
        is_last
    }

    /// Forgets a promise that was kept, or that the chain was asked in place of.
    pub async fn forget(&self, channel: ChannelId) {
        self.given.lock().remove(&channel);
        self.done_since.lock().remove(&channel);
        if self.words.lock().remove(&channel).is_none() {
            return;
        }
        if let Err(error) = self.ledger.delete(Namespace::Closes, channel.as_bytes().to_vec()).await {
            tracing::warn!(%channel, %error, "an owner's kept promise could not be removed from the ledger");
        }
    }

    /// Returns the second until which an owner's promise is trusted, unless it is about an earlier round than this.
    pub fn until(&self, channel: ChannelId, round: Option<u32>) -> Option<u64> {
        let word = self.word(channel);
        word.filter(|word| !word.is_signed && !word.is_before(round)).map(|word| word.until_secs)
    }

    /// Returns the second until which the chain is expected to show a close that an owner promised or signed, unless it is about
    /// an earlier round than this.
    pub fn closing_until(&self, channel: ChannelId, round: Option<u32>) -> Option<u64> {
        self.word(channel).filter(|word| !word.is_before(round)).map(|word| word.until_secs)
    }

    /// Returns the close that an owner's word, which is trusted now, has a call wait for on the channel in this round. A word of
    /// which the round is not known may be about an earlier one.
    pub fn awaited(
        &self,
        channel: ChannelId,
        round: u32,
        now_secs: u64,
        kind: ChainKind,
    ) -> Option<AwaitedClose> {
        let word = self.word(channel)?;
        let left_secs = word.until_secs.saturating_sub(now_secs);
        if left_secs == 0 || word.round.is_none_or(|about| about > round) {
            return None;
        }
        if word.is_signed {
            let since = self.done_since.lock().get(&channel).copied();
            let lasted = since.map_or(Duration::ZERO, DoneSince::lasted);
            let wait = word.lasts_for(kind).saturating_sub(lasted);
            let (wait_secs, has_begun) = (wait.as_secs() + 1, since.is_some());
            return (!wait.is_zero()).then_some(AwaitedClose::Signed { wait_secs, has_begun });
        }
        if word.is_before(Some(round)) {
            return None;
        }
        let given = self.given.lock().get(&channel).copied();
        let is_new = given.is_some_and(|at| at.elapsed() < CLOSED_SOON);
        Some(if is_new {
            AwaitedClose::Soon
        } else {
            AwaitedClose::Overdue { until_secs: word.until_secs, left_secs }
        })
    }

    pub fn all(&self) -> Vec<(ChannelId, CloseWord)> {
        self.words.lock().iter().map(|(id, word)| (*id, *word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use farthing_chain::Role;
    use farthing_protocol::{Address, Usdc};
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::consumer::channels::tests::terms;

    const ID: ChannelId = ChannelId::from_bytes([1; 32]);

    fn view(deposited: u64, round: u32, close_at_secs: Option<u64>) -> ChannelView {
        ChannelView {
            id: ID,
            config: terms(Address::ZERO, Address::ZERO),
            role: Role::Payer,
            deposited: Usdc::from_micros(deposited),
            safe_deposited: Usdc::ZERO,
            claimed: Usdc::from_micros(5),
            close_at_secs,
            round,
            safe_round: round,
        }
    }

    #[tokio::test]
    async fn a_promise_is_about_one_round_and_a_reading_that_shows_it_open_begins_the_wait_anew() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let promised = ClosePromises::restore(ledger.clone()).unwrap();
        let word = CloseWord { until_secs: 100, round: Some(3), is_signed: false, done_secs: None };
        assert_eq!(promised.note(ID, word).await, 100);
        let again = CloseWord { until_secs: 900, ..word };
        assert_eq!(promised.note(ID, again).await, 100, "asking again does not prolong it");
        let until = [None, Some(3), Some(4)].map(|round| promised.until(ID, round));
        assert_eq!(until, [Some(100), Some(100), None], "nobody has promised to close what was filled since");
        let awaited = [(2, 99), (3, 99), (3, 100), (4, 99)]
            .map(|(round, at)| promised.awaited(ID, round, at, ChainKind::Testnet));
        assert_eq!(awaited, [None, Some(AwaitedClose::Soon), None, None], "in its round and its term");
        // A start knows until when it is trusted, and not since when.
        let restored = ClosePromises::restore(ledger.clone()).unwrap();
        let overdue = |left_secs| Some(AwaitedClose::Overdue { until_secs: 100, left_secs });
        assert_eq!(
            [1, 99, 100].map(|at| restored.awaited(ID, 3, at, ChainKind::Testnet)),
            [overdue(99), overdue(1), None]
        );
        for (seen, is_kept) in [
            (view(10, 3, None), false),
            (view(5, 4, None), true),
            (view(5, 3, None), true),
            (view(10, 3, Some(1)), true),
            // Filled again.
            (view(10, 4, None), true),
        ] {
            assert_eq!(word.is_kept(&seen), is_kept, "{seen:?}");
        }

        let first = promised.see(ID, word, true).await;
        assert!(first.is_some() && promised.see(ID, word, true).await == first);
        assert_eq!(promised.see(ID, word, false).await, None);
        assert!(promised.see(ID, word, true).await > first);
        assert_eq!(promised.all(), [(ID, word)], "a start looks at a promise anew");

        // The next round is another promise, with a term of its own.
        let next = CloseWord { until_secs: 900, round: Some(4), ..word };
        assert_eq!(promised.note(ID, next).await, 900);
        assert_eq!(ClosePromises::restore(ledger.clone()).unwrap().all(), [(ID, next)]);
        promised.note(ID, CloseWord { is_signed: true, ..next }).await;
        promised.take_back(ID, Some(next)).await;
        assert_eq!(
            ClosePromises::restore(ledger.clone()).unwrap().all(),
            promised.all(),
            "it was not brought"
        );
        assert_eq!(promised.all(), [(ID, next)]);
        promised.take_back(ID, None).await;
        assert_eq!(ClosePromises::restore(ledger).unwrap().all(), []);
    }

    #[tokio::test]
    async fn a_close_that_was_signed_and_brought_is_waited_for_until_it_stays_also_over_a_restart() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let promised = ClosePromises::restore(ledger.clone()).unwrap();
        let promise = CloseWord { until_secs: 100, round: Some(3), is_signed: false, done_secs: None };
        promised.note(ID, promise).await;
        let word = CloseWord { until_secs: 900, is_signed: true, ..promise };
        assert_eq!(promised.note(ID, word).await, 900, "it comes in place of the promise");
        assert_eq!(promised.until(ID, Some(3)), None, "nobody promises any more");
        let promised = ClosePromises::restore(ledger).unwrap();
        assert_eq!(promised.all(), [(ID, word)]);
        let awaited = |round, at| promised.awaited(ID, round, at, ChainKind::Testnet);
        let waits = Some(AwaitedClose::Signed { wait_secs: 181, has_begun: false });
        assert_eq!(
            [2, 3, 4].map(|round| awaited(round, 1)),
            [None, waits, waits],
            "emptied, and filled again"
        );
        assert_eq!(awaited(4, 900), None, "the term is over");
        assert_eq!(
            promised.awaited(ID, 4, 1, ChainKind::Local),
            None,
            "what is one's own is believed at once"
        );

        // A layer 2 may yet take it back.
        let emptied = view(5, 4, None);
        assert!(word.is_kept(&emptied) && word.is_done(&emptied));
        assert!(!word.is_done(&ChannelView { safe_round: 3, ..emptied }));
        assert!(promise.is_done(&ChannelView { safe_round: 3, ..emptied }), "its owner serves at once");
        let seen = CloseWord { done_secs: Some(1), ..word };
        assert!(seen.is_done(&ChannelView { safe_round: 3, ..emptied }), "right after a start");
        assert!(!seen.is_done(&view(10, 3, None)), "it was taken back all the same");
        promised.see(ID, word, true).await;
        let begun = Instant::now();
        while matches!(awaited(4, 1), Some(AwaitedClose::Signed { wait_secs: 181, .. })) {
            assert!(begun.elapsed() < Duration::from_secs(10), "the wait goes by");
            tokio::task::yield_now().await;
        }
        // As far as this thread is let run.
        let left = awaited(4, 1);
        assert!(
            matches!(left, Some(AwaitedClose::Signed { wait_secs: 170..=180, has_begun: true })),
            "{left:?}"
        );
    }

    #[tokio::test]
    async fn the_wait_for_a_signed_close_goes_on_over_a_restart_and_begins_anew_where_the_chain_takes_it_back()
     {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let start = || ClosePromises::restore(ledger.clone()).unwrap();
        let now_secs = clock::now_secs();
        let word = CloseWord { until_secs: u64::MAX, round: Some(3), is_signed: true, done_secs: None };
        let promised = start();
        promised.note(ID, word).await;
        promised.see(ID, word, true).await;
        let (_, seen) = start().all()[0];
        let done_secs = seen.done_secs.unwrap();
        assert!(done_secs >= now_secs && seen == CloseWord { done_secs: Some(done_secs), ..word });
        promised.see(ID, seen, true).await;
        assert_eq!(start().all(), [(ID, seen)], "it is the first look that counts");

        // As after a restart that long after the first look.
        for (passed_secs, waits) in [(0, true), (100, true), (181, false), (86_400, false)] {
            let earlier = CloseWord { done_secs: Some(now_secs - passed_secs), ..word };
            promised.note(ID, earlier).await;
            let wait_secs = match start().awaited(ID, 4, 1, ChainKind::Testnet) {
                Some(AwaitedClose::Signed { wait_secs, .. }) => wait_secs,
                other => {
                    assert_eq!(other, None);
                    0
                }
            };
            assert_eq!(wait_secs > 0, waits, "{passed_secs}");
            assert!(wait_secs + passed_secs <= 181 || !waits, "{wait_secs} s after {passed_secs} s");
        }
        let (restarted, last) = (start(), start().all()[0].1);
        assert_eq!(restarted.see(ID, last, false).await, None);
        assert_eq!(start().all(), [(ID, word)]);
        let full = Some(AwaitedClose::Signed { wait_secs: 181, has_begun: false });
        assert_eq!(restarted.awaited(ID, 4, 1, ChainKind::Testnet), full);
        // A word that came meanwhile stays.
        let next = CloseWord { round: Some(4), ..word };
        restarted.note(ID, next).await;
        restarted.see(ID, word, true).await;
        assert_eq!((restarted.all(), start().all()), (vec![(ID, next)], vec![(ID, next)]));
    }

    #[test]
    fn a_word_is_read_as_it_was_stored_by_this_program_and_those_of_before() {
        let promise = CloseWord { until_secs: 7, round: Some(3), is_signed: false, done_secs: None };
        let signed = CloseWord { is_signed: true, ..promise };
        let of_before = [&[0, 0, 0, 0, 0, 0, 0, 7][..], &[0, 0, 0, 3], &[1]];
        for (parts, word) in [(1, CloseWord { round: None, ..promise }), (2, promise), (3, signed)] {
            assert_eq!(word.to_bytes(), of_before[..parts].concat());
        }
        for word in [promise, signed, CloseWord { done_secs: Some(9), ..signed }] {
            assert_eq!(CloseWord::from_bytes(&word.to_bytes()), Some(word));
        }
        assert_eq!(CloseWord::from_bytes(&[0; 7]), None);
    }

    #[tokio::test]
    async fn a_promise_in_a_ledger_of_before_is_of_no_round_that_is_known() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let (key, secs) = (ID.as_bytes().to_vec(), 100_u64.to_be_bytes().to_vec());
        ledger.put(Namespace::Closes, key, secs).await.unwrap();
        let promised = ClosePromises::restore(ledger).unwrap();
        let word = CloseWord { until_secs: 100, round: None, is_signed: false, done_secs: None };
        assert_eq!(promised.all(), [(ID, word)]);
        assert!(!word.is_kept(&view(10, 3, None)) && word.is_kept(&view(5, 4, None)));
        assert_eq!(promised.until(ID, Some(3)), Some(100));
        assert_eq!(promised.awaited(ID, 3, 1, ChainKind::Testnet), None);
        let asked_again = CloseWord { until_secs: 900, round: Some(3), ..word };
        assert_eq!(promised.note(ID, asked_again).await, 100);
    }

    #[test]
    fn an_owners_word_lasts_a_term_whatever_the_clock_showed_when_it_was_given() {
        assert!(lasts(1_600, 1_000, 600), "just given");
        assert!(lasts(1_600, 1_599, 600));
        assert!(!lasts(1_600, 1_600, 600), "the term is over");
        assert!(!lasts(1_601, 1_000, 600), "given while the clock was ahead");
        assert!(!lasts(u64::MAX, 1_000, 600));
    }
}
