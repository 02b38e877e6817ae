//! Values as people read them: amounts, times, durations, addresses. Never a float for money.

use std::fmt::Write as _;

use farthing_bridge::is_deceptive;
use farthing_control::types::Eth;
use farthing_os::clock;
use farthing_values::{Address, Usdc};

/// `1,234.50`
pub(super) fn usdc(amount: Usdc) -> String {
    grouped(&amount.to_string())
}

/// `0.0104`: six digits behind the point are more than anybody reads.
pub(super) fn eth(amount: &Eth) -> String {
    let text = amount.to_string();
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.len() > 6 => {
            let fraction = fraction[..6].trim_end_matches('0');
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            format!("{}.{fraction}", grouped(whole))
        }
        _ => grouped(&text),
    }
}

/// Computes the price of a thousand calls.
pub(super) fn per_thousand(price: Usdc) -> String {
    usdc(Usdc::from_micros(price.micros().saturating_mul(1_000)))
}

/// Commas between groups of three digits of the whole part.
pub(super) fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(a, b)| (a, Some(b)));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        let _ = write!(text, ".{fraction}");
    }
    text
}

/// `4.2 ms`, `1.30 s`
pub(super) fn duration(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{}.{:02} s", us / 1_000_000, us % 1_000_000 / 10_000),
    }
}

/// `4.2 MiB`
pub(super) fn size(bytes: u64) -> String {
    in_units(bytes, 1024, ["KiB", "MiB"])
}

/// `4.2 MB`, in the units of charts.
pub(super) fn traffic(bytes: u64) -> String {
    in_units(bytes, 1000, ["kB", "MB"])
}

/// Bytes with the largest unit of which there is one: each is `step` times the one before.
fn in_units(bytes: u64, step: u64, [kilo, mega]: [&str; 2]) -> String {
    let square = step * step;
    if bytes < step {
        format!("{bytes} bytes")
    } else if bytes < square {
        format!("{} {kilo}", bytes / step)
    } else {
        format!("{}.{} {mega}", bytes / square, bytes % square * 10 / square)
    }
}

/// Clocks of two machines differ by so much without anybody noticing.
const CLOCKS_DIFFER_SECS: u64 = 60;

/// `3 min ago`; of a time that another clock told, or this one before it was set back, `2 h in the future`.
pub(super) fn ago(secs: u64, now_secs: u64) -> String {
    match (now_secs.saturating_sub(secs), secs.saturating_sub(now_secs)) {
        (0, CLOCKS_DIFFER_SECS..) => format!("{} in the future", span(secs - now_secs)),
        (0..5, _) => "just now".to_owned(),
        (past, _) => format!("{} ago", span(past)),
    }
}

/// `2 h`
pub(super) fn span(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// `2026-11-21 23:30:15 UTC`
pub(super) fn utc(secs: u64) -> String {
    clock::timestamp(secs).replace('T', " ").replace('Z', " UTC")
}

/// `21 Nov`
pub(super) fn day(days: u32) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, month, day) = clock::civil(u64::from(days) * 86_400);
    let month = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at));
    format!("{day} {}", month.unwrap_or(&""))
}

/// A stranger's text on one line, without the characters that turn or hide what stands around them.
pub(super) fn visible(text: &str) -> String {
    let text = text.chars().filter(|c| !is_invisible(*c));
    text.map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// A stranger's text with its lines, without the characters that turn or hide what stands around them.
pub(super) fn visible_lines(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c)).collect()
}

/// Characters that would deceive a reader, in a text that keeps its lines.
pub(super) fn is_invisible(c: char) -> bool {
    is_deceptive(c) && !matches!(c, '\n' | '\t')
}

/// The beginning of a stranger's text, as [`visible`] shows it.
pub(super) fn beginning(text: &str, chars_max: usize) -> String {
    let text = visible(text);
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// `0x7E5F…5Bdf`: enough to recognise, not enough to verify.
pub(super) fn short(address: Address) -> String {
    let text = address.to_string();
    format!("{}…{}", &text[..6], &text[text.len() - 4..])
}

/// The whole address in groups of four, to compare by eye.
pub(super) fn fingerprint(address: Address) -> String {
    let text = address.to_string();
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    let groups: Vec<&str> = (0..digits.len()).step_by(4).filter_map(|at| digits.get(at..at + 4)).collect();
    groups.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_people_read_them() {
        assert_eq!(usdc(Usdc::from_micros(1_234_567_500_000)), "1,234,567.50");
        assert_eq!(per_thousand(Usdc::from_micros(2_000)), "2.00");
        assert_eq!(duration(420), "420 µs");
        assert_eq!(duration(4_250), "4.2 ms");
        assert_eq!(duration(42_500), "42 ms");
        assert_eq!(duration(1_305_000), "1.30 s");
        assert_eq!(
            (size(7).as_str(), size(70_000).as_str(), size(4_404_019).as_str()),
            ("7 bytes", "68 KiB", "4.1 MiB")
        );
        assert_eq!([7, 70_000, 4_404_019].map(traffic), ["7 bytes", "70 kB", "4.4 MB"]);
        assert_eq!(
            [1_023, 1_024, 1_048_575, 1_048_576].map(size),
            ["1023 bytes", "1 KiB", "1023 KiB", "1.0 MiB"]
        );
        assert_eq!(ago(100, 103), "just now");
        assert_eq!(ago(100, 280), "3 min ago");
        assert_eq!(ago(100, 50), "just now", "clocks differ");
        assert_eq!(ago(7_300, 100), "2 h in the future", "a clock was set back");
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_303_815), "2026-11-21 23:30:15 UTC");
        assert_eq!(day(20_778), "21 Nov");
        assert_eq!(short(Address::ZERO), "0x0000…0000");
        assert_eq!(fingerprint(Address::ZERO).len(), 49);
    }
}
