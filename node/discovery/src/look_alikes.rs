//! Warnings of names that two owners have, one of them in a part of the network that this node does not keep.

use farthing_catalog::{Hit, LookAlike, NameLook};
use farthing_protocol::{Listing, Verified};

/// Adds a warning to each hit that has none and that people may take for a listing of another owner that was found elsewhere.
/// Nobody here knows which of the two is older, so both carry one.
pub(super) fn warn_of(hits: &mut [Hit], elsewhere: &[Verified<Listing>]) {
    let looks: Vec<NameLook> = elsewhere.iter().map(|listing| NameLook::of(&listing.name)).collect();
    for Hit { listing, look_alike, .. } in hits.iter_mut().filter(|hit| hit.look_alike.is_none()) {
        let look = NameLook::of(&listing.name);
        let mut others = elsewhere.iter().zip(&looks);
        let other = others.find(|(other, its)| other.owner != listing.owner && look.resembles(its));
        *look_alike = other.map(|(other, _)| LookAlike {
            service: other.service,
            name: other.name.clone(),
            owner: other.owner,
            older: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use farthing_catalog::State;
    use farthing_protocol::{SecretKey, ServiceNonce, Signed};

    use super::*;

    /// The service with this name of the owner with this number.
    fn listing(owner: u8, name: &str) -> Verified<Listing> {
        let key = SecretKey::from_bytes(&[owner; 32]).unwrap();
        let nonce = ServiceNonce::from_bytes([7; 16]);
        let listing = Listing {
            name: name.to_owned(),
            operations_count: 1,
            details_hash: [7; 32],
            details_bytes: 1,
            ..Listing::first("local", key.address(), nonce, 1_767_323_045)
        };
        Signed::sign(&listing, &key).unwrap().verify().unwrap()
    }

    fn hit(owner: u8, name: &str) -> Hit {
        Hit { listing: Listing::clone(&listing(owner, name)), state: State::Live, look_alike: None }
    }

    #[test]
    fn what_resembles_another_owners_listing_elsewhere_carries_a_warning_and_nothing_else_does() {
        let elsewhere = [listing(1, "Earthquakes"), listing(2, "Tides of Cork")];
        let mut hits = [hit(3, "Earthquake"), hit(1, "Earthquakes"), hit(3, "Exoplanets")];
        warn_of(&mut hits, &elsewhere);
        let other = hits[0].look_alike.as_ref().expect("one letter apart");
        assert_eq!((other.service, other.owner), (elsewhere[0].service, elsewhere[0].owner));
        assert!(!other.older, "nobody knows");
        assert!(hits[1..].iter().all(|hit| hit.look_alike.is_none()), "{hits:?}");
    }
}
