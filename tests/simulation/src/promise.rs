//! What the directory promises of a network of thousands, three in ten of which are of an adversary.

use crate::{Found, Plan};

/// Newest records that are found, in percent of the look-ups.
const FOUND_PERCENT_MIN: f64 = 99.0;
/// Virtual time until the newest record is known.
const P50_MS_MAX: u64 = 300;
const P99_MS_MAX: u64 = 1500;

impl Plan {
    /// Returns what `found` lacks of the promise, in words. No look-up survives the last two adversaries without records that
    /// are known already, so nothing is promised there.
    pub fn missed(&self, found: &Found) -> Option<String> {
        if !self.adversary.must_be_survived() && !self.reconciled {
            return None;
        }
        let missed = [
            (found.found_percent < FOUND_PERCENT_MIN)
                .then(|| format!("{} % found, expected {FOUND_PERCENT_MIN} %", found.found_percent)),
            above("p50", found.p50_ms, P50_MS_MAX),
            above("p99", found.p99_ms, P99_MS_MAX),
        ];
        let missed: Vec<String> = missed.into_iter().flatten().collect();
        (!missed.is_empty()).then(|| format!("{}: {}", found.situation, missed.join(", ")))
    }
}

fn above(what: &str, ms: u64, max: u64) -> Option<String> {
    (ms > max).then(|| format!("{what} {ms} ms, expected at most {max} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Adversary;

    fn plan(adversary: Adversary, reconciled: bool) -> Plan {
        Plan { nodes: 10_000, lookups: 1, seed: 1, adversary, reconciled }
    }

    fn found(found_percent: f64, p50_ms: u64, p99_ms: u64) -> Found {
        let situation = "silent".to_owned();
        let (nodes, lookups, old, not_found) = (10_000, 1, 0, 0);
        let (questions, peers, took_secs) = (40.0, 100.0, 1.0);
        Found {
            situation,
            nodes,
            lookups,
            found_percent,
            old,
            not_found,
            p50_ms,
            p99_ms,
            questions,
            peers,
            took_secs,
        }
    }

    #[test]
    fn each_bound_is_held_by_itself() {
        let missed = |percent, p50, p99| plan(Adversary::Silent, false).missed(&found(percent, p50, p99));
        assert_eq!(missed(99.0, 300, 1500), None);
        assert_eq!(missed(98.99, 300, 1500).as_deref(), Some("silent: 98.99 % found, expected 99 %"));
        assert_eq!(missed(99.0, 301, 1500).as_deref(), Some("silent: p50 301 ms, expected at most 300 ms"));
        assert_eq!(missed(99.0, 300, 1501).as_deref(), Some("silent: p99 1501 ms, expected at most 1500 ms"));
    }

    #[test]
    fn what_no_look_up_survives_is_promised_where_records_are_reconciled() {
        for adversary in [Adversary::Ground, Adversary::First] {
            assert_eq!(plan(adversary, false).missed(&found(0.0, 0, 0)), None);
            assert!(plan(adversary, true).missed(&found(0.0, 0, 0)).is_some());
        }
    }
}
