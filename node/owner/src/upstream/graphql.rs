//! A GraphQL server's answer: judged by its body, because its status says little.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use farthing_bridge::graphql::{self, Unwrap, Verdict};
use farthing_protocol::Outcome;
use farthing_shared::blocking::start_blocking;

use super::{Answered, CallName, Failure, Fault, failures};

/// Errors of the service beside its data.
const WARNINGS: &str = "x-farthing-warnings";

/// A larger answer is read beside the tasks that serve calls.
const BESIDE_BYTES_MIN: usize = 64 * 1024;

/// Turns what the server said into the service's answer.
pub(super) async fn judged(
    unwrap: &Unwrap,
    call: Option<&CallName>,
    status: u16,
    headers: BTreeMap<String, String>,
    body: &Bytes,
) -> Result<Answered, Failure> {
    if body.len() < BESIDE_BYTES_MIN {
        return judge(unwrap, call, status, headers, body);
    }
    let (unwrap, call, body) = (unwrap.clone(), call.cloned(), body.clone());
    let judging = move || judge(&unwrap, call.as_ref(), status, headers, &body);
    let judged = start_blocking(judging).await;
    judged.unwrap_or_else(|_| Err(Failure::new(Fault::Unread, status)))
}

fn judge(
    unwrap: &Unwrap,
    call: Option<&CallName>,
    status: u16,
    mut headers: BTreeMap<String, String>,
    body: &Bytes,
) -> Result<Answered, Failure> {
    let content_type = headers.get("content-type").map_or("", String::as_str);
    let answer = graphql::answer(unwrap, status, content_type, body);
    if answer.verdict == Verdict::Failed {
        // The caller gets a status at most; the owner is told what its server said.
        failures::no_data(call, status, answer.errors.iter().map(|error| error.message.as_str()));
    }
    let outcome = match (answer.verdict, answer.status) {
        (Verdict::Ok | Verdict::Partial, _) => Outcome::Answered,
        (Verdict::Failed, 400..=499) => Outcome::Declined,
        (Verdict::Failed, 502) => return Err(Failure::new(Fault::NoData, status)),
        (Verdict::Failed, said) => return Err(Failure::new(Fault::GraphqlError, said)),
    };
    headers.insert("content-type".to_owned(), answer.content_type.to_owned());
    // They described the envelope, which the caller does not get.
    for name in ["content-digest", "etag", "last-modified", "repr-digest"] {
        headers.remove(name);
    }
    if let Some(warnings) = answer.warnings() {
        headers.insert(WARNINGS.to_owned(), warnings);
    }
    let taken = match answer.body {
        Cow::Borrowed(part) => body.slice_ref(part),
        Cow::Owned(whole) => whole.into(),
    };
    Ok((outcome, answer.status, headers, taken))
}
