//! What goes wrong, and who makes it.

use std::collections::HashMap;

use farthing_directory::{
    Contact, Dice, K, Key,
    wire::{Name, Request, Response},
};

use crate::people::{Person, address, id};

/// The kinds of trouble that a network is simulated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adversary {
    /// Everybody is there and honest.
    Nobody,
    /// Some have gone without a word, after they took records.
    Gone,
    /// Some answer nothing any more.
    Silent,
    /// Some acknowledge new records and give the old ones.
    Old,
    /// Some invent peers nearer than all others, and true peers at wrong places.
    Inventing,
    /// Some answer with each other alone.
    Colluding,
    /// Twenty made themselves the nearest to a wallet, and collude. No search survives that.
    Ground,
    /// Those who collude were there first, and have the places in everybody's table. No search survives that either.
    First,
}

impl Adversary {
    /// All, those last that a search need not survive.
    pub const ALL: [Self; 8] = [
        Self::Nobody,
        Self::Gone,
        Self::Silent,
        Self::Old,
        Self::Inventing,
        Self::Colluding,
        Self::Ground,
        Self::First,
    ];

    /// Returns whether look-ups have to find what they look for.
    pub const fn must_be_survived(self) -> bool {
        !matches!(self, Self::Ground | Self::First)
    }

    /// Returns the words for a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Nobody => "all present",
            Self::Gone => "gone",
            Self::Silent => "silent",
            Self::Old => "old records",
            Self::Inventing => "inventing peers",
            Self::Colluding => "colluding",
            Self::Ground => "20 ground ids",
            Self::First => "first to join",
        }
    }

    /// They behave while records are put, and turn afterwards: that is worse than to be no holder.
    pub(crate) const fn turns_after_puts(self) -> bool {
        matches!(self, Self::Gone | Self::Silent)
    }
}

/// Ids that are made up for each node that there is, and how many of them are named to whoever looks for a place: a quarter of
/// these are nearer than everybody, and they are far more than a look-up asks.
const INVENTED_PER_NODE: usize = 50;
const INVENTED: usize = 200;
/// True peers at wrong places in an answer.
const MISPLACED: usize = 5;

/// What a liar does with a request.
pub(crate) enum Lie {
    /// It answers like everybody.
    Truth,
    Silence,
    Answer(Response),
}

/// Peers that are named to whoever looks for one place, made once for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lies {
    adversary: Option<Adversary>,
    liars: Vec<Contact>,
    /// Ids that nobody has, by their lots, in order of their keys.
    invented: Vec<(Key, u64)>,
    for_target: HashMap<Key, Vec<Contact>>,
}

impl Lies {
    /// Of these liars among so many nodes.
    pub(crate) fn new(adversary: Adversary, liars: Vec<Contact>, nodes: usize, dice: &mut Dice) -> Self {
        let count = if adversary == Adversary::Inventing { INVENTED_PER_NODE * nodes } else { 0 };
        let one = |lot| (Key::of(&id(lot)), lot);
        let mut invented: Vec<(Key, u64)> = (0..count).map(|_| one(dice.throw())).collect();
        invented.sort_unstable();
        Self { adversary: Some(adversary), liars, invented, for_target: HashMap::new() }
    }

    /// `nearest` are the true peers nearest to a target.
    pub(crate) fn tell(
        &mut self,
        request: &Request,
        nearest: impl Fn(Key) -> Vec<Contact>,
        dice: &mut Dice,
    ) -> Lie {
        let name = match request {
            Request::PutValue(filed) => return self.on_put(filed),
            Request::FindNode { name } | Request::GetValue { name } => name,
        };
        let target = Key::of(name);
        let pool = self.for_target.entry(target);
        let closer: Vec<Contact> = match self.adversary {
            Some(Adversary::Silent) => return Lie::Silence,
            Some(Adversary::Inventing) => {
                let invented = &self.invented;
                let pool = pool.or_insert_with(|| made_up_near(invented, target, dice));
                let made_up = (0..K - MISPLACED).map(|_| pool[dice.index(pool.len())].clone());
                let made_up: Vec<Contact> = made_up.collect();
                let near = nearest(target);
                let misplaced = (0..MISPLACED).map(|_| misplaced(&near[dice.index(K.min(near.len()))], dice));
                made_up.into_iter().chain(misplaced).collect()
            }
            Some(Adversary::Colluding | Adversary::Ground | Adversary::First) => {
                let liars = &self.liars;
                pool.or_insert_with(|| nearest_of(liars, target)).clone()
            }
            _ => return Lie::Truth,
        };
        Lie::Answer(match request {
            Request::GetValue { .. } => Response::GetValue { found: None, closer },
            _ => Response::FindNode { closer },
        })
    }

