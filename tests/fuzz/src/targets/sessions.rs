//! What nodes tell each other besides calls: questions, sessions about listings and records, dial-backs, the directory.

use std::sync::LazyLock;

use farthing_directory::{
    Contact,
    wire::{Filed, MESSAGE_BYTES_MAX, Request, Response},
};
use farthing_protocol::{
    Listing, NodeRecord,
    agreement::RecordsMessage,
    info::{InfoRequest, InfoResponse},
    limits::SYNC_FRAME_BYTES_MAX,
    reach::{ReachRequest, ReachResponse},
    reconciliation::{Answers, Batch, Comparison, Picture, compress, unpack},
    signed::{Document, Signed},
    sync::SyncMessage,
    wire,
};

use super::documents::is_genuine;
use crate::{damage, examples, readers::read};

/// Questions of `info/1` and their answers, with the documents in them.
pub(super) fn info(bytes: &[u8]) -> bool {
    let request = read::<InfoRequest>(bytes);
    if let Some(InfoRequest::Push(records)) = &request {
        all_genuine(records, &examples::node_record());
    }
    let response = read::<InfoResponse>(bytes);
    match &response {
        Some(InfoResponse::Records(records)) => all_genuine(records, &examples::node_record()),
        Some(InfoResponse::Listings(listings)) => all_genuine(listings, &examples::listing()),
        _ => {}
    }
    request.is_some() || response.is_some()
}

fn all_genuine<T: Document + PartialEq + std::fmt::Debug>(documents: &[Signed<T>], original: &T) {
    for document in documents {
        is_genuine(document, original);
    }
}

/// Frames of `sync/2` and `records/1`, with what is packed in them.
pub(super) fn sessions(bytes: &[u8]) -> bool {
    let listings = read::<SyncMessage>(bytes);
    match &listings {
        Some(SyncMessage::Compare(message)) => {
            compared(message);
        }
        Some(SyncMessage::Listings(packed)) => unpacked(packed, &examples::listing()),
        _ => {}
    }
    let records = read::<RecordsMessage>(bytes);
    match &records {
        Some(RecordsMessage::Compare(message)) => {
            compared(message);
        }
        Some(RecordsMessage::Records(packed)) => unpacked(packed, &examples::node_record()),
        _ => {}
    }
    listings.is_some() || records.is_some()
}

fn unpacked<T: Document + PartialEq + std::fmt::Debug>(packed: &[u8], original: &T) {
    if let Ok(documents) = unpack::<T>(packed) {
        all_genuine(&documents, original);
    }
}

/// Messages of both sessions, among them real comparisons and batches.
pub(super) fn known_messages() -> Vec<Vec<u8>> {
    let mut listings = Batch::<Listing>::default();
    listings.add(examples::signed_listing());
    let mut records = Batch::<NodeRecord>::default();
    records.add(examples::signed_record());
    let compare = || Comparison::new(PICTURE.clone()).begin().expect("a picture can be compared");
    let packed = "a batch can be packed";
    let messages = [
        SyncMessage::Compare(compare().into()),
        SyncMessage::Listings(listings.pack().expect(packed).into()),
    ];
    let of_records = [
        RecordsMessage::Compare(compare().into()),
        RecordsMessage::Records(records.pack().expect(packed).into()),
    ];
    let mut known = damage::valid();
    known.extend(messages.iter().map(wire::encode));
    known.extend(of_records.iter().map(wire::encode));
    known
}

/// Members of the set that strangers compare with theirs.
const MEMBERS: u8 = 64;

static PICTURE: LazyLock<Picture> =
    LazyLock::new(|| Picture::of((0..MEMBERS).map(|n| (u64::from(n / 4), [n; 32]))));

/// A message of a comparison, before it is compressed, to either side.
pub(super) fn comparison(bytes: &[u8]) -> bool {
    let message = compress(bytes).expect("anything can be compressed");
    if let Ok((difference, _)) = Comparison::new(PICTURE.clone()).learn(&message) {
        assert!(32 * difference.only_there.len() <= bytes.len(), "a name takes its bytes");
    }
    compared(&message)
}

/// Gives a message to both sides of a comparison. Returns whether one of them takes it.
fn compared(message: &[u8]) -> bool {
    let answered = Answers::default().answer(&PICTURE, message);
    if let Ok(answer) = &answered {
        assert!(answer.len() <= SYNC_FRAME_BYTES_MAX, "an answer fits a frame");
    }
    let learned = Comparison::new(PICTURE.clone()).learn(message);
    if let Ok((difference, _)) = &learned {
        let is_member = |item: &[u8; 32]| item[0] < MEMBERS && *item == [item[0]; 32];
        assert!(difference.only_here.iter().all(is_member), "what is here alone is here");
    }
    answered.is_ok() || learned.is_ok()
}

/// Messages of negentropy: empty, with names, with a fingerprint, with ranges.
pub(super) fn known_comparisons() -> Vec<Vec<u8>> {
    const VERSION: u8 = 0x61;
    let (names, fingerprint) = ([[1_u8; 32], [200; 32]].concat(), [7_u8; 16]);
    vec![
        vec![VERSION],
        [&[VERSION, 0, 0, 2, 2][..], &names].concat(),
        [&[VERSION, 0, 0, 1][..], &fingerprint].concat(),
        [&[VERSION, 5, 0, 0, 3, 2, 7, 7, 1][..], &fingerprint, &[0, 0, 2, 1], &names[..32]].concat(),
    ]
}

/// Requests to be dialled, and what became of it.
pub(super) fn reach(bytes: &[u8]) -> bool {
    let request = read::<ReachRequest>(bytes).is_some();
    read::<ReachResponse>(bytes).is_some() || request
}

/// Messages of the directory; what is read is written within a message's bound, and read the same.
pub(super) fn directory(bytes: &[u8]) -> bool {
    let request = Request::decode(bytes);
    if let Ok(request) = &request {
        let written = request.encode();
        assert!(written.len() <= MESSAGE_BYTES_MAX);
        assert_eq!(Request::decode(&written).as_ref(), Ok(request));
    }
    let response = Response::decode(bytes);
    if let Ok(response) = &response {
        let written = response.encode();
        assert!(written.len() <= MESSAGE_BYTES_MAX);
        assert_eq!(Response::decode(&written).as_ref(), Ok(response));
    }
    request.is_ok() || response.is_ok()
}

pub(super) fn known_questions() -> Vec<Vec<u8>> {
    let name = wire::record_key(examples::owner().address());
    let filed =
        || Filed { name: name.as_slice().into(), value: wire::encode(&examples::signed_record()).into() };
    let addresses = [[4_u8, 9, 9, 9, 9, 6, 0x0b, 0xb9], [4, 10, 0, 0, 1, 6, 0x0b, 0xb9]];
    let contact = |n: u8| Contact::new(&[n; 39], addresses).expect("the id is within its bound");
    let closer = || vec![contact(1), contact(2), contact(3)];
    vec![
        Request::FindNode { name: name.as_slice().into() }.encode(),
        Request::GetValue { name: name.as_slice().into() }.encode(),
        Request::PutValue(filed()).encode(),
        Response::FindNode { closer: closer() }.encode(),
        Response::GetValue { found: Some(filed()), closer: closer() }.encode(),
        Response::PutValue(filed()).encode(),
    ]
}
