//! An answer on its way: its connection is told of every part that is taken.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use hyper::body::{Frame, SizeHint};

use super::activity::{Activity, Guard};

/// A reader that takes less of an answer within the time for idling is silent.
const PART_BYTES: usize = 64 * 1024;

/// The headers of a file to keep, of this type and under this name, which has no quotes.
pub fn attachment(content_type: &str, name: &str) -> [(HeaderName, String); 2] {
    let disposition = format!("attachment; filename=\"{name}\"");
    [(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, disposition)]
}

/// The body of an answer, in parts.
pub(super) struct Answer {
    inner: Body,
    /// The part that came in one piece and is not taken yet.
    rest: Bytes,
    activity: Arc<Activity>,
    _answering: Guard,
}

impl Answer {
    pub(super) fn new(inner: Body, activity: &Arc<Activity>) -> Self {
        let _answering = Activity::answer(activity);
        Self { inner, rest: Bytes::new(), activity: Arc::clone(activity), _answering }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.rest.is_empty() {
            let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
            this.activity.pass();
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => this.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        this.activity.pass();
        let part = this.rest.split_to(this.rest.len().min(PART_BYTES));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
