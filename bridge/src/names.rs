//! Names that are given out once each.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    /// With the number that is tried next when one is asked for again: a stranger may ask for one many times.
    taken: HashMap<String, u32>,
}

impl TakenNames {
    /// `name`, or the first with `separator` and a number from 2 on that is free.
    pub(crate) fn unique(&mut self, name: &str, separator: &str) -> String {
        let mut candidate = name.to_owned();
        while self.taken.contains_key(&candidate) {
            let number = self.taken.entry(name.to_owned()).or_insert(FIRST_NUMBER);
            candidate = format!("{name}{separator}{number}");
            *number += 1;
        }
        self.taken.insert(candidate.clone(), FIRST_NUMBER);
        candidate
    }
}

/// Number of the second of a name.
const FIRST_NUMBER: u32 = 2;

impl FromIterator<String> for TakenNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self { taken: names.into_iter().map(|name| (name, FIRST_NUMBER)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::timed;

    #[test]
    fn a_stranger_who_wants_one_name_very_often_gets_each_in_one_step() {
        let mut names: TakenNames = ["Planet3".to_owned()].into_iter().collect();
        let given = timed(|| (0..50_000).map(|_| names.unique("Planet", "")).collect::<Vec<_>>());
        assert_eq!(given[..3], ["Planet", "Planet2", "Planet4"]);
        assert_eq!(given[49_999], "Planet50001");
    }
}
