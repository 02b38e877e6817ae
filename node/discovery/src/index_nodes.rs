//! Index nodes that a search asks. Wallets are free, so whoever says that it keeps all listings may have thousands of them, and
//! leave out of every answer whom it likes. Pure.
//!
//! Whoever named before what this node holds itself is asked first, then whoever is connected. Of strangers, whose records may
//! name anybody's addresses, one is asked; of two in one network, one. Whoever left out what this node holds is asked last.
//!
//! Those that are asked first can agree on what they leave out of other shards, which nobody here can see. So now and then a
//! search asks a stranger that is drawn by lot, and one other, and waits for both.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    num::NonZeroUsize,
};

use farthing_catalog::{Hit, State};
use farthing_protocol::{Address, Listing};
use lru::LruCache;

const ASKED: usize = 3;
/// One search in so many asks a stranger, beside so many others that it is waited for.
const EXPLORES_EVERY: u64 = 8;
const ASKED_EXPLORING: usize = 2;
/// Those whose last answer is remembered.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");
/// A listing that was updated later may not have come to all yet.
const SPREAD_SECS: u64 = 3600;

/// A node that says that it keeps all listings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) wallet: Address,
    /// Nothing for one that is private or not known.
    pub(super) network: Option<IpAddr>,
    pub(super) is_connected: bool,
}

/// The last answer of a node that could be judged, beside what this node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexAnswer {
    /// Half of it, or more.
    Enough,
    /// Less, and the answer was not cut off.
    TooLittle,
}

/// The answers of index nodes, as far as they could be judged.
#[derive(Debug)]
pub(super) struct IndexAnswers(LruCache<Address, IndexAnswer>);

impl IndexAnswers {
    pub(super) fn new() -> Self {
        Self(LruCache::new(REMEMBERED_MAX))
    }

    /// The nodes that told enough.
    pub(super) fn proven(&self) -> Vec<Address> {
        self.0.iter().filter(|(_, told)| **told == IndexAnswer::Enough).map(|(wallet, _)| *wallet).collect()
    }

    /// Notes an answer that named `named` of `expected` listings. One that `is_cut` may have no room for the others.
    pub(super) fn note(&mut self, wallet: Address, expected: usize, named: usize, is_cut: bool) {
        let told = match named.saturating_mul(2) >= expected {
            _ if expected == 0 => return,
            true => IndexAnswer::Enough,
            false if is_cut => return,
            false => IndexAnswer::TooLittle,
        };
        self.0.put(wallet, told);
    }

    /// Chooses whom to ask, by `lot` among equals and now and then among strangers.
    pub(super) fn choose(&self, candidates: Vec<Candidate>, lot: &RandomState) -> Vec<Address> {
        let explores = lot.hash_one(EXPLORES_EVERY).is_multiple_of(EXPLORES_EVERY);
        self.chosen(candidates, lot, explores)
    }

    fn chosen(&self, mut candidates: Vec<Candidate>, lot: &RandomState, explores: bool) -> Vec<Address> {
        candidates.sort_by_cached_key(|candidate| (self.rank(candidate), lot.hash_one(candidate.wallet)));
        // A network first: whoever has many wallets there has one chance.
        let strangers = candidates.iter().filter(|candidate| explores && self.is_stranger(candidate));
        let drawn = strangers.min_by_key(|one| (lot.hash_one(one.network), lot.hash_one(one.wallet)));
        let asked_max = if drawn.is_some() { ASKED_EXPLORING } else { ASKED };
        let mut chosen: Vec<Candidate> = drawn.into_iter().copied().collect();
        for candidate in candidates {
            let is_twin = |other: &Candidate| {
                other.wallet == candidate.wallet
                    || candidate.network.is_some() && other.network == candidate.network
            };
            let is_one_too_many =
                self.is_stranger(&candidate) && chosen.iter().any(|other| self.is_stranger(other));
            if chosen.len() < asked_max && !is_one_too_many && !chosen.iter().any(is_twin) {
                chosen.push(candidate);
            }
        }
        chosen.into_iter().map(|candidate| candidate.wallet).collect()
    }

    /// Smaller is better.
    fn rank(&self, candidate: &Candidate) -> u8 {
        match (self.0.peek(&candidate.wallet), candidate.is_connected) {
            (Some(IndexAnswer::Enough), true) => 0,
            (Some(IndexAnswer::Enough), false) => 1,
            (None, true) => 2,
            (None, false) => 3,
            (Some(IndexAnswer::TooLittle), true) => 4,
            (Some(IndexAnswer::TooLittle), false) => 5,
        }
    }

    /// Returns whether a dial of it would go where nobody who proved anything said.
    fn is_stranger(&self, candidate: &Candidate) -> bool {
        !candidate.is_connected && self.0.peek(&candidate.wallet) != Some(&IndexAnswer::Enough)
    }
}

/// Returns whether a node that keeps all has a listing that is held here and was found by `words`: it may not know its operations,
/// nor an owner that is away, nor what is new.
pub(super) fn is_expected(hit: &Hit, words: &str, now_secs: u64) -> bool {
    hit.state == State::Live
        && hit.listing.updated_secs.saturating_add(SPREAD_SECS) <= now_secs
        && has_words(&hit.listing, words)
}

