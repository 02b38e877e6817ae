//! Data on standard output, as text or JSON; prose on standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::failure::{Exit, Failure};

/// Where and how answers are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Writes `data` as JSON, or as `text` makes it.
    pub(super) fn data<T: Serialize>(self, data: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let written = if self.json {
            serde_json::to_string_pretty(data).map_err(|error| Failure::new(Exit::Failure, error))?
        } else {
            text(data)
        };
        self.bytes(format!("{}\n", written.trim_end_matches('\n')).as_bytes())
    }

    /// Writes `bytes` as they are. A reader that has gone away, such as `head`, is no failure.
    pub(super) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut output = io::stdout().lock();
        match output.write_all(bytes).and_then(|()| output.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::new(Exit::Failure, format!("the answer cannot be written: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Tells people something that is not the answer.
    pub(super) fn prose(self, text: &str) {
        if !self.json {
            // Nobody to tell is no failure.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Asks on a terminal; elsewhere there is nobody to ask.
    pub(super) fn confirm(self, question: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::usage("there is no terminal to ask on; repeat the command with --yes"));
        }
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failure, "nothing was done"))
    }
}

/// Columns of text, each as wide as its widest entry; the first row is the heading.
pub(super) fn table<const N: usize>(
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut all = vec![heading.map(str::to_owned)];
    all.extend(rows);
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A stranger's text for a terminal: nothing in it is obeyed, and nothing reorders or hides what is read.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !farthing_bridge::is_deceptive(*c)).collect()
}

/// Names and values, one a line.
pub(super) fn pairs<const N: usize>(pairs: [(&str, String); N]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = pairs.map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned());
    lines.join("\n")
}
