//! Runs the entry that the variable `ENTRY` names under libFuzzer.
#![no_main]

use std::{env, sync::LazyLock};

mod entries;

type Entry = fn(&[u8]) -> bool;

static ENTRIES: [(&str, Entry); 10] = [
    ("answer", entries::answer),
    ("document", entries::document),
    ("fields", entries::fields),
    ("form", entries::form),
    ("introspection", entries::introspection),
    ("openapi", entries::openapi),
    ("outline", entries::outline),
    ("paths", entries::paths),
    ("sdl", entries::sdl),
    ("yaml", entries::yaml),
];

static CHOSEN: LazyLock<Entry> = LazyLock::new(|| {
    let name = env::var("ENTRY").unwrap_or_default();
    let chosen = ENTRIES.iter().find(|(known, _)| *known == name);
    chosen.unwrap_or_else(|| panic!("ENTRY=`{name}` names no entry")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (*CHOSEN)(bytes);
});
