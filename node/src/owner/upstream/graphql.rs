//! A GraphQL server's answer: judged by its body, because its status says little.

use std::{borrow::Cow, collections::BTreeMap, time::Instant};

use bytes::Bytes;
use farthing_bridge::graphql::{self, Unwrap, Verdict};
use farthing_protocol::Outcome;

use super::{Answered, FAILURES_TOLD, Failure};

/// Errors of the service beside its data.
const WARNINGS: &str = "x-farthing-warnings";

/// The most characters of a server's messages that the log repeats.
const MESSAGES_CHARS_MAX: usize = 500;

/// A larger answer is read beside the tasks that serve calls.
const BESIDE_BYTES_MIN: usize = 64 * 1024;

/// Turns what the server said into the service's answer.
pub(super) async fn judged(
    unwrap: &Unwrap,
    status: u16,
    headers: BTreeMap<String, String>,
    body: &Bytes,
) -> Result<Answered, Failure> {
    if body.len() < BESIDE_BYTES_MIN {
        return judge(unwrap, status, headers, body);
    }
    let (unwrap, body) = (unwrap.clone(), body.clone());
    let judging = tokio::task::spawn_blocking(move || judge(&unwrap, status, headers, &body)).await;
    judging.unwrap_or_else(|_| {
        Err(Failure::new(Outcome::BadAnswer, status, "this node failed to read the answer"))
    })
}

fn judge(
    unwrap: &Unwrap,
    status: u16,
    mut headers: BTreeMap<String, String>,
    body: &Bytes,
) -> Result<Answered, Failure> {
    let content_type = headers.get("content-type").map_or("", String::as_str);
    let answer = graphql::answer(unwrap, status, content_type, body);
    if answer.verdict == Verdict::Failed {
        // The caller gets a status at most; the owner is told what its server said, which may repeat what callers sent.
        if let Some(left_out) = FAILURES_TOLD.admits(Instant::now()) {
            let messages: Vec<_> = answer.errors.iter().map(|error| error.message.as_str()).collect();
            let messages: String = messages.join("; ").chars().take(MESSAGES_CHARS_MAX).collect();
            tracing::info!(status, messages, left_out, "the GraphQL server gave no data");
        }
    }
    let outcome = match (answer.verdict, answer.status) {
        (Verdict::Ok | Verdict::Partial, _) => Outcome::Answered,
        (Verdict::Failed, 400..=499) => Outcome::Declined,
        (Verdict::Failed, 502) => {
            return Err(Failure::new(Outcome::BadAnswer, status, "the GraphQL server gave no data"));
        }
        (Verdict::Failed, said) => {
            return Err(Failure::new(
                Outcome::ServerError,
                said,
                "the GraphQL server reports an error of its own",
            ));
        }
    };
    headers.insert("content-type".to_owned(), answer.content_type.to_owned());
    // They described the envelope, which the caller does not get.
    headers.remove("etag");
    headers.remove("last-modified");
    if let Some(warnings) = answer.warnings() {
        headers.insert(WARNINGS.to_owned(), warnings);
    }
    let taken = match answer.body {
        Cow::Borrowed(part) => body.slice_ref(part),
        Cow::Owned(whole) => whole.into(),
    };
    Ok((outcome, answer.status, headers, taken))
}
