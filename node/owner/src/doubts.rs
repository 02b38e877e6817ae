//! Doubts about operations that a description offers and calls may not bring, so that an owner hears of them before anybody
//! buys. Pure.

use farthing_bridge::{
    description::{ApiDescription, Content, Operation, Status},
    report::Report,
};
use farthing_discovery::time_of;
use farthing_protocol::limits::RESPONSE_BODY_BYTES_MAX;

use super::upstream::UpstreamOptions;

/// Answers that go on for as long as somebody reads them.
const STREAMS: [&str; 2] = ["text/event-stream", "multipart/x-mixed-replace"];
/// Answers that are files, of any size. So is what is sound or moving pictures.
const FILES: [&str; 7] = [
    "application/octet-stream",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar",
    "application/x-7z-compressed",
    "application/vnd.apache.parquet",
];

/// Adds to the report what may not work of each operation, and why.
pub(super) fn note_doubts(api: &ApiDescription, options: &UpstreamOptions, report: &mut Report) {
    for operation in &api.operations {
        let place = format!("{} {}", operation.method, operation.path);
        for doubt in doubts(operation, options) {
            report.warnings.add(&place, doubt);
        }
    }
}

fn doubts(operation: &Operation, options: &UpstreamOptions) -> Vec<String> {
    let kinds = media_types(operation);
    let mut doubts = Vec::new();
    if let Some(kind) = kinds.iter().find(|kind| STREAMS.contains(&kind.as_str())) {
        let secs = time_of(operation).unwrap_or(options.total).as_secs();
        doubts.push(format!(
            "a stream ({kind}) is sent only when it has ended; a stream that does not end within {secs} s fails and is \
             free"
        ));
    }
    if let Some(kind) = kinds.iter().find(|kind| is_file(kind)) {
        let most = if options.body_bytes_max < RESPONSE_BODY_BYTES_MAX {
            format!("limits.response_bytes_max allows up to {}", in_words(RESPONSE_BODY_BYTES_MAX))
        } else {
            "no setting allows more".to_owned()
        };
        doubts.push(format!(
            "an answer of type {kind} may be large; an answer of more than {} is refused and free; {most}",
            in_words(options.body_bytes_max)
        ));
    }
    if only_redirects(operation) {
        doubts.push(
            "a redirect is not followed and counts as a failure; register the address it leads to".to_owned(),
        );
    }
    doubts
}

/// Lists the media types of what is described as success, without their parameters.
fn media_types(operation: &Operation) -> Vec<String> {
    let successes = operation.responses.iter().filter(|response| response.status.is_success());
    successes.filter_map(|response| response.content.as_ref()).flat_map(Content::media_types).collect()
}

fn is_file(kind: &str) -> bool {
    FILES.contains(&kind) || kind.starts_with("audio/") || kind.starts_with("video/")
}

/// Tells whether a redirect is all that is described; 304 is an answer.
fn only_redirects(operation: &Operation) -> bool {
    let redirects = |status: Status| match status {
        Status::Code(code) => matches!(code, 300..=303 | 305..=399),
        Status::Class(class) => class == 3,
        Status::Default => false,
    };
    let answers = |status: Status| match status {
        Status::Code(304) | Status::Default => true,
        _ => status.is_success(),
    };
    let statuses = || operation.responses.iter().map(|response| response.status);
    statuses().any(redirects) && !statuses().any(answers)
}

fn in_words(bytes: usize) -> String {
    const MIB: usize = 1024 * 1024;
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use farthing_bridge::read;
    use serde_json::{Value, json};

    use super::*;

    fn told(responses: &Value, options: &UpstreamOptions) -> Vec<String> {
        let document = json!({
            "openapi": "3.0.3",
            "info": { "title": "Things", "version": "1" },
            "paths": { "/things": { "get": { "responses": responses } } },
        });
        let mut report = Report::default();
        note_doubts(&read(document.to_string().as_bytes()).unwrap().description, options, &mut report);
        assert!(report.warnings.list.iter().all(|finding| finding.place == "GET /things"), "{report:?}");
        report.warnings.list.into_iter().map(|finding| finding.what).collect()
    }

    fn answers_with(kind: &str) -> Value {
        json!({ "200": { "description": "it", "content": { kind: {} } } })
    }

    #[test]
    fn what_a_call_may_not_bring_is_said_with_the_reason() {
        let options = UpstreamOptions::default();
        let moved = json!({ "302": { "description": "elsewhere" } });
        for (responses, words) in [
            (answers_with("text/event-stream"), "does not end within 30 s"),
            (answers_with("application/zip"), "more than 8 MiB is refused"),
            (answers_with("video/mp4; codecs=x"), "limits.response_bytes_max allows up to 64 MiB"),
            (moved, "a redirect is not followed"),
        ] {
            let told = told(&responses, &options);
            assert!(told.len() == 1 && told[0].contains(words), "{responses} {told:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_sold_as_it_is() {
        let options = UpstreamOptions::default();
        let unchanged =
            json!({ "304": { "description": "as before" }, "302": { "description": "elsewhere" } });
        for responses in [
            answers_with("application/json"),
            answers_with("image/png"),
            answers_with("text/html"),
            json!({ "default": { "description": "any" }, "302": { "description": "elsewhere" } }),
            unchanged,
        ] {
            assert_eq!(told(&responses, &options), Vec::<String>::new(), "{responses}");
        }
    }

    #[test]
    fn the_largest_answer_is_as_the_owner_set_it() {
        let of = |bytes| UpstreamOptions { body_bytes_max: bytes, ..UpstreamOptions::default() };
        let most = told(&answers_with("application/zip"), &of(RESPONSE_BODY_BYTES_MAX));
        assert!(most[0].contains("more than 64 MiB") && most[0].contains("no setting"), "{most:?}");
        let few = told(&answers_with("application/zip"), &of(2_000));
        assert!(few[0].contains("more than 2000 bytes"), "{few:?}");
    }
}
