//! Runs the entry `answer` under libFuzzer.
#![no_main]

#[path = "../entries.rs"]
#[allow(dead_code, reason = "every target has one entry")]
mod entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entries::answer(bytes);
});
