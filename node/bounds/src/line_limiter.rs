//! Lines of the log that others can cause: so many a minute, however often they are caused.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

const MINUTE: Duration = Duration::from_secs(60);

/// Counts the lines of one kind. What is left out is counted as well, and told with the next line that is written.
#[derive(Debug)]
pub struct LineLimiter {
    per_minute_max: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    minute_began: Option<Instant>,
    told: u32,
    left_out: u64,
}

impl LineLimiter {
    pub const fn new(per_minute_max: u32) -> Self {
        let state = State { minute_began: None, told: 0, left_out: 0 };
        Self { per_minute_max, state: Mutex::new(state) }
    }

    /// Decides whether to write one more line; if so, returns how many were left out since the last one.
    pub fn admits(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        if state.minute_began.is_none_or(|began| now.saturating_duration_since(began) >= MINUTE) {
            (state.minute_began, state.told) = (Some(now), 0);
        }
        if state.told >= self.per_minute_max {
            state.left_out = state.left_out.saturating_add(1);
            return None;
        }
        state.told += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_a_minute_are_written_and_the_next_one_says_how_many_were_not() {
        let (lines, start) = (LineLimiter::new(3), Instant::now());
        let told = |seconds: u64| lines.admits(start + Duration::from_secs(seconds));
        assert_eq!((0..1000).filter_map(|_| told(1)).collect::<Vec<_>>(), [0, 0, 0]);
        assert_eq!(told(60), None, "a minute counts from its first line");
        assert_eq!((told(61), told(61)), (Some(998), Some(0)));
    }
}
