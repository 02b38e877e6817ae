//! Who there is: ids, places, addresses, and records that nobody can forge.

use farthing_directory::{
    Contact, Dice, Key, Verifier,
    records::{Facts, Untrue},
    wire::{Filed, Name},
};

/// The wall clock when a simulation begins.
pub(crate) const START_SECS: u64 = 1_800_000_000;
const LIFETIME_SECS: u64 = 48 * 3600;
/// Networks that nodes lie in: the first of them hold two in a hundred, the last ones one in thousands.
const NETWORKS: u64 = 2000;

/// One participant, as it is seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) contact: Contact,
    pub(crate) record: Name,
    /// On a square of a thousand by a thousand.
    x: u32,
    y: u32,
    /// The others speak TCP alone, whose handshake takes one more round trip.
    pub(crate) is_quic: bool,
}

impl Person {
    pub(crate) fn new(number: u32, dice: &mut Dice) -> Self {
        let network = dice.below(1000) * dice.below(1000) * NETWORKS / 1_000_000;
        Self::at(number, dice.throw(), address(network, dice), dice)
    }

    /// With an id of this lot's and at this address.
    pub(crate) fn at(number: u32, lot: u64, address: [u8; 8], dice: &mut Dice) -> Self {
        let contact = Contact::new(&id(lot), [address]).expect("an id of 39 bytes");
        let mut place = || u32::try_from(dice.below(1000)).expect("less than a thousand");
        let (x, y) = (place(), place());
        Self { contact, record: record_name(number, lot), x, y, is_quic: dice.happens(700) }
    }

    /// The round trip to another, in microseconds: 82 ms in the middle.
    pub(crate) fn round_trip(&self, other: &Self, dice: &mut Dice) -> u64 {
        let (dx, dy) = (self.x.abs_diff(other.x), self.y.abs_diff(other.y));
        let base = 10_000 + 140 * u64::from((dx * dx + dy * dy).isqrt());
        base * (900 + 400 * dice.below(1000) * dice.below(1000) / 1_000_000) / 1000
    }

    pub(crate) fn key(&self) -> Key {
        self.contact.key()
    }
}

/// An id as wallets have them: an identity multihash of a secp256k1 key.
pub(crate) fn id(lot: u64) -> [u8; 39] {
    let mut id = [0; 39];
    id[..6].copy_from_slice(&[0, 0x25, 8, 2, 0x12, 0x21]);
    id[6..14].copy_from_slice(&lot.to_be_bytes());
    id
}

/// A public address in this network: `/ip4/…/tcp/3001`.
pub(crate) fn address(network: u64, dice: &mut Dice) -> [u8; 8] {
    let [.., high, low] = network.to_be_bytes();
    let [.., c, d] = dice.throw().to_be_bytes();
    [4, 11 + high % 80, low, c, d, 6, 0x0b, 0xb9]
}

fn record_name(number: u32, lot: u64) -> Name {
    let wallet = [&number.to_be_bytes()[..], &lot.to_be_bytes(), &[0; 8]].concat();
    [b"/farthing/record/".as_slice(), &wallet].concat().into()
}

/// The record of a participant with this number.
pub(crate) fn record(person: &Person, seq: u64) -> Filed {
    let issued_secs = START_SECS + seq;
    let publisher = person.contact.id().iter().copied();
    let value = seq.to_be_bytes().into_iter().chain(issued_secs.to_be_bytes()).chain(publisher);
    Filed { name: person.record.clone(), value: value.collect() }
}

/// Believes what has the form of a record: nobody in the simulation writes one for somebody else.
#[derive(Clone, Debug)]
pub(crate) struct Notary;

impl Verifier for Notary {
    type Document = ();

    fn verify(&self, filed: &Filed) -> Result<(Facts, ()), Untrue> {
        let (seq, rest) = filed.value.split_first_chunk().ok_or(Untrue::Malformed)?;
        let (issued, id) = rest.split_first_chunk().ok_or(Untrue::Malformed)?;
        let (seq, issued_secs) = (u64::from_be_bytes(*seq), u64::from_be_bytes(*issued));
        let expires_secs = issued_secs + LIFETIME_SECS;
        Ok((Facts { publisher: Key::of(id), seq, issued_secs, expires_secs }, ()))
    }

    fn is_peer(&self, _: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_82_milliseconds_in_the_middle_and_no_record_is_anothers() {
        let mut dice = Dice::new(7);
        let people: Vec<Person> = (0..400).map(|n| Person::new(n, &mut dice)).collect();
        let mut times: Vec<u64> =
            people.windows(2).map(|two| two[0].round_trip(&two[1], &mut dice)).collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        assert!((70_000..95_000).contains(&middle), "{middle}");
        let (one, other) = (record(&people[0], 3), record(&people[1], 3));
        assert!(one.name != other.name && one.value != other.value);
        assert_eq!(Notary.verify(&one).unwrap().0.publisher, people[0].key());
    }
}
