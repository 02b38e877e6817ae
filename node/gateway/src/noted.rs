//! Calls that are answered with a problem, noted for whoever looks at the log of calls.
//!
//! Beside the answer and never before it is decided: a note is memory, bounded, and no call waits for one.

use std::{sync::Arc, time::Instant};

use axum::response::{IntoResponse, Response};
use farthing_node::consumer::{Order, spending::Grant};
use farthing_os::clock;
use farthing_protocol::{ServiceId, call::Method};
use farthing_shared::{
    call_ends::Half,
    refused::{RefusedCall, beginning},
};

use super::{
    Gateway,
    problem::{ChargeStatus, Problem},
};

/// A call as far as it is known before its end.
#[derive(Debug)]
pub(super) struct AskedCall {
    began: Instant,
    grant: Arc<Grant>,
    call: RefusedCall,
}

impl AskedCall {
    /// A call of which the secret alone is known.
    pub(super) fn by(grant: &Arc<Grant>, began: Instant) -> Self {
        let call = RefusedCall::new(Half::Consumer, clock::now_secs());
        Self { began, grant: Arc::clone(grant), call }
    }

    /// A call that could be read.
    pub(super) fn of(order: &Order, began: Instant) -> Self {
        let mut asked =
            Self::by(&order.grant, began).at(Some(order.service), Some(order.method), &order.path);
        asked.call.call_id = Some(order.call_id);
        asked
    }

    /// The same with what it was to call.
    pub(super) fn at(self, service: Option<ServiceId>, method: Option<Method>, path: &str) -> Self {
        let call = RefusedCall { service, method, path: beginning(path).to_owned(), ..self.call };
        Self { call, ..self }
    }
}

impl Gateway {
    /// Notes a call that ends with a problem, and answers it.
    pub(super) fn refuse(&self, asked: AskedCall, problem: Problem) -> Response {
        self.note(asked, &problem);
        problem.into_response()
    }

    pub(super) fn note(&self, asked: AskedCall, problem: &Problem) {
        self.refused.note(RefusedCall {
            call_id: problem.call_id.or(asked.call.call_id),
            secret: Some(asked.grant.name.clone()),
            code: problem.name.to_string(),
            status: Some(problem.status.as_u16()),
            detail: problem.detail.clone(),
            next: problem.next.to_owned(),
            charged: match problem.charged {
                ChargeStatus::No => Some(false),
                ChargeStatus::Yes => Some(true),
                ChargeStatus::Undecided => None,
            },
            took_us: clock::micros(asked.began.elapsed()),
            ..asked.call
        });
    }

    pub(super) fn count_wrong_secret(&self) {
        self.refused.count_wrong_secret(clock::now_secs());
    }
}
