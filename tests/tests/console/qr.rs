//! Reads a QR code out of a page, as a camera would: ISO/IEC 18004, versions 1 to 6 with one alignment pattern at
//! most, without error correction, since nothing damages the drawing.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

/// Light modules around the code.
const QUIET: usize = 4;
const ALPHANUMERIC: &[u8; 45] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

/// The text of the first code in `html`.
pub fn read(html: &str) -> Result<String> {
    let svg = html.split_once("<svg class=\"qr\"").context("no code")?.1;
    let side: usize = between(svg, "viewBox=\"0 0 ", " ")?.parse()?;
    let dark = between(svg, "fill=\"#000000\" d=\"", "\"")?;
    let width = side - 2 * QUIET;
    let mut modules = vec![vec![false; width]; width];
    for module in dark.split('M').filter(|module| !module.is_empty()) {
        let (x, y) = module.split_once('h').context("no module")?.0.split_once(' ').context("no place")?;
        modules[y.parse::<usize>()? - QUIET][x.parse::<usize>()? - QUIET] = true;
    }
    ensure!((21..=41).contains(&width) && width % 4 == 1, "a side of {width} modules");
    text(&codewords(&modules))
}

fn between<'a>(text: &'a str, begins: &str, ends: &str) -> Result<&'a str> {
    let rest = text.split_once(begins).with_context(|| format!("no {begins}"))?.1;
    Ok(rest.split_once(ends).with_context(|| format!("no {ends}"))?.0)
}

/// The bits in their order, the mask taken off. Codes of up to 44 data bytes have one block, nothing interleaved.
fn codewords(modules: &[Vec<bool>]) -> Vec<bool> {
    let width = modules.len();
    // Bits 12 to 10 of the format, beside the upper left finder, XORed with theirs of 101010000010010.
    let mask = (2..5).fold(0, |mask, x| mask << 1 | usize::from(modules[8][x])) ^ 0b101;
    // ISO/IEC 18004, table 10: a module is inverted where its condition is zero.
    let condition = |y: usize, x: usize| match mask {
        0 => (y + x) % 2,
        1 => y % 2,
        2 => x % 3,
        3 => (y + x) % 3,
        4 => (y / 2 + x / 3) % 2,
        5 => y * x % 2 + y * x % 3,
        6 => (y * x % 2 + y * x % 3) % 2,
        _ => ((y + x) % 2 + y * x % 3) % 2,
    };
    let is_masked = |y: usize, x: usize| condition(y, x) == 0;
    let is_function = |y: usize, x: usize| {
        let aligned = |at: usize| width > 21 && (width - 9..width - 4).contains(&at);
        y == 6
            || x == 6
            || y < 9 && x < 9
            || y < 9 && x >= width - 8
            || y >= width - 8 && x < 9
            || aligned(y) && aligned(x)
    };
    let mut bits = Vec::new();
    // Two columns at a time from the right, up and down in turns; the timing column is no part of it.
    let rights = (1..width).rev().step_by(2).map(|right| if right <= 6 { right - 1 } else { right });
    for (turn, right) in rights.enumerate() {
        for step in 0..width {
            let y = if turn % 2 == 0 { width - 1 - step } else { step };
            for x in [right, right - 1] {
                if !is_function(y, x) {
                    bits.push(modules[y][x] != is_masked(y, x));
                }
            }
        }
    }
    bits
}

fn text(bits: &[bool]) -> Result<String> {
    let mut rest = bits.iter();
    let mut take =
        |count: usize| (0..count).fold(0_usize, |n, _| n << 1 | usize::from(rest.next() == Some(&true)));
    let mut text = String::new();
    let letter = |at: usize| ALPHANUMERIC.get(at).map(|byte| char::from(*byte)).context("no such letter");
    loop {
        match take(4) {
            0 => return Ok(text),
            1 => {
                let mut digits = take(10);
                while digits > 0 {
                    let some = digits.min(3);
                    write!(text, "{:0some$}", take(some * 3 + 1))?;
                    digits -= some;
                }
            }
            2 => {
                let letters = take(9);
                for _ in 0..letters / 2 {
                    let pair = take(11);
                    text.push(letter(pair / 45)?);
                    text.push(letter(pair % 45)?);
                }
                if letters % 2 == 1 {
                    text.push(letter(take(6))?);
                }
            }
            4 => {
                for _ in 0..take(8) {
                    text.push(char::from(u8::try_from(take(8))?));
                }
            }
            mode => anyhow::bail!("mode {mode} after `{text}`"),
        }
    }
}
