//! The newest lines of the log.

use std::collections::BTreeMap;

use axum::{Json, extract::Query};
use farthing_control::types::{LogLevel, LogLine, LogLines};
use farthing_os::log::{self, NumberedLine};
use serde::Deserialize;

const LINES_DEFAULT: usize = 200;

#[derive(Debug, Default, Deserialize)]
struct WantedLines {
    /// Those that came later than this one; the newest that there are when absent.
    after: Option<u64>,
    /// Of this weight and heavier ones.
    level: Option<LogLevel>,
    limit: Option<usize>,
}

answer!(Logs: logs);
async fn logs(Query(wanted): Query<WantedLines>) -> Json<LogLines> {
    let (kept, newest) = log::lines_after(0);
    Json(choose(&kept, newest, &wanted))
}

fn choose(kept: &[NumberedLine], newest: u64, wanted: &WantedLines) -> LogLines {
    // A higher number than there was is one of a process before this one.
    let after = wanted.after.map(|after| if after > newest { 0 } else { after });
    let oldest = kept.first().map_or(newest + 1, |line| line.number);
    let missed = after.map_or(0, |after| oldest.saturating_sub(after + 1));
    let level = wanted.level.unwrap_or(LogLevel::Trace);
    let later = kept.iter().filter(|line| line.number > after.unwrap_or(0)).filter_map(read);
    let mut lines: Vec<LogLine> = later.filter(|line| line.level <= level).collect();
    let limit = wanted.limit.unwrap_or(if after.is_some() { usize::MAX } else { LINES_DEFAULT });
    lines.drain(..lines.len().saturating_sub(limit));
    LogLines { lines, next: newest, missed }
}

/// A line as the program's log writes it in JSON.
fn read(line: &NumberedLine) -> Option<LogLine> {
    #[derive(Deserialize)]
    struct WrittenLine {
        timestamp: String,
        level: String,
        #[serde(default)]
        target: String,
        #[serde(default)]
        fields: BTreeMap<String, serde_json::Value>,
    }
    let WrittenLine { timestamp, level, target, mut fields } = serde_json::from_str(&line.text).ok()?;
    let message = match fields.remove("message") {
        Some(serde_json::Value::String(message)) => message,
        other => other.map(|other| other.to_string()).unwrap_or_default(),
    };
    let level = level.to_ascii_lowercase().parse().ok()?;
    Some(LogLine { number: line.number, time: timestamp, level, target, message, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Vec<NumberedLine> {
        let line = |number: u64, level: &str| NumberedLine {
            number,
            text: serde_json::json!({
                "timestamp": "2026-11-21T10:00:00.000000Z",
                "level": level,
                "fields": { "message": "claimed", "amount": "0.20", "channels": 2 },
                "target": "farthing_node::settlement",
            })
            .to_string(),
        };
        let broken = NumberedLine { number: 7, text: "no JSON".to_owned() };
        vec![line(5, "INFO"), line(6, "WARN"), broken, line(8, "DEBUG"), line(9, "ERROR")]
    }

    fn numbers(wanted: &WantedLines) -> Vec<u64> {
        choose(&kept(), 9, wanted).lines.iter().map(|line| line.number).collect()
    }

    #[test]
    fn lines_are_chosen_by_weight_number_and_count() {
        let all = WantedLines::default();
        assert_eq!(numbers(&all), [5, 6, 8, 9]);
        for (level, chosen) in
            [(LogLevel::Error, vec![9]), (LogLevel::Warn, vec![6, 9]), (LogLevel::Info, vec![5, 6, 9])]
        {
            assert_eq!(numbers(&WantedLines { level: Some(level), ..WantedLines::default() }), chosen);
        }
        assert_eq!(numbers(&WantedLines { limit: Some(1), ..WantedLines::default() }), [9]);
        assert_eq!(numbers(&WantedLines { after: Some(6), ..WantedLines::default() }), [8, 9]);
        assert_eq!(numbers(&WantedLines { after: Some(9), ..WantedLines::default() }), [0; 0]);
        assert_eq!(
            numbers(&WantedLines { after: Some(400), ..WantedLines::default() }),
            [5, 6, 8, 9],
            "the node has started anew"
        );
    }

    #[test]
    fn what_left_before_it_was_read_is_counted() {
        let missed = |after| {
            let wanted = WantedLines { after, ..WantedLines::default() };
            choose(&kept(), 9, &wanted).missed
        };
        assert_eq!((missed(None), missed(Some(4)), missed(Some(2)), missed(Some(9))), (0, 0, 2, 0));
        let none = choose(&[], 9, &WantedLines { after: Some(4), ..WantedLines::default() });
        assert_eq!((none.missed, none.next), (5, 9));
    }

    #[test]
    fn a_line_is_its_message_and_what_it_is_about() {
        let line = read(&kept()[0]).unwrap();
        assert_eq!((line.message.as_str(), line.level), ("claimed", LogLevel::Info));
        assert_eq!(line.fields["amount"], "0.20");
        assert!(!line.fields.contains_key("message"));
    }
}
