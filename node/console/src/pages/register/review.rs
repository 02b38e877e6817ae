//! The second step: what the bridge made of the description, and which operations are offered for how much.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Redirect},
};
use farthing_bridge::report::{Findings, Report};
use farthing_control::types::{InspectedCandidate, InspectedOperation, Inspection};
use serde::Deserialize;

use crate::{
    failure::Page,
    form::Form,
    frame::{Frame, Section, Visit},
    markup::ProblemText,
    page::Rendered,
    show,
};

use super::{
    RegisterStep,
    draft::{Draft, OperationChoice},
};

/// Operations on one page.
const OPERATIONS_SHOWN: usize = 60;
/// Findings of one kind on the page.
const FINDINGS_SHOWN: usize = 30;
const SUMMARY_CHARS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "register-operations.html")]
struct ReviewTemplate {
    frame: Frame,
    name: String,
    step: RegisterStep,
    title: String,
    inspection: InspectionSummary,
    candidates: Vec<CandidateRow>,
    findings: Vec<Finding>,
    rows: Vec<ReviewRow>,
    price: String,
    number: usize,
    pages: usize,
    offered: usize,
    total: usize,
    problem: Option<ProblemText>,
}

/// A summary, in a line or two, of the description that was read.
struct InspectionSummary {
    format: String,
    origin: String,
    upstream: String,
    security: String,
    bridged: usize,
    repaired: usize,
    skipped: usize,
    warnings: usize,
}

struct CandidateRow {
    address: String,
    title: String,
    format: String,
    operations: u64,
    found: String,
    chosen: bool,
}

/// Findings of one kind.
pub(in crate::pages) struct Finding {
    pub(in crate::pages) title: &'static str,
    /// Place and what.
    pub(in crate::pages) lines: Vec<(String, String)>,
    pub(in crate::pages) hidden: usize,
}

struct ReviewRow {
    index: usize,
    method: String,
    path: String,
    summary: String,
    takes: String,
    mutation: bool,
    deprecated: bool,
    offered: bool,
    price: String,
}

#[derive(Deserialize)]
pub(in crate::pages) struct ReviewParams {
    #[serde(default)]
    page: usize,
}

pub(in crate::pages) async fn show(
    visit: Visit,
    Path(name): Path<String>,
    Query(asked): Query<ReviewParams>,
) -> Page {
    let draft = visit.panel.drafts().get(visit.session.id(), &name)?;
    page(&visit, name, &draft, asked.page, None).await
}

async fn page(visit: &Visit, name: String, draft: &Draft, number: usize, problem: Option<String>) -> Page {
    let inspection = &draft.inspection;
    let total = inspection.operations.len();
    let pages = total.div_ceil(OPERATIONS_SHOWN).max(1);
    let number = number.min(pages - 1);
    let shown = inspection.operations.iter().zip(&draft.choices.operations).enumerate();
    let rows = shown.skip(number * OPERATIONS_SHOWN).take(OPERATIONS_SHOWN);
    let page = ReviewTemplate {
        frame: visit.frame(Section::Apis).await?,
        name,
        step: RegisterStep::Operations,
        title: show::visible(&draft.title()),
        inspection: read(inspection),
        candidates: candidates(inspection),
        findings: report_findings(&inspection.report),
        rows: rows.map(|(index, (operation, chosen))| row(index, operation, chosen)).collect(),
        price: draft.choices.price.clone(),
        number,
        pages,
        offered: draft.offered_count(),
        total,
        problem: problem.map(ProblemText::new),
    };
    Ok(Rendered(&page).into_response())
}

fn read(inspection: &Inspection) -> InspectionSummary {
    let Inspection { source, upstreams, security, report, .. } = inspection;
    let origin = match (&source.url, source.file.as_str()) {
        (Some(url), _) => url.clone(),
        (None, "") => "pasted text".to_owned(),
        (None, file) => file.to_owned(),
    };
    let wanted: Vec<String> = security.iter().map(ToString::to_string).collect();
    InspectionSummary {
        format: report.format.clone(),
        origin: show::visible(&origin),
        upstream: upstreams.first().map_or_else(String::new, |upstream| show::visible(upstream)),
        security: wanted.join(", "),
        bridged: inspection.operations.len(),
        repaired: report.repaired.count(),
        skipped: report.skipped.count(),
        warnings: report.warnings.count(),
    }
}

fn candidates(inspection: &Inspection) -> Vec<CandidateRow> {
    if inspection.candidates.len() < 2 {
        return Vec::new();
    }
    let row = |candidate: &InspectedCandidate| CandidateRow {
        address: show::visible(candidate.source.url.as_deref().unwrap_or_default()),
        title: show::visible(&candidate.title),
        format: candidate.format.clone(),
        operations: candidate.operations,
        found: candidate.found.clone(),
        chosen: candidate.source.url == inspection.source.url,
    };
    inspection.candidates.iter().map(row).collect()
}

