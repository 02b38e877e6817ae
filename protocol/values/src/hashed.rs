//! The count of the bytes that each thread has hashed, in development builds: a test compares it with the bodies of a call.

use std::cell::Cell;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn count(parts: &[&[u8]]) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    BYTES.set(BYTES.get() + bytes as u64);
}

/// Returns the bytes that this thread has hashed; 0 in an optimised build.
pub fn bytes() -> u64 {
    BYTES.get()
}
