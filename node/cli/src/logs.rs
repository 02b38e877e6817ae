//! `farthing logs`: the newest lines of the running node's log, and those that come.
//!
//! With `--json` each line is an object of its own, so that whoever follows can read them one by one.

use std::time::Duration;

use clap::Args;
use farthing_control::{
    endpoint::{self, Target},
    types::{LogLevel, LogLine, LogLines},
};
use farthing_os::log::LINES_MAX;

use super::{
    Context,
    failure::{Exit, Failure},
    visible::one_line,
};

#[derive(Debug, Args)]
pub struct Logs {
    /// Keep printing new lines until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines of this level and more severe ones: error, warn, info, debug or trace
    #[arg(long)]
    pub level: Option<LogLevel>,
    /// Number of newest lines to show first
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 200)]
    pub lines: u32,
}

/// Between two questions for what is new.
const EVERY: Duration = Duration::from_millis(500);

pub(super) async fn logs(context: &Context, arguments: Logs) -> Result<(), Failure> {
    let node = context.node()?;
    let level = arguments.level.map(LogLevel::name);
    let first = Target::from(endpoint::Logs).with_some("level", level).with("limit", arguments.lines);
    let mut told = node.ask(first).await?;
    if arguments.lines as usize > LINES_MAX {
        context.output.prose(&format!("The node keeps the newest {LINES_MAX} lines, so there are no more."));
    }
    if told.lines.is_empty() && !arguments.follow {
        context.output.prose(
            "No lines found. The node keeps the newest 2,000 lines; the whole log is on its standard error.",
        );
    }
    while write(context, &told)? && arguments.follow {
        tokio::time::sleep(EVERY).await;
        let later = Target::from(endpoint::Logs).with_some("level", level).with("after", told.next);
        told = node.ask(later).await?;
    }
    Ok(())
}

/// Returns false when nobody reads any more.
fn write(context: &Context, told: &LogLines) -> Result<bool, Failure> {
    if told.missed > 0 {
        context.output.prose(&format!("{} lines were skipped because they came too fast.", told.missed));
    }
    for line in &told.lines {
        let text = if context.output.is_json() {
            serde_json::to_string(line).map_err(|error| Failure::new(Exit::Failure, error))?
        } else {
            text(line)
        };
        if !context.output.stream(&format!("{text}\n"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn text(line: &LogLine) -> String {
    let field = |(name, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(value) => format!(" {name}={value}"),
        value => format!(" {name}={value}"),
    };
    let fields: String = line.fields.iter().map(field).collect();
    one_line(&format!("{} {:5} {}{fields}", line.time, line.level.name().to_uppercase(), line.message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_a_stranger_put_into_it() {
        let line = LogLine {
            number: 1,
            time: "2026-11-21T10:00:00.000000Z".to_owned(),
            level: LogLevel::Warn,
            target: "farthing_node".to_owned(),
            message: "a call failed".to_owned(),
            fields: BTreeMap::from([("path".to_owned(), "/a\nb".into()), ("status".to_owned(), 502.into())]),
        };
        assert_eq!(text(&line), "2026-11-21T10:00:00.000000Z WARN  a call failed path=/a\\u000ab status=502");
    }
}