/// Lists what was repaired, skipped and doubted; kinds without a finding are left out.
pub(in crate::pages) fn report_findings(report: &Report) -> Vec<Finding> {
    let one = |(title, found): (&'static str, &Findings)| Finding {
        title,
        lines: found
            .list
            .iter()
            .take(FINDINGS_SHOWN)
            .map(|finding| (show::visible(&finding.place), show::visible(&finding.what)))
            .collect(),
        hidden: found.count().saturating_sub(FINDINGS_SHOWN),
    };
    [("Left out", &report.skipped), ("Warnings", &report.warnings), ("Repaired", &report.repaired)]
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(one)
        .collect()
}

fn row(index: usize, operation: &InspectedOperation, chosen: &OperationChoice) -> ReviewRow {
    let mark = |required: bool| if required { "*" } else { "" };
    let parameters = operation
        .parameters
        .iter()
        .map(|parameter| format!("{}{}", show::visible(&parameter.name), mark(parameter.required)));
    let body = operation.body.as_ref().map(|_| "body".to_owned());
    let takes: Vec<String> = parameters.chain(body).take(12).collect();
    ReviewRow {
        index,
        method: operation.method.to_string(),
        path: show::visible(&operation.path),
        summary: show::visible(&operation.summary).chars().take(SUMMARY_CHARS_MAX).collect(),
        takes: takes.join(", "),
        mutation: operation.mutation,
        deprecated: operation.deprecated,
        offered: chosen.offered,
        price: chosen.price.clone(),
    }
}

/// Takes the tick boxes and prices of one page, and goes where its button leads.
pub(in crate::pages) async fn save(Path(name): Path<String>, form: Form<Vec<(String, String)>>) -> Page {
    let Form { visit, fields, .. } = form;
    let field =
        |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let number: usize = field("page").and_then(|page| page.parse().ok()).unwrap_or(0);
    let go = field("go").unwrap_or("next").to_owned();
    let draft = visit.panel.drafts().change(visit.session.id(), &name, |draft| {
        take(&mut draft.choices.operations, number, &go, &fields);
        if let Some(price) = field("price") {
            price.trim().clone_into(&mut draft.choices.price);
        }
        draft.clone()
    })?;
    if let (Err(wrong), "next") = (super::price("Price", &draft.choices.price), go.as_str()) {
        return page(&visit, name, &draft, number, Some(wrong.words())).await;
    }
    let priced = draft.choices.operations.iter().filter(|chosen| chosen.offered && !chosen.price.is_empty());
    let wrong = priced.filter_map(|chosen| super::price("Price of an operation", &chosen.price).err()).next();
    if let Some(wrong) = wrong {
        return page(&visit, name, &draft, number, Some(wrong.words())).await;
    }
    if draft.offered_count() == 0 && go == "next" {
        let problem = "No operation is selected. Select at least one to offer.".to_owned();
        return page(&visit, name, &draft, number, Some(problem)).await;
    }
    let place = RegisterStep::Operations.path(&name);
    Ok(Redirect::to(&match go.as_str() {
        "earlier" => format!("{place}?page={}", number.saturating_sub(1)),
        "later" => format!("{place}?page={}", number.saturating_add(1)),
        "all" | "none" => format!("{place}?page={number}"),
        _ => RegisterStep::Details.path(&name),
    })
    .into_response())
}

/// A page of the form says what is ticked on it, and nothing of other pages; `all` and `none` are about all.
fn take(operations: &mut [OperationChoice], number: usize, go: &str, fields: &[(String, String)]) {
    let from = number.saturating_mul(OPERATIONS_SHOWN).min(operations.len());
    let to = from.saturating_add(OPERATIONS_SHOWN).min(operations.len());
    let page = operations.get_mut(from..to).unwrap_or_default();
    page.iter_mut().for_each(|chosen| chosen.offered = false);
    for (name, value) in fields {
        let index = |text: &str| text.parse::<usize>().ok()?.checked_sub(from);
        if name == "o" {
            if let Some(chosen) = index(value).and_then(|index| page.get_mut(index)) {
                chosen.offered = true;
            }
        } else if let Some(chosen) =
            name.strip_prefix('p').and_then(index).and_then(|index| page.get_mut(index))
        {
            value.trim().clone_into(&mut chosen.price);
        }
    }
    if go == "all" || go == "none" {
        operations.iter_mut().for_each(|chosen| chosen.offered = go == "all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_tick_boxes_changes_that_page_only() {
        let mut operations =
            vec![OperationChoice { offered: true, price: String::new() }; OPERATIONS_SHOWN + 2];
        let fields = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        take(&mut operations, 1, "next", &fields(&[("o", "61"), ("p60", " 0.5 "), ("o", "3"), ("o", "x")]));
        assert!(operations[..OPERATIONS_SHOWN].iter().all(|chosen| chosen.offered));
        assert_eq!((operations[60].offered, operations[60].price.as_str()), (false, "0.5"));
        assert!(operations[61].offered);
        take(&mut operations, 9, "none", &fields(&[("page", "9"), ("p999999999999999999999", "1")]));
        assert!(operations.iter().all(|chosen| !chosen.offered));
    }
}
