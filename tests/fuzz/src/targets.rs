//! The targets, each with what is known of its inputs.

use crate::{corpora, damage, entries};

mod agent;
mod backup;
mod calls;
mod chain;
mod documents;
mod gateway;
mod names;
mod sessions;
mod x402;

/// A reader of bytes that strangers send.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Reads, checks what holds of what it accepted, and tells whether it did.
    pub read: fn(&[u8]) -> bool,
    /// Inputs that are known: well-formed ones, and those that broke it once.
    pub known: fn() -> Vec<Vec<u8>>,
    /// The words that texts of its format are made of.
    pub words: &'static [&'static str],
    /// Broken inputs of one run of its test.
    pub inputs: u64,
}

/// Broken inputs of one run of a test.
const INPUTS: u64 = 10_000;
/// The same of a reader that takes a few microseconds.
const INPUTS_OF_QUICK: u64 = 20_000;

/// A target whose format is bytes.
const fn of_bytes(name: &'static str, read: fn(&[u8]) -> bool, known: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, read, known, words: &[], inputs: INPUTS }
}

/// A target whose format is text.
const fn of_text(
    name: &'static str,
    read: fn(&[u8]) -> bool,
    known: fn() -> Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Target {
    Target { name, read, known, words, inputs: INPUTS }
}

const fn quick(target: Target) -> Target {
    Target { inputs: INPUTS_OF_QUICK, ..target }
}

pub const TARGETS: &[Target] = &[
    quick(of_bytes("call_frames", calls::frames, calls::known_frames)),
    quick(of_bytes("call_heads", calls::heads, damage::valid)),
    of_bytes("payments", calls::payments, damage::valid),
    of_bytes("info", sessions::info, damage::valid),
    of_bytes("sessions", sessions::sessions, sessions::known_messages),
    of_bytes("comparison", sessions::comparison, sessions::known_comparisons),
    of_bytes("reach", sessions::reach, damage::valid),
    quick(of_bytes("directory", sessions::directory, sessions::known_questions)),
    of_bytes("listing", documents::listing, documents::known_listings),
    of_bytes("record", documents::record, documents::known_records),
    of_bytes("signed", documents::signed, documents::known_signed),
    of_bytes("details", documents::details, documents::known_details),
    of_text("texts", names::texts, names::known_texts, names::WORDS),
    of_text("call_body", gateway::body, gateway::known_bodies, gateway::BODY_WORDS),
    of_text("call_headers", gateway::headers, gateway::known_headers, gateway::HEADER_WORDS),
    quick(of_text("x402_payment", x402::payment, x402::known_payments, x402::WORDS)),
    of_text("x402_offers", x402::offers, x402::known_offers, x402::WORDS),
    of_text("agent", agent::told, agent::known_texts, agent::WORDS),
    of_text("chain", chain::chain, chain::known_answers, chain::WORDS),
    of_bytes("backup", backup::backup, backup::known_backups),
    of_text("openapi", entries::openapi, || owned(&corpora::OPENAPI), &corpora::OPENAPI_WORDS),
    of_text("yaml", entries::yaml, || owned(&corpora::YAML), &corpora::YAML_WORDS),
    quick(of_text("sdl", entries::sdl, || owned(&corpora::SDL), &corpora::SDL_WORDS)),
    quick(of_text(
        "introspection",
        entries::introspection,
        || owned(&corpora::INTROSPECTION),
        &corpora::INTROSPECTION_WORDS,
    )),
    quick(of_text("paths", entries::paths, || owned(&corpora::CALLS), &corpora::CALL_WORDS)),
    quick(of_text("fields", entries::fields, || owned(&corpora::FIELDS), &corpora::FIELDS_WORDS)),
    quick(of_text("answer", entries::answer, || owned(&corpora::ANSWER), &corpora::ANSWER_WORDS)),
    quick(of_text("form", entries::form, || owned(&corpora::FORM), &corpora::FORM_WORDS)),
    of_text("document", entries::document, documents::known_descriptions, &corpora::OPENAPI_WORDS),
    of_text("outline", entries::outline, || owned(&corpora::OPENAPI), &corpora::OPENAPI_WORDS),
];

fn owned(known: &[&[u8]]) -> Vec<Vec<u8>> {
    known.iter().map(|input| input.to_vec()).collect()
}
