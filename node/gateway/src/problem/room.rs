//! This node has no room for a request.

use axum::http::StatusCode;
use farthing_control::types::ProblemName as Name;

use super::{Problem, ROOM_AFTER_MS};

impl Problem {
    pub fn no_room() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Name::NoRoom,
            "This node holds too much",
            "Wait as Retry-After says, then send it again with the same call_id. Nothing was done this time.",
        )
        .detailed("the bodies of running requests and answers fill the memory that this node has for them")
        .retry_after(Some(ROOM_AFTER_MS))
        .undecided()
    }

    /// The caller works on as many connections as one may.
    pub fn no_connection() -> Self {
        let detail = "requests with this secret use as many connections as one secret may have";
        Self::no_room().detailed(detail)
    }
}
