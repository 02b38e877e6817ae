//! A form whose log-in had ended: what was typed, and the button that sends it after all.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_values::Usdc;
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    held_forms::HeldForm,
    page::Rendered,
    pages::sandbox::shown_name,
    show,
};

/// Fields that are shown, and of each so much.
const SHOWN_MAX: usize = 20;
const VALUE_CHARS_MAX: usize = 120;
/// Fields of a call that nobody types; the button names the amounts among them.
const UNTYPED: [&str; 5] = ["nonce", "act", "language", "price", "deposit"];

#[derive(Template)]
#[template(path = "draft.html")]
struct DraftTemplate {
    frame: Frame,
    form: Option<HeldForm>,
    /// Names and values of fields that have some.
    shown: Vec<(String, String)>,
    /// The words of the button that sends it.
    button: String,
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
    let (shown, button) = form.as_ref().map(|form| (typed(form), button(form))).unwrap_or_default();
    let frame = visit.frame(Section::Home).await?;
    Ok(Rendered(&DraftTemplate { frame, shown, button, form }).into_response())
}

fn value<'f>(form: &'f HeldForm, name: &str) -> &'f str {
    form.pairs.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
}

fn is_call(form: &HeldForm) -> bool {
    value(form, "act") == "live"
}

/// The fields that have values. A call's form has some that nobody typed, and names of its own for parameters.
fn typed(form: &HeldForm) -> Vec<(String, String)> {
    let is_call = is_call(form);
    let pairs = form.pairs.iter().filter(|(_, value)| !value.is_empty());
    let typed = pairs.filter(|(name, _)| !(is_call && UNTYPED.contains(&name.as_str())));
    let shown = |name: &str| if is_call { words(&shown_name(name)) } else { words(name) };
    typed.take(SHOWN_MAX).map(|(name, value)| (shown(name), words(value))).collect()
}

/// The same as the button that was pressed: a call names what it costs.
fn button(form: &HeldForm) -> String {
    let usdc = |name: &str| value(form, name).parse::<Usdc>().ok();
    let Some(price) = usdc("price").filter(|_| is_call(form)).map(show::usdc) else {
        return "Send now".to_owned();
    };
    let most = if form.address.starts_with("/panel/x402/") { "at most " } else { "" };
    let deposit = usdc("deposit").filter(|deposit| !deposit.is_zero()).map(show::usdc);
    let deposit = deposit.map_or_else(String::new, |deposit| format!(" + {deposit} refundable deposit"));
    format!("Call for {most}{price} USDC{deposit}")
}

fn words(text: &str) -> String {
    show::visible(text).chars().take(VALUE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(address: &str, pairs: &[(&str, &str)]) -> HeldForm {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        HeldForm { address: address.to_owned(), pairs: pairs.collect() }
    }

    #[test]
    fn a_call_names_its_cost_and_only_what_was_typed() {
        let pairs = [("operation", "GET /a"), ("nonce", "7"), ("price", "0.002"), ("act", "live")];
        let rest = [("deposit", "0.40"), ("language", "rust"), ("p.minmagnitude", "5")];
        let call = form("/panel/catalog/1/sandbox", &[&pairs[..], &rest[..]].concat());
        assert_eq!(button(&call), "Call for 0.002 USDC + 0.40 refundable deposit");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(typed(&call), [pair("operation", "GET /a"), pair("minmagnitude", "5")]);
        assert_eq!(button(&form("/panel/x402/1/call", &pairs)), "Call for at most 0.002 USDC");
        let price = form("/panel/apis/1/price", &[("price", "0.002")]);
        assert_eq!((button(&price), typed(&price)), ("Send now".to_owned(), vec![pair("price", "0.002")]));
    }
}
