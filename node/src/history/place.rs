//! Places in the order of time, and several records merged by it.
//!
//! Records are read side by side, each backwards and only so far per step. A place is the last row in the order (time,
//! kind, key), so a step begins exactly where the one before ended, whatever was added meanwhile.

use std::{cmp::Ordering, fmt, str::FromStr};

use farthing_ledger::{Position, Stretch};

/// A place: second, kind, key of the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<K> {
    pub(super) secs: u64,
    /// `None` comes first.
    pub(super) kind: Option<K>,
    pub(super) key: Vec<u8>,
}

impl<K: Copy + Ord> Place<K> {
    /// Before everything of this second.
    pub const fn start_of(secs: u64) -> Self {
        Self { secs, kind: None, key: Vec::new() }
    }

    fn of(kind: K, position: &Position) -> Self {
        Self { secs: position.secs, kind: Some(kind), key: position.key.clone() }
    }

    /// The same place among the records of one kind.
    pub(super) fn among(&self, kind: K) -> Position {
        match Some(kind).cmp(&self.kind) {
            Ordering::Less => Position::start_of(self.secs.saturating_add(1)),
            Ordering::Equal => Position { secs: self.secs, key: self.key.clone() },
            Ordering::Greater => Position::start_of(self.secs),
        }
    }
}

impl<K: fmt::Display> fmt::Display for Place<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.secs)?;
        if let Some(kind) = &self.kind {
            kind.fmt(f)?;
        }
        write!(f, "-{}", hex::encode(&self.key))
    }
}

impl<K: FromStr> FromStr for Place<K> {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '-');
        let mut next = || parts.next().ok_or(());
        let (secs, kind, key) = (next()?, next()?, next()?);
        let kind = if kind.is_empty() { None } else { Some(kind.parse().map_err(|_| ())?) };
        Ok(Self { secs: secs.parse().map_err(|_| ())?, kind, key: hex::decode(key).map_err(|_| ())? })
    }
}

/// Up to `limit` rows of several records, the newest first, and where to go on; `None` at the end.
pub(super) fn merge<K: Copy + Ord, E>(
    stretches: impl IntoIterator<Item = (K, Stretch<E>)>,
    limit: usize,
) -> (Vec<E>, Option<Place<K>>) {
    let mut found: Vec<(Place<K>, E)> = Vec::new();
    // What is older than this was not looked at in every record.
    let mut horizon: Option<Place<K>> = None;
    for (kind, stretch) in stretches {
        horizon = horizon.max(stretch.next.map(|position| Place::of(kind, &position)));
        found.extend(stretch.rows.into_iter().map(|(position, row)| (Place::of(kind, &position), row)));
    }
    found.retain(|(place, _)| horizon.as_ref().is_none_or(|horizon| place >= horizon));
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    let next = match found.get(limit) {
        Some(_) => found.get(limit - 1).map(|(place, _)| place.clone()),
        None => horizon,
    };
    found.truncate(limit);
    (found.into_iter().map(|(_, row)| row).collect(), next)
}

#[cfg(test)]
mod tests {
    use farthing_control::types::HistoryKind;

    use super::*;
    use crate::history::HistoryPosition;

    fn place(secs: u64, kind: HistoryKind, key: &[u8]) -> HistoryPosition {
        Place { secs, kind: Some(kind), key: key.to_vec() }
    }

    #[test]
    fn a_cursor_is_its_place_and_nothing_else_is_one() {
        for at in [
            Place::start_of(7),
            place(0, HistoryKind::Bought, &[]),
            place(u64::MAX, HistoryKind::Transaction, &[7; 32]),
            place(9, HistoryKind::Settlement, &[0, 1]),
        ] {
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        for none in ["", "1", "1-bought", "x-bought-", "1-sold-", "1-bought-0", "1-bought-zz", "-1-bought-"] {
            assert_eq!(none.parse::<HistoryPosition>(), Err(()), "{none}");
        }
    }

    #[test]
    fn a_place_cuts_every_record_at_the_same_moment() {
        let at = place(5, HistoryKind::Served, &[4]);
        for (kind, key, is_before) in [
            (HistoryKind::Bought, 9, true),
            (HistoryKind::Served, 3, true),
            (HistoryKind::Served, 4, false),
            (HistoryKind::Served, 5, false),
            (HistoryKind::Settlement, 0, false),
            (HistoryKind::Transaction, 0, false),
        ] {
            let other = place(5, kind, &[key]);
            assert_eq!(other < at, is_before, "{kind}");
            assert_eq!(Position { secs: 5, key: vec![key] } < at.among(kind), is_before, "{kind} {key}");
            let earlier = Position { secs: 4, key: vec![255] };
            assert!(earlier < at.among(kind));
        }
    }
}
