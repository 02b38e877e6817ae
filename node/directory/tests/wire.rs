//! The messages against libp2p's description of them, `dht.proto`, as prost makes it: the bytes are the same both ways.

use farthing_directory::{
    ADDRESS_BYTES_MAX, ADDRESSES_MAX, Contact, K,
    wire::{Filed, MESSAGE_BYTES_MAX, Malformed, NAME_BYTES_MAX, Request, Response, VALUE_BYTES_MAX},
};
use proptest::{collection::vec, prelude::*};
use prost::Message as _;

/// `Message` of `dht.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    record: Option<Record>,
    #[prost(message, repeated, tag = "8")]
    closer_peers: Vec<Peer>,
    #[prost(message, repeated, tag = "9")]
    provider_peers: Vec<Peer>,
    #[prost(int32, tag = "10")]
    cluster_level_raw: i32,
}

/// `Record` of `dht.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(string, tag = "5")]
    time_received: String,
    #[prost(bytes = "vec", tag = "666")]
    publisher: Vec<u8>,
    #[prost(uint32, tag = "777")]
    ttl: u32,
}

/// `Message.Peer` of `dht.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct Peer {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    addrs: Vec<Vec<u8>>,
    #[prost(int32, tag = "3")]
    connection: i32,
}

fn filed(name: &[u8], value: &[u8]) -> Filed {
    Filed { name: name.into(), value: value.into() }
}

fn record(filed: &Filed) -> Record {
    Record { key: filed.name.to_vec(), value: filed.value.to_vec(), ..Record::default() }
}

/// As libp2p-kad 0.49 writes it, in `protocol.rs`.
fn request_of_libp2p(request: &Request) -> Message {
    match request {
        Request::FindNode { name } => {
            Message { kind: 4, key: name.to_vec(), cluster_level_raw: 10, ..Message::default() }
        }
        Request::GetValue { name } => {
            Message { kind: 1, key: name.to_vec(), cluster_level_raw: 10, ..Message::default() }
        }
        Request::PutValue(filed) => {
            Message { kind: 0, key: filed.name.to_vec(), record: Some(record(filed)), ..Message::default() }
        }
    }
}

fn response_of_libp2p(response: &Response) -> Message {
    let peers = |closer: &[Contact]| {
        let peer = |contact: &Contact| {
            let addrs = contact.addresses().iter().map(|address| address.to_vec()).collect();
            Peer { id: contact.id().to_vec(), addrs, connection: 0 }
        };
        closer.iter().map(peer).collect()
    };
    match response {
        Response::FindNode { closer } => {
            Message { kind: 4, closer_peers: peers(closer), cluster_level_raw: 9, ..Message::default() }
        }
        Response::GetValue { found, closer } => Message {
            kind: 1,
            record: found.as_ref().map(record),
            closer_peers: peers(closer),
            cluster_level_raw: 9,
            ..Message::default()
        },
        Response::PutValue(filed) => {
            Message { kind: 0, key: filed.name.to_vec(), record: Some(record(filed)), ..Message::default() }
        }
    }
}

fn any_filed() -> impl Strategy<Value = Filed> {
    let (name, value) = (vec(any::<u8>(), 1..=NAME_BYTES_MAX), vec(any::<u8>(), 0..=VALUE_BYTES_MAX));
    (name, value).prop_map(|(name, value)| filed(&name, &value))
}

fn any_request() -> impl Strategy<Value = Request> {
    (0..3, any_filed()).prop_map(|(kind, filed)| match kind {
        0 => Request::FindNode { name: filed.name },
        1 => Request::GetValue { name: filed.name },
        _ => Request::PutValue(filed),
    })
}

fn any_peers() -> impl Strategy<Value = Vec<Contact>> {
    let addresses = vec(vec(any::<u8>(), 1..=40), 0..=ADDRESSES_MAX);
    let peer = (vec(any::<u8>(), 1..=39), addresses);
    vec(peer.prop_map(|(id, addresses)| Contact::new(&id, addresses).unwrap()), 0..=K)
}

fn any_response() -> impl Strategy<Value = Response> {
    (0..4, any_filed(), any_peers()).prop_map(|(kind, filed, closer)| match kind {
        0 => Response::FindNode { closer },
        1 => Response::GetValue { found: None, closer },
        2 => Response::GetValue { found: Some(filed), closer },
        _ => Response::PutValue(filed),
    })
}

