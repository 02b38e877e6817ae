//! A form whose log-in had ended: what was typed, and the button that sends it after all.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    held_forms::HeldForm,
    page::Rendered,
    show,
};

/// Fields that are shown, and of each so much.
const SHOWN_MAX: usize = 20;
const VALUE_CHARS_MAX: usize = 120;

#[derive(Template)]
#[template(path = "draft.html")]
struct DraftTemplate {
    frame: Frame,
    form: Option<HeldForm>,
    /// Names and values of fields that have some.
    shown: Vec<(String, String)>,
}

#[derive(Deserialize)]
pub(super) struct DraftParams {
    #[serde(default)]
    kept: String,
}

/// The address of a form that waits.
pub(super) fn address(name: &str) -> String {
    format!("/panel/draft?kept={name}")
}

pub(super) async fn show(visit: Visit, Query(asked): Query<DraftParams>) -> Page {
    let form = visit.panel.held().0.get(visit.session.id(), &asked.kept);
    let pairs = form.iter().flat_map(|form| &form.pairs).filter(|(_, value)| !value.is_empty());
    let shown = pairs.take(SHOWN_MAX).map(|(name, value)| (words(name), words(value))).collect();
    let frame = visit.frame(Section::Home).await?;
    Ok(Rendered(&DraftTemplate { frame, shown, form }).into_response())
}

fn words(text: &str) -> String {
    show::visible(text).chars().take(VALUE_CHARS_MAX).collect()
}
