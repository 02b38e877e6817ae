//! Lines and columns, and how those of a repaired text lead back to the owner's text.

/// Line and column of a byte offset, both counted from 1, columns in characters.
pub(super) fn of(text: &str, offset: usize) -> (u64, u64) {
    advance((1, 1), text.get(..offset).unwrap_or(text))
}

/// Returns the end of `text` when it begins at `position`.
pub(super) fn advance(position: (u64, u64), text: &str) -> (u64, u64) {
    text.chars().fold(position, |(line, column), c| match c {
        '\n' => (line + 1, 1),
        '\r' => (line, 1),
        _ => (line, column + 1),
    })
}

/// Two positions that mean the same place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub repaired: (u64, u64),
    pub source: (u64, u64),
}

/// Anchors in ascending order, one at the beginning and one after each repair.
#[derive(Debug)]
pub(super) struct Anchors(pub Vec<Anchor>);

impl Anchors {
    /// The owner's position for one of the repaired text.
    pub fn source(&self, (line, column): (u64, u64)) -> (u64, u64) {
        let next = self.0.partition_point(|anchor| anchor.repaired <= (line, column));
        let Some(anchor) = next.checked_sub(1).and_then(|last| self.0.get(last)) else {
            return (line, column);
        };
        let source_line = anchor.source.0 + (line - anchor.repaired.0);
        if line == anchor.repaired.0 {
            (source_line, anchor.source.1 + (column - anchor.repaired.1))
        } else {
            (source_line, column)
        }
    }
}
