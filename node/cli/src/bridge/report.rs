//! The registration report: what is bridged, repaired and skipped, and why.

use std::fmt::Write as _;

use farthing_bridge::{
    description::{Operation, Parameter, Place},
    report::{Findings, Report, SecurityScheme},
};
use farthing_control::counted;
use farthing_owner::intake::{Candidate, Intake, Kind};
use serde::Serialize;

use crate::{Context, failure::Failure, output::table, visible::one_line};

/// Longer summaries are cut in the table; JSON has them whole.
const SUMMARY_CHARS_MAX: usize = 60;
/// Findings of one kind shown to people; JSON has all that were kept.
const FINDINGS_SHOWN_MAX: usize = 20;

/// The report as JSON.
#[derive(Serialize)]
struct Inspection<'a> {
    origin: &'a str,
    kind: &'static str,
    title: &'a str,
    version: &'a str,
    /// Addresses that can be the upstream, the proposed one first.
    upstreams: Vec<&'a str>,
    security: &'a [SecurityScheme],
    report: &'a Report,
    operations: Vec<Row<'a>>,
    /// Everything that a search found, this one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<Alternative<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    method: &'static str,
    path: &'a str,
    id: &'a str,
    summary: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    parameters: Vec<TakenParameter<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

#[derive(Serialize)]
struct TakenParameter<'a> {
    name: &'a str,
    #[serde(rename = "in")]
    place: Place,
    required: bool,
}

#[derive(Serialize)]
struct Alternative<'a> {
    url: &'a str,
    format: &'a str,
    title: &'a str,
    operations: usize,
    found: String,
}

/// Prints the report.
pub(super) fn show(context: &Context, intake: &Intake, candidates: &[Candidate]) -> Result<(), Failure> {
    context.output.data(&inspection(intake, candidates), text)
}

/// Lists the descriptions that a search found, for choosing.
pub(crate) fn candidates(candidates: &[Candidate]) -> String {
    let rows = candidates.iter().map(alternative).map(|one| {
        [
            one.url.to_owned(),
            one.format.to_owned(),
            one.title.to_owned(),
            one.operations.to_string(),
            one.found,
        ]
    });
    table(["ADDRESS", "FORMAT", "TITLE", "OPERATIONS", "FOUND"], rows)
}

fn inspection<'a>(intake: &'a Intake, candidates: &'a [Candidate]) -> Inspection<'a> {
    let description = &intake.reading.description;
    Inspection {
        origin: &intake.origin,
        kind: match intake.kind() {
            Kind::Rest => "rest",
            Kind::Graphql => "graphql",
        },
        title: &description.title,
        version: &description.version,
        upstreams: intake.upstreams.iter().map(url::Url::as_str).collect(),
        security: &intake.reading.security,
        report: &intake.reading.report,
        operations: description.operations.iter().map(row).collect(),
        candidates: candidates.iter().map(alternative).collect(),
    }
}

fn row(operation: &Operation) -> Row<'_> {
    Row {
        method: operation.method.as_str(),
        path: &operation.path,
        id: &operation.id,
        summary: &operation.summary,
        deprecated: operation.deprecated,
        parameters: operation.parameters.iter().map(taken).collect(),
        body: operation.body.as_ref().map(|body| body.media_type.as_str()),
    }
}

fn taken(parameter: &Parameter) -> TakenParameter<'_> {
    TakenParameter { name: &parameter.name, place: parameter.place, required: parameter.required }
}

fn alternative(candidate: &Candidate) -> Alternative<'_> {
    let Intake { reading, origin, .. } = &candidate.intake;
    Alternative {
        url: origin,
        format: &reading.report.format,
        title: &reading.description.title,
        operations: reading.description.operations.len(),
        found: candidate.found.to_string(),
    }
}

fn text(inspection: &Inspection<'_>) -> String {
    let Inspection { origin, title, version, upstreams, security, report, operations, .. } = inspection;
    let version = if version.is_empty() { String::new() } else { format!(" {}", one_line(version)) };
    let mut text = format!("{}{version}\n{} · {}\n", one_line(title), report.format, one_line(origin));
    let _ = writeln!(
        text,
        "{} bridged, {} repaired, {} skipped, {}",
        counted(operations.len(), "operation"),
        report.repaired.count(),
        report.skipped.count(),
        counted(report.warnings.count(), "warning"),
    );
    let servers = if upstreams.is_empty() { "none named".to_owned() } else { upstreams.join(", ") };
    let _ = writeln!(text, "Upstream: {servers}");
    if !security.is_empty() {
        let wanted: Vec<_> = security.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "The upstream requires: {}", wanted.join(", "));
    }
    let rows = operations.iter().map(|row| {
        let inputs: Vec<_> = row.parameters.iter().map(parameter).chain(body(row)).collect();
        [row.method.to_owned(), one_line(row.path), summary(row), inputs.join(", ")]
    });
    let _ = write!(text, "\n{}\n", table(["METHOD", "PATH", "SUMMARY", "PARAMETERS (* required)"], rows));
    text.push_str(&findings_text(report));
    text
}

/// Lists what was repaired, skipped and doubted.
pub(crate) fn findings_text(report: &Report) -> String {
    let mut text = String::new();
    for (heading, list) in
        [("Repaired", &report.repaired), ("Skipped", &report.skipped), ("Warnings", &report.warnings)]
    {
        findings(&mut text, heading, list);
    }
    text
}

fn findings(text: &mut String, heading: &str, findings: &Findings) {
    if findings.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{heading} ({})", findings.count());
    for finding in findings.list.iter().take(FINDINGS_SHOWN_MAX) {
        let _ = writeln!(text, "  {finding}");
    }
    let further = findings.count().saturating_sub(FINDINGS_SHOWN_MAX);
    if further > 0 {
        let _ = writeln!(
            text,
            "  and {further} more; --json shows up to {}",
            farthing_bridge::report::FINDINGS_MAX
        );
    }
}

fn summary(row: &Row<'_>) -> String {
    let summary = one_line(row.summary);
    let mut short: String = summary.chars().take(SUMMARY_CHARS_MAX).collect();
    if short.len() < summary.len() {
        short.push('…');
    }
    if row.deprecated { format!("(deprecated) {short}") } else { short }
}

fn parameter(taken: &TakenParameter<'_>) -> String {
    let mark = if taken.required { "*" } else { "" };
    format!("{}{mark}", one_line(taken.name))
}

fn body(row: &Row<'_>) -> Option<String> {
    row.body.map(|media_type| format!("body: {}", one_line(media_type)))
}
