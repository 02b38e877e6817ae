//! The bytes two nodes exchange, pinned: `golden/files/*.txt` hold one fixed example of every message and document.
//!
//! A change of these files is a change of the protocol. When that is meant, run
//!
//! ```text
//! FARTHING_GOLDEN=write cargo test -p farthing-protocol --test properties golden
//! ```
//!
//! and read the difference. Each example has its bytes in hexadecimal and, below, what they say. The digests
//! in `digests.txt` are never written by this program: `digests.mjs` computes them from the specifications
//! alone, in another language.

mod diagnostic;

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf};

use farthing_protocol::{
    ChannelConfig, CloseConsent, CloseRequest, Listing, NodeRecord, Receipt, Refusal, Signed,
    call_stream::{FrameHead, FrameHeadError, FrameKind},
    listing::Details,
    wire,
};
use minicbor::{Decode, Encode};

use crate::examples;
use diagnostic::diagnostic;

#[test]
fn messages_of_a_call_keep_their_bytes() {
    check("call_message", &examples::call_messages());
    check("call_reply", &examples::call_replies());
    check::<Refusal>("refusal", &examples::refusals());
}

#[test]
fn frames_of_a_kept_stream_keep_their_beginnings() {
    let head = |kind, is_last, number, head_bytes| FrameHead { kind, is_last, number, head_bytes };
    let frames = [
        ("0000 00000001 000000a0", head(FrameKind::Request, false, 1, 160)),
        ("0100 00000001 00000120", head(FrameKind::Reply, false, 1, 288)),
        ("0000 01020304 00008000", head(FrameKind::Request, false, 0x0102_0304, 32_768)),
        ("0101 ffffffff 00000000", head(FrameKind::Reply, true, u32::MAX, 0)),
    ];
    for (bytes, frame) in frames {
        assert_eq!(hex(&frame.to_bytes()), bytes.replace(' ', ""), "{frame:?}");
        assert_eq!(FrameHead::from_bytes(frame.to_bytes()), Ok(frame));
    }
    // Reserved: an answer that flows, its end, a voucher for what follows, a root of receipts.
    for (number, kind) in
        [(2, FrameKind::Data), (3, FrameKind::End), (4, FrameKind::Voucher), (5, FrameKind::ReceiptRoot)]
    {
        let reserved = [number, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(FrameHead::from_bytes(reserved), Err(FrameHeadError::Reserved(kind)));
    }
}

#[test]
fn messages_of_info_keep_their_bytes() {
    check("info_request", &examples::info_requests());
    check("info_response", &examples::info_responses());
}

#[test]
fn messages_of_sync_keep_their_bytes() {
    check("sync_message", &examples::sync_messages());
}

#[test]
fn messages_about_records_keep_their_bytes() {
    check("records_message", &examples::records_messages());
}

#[test]
fn messages_of_reach_keep_their_bytes() {
    check("reach_request", &examples::reach_requests());
    check("reach_response", &examples::reach_responses());
}

#[test]
fn documents_keep_their_bytes() {
    check::<NodeRecord>("node_record", &[("a record", examples::node_record())]);
    check::<Signed<NodeRecord>>("signed_node_record", &[("as it travels", examples::signed_record())]);
    check::<Listing>("listing", &[("a listing", examples::listing())]);
    check::<Signed<Listing>>("signed_listing", &[("as it travels", examples::signed_listing())]);
    check::<Details>("details", &[("the details it pins", examples::details())]);
}

#[test]
fn payment_types_keep_their_bytes() {
    check::<Receipt>("receipt", &[("a receipt", examples::receipt())]);
    check::<CloseConsent>("close_consent", &[("the payee agrees to a close", examples::close_consent())]);
    check::<CloseRequest>("close_request", &[("the payer asks to close", examples::close_request())]);
    check::<ChannelConfig>("channel_config", &[("the terms of a channel", examples::channel_config())]);
}

#[test]
fn digests_are_those_an_independent_program_computes() {
    let text = std::fs::read_to_string(file("digests")).unwrap();
    let computed: Vec<(&str, &str)> = text.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let ours: Vec<(&str, String)> =
        examples::digests().into_iter().map(|(name, hash)| (name, hex(&hash))).collect();
    let ours: Vec<(&str, &str)> = ours.iter().map(|(name, hash)| (*name, hash.as_str())).collect();
    assert_eq!(ours, computed, "see digests.mjs");
}

/// Compares the file with what the examples encode to, and what its bytes decode to with the examples.
fn check<T>(name: &str, examples: &[(&str, T)])
where
    T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + std::fmt::Debug,
{
    let mut text = String::new();
    for (title, value) in examples {
        let bytes = wire::encode(value);
        writeln!(text, "# {title}: {} bytes", bytes.len()).unwrap();
        for line in bytes.chunks(48) {
            writeln!(text, "= {}", hex(line)).unwrap();
        }
        writeln!(text, "{}\n", diagnostic(&bytes)).unwrap();
    }
    if std::env::var("FARTHING_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(file(name), &text).unwrap();
    }
    let kept = std::fs::read_to_string(file(name)).unwrap_or_default();
    assert_eq!(kept, text, "{name} is encoded differently; if that is meant, see the top of this file");
    for (section, (title, value)) in kept.split_terminator("\n\n").zip(examples) {
        let digits: String = section.lines().filter_map(|line| line.strip_prefix("= ")).collect();
        assert_eq!(wire::decode::<T>(&unhex(&digits)).as_ref(), Ok(value), "{name}: {title}");
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/properties/golden/files")
        .join(format!("{name}.txt"))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// Every message has an example: a variant whose number decodes is among those that are encoded.
fn has_every_variant<T: for<'b> Decode<'b, ()> + Encode<()>>(what: &str, examples: &[(&str, T)]) {
    let numbers: BTreeSet<u8> = examples.iter().map(|(_, example)| wire::encode(example)[1]).collect();
    // Numbers below 24 are one byte of CBOR. A variant that is known misses its fields; another one is unknown.
    let is_known = |number: &u8| {
        let refused = minicbor::decode::<T>(&[0x82, *number, 0x80]);
        !refused.err().is_some_and(|error| error.is_unknown_variant())
    };
    let known: BTreeSet<u8> = (0..24).filter(is_known).collect();
    assert_eq!(numbers, known, "{what}: add an example to tests/support/examples.rs");
}

#[test]
fn every_variant_of_a_message_has_an_example() {
    has_every_variant("call_message", &examples::call_messages());
    has_every_variant("call_reply", &examples::call_replies());
    has_every_variant("info_request", &examples::info_requests());
    has_every_variant("info_response", &examples::info_responses());
    has_every_variant("sync_message", &examples::sync_messages());
    has_every_variant("records_message", &examples::records_messages());
    has_every_variant("reach_response", &examples::reach_responses());
}