fn has_words(listing: &Listing, words: &str) -> bool {
    let Listing { name, summary, category, tags, .. } = listing;
    let text = [name, summary, category, &tags.join(" ")].map(|text| text.to_lowercase()).join(" ");
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use farthing_protocol::ServiceNonce;

    use super::*;

    fn wallet(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    /// The node with this number, in a network of its own.
    fn candidate(n: u8, is_connected: bool) -> Candidate {
        Candidate { wallet: wallet(n), network: Some([9, n, 0, 0].into()), is_connected }
    }

    fn chosen(answers: &IndexAnswers, candidates: &[Candidate]) -> Vec<Address> {
        answers.chosen(candidates.to_vec(), &RandomState::new(), false)
    }

    #[test]
    fn one_stranger_is_dialled_for_a_search_however_many_wallets_say_that_they_keep_all() {
        let answers = IndexAnswers::new();
        let strangers: Vec<Candidate> = (1..=200).map(|n| candidate(n, false)).collect();
        assert_eq!(chosen(&answers, &strangers).len(), 1);
        let connected = [candidate(201, true), candidate(202, true)];
        let all = [&strangers[..], &connected].concat();
        let asked = chosen(&answers, &all);
        assert_eq!(asked.len(), ASKED);
        assert!(connected.iter().all(|neighbour| asked.contains(&neighbour.wallet)), "{asked:?}");
    }

    #[test]
    fn a_stranger_is_asked_now_and_then_however_many_that_are_connected_agree() {
        let mut answers = IndexAnswers::new();
        let connected = [1, 2, 3].map(|n| candidate(n, true));
        (1..=3).for_each(|n| answers.note(wallet(n), 4, 4, false));
        let all = [&connected[..], &[candidate(4, false)]].concat();
        let explored = answers.chosen(all.clone(), &RandomState::new(), true);
        assert_eq!((explored[0], explored.len()), (wallet(4), ASKED_EXPLORING), "both are waited for");
        assert!(!chosen(&answers, &all).contains(&wallet(4)));
        assert_eq!(
            answers.chosen(connected.to_vec(), &RandomState::new(), true).len(),
            ASKED,
            "nobody else is there"
        );
        let asks_stranger = |_: &u32| answers.choose(all.clone(), &RandomState::new()).contains(&wallet(4));
        let times = (0..1_000).filter(asks_stranger).count();
        // 125, and by chance never so far from it.
        assert!((50..=220).contains(&times), "{times} of a thousand searches, and not one in eight");
        // Two hundred wallets in one network have no more chances than one in another.
        let crowd =
            (5..=204).map(|n| Candidate { network: Some([9, 9, 0, 0].into()), ..candidate(n, false) });
        let all: Vec<Candidate> = all.into_iter().chain(crowd).collect();
        let asks_lonely = |_: &u32| answers.chosen(all.clone(), &RandomState::new(), true)[0] == wallet(4);
        assert!((0..1_000).filter(asks_lonely).count() > 250, "about every second time");
    }

    #[test]
    fn whoever_named_what_is_held_here_is_asked_first_and_whoever_left_it_out_last() {
        let mut answers = IndexAnswers::new();
        let all: Vec<Candidate> = (1..=6).map(|n| candidate(n, n != 1)).collect();
        answers.note(wallet(1), 4, 2, false);
        answers.note(wallet(2), 4, 4, true);
        (3..=4).for_each(|n| answers.note(wallet(n), 4, 1, false));
        let asked = chosen(&answers, &all);
        assert_eq!(asked[..2], [wallet(2), wallet(1)]);
        assert!(asked[2] == wallet(5) || asked[2] == wallet(6), "{asked:?}");
        assert_eq!(chosen(&answers, &all[2..4]).len(), 2, "nobody else is there");
        let mut proven = answers.proven();
        proven.sort_unstable();
        assert_eq!(proven, [wallet(1), wallet(2)]);
        answers.note(wallet(3), 4, 4, false);
        assert!(chosen(&answers, &all).contains(&wallet(3)), "it told all since");
    }

    #[test]
    fn what_says_nothing_of_an_index_node_is_held_against_none() {
        let mut answers = IndexAnswers::new();
        answers.note(wallet(1), 0, 0, false);
        answers.note(wallet(2), 4, 1, true);
        assert!(answers.0.is_empty());
    }

    #[test]
    fn of_two_index_nodes_in_one_network_one_is_asked() {
        let in_one = |n| Candidate { network: Some([9, 9, 0, 0].into()), ..candidate(n, true) };
        let all = [in_one(1), in_one(2), in_one(3), candidate(4, true)];
        let asked = chosen(&IndexAnswers::new(), &all);
        assert!(asked.len() == 2 && asked.contains(&wallet(4)), "{asked:?}");
        let private = |n| Candidate { network: None, ..candidate(n, true) };
        assert_eq!(chosen(&IndexAnswers::new(), &[private(1), private(1), private(2)]).len(), 2);
    }

    #[test]
    fn a_listing_is_expected_of_others_once_it_had_time_to_come_to_them() {
        const NOW_SECS: u64 = 1_767_323_045;
        let hit = |updated_secs| {
            let nonce = ServiceNonce::from_bytes([1; 16]);
            let listing = Listing {
                name: "Tides of Cork".to_owned(),
                tags: vec!["water".to_owned()],
                ..Listing::first("local", wallet(1), nonce, updated_secs)
            };
            Hit { listing, state: State::Live, look_alike: None }
        };
        let old = hit(NOW_SECS - SPREAD_SECS);
        assert!(is_expected(&old, "", NOW_SECS) && is_expected(&old, "WATER tides", NOW_SECS));
        assert!(!is_expected(&old, "get /levels", NOW_SECS), "found by its operations");
        assert!(!is_expected(&hit(NOW_SECS - SPREAD_SECS + 1), "", NOW_SECS));
        assert!(!is_expected(&Hit { state: State::Away, ..old }, "", NOW_SECS));
    }
}
