//! The newest lines of this process's log, kept in memory for whoever asks the running node.
//!
//! The log goes to standard error, and where that leads is the machine's affair: a journal, a container's engine, a
//! terminal that is closed by now. A second copy of each line comes here as JSON, through [`writer`]. The process has one
//! log, so it has one of these; the oldest lines leave it.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Lines that are kept: a few hours of a quiet node.
pub const LINES_MAX: usize = 2_000;
/// Bytes that they may have in all.
pub const BYTES_MAX: usize = 1024 * 1024;

static RECENT: Mutex<RecentLines> = Mutex::new(RecentLines::new());

/// One line, numbered since the process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    pub number: u64,
    pub text: String,
}

#[derive(Debug)]
struct RecentLines {
    lines: VecDeque<NumberedLine>,
    bytes: usize,
    /// Of the newest line.
    number: u64,
}

impl RecentLines {
    const fn new() -> Self {
        Self { lines: VecDeque::new(), bytes: 0, number: 0 }
    }

    fn push(&mut self, text: String) {
        self.number += 1;
        self.bytes += text.len();
        self.lines.push_back(NumberedLine { number: self.number, text });
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
    }

    fn after(&self, number: u64) -> Vec<NumberedLine> {
        self.lines.iter().filter(|line| line.number > number).cloned().collect()
    }
}

/// Takes lines of the log, one with each write.
#[derive(Debug)]
pub struct LineWriter(());

/// Takes each line that the log writes, whole.
pub fn writer() -> LineWriter {
    LineWriter(())
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        recent().push(text.trim_end().to_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that are kept of those with a higher number than `number`, the oldest first, and the number of the newest
/// that there was.
pub fn lines_after(number: u64) -> (Vec<NumberedLine>, u64) {
    let recent = recent();
    (recent.after(number), recent.number)
}

/// Locks the lines; after a panic, too: a line is in or it is not.
fn recent() -> MutexGuard<'static, RecentLines> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(recent: &RecentLines, after: u64) -> Vec<u64> {
        recent.after(after).iter().map(|line| line.number).collect()
    }

    #[test]
    fn the_newest_lines_stay_and_the_oldest_leave() {
        let mut recent = RecentLines::new();
        (0..LINES_MAX + 2).for_each(|line| recent.push(line.to_string()));
        let kept = numbers(&recent, 0);
        assert_eq!((kept.len(), kept[0]), (LINES_MAX, 3));
        assert_eq!(numbers(&recent, recent.number - 2), [recent.number - 1, recent.number]);
        assert!(numbers(&recent, recent.number).is_empty());
    }

    #[test]
    fn long_lines_take_the_place_of_many_and_one_too_long_that_of_all() {
        let mut recent = RecentLines::new();
        (0..5).for_each(|_| recent.push("x".repeat(BYTES_MAX / 4)));
        assert_eq!(numbers(&recent, 0), [2, 3, 4, 5]);
        recent.push("x".repeat(BYTES_MAX + 1));
        assert_eq!((numbers(&recent, 0), recent.bytes, recent.number), (Vec::new(), 0, 6));
    }

    #[test]
    fn a_write_is_a_line() {
        let (_, before) = lines_after(0);
        writer().write_all(b"{\"level\":\"INFO\"}\n").unwrap();
        let (lines, newest) = lines_after(before);
        assert!(newest > before && lines.iter().any(|line| line.text == "{\"level\":\"INFO\"}"), "{lines:?}");
    }
}
