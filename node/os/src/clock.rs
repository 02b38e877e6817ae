//! The wall clock, read in one place.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole microseconds of a duration.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The time that the machine tells.
pub fn now() -> SystemTime {
    #[cfg(feature = "played")]
    if let Some(since_epoch) = PLAYED.with_borrow(|played| played.as_ref().map(|played| played())) {
        return UNIX_EPOCH + since_epoch;
    }
    SystemTime::now()
}

#[cfg(feature = "played")]
thread_local! {
    static PLAYED: std::cell::RefCell<Option<PlayedClock>> = const { std::cell::RefCell::new(None) };
}

/// Tells the time since the Unix epoch.
#[cfg(feature = "played")]
type PlayedClock = Box<dyn Fn() -> Duration>;

/// Has this thread read the time from `since_epoch` from now on: the time since the Unix epoch.
#[cfg(feature = "played")]
pub fn play_on_this_thread(since_epoch: impl Fn() -> Duration + 'static) {
    PLAYED.set(Some(Box::new(since_epoch)));
}

/// Seconds since the Unix epoch.
pub fn now_secs() -> u64 {
    now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Year, month and day of a time, in UTC.
pub const fn civil(secs: u64) -> (u64, u64, u64) {
    // Counted from 1 March of the year 0, so that a leap day ends its year. 400 years are one cycle.
    const CYCLE_DAYS: u64 = 146_097;
    let days = secs / 86_400 + 719_468;
    let (cycle, day) = (days / CYCLE_DAYS, days % CYCLE_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / (CYCLE_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, five months have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (400 * cycle + year, month, day)
}

/// The day of a time, in UTC: `2026-11-21`.
pub fn date(secs: u64) -> String {
    let (year, month, day) = civil(secs);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time in UTC as RFC 3339 has it: `2026-11-21T23:30:15Z`.
pub fn timestamp(secs: u64) -> String {
    let of_day = secs % 86_400;
    format!("{}T{:02}:{:02}:{:02}Z", date(secs), of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// The second with which a day begins in UTC; the opposite of [`date`]. `None` when there is no such day from 1970 to
/// 9999.
pub fn start_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let mut next = |digits: usize| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part.and_then(|part| part.parse::<u64>().ok())
    };
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    if parts.next().is_some() || year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, as in `date`.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    // A 30 February is another day.
    Some(days * 86_400).filter(|secs| self::date(*secs) == date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "played")]
    #[test]
    fn a_played_clock_is_that_of_its_thread_alone() {
        let played = std::thread::spawn(|| {
            play_on_this_thread(|| Duration::from_secs(7));
            now_secs()
        });
        assert_eq!(played.join().unwrap(), 7);
        assert!(now_secs() > 7);
    }

    #[test]
    fn a_time_is_on_its_day() {
        for (secs, day) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (86_400, "1970-01-02"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_704_067_199, "2023-12-31"),
            (1_704_067_200, "2024-01-01"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(secs), day, "{secs}");
            assert_eq!(start_of(day), Some(secs - secs % 86_400), "{day}");
        }
        assert_eq!(timestamp(1_795_303_815), "2026-11-21T23:30:15Z");
        for none in [
            "",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-30",
            "2025-02-29",
            "1969-12-31",
            "2026-1-01",
            "2026-11-21T",
            "+026-11-21",
            "2026-11-21-1",
        ] {
            assert_eq!(start_of(none), None, "{none}");
        }
    }
}
