//! The formats of strings that tools check: an example of each, and whether a text has it.
//!
//! A format that is not in the table is a name and nothing else: any text has it. For those whose grammar is not
//! worth having here, only our own example is known to be right.

use url::Url;

struct Format {
    name: &'static str,
    example: &'static str,
    accepts: fn(&str) -> bool,
}

const FORMATS: &[Format] = &[
    Format { name: "date-time", example: "2026-01-31T12:00:00Z", accepts: is_date_time },
    Format { name: "date", example: "2026-01-31", accepts: is_date },
    Format { name: "time", example: "12:00:00Z", accepts: is_time },
    Format { name: "email", example: "someone@example.com", accepts: is_email },
    Format { name: "uuid", example: "6f1c0a52-3d0e-4b6e-9d0b-2f4f6f1f7a10", accepts: is_uuid },
    Format { name: "uri", example: "https://example.com/", accepts: is_uri },
    Format { name: "url", example: "https://example.com/", accepts: is_uri },
    Format { name: "uri-reference", example: "/things/1", accepts: has_uri_characters },
    Format { name: "hostname", example: "example.com", accepts: is_hostname },
    // What is right in ASCII is right here as well; capitals are not (RFC 5891, 5.3).
    Format {
        name: "idn-hostname",
        example: "example.com",
        accepts: |text| is_hostname(text) && !text.bytes().any(|b| b.is_ascii_uppercase()),
    },
    Format { name: "idn-email", example: "someone@example.com", accepts: is_email },
    Format { name: "iri", example: "https://example.com/", accepts: is_uri },
    Format { name: "iri-reference", example: "/things/1", accepts: has_uri_characters },
    Format {
        name: "ipv4",
        example: "192.0.2.1",
        accepts: |text| text.parse::<core::net::Ipv4Addr>().is_ok(),
    },
    Format {
        name: "ipv6",
        example: "2001:db8::1",
        accepts: |text| text.parse::<core::net::Ipv6Addr>().is_ok(),
    },
    Format { name: "byte", example: "RmFydGhpbmc=", accepts: is_base64 },
    Format { name: "duration", example: "P1D", accepts: |text| text == "P1D" },
    Format { name: "regex", example: "^[a-z]+$", accepts: |text| text == "^[a-z]+$" },
    Format { name: "json-pointer", example: "/a/0", accepts: |text| text == "/a/0" },
    Format { name: "relative-json-pointer", example: "0/a", accepts: |text| text == "0/a" },
    Format { name: "uri-template", example: "/things/{id}", accepts: |text| text == "/things/{id}" },
];

fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// A text of this format, where it is known.
pub(crate) fn example(format: &str) -> Option<&'static str> {
    find(format).map(|format| format.example)
}

/// Tells whether tools will agree that `text` has this format.
pub(crate) fn accepts(format: &str, text: &str) -> bool {
    find(format).is_none_or(|format| (format.accepts)(text))
}

/// A number of exactly `digits` digits within `range`.
fn is_number(text: &str, digits: usize, range: std::ops::RangeInclusive<u32>) -> bool {
    text.len() == digits
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse().is_ok_and(|number| range.contains(&number))
}

/// RFC 3339, section 5.6.
fn is_date_time(text: &str) -> bool {
    text.split_once('T').is_some_and(|(date, time)| is_date(date) && is_time(time))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let is_leap = || year.parse::<u32>().is_ok_and(|y| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
    let last = match month {
        "02" if is_leap() => 29,
        "02" => 28,
        "04" | "06" | "09" | "11" => 30,
        _ => 31,
    };
    is_number(year, 4, 0..=9999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=last)
}

/// With an offset; leap seconds are left to others.
fn is_time(text: &str) -> bool {
    let (clock, offset) = match text.find(['Z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => return false,
    };
    let hours_and_minutes = |text: &str| {
        let parts = text.split_once(':');
        parts.is_some_and(|(hours, minutes)| is_number(hours, 2, 0..=23) && is_number(minutes, 2, 0..=59))
    };
    let seconds = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
        is_number(whole, 2, 0..=59) && is_fraction
    };
    let parts = clock.rsplit_once(':');
    let offset_is_right = offset == "Z" || offset.strip_prefix(['+', '-']).is_some_and(hours_and_minutes);
    offset_is_right && parts.is_some_and(|(start, end)| hours_and_minutes(start) && seconds(end))
}

fn is_email(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    let is_local = |local: &str| {
        local.bytes().all(is_plain) && local.split('.').all(|part| !part.is_empty()) && local.len() <= 64
    };
    text.split_once('@')
        .is_some_and(|(local, host)| is_local(local) && is_hostname(host) && host.contains('.'))
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<_> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| part.len() == length)
        && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_uri(text: &str) -> bool {
    has_uri_characters(text) && Url::parse(text).is_ok()
}

/// RFC 3986: the characters of a URI, with whole percent escapes.
fn has_uri_characters(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b);
    let mut escapes = text.split('%').skip(1);
    text.bytes().all(is_allowed)
        && text.matches('#').count() <= 1
        && escapes
            .all(|rest| rest.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

/// RFC 4648 with padding.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_its_format() {
        for format in FORMATS {
            assert!(accepts(format.name, format.example), "{}", format.name);
        }
        assert!(accepts("credit-card", "any text has an unknown format"));
    }

    #[test]
    fn texts_without_their_format_are_told_apart() {
        for (format, right, wrong) in [
            ("date-time", "2024-02-29T23:59:59.5+02:00", "2023-02-29T00:00:00Z"),
            ("date-time", "2026-12-31T00:00:00Z", "2026-12-31 00:00:00"),
            ("date", "2000-02-29", "1900-02-29"),
            ("date", "2026-04-30", "2026-4-30"),
            ("time", "00:00:00-11:30", "00:00:00"),
            ("time", "23:59:59.000Z", "24:00:00Z"),
            ("email", "first.last+tag@example.co.uk", "first..last@example.com"),
            ("email", "a@b.c", "a@localhost"),
            ("uuid", "00000000-0000-0000-0000-00000000000F", "00000000-0000-0000-0000-00000000000G"),
            ("uri", "urn:isbn:0451450523", "example.com"),
            ("uri", "https://a.b/c%20d?e=f#g", "https://a.b/c d"),
            ("uri", "https://a.b/%C3", "https://a.b/%C"),
            ("hostname", "xn--nxasmq6b.example", "-a.example"),
            ("idn-hostname", "xn--bcher-kva.example", "Bücher.example"),
            ("idn-email", "a@b.c", "a@b"),
            ("iri", "urn:isbn:0451450523", "example.com"),
            ("iri-reference", "a/b?c", "a b"),
            ("ipv4", "255.255.255.255", "256.0.0.1"),
            ("ipv6", "::", ":::"),
            ("byte", "AA==", "AA="),
        ] {
            assert!(accepts(format, right), "{format} {right}");
            assert!(!accepts(format, wrong), "{format} {wrong}");
        }
    }
}
