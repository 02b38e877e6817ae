//! Peers, records and answers for the tests of several modules.

use std::time::Duration;

use crate::{
    Contact,
    question::{AnsweringPeer, Question},
    records::{Facts, Untrue, VerifiedRecord, Verifier},
    wire::{Filed, Name, Request, Response},
};

/// An address of a public network of its own, for each number below 20,000.
pub(crate) fn place(n: u32) -> [u8; 4] {
    let [_, _, high, low] = n.to_be_bytes();
    [11 + high % 80, low, 1, 1]
}

pub(crate) fn contact(n: u32, ip: [u8; 4]) -> Contact {
    let address = [&[4], &ip[..], &[6, 0x0b, 0xb9]].concat();
    Contact::new(&[b"peer".as_slice(), &n.to_be_bytes()].concat(), [address]).unwrap()
}

pub(crate) fn question(contact: Contact, request: Request) -> Question {
    let (slow_at, deadline) = (Duration::from_secs(1), Duration::from_secs(2));
    Question { number: 0, contact, request, is_dial: false, slow_at, deadline, line: 0, named_by: None }
}

pub(crate) fn answered(contact: &Contact) -> AnsweringPeer {
    let request = Request::FindNode { name: contact.id().into() };
    question(contact.clone(), request).answered(&Response::FindNode { closer: Vec::new() }, None).unwrap()
}

pub(crate) fn filed(n: u8, value: &[u8]) -> Filed {
    Filed { name: [b"record".as_slice(), &[n]].concat().into(), value: value.into() }
}

pub(crate) const NOW_SECS: u64 = 1_000_000;

/// A verifier of records that are three numbers after a checksum.
#[derive(Clone, Debug)]
pub(crate) struct Notary;

impl Verifier for Notary {
    type Document = ();

    fn verify(&self, filed: &Filed) -> Result<(Facts, ()), Untrue> {
        let [n, seq, issued_secs, expires_secs, sum] = filed.value.as_chunks::<8>().0 else {
            return Err(Untrue::Malformed);
        };
        let [n, seq, issued_secs, expires_secs, sum] =
            [n, seq, issued_secs, expires_secs, sum].map(|number| u64::from_be_bytes(*number));
        if sum != n ^ seq ^ issued_secs ^ expires_secs {
            return Err(Untrue::Forged);
        }
        if *filed.name != *name_of(u32::try_from(n).map_err(|_| Untrue::Malformed)?) {
            return Err(Untrue::Elsewhere);
        }
        let publisher = contact(u32::try_from(n).unwrap(), [9, 9, 9, 9]).key();
        Ok((Facts { publisher, seq, issued_secs, expires_secs }, ()))
    }

    fn is_peer(&self, id: &[u8]) -> bool {
        id.starts_with(b"peer")
    }
}

pub(crate) fn name_of(n: u32) -> Name {
    [b"/record/".as_slice(), &n.to_be_bytes()].concat().into()
}

pub(crate) fn record(n: u32, seq: u64, issued_secs: u64, lifetime_secs: u64) -> VerifiedRecord<()> {
    let expires_secs = issued_secs + lifetime_secs;
    let numbers = [n.into(), seq, issued_secs, expires_secs];
    let sum = numbers.iter().fold(0, |sum, number| sum ^ number);
    let value: Vec<u8> = numbers.iter().chain([&sum]).flat_map(|number| number.to_be_bytes()).collect();
    VerifiedRecord::of(&Notary, Filed { name: name_of(n), value: value.into() }).unwrap()
}
