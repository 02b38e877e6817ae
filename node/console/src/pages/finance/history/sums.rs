//! Entries of the history added up: all of them, those of each service, or those of each day. Pure.

use std::collections::BTreeMap;

use farthing_control::types::{Eth, HistoryEntry, HistoryKind, HistoryState};
use farthing_os::clock;
use farthing_values::Usdc;

use crate::pages::activity::named;

const DAY_SECS: u64 = 86_400;

crate::texts::words! {
    /// The way in which entries are put together.
    pub(super) enum Grouping(name.0: &'static str, words.1: &'static str) {
        OneByOne = "", "None";
        Service = "service", "By service";
        Day = "day", "By day";
    }
}

impl Grouping {
    pub(super) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|grouping| grouping.name() == name).unwrap_or(Self::OneByOne)
    }
}

/// Amounts of some entries. A deposit is in none of them: it is still the wallet's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) bought: u64,
    pub(super) spent: Usdc,
    pub(super) served: u64,
    pub(super) earned: Usdc,
    pub(super) claimed: Usdc,
    pub(super) fees: Eth,
}

impl Sums {
    pub(super) fn of<'e>(entries: impl IntoIterator<Item = &'e HistoryEntry>) -> Self {
        let mut sums = Self::default();
        entries.into_iter().for_each(|entry| sums.add(entry));
        sums
    }

    fn add(&mut self, entry: &HistoryEntry) {
        // A call without an answer is listed, and neither bought nor served: the days of the history count likewise.
        let answered = u64::from(entry.state != HistoryState::Failed);
        match entry.kind {
            HistoryKind::Bought => {
                self.bought += answered;
                self.spent = self.spent.saturating_add(entry.amount.0);
            }
            HistoryKind::Served => {
                self.served += answered;
                // Nothing pays a call that was lost.
                if entry.state != HistoryState::Lost {
                    self.earned = self.earned.saturating_add(entry.amount.0);
                }
            }
            HistoryKind::Settlement if entry.state == HistoryState::Confirmed => {
                self.claimed = self.claimed.saturating_add(entry.amount.0);
            }
            HistoryKind::Settlement | HistoryKind::Transaction | HistoryKind::Adjustment => {}
        }
        let fee = entry.fee.map_or(0, |fee| fee.0.wei);
        self.fees.wei = self.fees.wei.saturating_add(fee);
    }
}

/// The entries of one service or one day.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntryGroup {
    pub(super) title: String,
    /// The service's id or the day, as the address of their entries has it; empty where no service is meant.
    pub(super) key: String,
    pub(super) sums: Sums,
}

/// Adds up each service, the one that moved most first, or each day, the newest first.
pub(super) fn groups(entries: &[HistoryEntry], grouping: Grouping) -> Vec<EntryGroup> {
    let mut groups: BTreeMap<String, EntryGroup> = BTreeMap::new();
    for entry in entries {
        let (key, title) = match grouping {
            Grouping::Day => {
                let day = clock::date(entry.time_secs / DAY_SECS * DAY_SECS);
                (day.clone(), day)
            }
            Grouping::Service | Grouping::OneByOne => match &entry.service {
                Some(service) => (service.to_string(), named(&entry.name)),
                None => (String::new(), "Claims, transactions and adjustments".to_owned()),
            },
        };
        let group = EntryGroup { title, key: key.clone(), sums: Sums::default() };
        groups.entry(key).or_insert(group).sums.add(entry);
    }
    let mut groups: Vec<EntryGroup> = groups.into_values().collect();
    match grouping {
        Grouping::Day => groups.reverse(),
        Grouping::Service | Grouping::OneByOne => {
            groups.sort_by_key(|group| std::cmp::Reverse(group.sums.spent.saturating_add(group.sums.earned)));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use farthing_control::types::Text;
    use serde_json::json;

    use super::*;

    const ONE: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    const OTHER: &str = "1b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

    fn entry(kind: &str, state: &str, time_secs: u64, amount: &str, service: Option<&str>) -> HistoryEntry {
        let entry = json!({ "kind": kind, "time_secs": time_secs, "state": state, "id": "1", "amount": amount,
            "service": service, "name": service.map_or("", |service| &service[..1]), "what": "" });
        serde_json::from_value(entry).unwrap()
    }

    fn entries() -> Vec<HistoryEntry> {
        let mut entries = vec![
            entry("bought", "charged", 10, "0.002", Some(ONE)),
            entry("bought", "failed", 20, "0", Some(ONE)),
            entry("served", "charged", DAY_SECS, "0.5", Some(OTHER)),
            entry("served", "failed", DAY_SECS, "0", Some(OTHER)),
            entry("settlement", "confirmed", DAY_SECS + 1, "0.4", None),
            entry("settlement", "failed", DAY_SECS + 2, "0.3", None),
            entry("settlement", "returned", DAY_SECS + 2, "0.398", None),
            entry("transaction", "confirmed", DAY_SECS + 3, "5", None),
        ];
        entries[7].fee = Some(Text(Eth { wei: 7 }));
        entries
    }

    #[test]
    fn what_is_shown_is_added_up_and_a_deposit_is_not_spent() {
        let micros = Usdc::from_micros;
        let sums = Sums::of(&entries());
        let all = Sums {
            bought: 1,
            spent: micros(2_000),
            served: 1,
            earned: micros(500_000),
            claimed: micros(400_000),
            fees: Eth { wei: 7 },
        };
        assert_eq!(sums, all);
    }

    #[test]
    fn services_and_days_have_sums_of_their_own_which_come_to_the_whole() {
        let keys = |grouping| -> Vec<(String, u64)> {
            let groups = groups(&entries(), grouping).into_iter();
            groups.map(|group| (group.key, group.sums.bought + group.sums.served)).collect()
        };
        let key = |key: &str, calls| (key.to_owned(), calls);
        assert_eq!(keys(Grouping::Service), [key(OTHER, 1), key(ONE, 1), key("", 0)]);
        assert_eq!(keys(Grouping::Day), [key("1970-01-02", 1), key("1970-01-01", 1)]);
    }
}
