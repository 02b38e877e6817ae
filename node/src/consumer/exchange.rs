//! Sending a call and learning its end, across lost connections: never started, answered, or undecided.
//!
//! As long as nothing can have reached the owner, failure is certain and free. Once a request may have
//! arrived, only the owner knows; the same request under the same call id is then sent again until the
//! deadline, because an owner answers one call id once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use farthing_network::CallFailure;
use farthing_protocol::{
    CallMessage, CallReply, CallResponse, Refusal, RefusalCode, Signature, call::CallStatus, channel::Receipt,
};

use crate::killpoint;

use super::{Consumer, attempt::Attempt};

/// How long a channel that was just opened may be unknown to the owner, whose view of the chain may lag.
const CHANNEL_LAG: Duration = Duration::from_secs(20);
/// How long an owner that has just started may need for its first look at the chain.
const START_LAG: Duration = Duration::from_secs(3);
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// An answer of the owner's node.
#[derive(Debug)]
pub(super) enum Exchanged {
    Response(CallResponse, Bytes),
    Refused(Refusal),
    /// Served earlier; only the receipt is left.
    Gone(Receipt, Signature),
}

/// No answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The owner cannot have started the call.
    NeverStarted(String),
    /// It may have.
    Undecided(String),
}

impl Consumer {
    /// Sends the attempt until it is answered, certainly failed, or out of time.
    pub(super) async fn exchange(&self, attempt: &Attempt, deadline: Instant) -> Result<Exchanged, Failure> {
        let started = Instant::now();
        let mut may_have_arrived = false;
        let mut interrupted: Option<String> = None;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let message = CallMessage::Call(attempt.promise.request.clone());
            killpoint::reached("consumer.before_send");
            let call = self
                .0
                .network
                .call(attempt.expected.owner, message, attempt.promise.body.clone(), remaining)
                .await;
            let problem = match call {
                Ok((CallReply::Response(response), body, _)) => {
                    return Ok(Exchanged::Response(response, body));
                }
                Ok((CallReply::Status(CallStatus::Done { receipt, signature }), ..)) => {
                    return Ok(Exchanged::Gone(receipt, signature));
                }
                Ok((CallReply::Refused(refusal), ..)) => {
                    // Refusals are free and final, except those that time alone mends.
                    if !self.is_lagging(&refusal, attempt, started) {
                        return Ok(Exchanged::Refused(refusal));
                    }
                    refusal.detail
                }
                Ok((CallReply::Status(CallStatus::Running), ..)) => {
                    may_have_arrived = true;
                    "the call is still running".to_owned()
                }
                Ok((
                    CallReply::Status(CallStatus::Unknown) | CallReply::Channel(_) | CallReply::Calls(_),
                    ..,
                )) => "the owner's node gave an answer to another question".to_owned(),
                Err(CallFailure::NeverStarted(reason)) if !may_have_arrived => {
                    return Err(Failure::NeverStarted(reason.to_string()));
                }
                // What counts is how the one that may have arrived ended.
                Err(CallFailure::NeverStarted(reason)) => match &interrupted {
                    Some(interrupted) => format!("{interrupted}; when it was asked again: {reason}"),
                    None => reason.to_string(),
                },
                Err(CallFailure::Unknown(reason)) => {
                    may_have_arrived = true;
                    interrupted.insert(reason.to_string()).clone()
                }
            };
            if Instant::now() + RETRY_EVERY >= deadline {
                return Err(if may_have_arrived {
                    Failure::Undecided(problem)
                } else {
                    Failure::NeverStarted(problem)
                });
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    /// Whether the owner refuses only because its view of the chain lags: it has not seen a confirmed deposit
    /// yet, or has just started.
    fn is_lagging(&self, refusal: &Refusal, attempt: &Attempt, started: Instant) -> bool {
        let lag_max = match refusal.code {
            RefusalCode::UnknownChannel | RefusalCode::VoucherAboveDeposit => CHANNEL_LAG,
            RefusalCode::ChainStale => START_LAG,
            _ => return false,
        };
        attempt.reservation.is_some() && started.elapsed() < lag_max
    }
}