proptest! {
    #[test]
    fn requests_are_libp2ps(request in any_request()) {
        let bytes = request_of_libp2p(&request).encode_to_vec();
        prop_assert_eq!(&request.encode(), &bytes);
        prop_assert_eq!(Request::decode(&bytes), Ok(request));
    }

    #[test]
    fn responses_are_libp2ps(response in any_response()) {
        let bytes = response_of_libp2p(&response).encode_to_vec();
        prop_assert_eq!(&response.encode(), &bytes);
        prop_assert_eq!(Response::decode(&bytes), Ok(response));
    }

    /// What libp2p says besides is passed over: publisher, remaining time, connections, providers.
    #[test]
    fn what_is_not_ours_is_passed_over(filed in any_filed(), closer in any_peers(), ttl: u32, connection in 0..4) {
        let response = Response::GetValue { found: Some(filed), closer };
        let mut message = response_of_libp2p(&response);
        message.provider_peers = message.closer_peers.clone();
        message.closer_peers.iter_mut().for_each(|peer| peer.connection = connection);
        let record = message.record.as_mut().unwrap();
        (record.publisher, record.ttl, record.time_received) = (vec![1; 39], ttl, "now".to_owned());
        prop_assume!(message.encoded_len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(Response::decode(&message.encode_to_vec()), Ok(response));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Request::decode(&bytes);
        let _ = Response::decode(&bytes);
    }

    #[test]
    fn a_message_that_was_cut_is_malformed_or_a_shorter_one(response in any_response(), at: prop::sample::Index) {
        let bytes = response.encode();
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(Response::decode(cut).is_ok() == Message::decode(cut).is_ok() || Response::decode(cut).is_err());
    }
}

/// Bytes that nodes of today send.
#[test]
fn golden_messages() {
    let name = b"/farthing/record/".as_slice();
    let get = [&[0x08, 0x01, 0x12, 0x11][..], name, &[0x50, 0x0a]].concat();
    assert_eq!(Request::GetValue { name: name.into() }.encode(), get);
    let find = [&[0x08, 0x04, 0x12, 0x03][..], b"abc", &[0x50, 0x0a]].concat();
    assert_eq!(Request::FindNode { name: b"abc".as_slice().into() }.encode(), find);
    let put = b"\x12\x03abc\x1a\x08\x0a\x03abc\x12\x01v";
    assert_eq!(Request::PutValue(filed(b"abc", b"v")).encode(), put);
    assert_eq!(Response::PutValue(filed(b"abc", b"v")).encode(), put);
    let peer = Contact::new(b"id", [[4, 9, 9, 9, 9, 6, 0x0b, 0xb9]]).unwrap();
    let found = Response::GetValue { found: Some(filed(b"abc", b"v")), closer: vec![peer] };
    let bytes = b"\x08\x01\x1a\x08\x0a\x03abc\x12\x01v\x42\x0e\x0a\x02id\x12\x08\x04\x09\x09\x09\x09\x06\x0b\xb9\x50\x09";
    assert_eq!(found.encode(), bytes);
    assert_eq!(Response::decode(bytes), Ok(found));
}

#[test]
fn each_length_has_its_bound() {
    let long = vec![7; NAME_BYTES_MAX + 1];
    let get = |key: &[u8]| {
        Request::decode(&Message { kind: 1, key: key.to_vec(), ..Message::default() }.encode_to_vec())
    };
    assert!(get(&long[1..]).is_ok());
    assert_eq!(get(&long), Err(Malformed::TooLong("key")));
    assert_eq!(get(&[]), Err(Malformed::Missing("key")));
    let put = |value: usize| {
        let record = Record { key: vec![1], value: vec![7; value], ..Record::default() };
        let message = Message { key: vec![1], record: Some(record), ..Message::default() }.encode_to_vec();
        (Request::decode(&message).map(drop), Response::decode(&message).map(drop))
    };
    assert_eq!(put(VALUE_BYTES_MAX), (Ok(()), Ok(())));
    let too_long = Err(Malformed::TooLong("record"));
    assert_eq!(put(VALUE_BYTES_MAX + 1), (too_long, too_long));
    assert_eq!(Request::decode(&vec![0; MESSAGE_BYTES_MAX + 1]), Err(Malformed::TooLong("message")));
    let none = Message { key: vec![1], ..Message::default() }.encode_to_vec();
    assert_eq!(Request::decode(&none), Err(Malformed::Missing("record")));
    for kind in [2, 3, 5, 6, -1] {
        let message = Message { kind, key: vec![1], ..Message::default() }.encode_to_vec();
        assert!(matches!(Request::decode(&message), Err(Malformed::Type(_))), "{kind}");
        assert!(matches!(Response::decode(&message), Err(Malformed::Type(_))), "{kind}");
    }
}

#[test]
fn peers_beyond_their_bounds_are_left_out() {
    let peer = |n: u8| Peer { id: vec![n; 3], addrs: vec![vec![4, n, n, n, n]], connection: 0 };
    let mut closer_peers: Vec<Peer> = (0..50).map(peer).collect();
    closer_peers[0].id = vec![1; 100];
    closer_peers[1].addrs = vec![vec![7; ADDRESS_BYTES_MAX + 1]];
    let message = Message { kind: 4, closer_peers, ..Message::default() };
    let Ok(Response::FindNode { closer }) = Response::decode(&message.encode_to_vec()) else { panic!() };
    assert_eq!(closer.len(), K);
    assert!(closer[0].id() == [1; 3] && closer[0].addresses().is_empty());
}

#[test]
fn an_answer_always_fits_a_message() {
    let addresses = || (0..8_u8).map(|n| vec![n; ADDRESS_BYTES_MAX]);
    let closer: Vec<Contact> = (0..20_u8).map(|n| Contact::new(&[n; 39], addresses()).unwrap()).collect();
    let found = Some(filed(&[1; NAME_BYTES_MAX], &[2; VALUE_BYTES_MAX]));
    let bytes = Response::GetValue { found, closer: closer.clone() }.encode();
    assert!(bytes.len() <= MESSAGE_BYTES_MAX, "{}", bytes.len());
    let Ok(Response::GetValue { closer: told, .. }) = Response::decode(&bytes) else { panic!() };
    assert!(told.len() > 10 && closer.starts_with(&told), "the nearest of them");
}
