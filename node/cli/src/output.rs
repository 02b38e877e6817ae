//! Data on standard output, as text or JSON; prose on standard error.
//!
//! Names, descriptions and documents are strangers' words. Whatever is written here passes [`visible`], so that
//! nothing in them moves a cursor, reorders a line or hides. Only a call's own answer is left as it is, unless it
//! goes to a terminal.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::{
    failure::{Exit, Failure},
    visible::{one_line, visible},
};

/// A writer of answers, as text or JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether a program reads the answers; no prose is written for it.
    pub(super) const fn is_json(self) -> bool {
        self.json
    }

    /// Writes `data` as JSON, or as `text` makes it; nothing when there is no text.
    pub(super) fn data<T: Serialize>(self, data: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let written = if self.json {
            serde_json::to_string_pretty(data).map_err(|error| Failure::new(Exit::Failure, error))?
        } else {
            text(data)
        };
        match written.trim_end_matches('\n') {
            "" => Ok(()),
            written => self.text(&format!("{written}\n")),
        }
    }

    /// Writes what is text already.
    pub(super) fn text(self, text: &str) -> Result<(), Failure> {
        write(visible(text).as_bytes())
    }

    /// Writes one part of many. Returns false where nobody reads any more.
    pub(super) fn stream(self, text: &str) -> Result<bool, Failure> {
        written(visible(text).as_bytes())
    }

    /// Writes a service's answer: to a terminal as far as it is text, to anything else byte for byte.
    pub(super) fn body(self, bytes: &[u8]) -> Result<(), Failure> {
        if !io::stdout().is_terminal() {
            return write(bytes);
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.prose(&format!(
                "The answer is {} bytes and not text. Repeat the call with its --call-id and write the output to a \
                 file; you are not charged again.",
                bytes.len()
            ));
            return Ok(());
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write(format!("{}{end}", visible(text)).as_bytes())
    }

    /// Tells people something that is not the answer.
    pub(super) fn prose(self, text: &str) {
        if !self.json {
            // Nobody to tell is no failure.
            let _ = writeln!(io::stderr(), "{}", visible(text));
        }
    }

    /// Asks on a terminal; elsewhere there is nobody to ask.
    pub(super) fn confirm(self, question: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() {
            let what = format!("{question} There is no terminal to answer on");
            return Err(Failure::usage(what).next("repeat the command with --yes"));
        }
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failure, "nothing was done"))
    }

    /// Asks for a line; an empty one stands for `usual`. Whoever asks looks for a terminal first.
    pub(super) fn ask(self, question: &str, usual: &str) -> Result<String, Failure> {
        let hint = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
        let _ = write!(io::stderr(), "{}: ", visible(&format!("{question}{hint}")));
        let mut answer = String::new();
        match io::stdin().read_line(&mut answer) {
            Ok(read) if read > 0 => Ok(match answer.trim() {
                "" => usual.to_owned(),
                said => said.to_owned(),
            }),
            _ => Err(Failure::new(Exit::Failure, "nothing was done")),
        }
    }
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    written(bytes)?;
    Ok(())
}

/// A reader that has gone away, such as `head`, is no failure: then it returns false.
fn written(bytes: &[u8]) -> Result<bool, Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(Exit::Failure, format!("the answer cannot be written: {error}"))),
    }
}

/// Milliseconds, to the microsecond.
pub(super) fn millis(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// Columns of text, each as wide as its widest entry; the first row is the heading. Nothing when there are no rows. On a
/// terminal that is too narrow, a block for each row.
pub(super) fn table<const N: usize>(
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    table_within(columns(), heading, rows)
}

/// Columns of the terminal that answers go to; `None` where a program or a file gets them.
fn columns() -> Option<usize> {
    let output = io::stdout();
    if !output.is_terminal() {
        return None;
    }
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let measured = || rustix::termios::tcgetwinsize(&output).ok().map(|size| usize::from(size.ws_col));
    told.or_else(measured).filter(|columns| *columns > 0)
}

fn table_within<const N: usize>(
    columns: Option<usize>,
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut all = vec![heading.map(str::to_owned)];
    all.extend(rows.into_iter().map(|row| row.map(|cell| one_line(&cell))));
    if all.len() == 1 {
        return String::new();
    }
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    // A terminal would break rows anywhere, ids that are copied from it too.
    match columns {
        Some(columns) if lines.iter().any(|line| line.chars().count() > columns) => {
            blocks(heading, &all[1..])
        }
        _ => lines.join("\n"),
    }
}

/// Rows below each other, each value behind its name, and without what is empty.
fn blocks<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let width = heading.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let block = |row: &[String; N]| {
        let filled = heading.iter().zip(row).filter(|(_, value)| !value.is_empty());
        filled.map(|(name, value)| format!("{name:width$}  {value}")).collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// Names and values, one a line.
pub(super) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line =
        |(name, value): &(&str, String)| format!("{name:width$}  {}", one_line(value)).trim_end().to_owned();
    pairs.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_its_entries() {
        let rows = [["a".to_owned(), "long entry".to_owned()], ["bbb".to_owned(), String::new()]];
        assert_eq!(table(["X", "Y"], rows), "X    Y\na    long entry\nbbb");
        assert_eq!(table(["X", "Y"], []), "", "a heading of nothing helps nobody");
        assert_eq!(table(["X"], [["forged\nrow".to_owned()]]), "X\nforged\\u000arow");
    }

    #[test]
    fn a_terminal_that_is_narrower_than_a_table_gets_a_block_for_each_row() {
        let id = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
        let rows = || [[id, "Books", "http://127.0.0.1:3450/ (same machine)"], [id, "", "x"]];
        let within = |columns| {
            let rows = rows().map(|row| row.map(str::to_owned));
            table_within(columns, ["SERVICE", "NAME", "UPSTREAM"], rows)
        };
        let wide = within(None);
        let columns = wide.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!((wide.lines().count(), columns), (3, 82));
        assert_eq!((within(Some(82)), within(Some(1_000))), (wide.clone(), wide));
        let blocks = format!(
            "SERVICE   {id}\nNAME      Books\nUPSTREAM  http://127.0.0.1:3450/ (same machine)\n\n\
             SERVICE   {id}\nUPSTREAM  x"
        );
        assert_eq!((within(Some(81)), within(Some(60))), (blocks.clone(), blocks.clone()));
        assert!(blocks.lines().all(|line| line.chars().count() <= 60), "{blocks}");
        assert_eq!(table_within(Some(1), ["X"], []), "");
    }
}
