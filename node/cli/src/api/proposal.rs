//! Before publishing: the service as strangers will see it, what its server answers, and one question.

use std::collections::BTreeMap;

use farthing_control::{
    ControlClient, ControlError, endpoint,
    types::{ApiPreview, ServiceFile, Tried, TryRequest},
};
use farthing_protocol::Usdc;
use serde::Serialize;

use crate::{Context, bridge::report::findings_text, failure::Failure, output::pairs, visible::one_line};

use super::{PRICE_UNASKED_MAX, show};

/// A service that is not published yet.
#[derive(Debug, Serialize)]
pub(super) struct Proposal {
    #[serde(flatten)]
    preview: ApiPreview,
    /// The answer to a call of the first operation that reads and needs no parameters; none where there is no such.
    live: Option<Tried>,
}

impl Proposal {
    /// Has the node read the file, and call the server once.
    pub(super) async fn of(node: &ControlClient, file: &ServiceFile) -> Result<Self, Failure> {
        let preview = node.tell(endpoint::PreviewApi, file).await?;
        let request = TryRequest { file: file.clone(), operation: None, params: BTreeMap::new() };
        let live = match node.tell(endpoint::TryApi, &request).await {
            Ok(tried) => Some(tried),
            // No operation can be called without parameters; what else is wrong, publishing says.
            Err(ControlError::Refused(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { preview, live })
    }

    /// Shows all of it and asks; where `yes` answers, tells only of a call that failed.
    pub(super) fn confirm(&self, context: &Context, yes: bool) -> Result<(), Failure> {
        if yes {
            if let Some(tried) = self.failed() {
                let told = format!("Warning: the first call to your server failed. {}", answered(tried));
                context.output.prose(&told);
            }
            return Ok(());
        }
        context.output.prose(&self.text());
        context.output.confirm(&self.question())
    }

    pub(super) fn text(&self) -> String {
        let Self { preview, live } = self;
        let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
        let first = live.as_ref().map_or_else(
            || "not made: no operation that only reads works without parameters".to_owned(),
            answered,
        );
        let facts = pairs([
            ("Name", preview.name.clone()),
            ("Kind", preview.kind.to_string()),
            ("Summary", or_none(preview.summary.clone())),
            ("Price", format!("{} USDC a call", preview.price)),
            ("Your server", preview.upstream.clone()),
            ("This node adds", or_none(preview.secrets.join(", "))),
            ("First call", first),
        ]);
        format!("{facts}\n\n{}\n{}", show::offers(&preview.offers), findings_text(&preview.report))
    }

    fn question(&self) -> String {
        let prices = self.preview.offers.iter().map(|offer| offer.price.0);
        let dearest = prices.fold(self.preview.price.0, Usdc::max);
        let price =
            if dearest > PRICE_UNASKED_MAX { format!(" for {dearest} USDC a call") } else { String::new() };
        let though = if self.failed().is_some() { ", though its first call failed" } else { "" };
        format!("Publish “{}”{price}{though}?", one_line(&self.preview.name))
    }

    /// The first call, where a caller would have got no good answer.
    fn failed(&self) -> Option<&Tried> {
        self.live.as_ref().filter(|tried| !tried.answered || tried.status >= 400)
    }
}

/// Tells what the server answered, in a line.
fn answered(tried: &Tried) -> String {
    let Tried { operation, status, reason, .. } = tried;
    match (*status, tried.answered) {
        (0, _) => format!("{operation}: no answer, {reason}"),
        (_, false) => format!("{operation}: {status}, which is not passed on to callers: {reason}"),
        (401 | 403, true) => {
            format!(
                "{operation}: {status}; if it needs a key, add it with --upstream-header or --upstream-query"
            )
        }
        (_, true) => format!("{operation}: {status}, {} bytes in {} ms", tried.bytes, tried.took_us / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn proposal(price: &str, live: Value) -> Proposal {
        let report = json!({ "list": [], "further": 0 });
        let preview = json!({
            "name": "Things", "kind": "REST", "summary": "", "category": "", "tags": [], "description": "",
            "price": price, "upstream": "http://127.0.0.1:9/", "secrets": [],
            "report": { "format": "OpenAPI 3.1", "bridged": 0,
                "repaired": report, "skipped": report, "warnings": report },
            "offers": [], "samples": [],
        });
        let preview = serde_json::from_value(preview).unwrap();
        Proposal { preview, live: serde_json::from_value(live).unwrap() }
    }

    fn live(status: u16, answered: bool) -> Value {
        json!({ "operation": "GET /a", "answered": answered, "status": status, "reason": "closed", "took_us": 0,
            "upstream_class": "public", "media_type": "", "bytes": 0, "beginning": "" })
    }

    #[test]
    fn one_question_names_what_is_dear_and_what_failed() {
        for (price, live, question) in [
            ("1", Value::Null, "Publish “Things”?"),
            ("1.000001", live(200, true), "Publish “Things” for 1.000001 USDC a call?"),
            ("1", live(399, true), "Publish “Things”?"),
            ("1", live(400, true), "Publish “Things”, though its first call failed?"),
            ("1", live(0, false), "Publish “Things”, though its first call failed?"),
        ] {
            assert_eq!(proposal(price, live).question(), question);
        }
    }

    #[test]
    fn the_first_call_is_told_whatever_came_of_it() {
        for (live, words) in [
            (Value::Null, "not made"),
            (live(200, true), "GET /a: 200, 0 bytes"),
            (live(401, true), "--upstream-header"),
            (live(500, false), "500, which is not passed on to callers: closed"),
            (live(0, false), "no answer, closed"),
        ] {
            let text = proposal("1", live).text();
            assert!(text.contains(words), "`{words}` is not in {text}");
        }
    }
}
