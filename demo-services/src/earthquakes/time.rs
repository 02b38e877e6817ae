//! Moments in a query: ISO 8601 text or milliseconds since 1970, always UTC milliseconds afterwards.

/// The forms that [`parse_ms`] accepts, in words for an error message.
pub(super) const EXPECTED: &str = "an ISO 8601 time such as 2018-02-06T12:00:00Z (UTC unless it ends in an offset) \
                                   or milliseconds since 1970";

/// Reads `2018-02-06`, `2018-02-06T12:00`, `2018-02-06T12:00:00.5Z`, `2018-02-06T12:00:00-08:00` or `1517918400000`.
///
/// Finer fractions than a millisecond are cut off. `None` for anything else, including days that do not exist.
pub(super) fn parse_ms(text: &str) -> Option<i64> {
    if let Ok(milliseconds) = text.parse() {
        return Some(milliseconds);
    }
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (clock, offset_minutes) = split_offset(time)?;
    Some(date_days(date)? * 86_400_000 + clock_ms(clock)? - offset_minutes * 60_000)
}

/// Whole days from 1970-01-01 to `YYYY-MM-DD`.
fn date_days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2).filter(|month| (1..=12).contains(month))?;
    let day = digits(parts.next()?, 2).filter(|day| (1..=days_in_month(year, month)).contains(day))?;
    if parts.next().is_some() {
        return None;
    }
    // Years begin in March here, so that a leap day is the last day of its year and month lengths repeat
    // every five months (153 days).
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Milliseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`.
fn clock_ms(clock: &str) -> Option<i64> {
    let (clock, fraction_ms) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, fraction_ms(fraction)?),
        None => (clock, 0),
    };
    let mut parts = clock.split(':');
    let hours = digits(parts.next()?, 2).filter(|hours| *hours < 24)?;
    let minutes = digits(parts.next()?, 2).filter(|minutes| *minutes < 60)?;
    let seconds =
        parts.next().map_or(Some(0), |seconds| digits(seconds, 2)).filter(|seconds| *seconds < 60)?;
    parts.next().is_none().then_some(((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms)
}

fn fraction_ms(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut milliseconds: String = fraction.chars().take(3).collect();
    milliseconds.extend(std::iter::repeat_n('0', 3 - milliseconds.len()));
    milliseconds.parse().ok()
}

/// Splits `12:00Z` or `12:00-08:00` into the clock and the offset's minutes east of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (hours, minutes) = time[at + 1..].split_once(':')?;
    let east = digits(hours, 2).filter(|hours| *hours < 24)? * 60
        + digits(minutes, 2).filter(|minutes| *minutes < 60)?;
    Some((&time[..at], if time[at..].starts_with('-') { -east } else { east }))
}

/// A number of exactly `width` digits.
fn digits(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::parse_ms;

    #[test]
    fn every_written_form_of_a_moment_means_the_same_moment() {
        for text in [
            "1517918400000",
            "2018-02-06T12:00:00Z",
            "2018-02-06T12:00:00",
            "2018-02-06T12:00",
            "2018-02-06 12:00:00",
            "2018-02-06T12:00:00.000Z",
            "2018-02-06T04:00:00-08:00",
            "2018-02-06T17:30:00+05:30",
        ] {
            assert_eq!(parse_ms(text), Some(1_517_918_400_000), "{text}");
        }
    }

    #[test]
    fn days_are_counted_through_leap_years_and_before_1970() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("1972-02-29", 789),
            ("1972-03-01", 790),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2100-03-01", 47_541),
            ("0000-03-01", -719_468),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_ms(text), Some(days * 86_400_000), "{text}");
        }
    }

    #[test]
    fn fractions_are_cut_to_milliseconds() {
        assert_eq!(parse_ms("1970-01-01T00:00:00.5Z"), Some(500));
        assert_eq!(parse_ms("1970-01-01T00:00:00.0019999"), Some(1));
    }

    #[test]
    fn what_is_not_a_moment_is_refused() {
        for text in [
            "",
            "yesterday",
            "2018",
            "2018-02",
            "2018-2-6",
            "2018-02-29",
            "2018-13-01",
            "2018-00-01",
            "2018-01-00",
            "2018-02-06T",
            "2018-02-06T24:00",
            "2018-02-06T12:60",
            "2018-02-06T12:00:60",
            "2018-02-06T12:00:00.",
            "2018-02-06T12:00:00.x",
            "2018-02-06T12:00+8",
            "2018-02-06-01",
            "+018-02-06",
            "2018-02-06T12:00:00+00:00Z",
            "٢٠١٨-02-06",
            "2018-02-06T12:00:00:00",
        ] {
            let accepted = parse_ms(text);
            // A bare number is milliseconds, whatever it looks like.
            assert_eq!(accepted, text.parse().ok(), "{text}");
        }
    }
}