    fn on_put(&self, filed: &farthing_directory::wire::Filed) -> Lie {
        match self.adversary {
            Some(Adversary::Silent) => Lie::Silence,
            Some(Adversary::Gone | Adversary::Nobody) | None => Lie::Truth,
            _ => Lie::Answer(Response::PutValue(filed.clone())),
        }
    }
}

fn nearest_of(all: &[Contact], target: Key) -> Vec<Contact> {
    let mut all = all.to_vec();
    all.sort_by_cached_key(|contact| target.distance(contact.key()));
    all.truncate(K);
    all
}

/// Made up peers, at addresses where nobody is.
fn made_up_near(invented: &[(Key, u64)], target: Key, dice: &mut Dice) -> Vec<Contact> {
    let lots = nearest_in(invented, target, INVENTED).into_iter();
    lots.map(|lot| Contact::new(&id(lot), [nowhere(dice)]).expect("an id of 39 bytes")).collect()
}

/// The nearest of a list in order of its keys: they are among the neighbours in order, unless a large subtree ends just there.
pub(crate) fn nearest_in<T: Copy>(sorted: &[(Key, T)], target: Key, count: usize) -> Vec<T> {
    let at = sorted.partition_point(|(key, _)| *key < target);
    let range = at.saturating_sub(3 * count)..(at + 3 * count).min(sorted.len());
    let mut near: Vec<(Key, T)> = sorted[range].to_vec();
    near.sort_by_key(|(key, _)| target.distance(*key));
    near.into_iter().take(count).map(|(_, value)| value).collect()
}

/// A true peer at an address where nobody is.
fn misplaced(peer: &Contact, dice: &mut Dice) -> Contact {
    Contact::new(peer.id(), [nowhere(dice)]).expect("an id of 39 bytes")
}

fn nowhere(dice: &mut Dice) -> [u8; 8] {
    address(dice.below(20_000), dice)
}

/// Participants nearer to `victim` than all of `others`, each in a network of its own.
pub(crate) fn ground(victim: &Name, others: &[Person], first: u32, dice: &mut Dice) -> Vec<Person> {
    let target = Key::of(victim);
    let nearest = others.iter().map(|person| target.distance(person.key())).min();
    let mut made = Vec::new();
    while made.len() < K {
        let lot = dice.throw();
        if nearest.is_none_or(|nearest| target.distance(Key::of(&id(lot))) < nearest) {
            let number = first + u32::try_from(made.len()).expect("twenty");
            let place = address(dice.below(20_000), dice);
            made.push(Person::at(number, lot, place, dice));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(count: u32) -> Vec<Person> {
        let mut dice = Dice::new(1);
        (0..count).map(|n| Person::new(n, &mut dice)).collect()
    }

    #[test]
    fn invented_peers_are_near_and_nowhere() {
        let people = people(400);
        let target = Key::of(&people[0].record);
        let all: Vec<Contact> = people.iter().map(|person| person.contact.clone()).collect();
        let mut dice = Dice::new(3);
        let mut lies = Lies::new(Adversary::Inventing, Vec::new(), all.len(), &mut dice);
        let request = Request::FindNode { name: people[0].record.clone() };
        let Lie::Answer(Response::FindNode { closer }) =
            lies.tell(&request, |target| nearest_of(&all, target), &mut dice)
        else {
            panic!("no lie")
        };
        assert_eq!(closer.len(), K);
        assert!(!closer.iter().any(|contact| all.contains(contact)), "true peers are named elsewhere");
        let true_ids = closer.iter().filter(|named| all.iter().any(|peer| peer.key() == named.key()));
        assert_eq!(true_ids.count(), MISPLACED);
        let twentieth = target.distance(nearest_of(&all, target)[K - 1].key());
        assert!(closer.iter().filter(|named| target.distance(named.key()) <= twentieth).count() >= K - 2);
    }

    #[test]
    fn ground_ids_are_the_nearest_of_all() {
        let people = people(400);
        let target = Key::of(&people[5].record);
        let made = ground(&people[5].record, &people, 400, &mut Dice::new(3));
        let nearest = people.iter().map(|person| target.distance(person.key())).min().unwrap();
        assert_eq!(made.len(), K);
        assert!(made.iter().all(|person| target.distance(person.key()) < nearest));
    }
}
