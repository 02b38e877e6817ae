//! A test's word that is seen although it passes: a measurement, or that there was none.

use std::io::Write as _;

/// Prints a line past the capture of a test's output.
pub fn tell(text: &str) {
    // `eprintln` would be captured. A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}
