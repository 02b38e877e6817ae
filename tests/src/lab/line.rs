//! A long line: delay and loss, by a script, because many kernels are built without `tc netem`.

use anyhow::Result;

use super::{
    Place,
    commands::run_in,
    script::{self, Script},
};

/// The line's interfaces.
pub const NEAR: &str = "near";
pub const FAR: &str = "far";

/// Where a line leads, and what becomes of frames on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongLine {
    pub to: Place,
    /// Each way.
    pub delay_ms: u32,
    pub loss_percent: u32,
}

/// A line that carries; it is cut when this value is dropped.
#[derive(Debug)]
pub struct Line(#[expect(dead_code, reason = "held, so that it carries")] Script);

impl Line {
    /// Joins [`NEAR`] and [`FAR`] of a namespace. `ends` are the namespaces and interfaces they lead to.
    pub fn open(namespace: &str, ends: [(&str, &str); 2], long: LongLine) -> Result<Option<Self>> {
        if !script::has_python()? {
            return Ok(None);
        }
        for (end, interface) in ends {
            run_in(end, &["python3", &script::path("line.py")?, "plain", interface], "")?;
        }
        let LongLine { delay_ms, loss_percent, .. } = long;
        let words = ["carry", NEAR, FAR, &delay_ms.to_string(), &loss_percent.to_string()].map(str::to_owned);
        Ok(Script::start(namespace, "line.py", &words, "carrying")?.map(Self))
    }
}
