//! The size of a soak, and the words of a command line that choose it. Pure.

use std::time::Duration;

/// How large a soak is, how long it lasts, and what is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub owners: usize,
    pub consumers: usize,
    /// The load goes on for this long, and until there were as many calls and kills as are named below.
    pub lasts: Duration,
    pub calls_least: u64,
    pub kills_least: u64,
    /// Calls in a second, of all consumers together.
    pub calls_per_second: u32,
    pub sample_every: Duration,
    pub fault_every: Duration,
    /// Whether memory, disk and times are judged, and not only books and counts.
    pub judges_growth: bool,
}

const USAGE: &str = "usage: farthing-bench soak [--nodes 20] [--minutes 60] [--rate 20]

  --nodes    nodes; three in five are owners, the others consumers
  --minutes  minutes of load; nodes start before it, and settle after it
  --rate     calls in a second, of all consumers together
";

impl Plan {
    /// Reads the words after the command's name.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let (mut nodes, mut minutes, mut rate) = (20_u32, 60_u32, 20_u32);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (number, least) = match word.as_str() {
                "--nodes" => (&mut nodes, 4),
                "--minutes" => (&mut minutes, 1),
                "--rate" => (&mut rate, 1),
                _ => return Err(format!("`soak` takes no `{word}`\n\n{USAGE}")),
            };
            let given = words.next().and_then(|value| value.parse().ok());
            *number = given.filter(|value: &u32| *value >= least).ok_or_else(|| {
                format!("`{word}` needs a whole number from {least} on after it\n\n{USAGE}")
            })?;
        }
        Ok(Self::of(nodes, minutes, rate))
    }

    fn of(nodes: u32, minutes: u32, calls_per_second: u32) -> Self {
        let owners = nodes * 3 / 5;
        Self {
            owners: owners as usize,
            consumers: (nodes - owners) as usize,
            lasts: Duration::from_secs(u64::from(minutes) * 60),
            calls_least: u64::from(minutes) * 60,
            kills_least: u64::from(minutes),
            calls_per_second,
            sample_every: Duration::from_secs(5),
            fault_every: Duration::from_secs(10),
            judges_growth: true,
        }
    }

    pub const fn nodes(&self) -> usize {
        self.owners + self.consumers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        Plan::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn twenty_nodes_are_twelve_owners_and_eight_consumers_for_an_hour() {
        let plan = read("").unwrap();
        assert_eq!((plan.owners, plan.consumers, plan.lasts.as_secs()), (12, 8, 3_600));
        let plan = read("--nodes 5 --minutes 2 --rate 7").unwrap();
        assert_eq!((plan.nodes(), plan.owners, plan.lasts.as_secs()), (5, 3, 120));
        assert_eq!(plan.calls_per_second, 7);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_was_expected() {
        for (line, said) in [
            ("--node 5", "takes no `--node`"),
            ("200000", "takes no `200000`"),
            ("--nodes", "`--nodes` needs a whole number from 4"),
            ("--nodes 3", "`--nodes` needs a whole number from 4"),
            ("--minutes 0", "`--minutes` needs a whole number from 1"),
            ("--rate many", "`--rate` needs a whole number from 1"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(said) && refused.contains("usage: "), "{line}: {refused}");
        }
    }
}
