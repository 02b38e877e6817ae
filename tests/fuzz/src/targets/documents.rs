//! Documents that nodes publish: listings, node records, details, descriptions.

use std::fmt::Debug;

use farthing_bridge::{description::ApiDescription, document, graphql, openapi};
use farthing_protocol::{
    Listing, NodeRecord, ServiceId, Signed, Verified, keccak256,
    limits::OPERATIONS_MAX,
    listing::Details,
    plain::Line,
    signed::Document,
    wire::{self, NetworkName},
};

use crate::{corpora, examples, readers::read};

/// The bytes of a listing, which its owner signs whatever they are.
pub(super) fn listing(bytes: &[u8]) -> bool {
    let Some(verified) = signed_by_owner::<Listing>(bytes) else { return false };
    let listing: &Listing = &verified;
    assert_eq!(listing.service, ServiceId::derive(listing.owner, listing.nonce), "the service is its own");
    assert!(NetworkName::new(listing.network.as_str()).is_ok());
    assert_eq!(Line::Prose.check(&listing.summary), Ok(()));
    for name in [&listing.name, &listing.category].into_iter().chain(&listing.tags) {
        assert_eq!(Line::Name.check(name), Ok(()), "{name:?}");
    }
    true
}

pub(super) fn known_listings() -> Vec<Vec<u8>> {
    let listing = examples::listing();
    let retired = Listing { tombstone: true, paused: true, history: None, ..listing.clone() };
    vec![wire::encode(&listing), wire::encode(&retired)]
}

/// The bytes of a node record, likewise.
pub(super) fn record(bytes: &[u8]) -> bool {
    let Some(verified) = signed_by_owner::<NodeRecord>(bytes) else { return false };
    let record: &NodeRecord = &verified;
    assert_eq!(record.public_key.address(), examples::owner().address(), "it is its signer's");
    for now_secs in [0, record.issued_secs, record.expires_secs, u64::MAX] {
        let is_usable = record.check_time(now_secs).is_ok();
        assert!(!(is_usable && record.has_expired(now_secs)));
    }
    true
}

pub(super) fn known_records() -> Vec<Vec<u8>> {
    vec![wire::encode(&examples::node_record())]
}

/// Has the owner sign bytes as a document. Returns it if it is valid; then it can be signed, kept and passed on.
fn signed_by_owner<T: Document + PartialEq + Debug>(bytes: &[u8]) -> Option<Verified<T>> {
    let key = examples::owner();
    let verified = sealed::<T>(bytes)?.verify().ok()?;
    assert!(Signed::<T>::sign(&verified, &key).is_ok(), "what may be read may be written");
    assert_eq!(verified.signer(), key.address());
    assert_eq!(verified.to_signed().content_hash(), keccak256(&[bytes]), "every byte is passed on");
    assert_eq!(verified.pack().unpack(), verified);
    Some(verified)
}

/// Bytes with the owner's signature; nothing if they are no document of this kind, which saves a signature.
fn sealed<T: Document>(bytes: &[u8]) -> Option<Signed<T>> {
    const WRITTEN: &str = "memory can be written";
    wire::decode::<T>(bytes).ok()?;
    let parts: [&[u8]; 4] = [b"\x19Farthing signed document:\0", T::DOMAIN.as_bytes(), b"\0", bytes];
    let signature = examples::owner().sign(&keccak256(&parts));
    let mut out = Vec::new();
    let mut encoder = minicbor::Encoder::new(&mut out);
    encoder.map(2).expect(WRITTEN).u8(0).expect(WRITTEN).bytes(bytes).expect(WRITTEN);
    encoder.u8(1).expect(WRITTEN).encode(signature).expect(WRITTEN);
    wire::decode(&out).ok()
}

/// Documents with their signatures: whatever is changed in one, none counts that nobody signed.
pub(super) fn signed(bytes: &[u8]) -> bool {
    let record = read::<Signed<NodeRecord>>(bytes);
    let listing = read::<Signed<Listing>>(bytes);
    let is_record = record.is_some_and(|signed| is_genuine(&signed, &examples::node_record()));
    listing.is_some_and(|signed| is_genuine(&signed, &examples::listing())) || is_record
}

pub(super) fn known_signed() -> Vec<Vec<u8>> {
    vec![wire::encode(&examples::signed_record()), wire::encode(&examples::signed_listing())]
}

/// Returns whether a document's signature counts; then it is the one that was signed.
pub(super) fn is_genuine<T: Document + PartialEq + Debug>(signed: &Signed<T>, original: &T) -> bool {
    let _ = signed.has_form();
    let Ok(verified) = signed.clone().verify() else { return false };
    assert_eq!(*verified, *original, "nobody signed this");
    true
}

/// Details that a listing pins, whatever they are, and the description in them.
pub(super) fn details(bytes: &[u8]) -> bool {
    let details_bytes = u32::try_from(bytes.len()).expect("inputs are small");
    let listing = Listing { details_hash: keccak256(&[bytes]), details_bytes, ..examples::listing() };
    let Ok(details) = Details::from_blob(bytes, &listing) else { return false };
    assert!(details.prices.len() <= OPERATIONS_MAX);
    let _ = document::decode(&details.api);
    true
}

pub(super) fn known_details() -> Vec<Vec<u8>> {
    let api = openapi::read(corpora::OPENAPI[0]).expect("the document is valid").description;
    let api = document::encode(&api).expect("it is small");
    vec![examples::details().to_blob().0, Details { api, ..examples::details() }.to_blob().0]
}

/// The text of descriptions, and one as it is packed.
pub(super) fn known_descriptions() -> Vec<Vec<u8>> {
    let rest = openapi::read(corpora::OPENAPI[0]).expect("the document is valid").description;
    let mut reading = graphql::sdl::read(corpora::SDL[0]).expect("so is the schema");
    let of_graphql = graphql::describe(reading.schema, "Library", &mut reading.report);
    let text = |description: &ApiDescription| serde_json::to_vec(description).expect("a description is text");
    vec![text(&rest), text(&of_graphql), document::encode(&rest).expect("it is small")]
}
