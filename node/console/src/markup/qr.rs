//! A text as a QR code, black on white in either theme: cameras do not read the other way round.

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode, Version, bits::Bits};

use super::{Markup, push_escaped};

/// Light modules around the code, after ISO/IEC 18004.
const QUIET: usize = 4;

/// The smallest code that holds `text` as bytes. The library's own choice changes between alphabets within an address so
/// often that nearly every second one comes out larger, and harder to read from a screen.
fn smallest(text: &str) -> Option<QrCode> {
    (1..=40).map(Version::Normal).find_map(|version| {
        let mut bits = Bits::new(version);
        bits.push_byte_data(text.as_bytes()).ok()?;
        bits.push_terminator(EcLevel::M).ok()?;
        QrCode::with_bits(bits, EcLevel::M).ok()
    })
}

/// The code of `text`, named by `label`; nothing when the text is too long for one.
pub(crate) fn code(text: &str, label: &str) -> Markup {
    let Some(code) = smallest(text) else { return Markup::default() };
    let width = code.width();
    let mut path = String::new();
    for (index, _) in code.to_colors().iter().enumerate().filter(|(_, color)| **color == Color::Dark) {
        let _ = write!(path, "M{} {}h1v1h-1z", index % width + QUIET, index / width + QUIET);
    }
    let side = width + 2 * QUIET;
    let mut escaped = String::new();
    push_escaped(&mut escaped, label);
    Markup(format!(
        r##"<svg class="qr" viewBox="0 0 {side} {side}" role="img" aria-label="{escaped}" shape-rendering="crispEdges"><path fill="#ffffff" d="M0 0h{side}v{side}H0z"/><path fill="#000000" d="{path}"/></svg>"##
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_square_and_its_label_is_text() {
        let code_of = code("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf", "\"><script>").to_string();
        assert!(code_of.starts_with("<svg class=\"qr\" viewBox=\"0 0 37 37\""), "{code_of}");
        assert!(!code_of.contains("<script>") && code_of.len() < 12_000, "{}", code_of.len());
        assert!(code(&"x".repeat(5_000), "").is_empty());
    }
}
