//! The end of a served call, as the access log and `/metrics` tell it.

use std::{sync::Arc, time::Duration};

use farthing_protocol::{Address, CallReply, Usdc, call::CallStatus};
use farthing_shared::call_ends::{BegunCall, CallEnds, End, EndedCall, Half};

use super::{Owner, answer::Answer, registry::Registry};

/// An answer, and whether it is the first one of its call.
pub(super) type FirstOrAgain = (Arc<Answer>, bool);

impl Owner {
    /// Notes how a copy of a call ended. Nothing is answered when its record could not be stored.
    pub(super) fn note_end(&self, call: &BegunCall, payer: Address, answered: Option<&FirstOrAgain>) {
        if let Some((answer, true)) = answered
            && let CallReply::Response(response) = answer.reply()
        {
            let [whole, upstream] = [response.owner_us, response.upstream_us].map(Duration::from_micros);
            self.0.ends.note_part(Half::Owner, "owner", whole.saturating_sub(upstream));
            self.0.ends.note_part(Half::Owner, "upstream", upstream);
        }
        let ended = ended(answered.map(|(answer, is_first)| (answer.reply(), *is_first)));
        note((&self.0.ends, &self.0.registry), call, payer, ended);
    }
}

/// Notes an end, with the operation of its call.
pub(super) fn note(
    (ends, registry): (&CallEnds, &Registry),
    call: &BegunCall,
    payer: impl Into<Option<Address>>,
    ended: EndedCall<'_>,
) {
    // Looked up only for the line.
    let service = call.path().and_then(|_| registry.get(call.service));
    let operation = service.as_ref().zip(call.path()).and_then(|(service, path)| {
        let operation = service.known().api().operation_at(call.method.as_str(), path)?;
        Some(operation.path.as_str())
    });
    ends.note(call, &EndedCall { peer: payer.into(), operation, ..ended });
}

/// The part of it that the answer alone tells.
fn ended(answered: Option<(&CallReply, bool)>) -> EndedCall<'static> {
    let (mut charged, mut status, mut refusal) = (Usdc::ZERO, None, None);
    let end = match answered {
        Some((CallReply::Response(response), is_first)) => {
            status = Some(response.status).filter(|status| *status > 0);
            if !is_first {
                End::Repeated
            } else if !response.receipt.charged.is_zero() {
                charged = response.receipt.charged;
                End::Charged
            } else if response.outcome.is_the_services_answer() {
                End::Free
            } else {
                End::Failed
            }
        }
        Some((CallReply::Refused(why), _)) => {
            refusal = Some(why.code.name());
            End::Refused
        }
        Some((CallReply::Status(CallStatus::Done { .. }), _)) => End::Gone,
        Some((
            CallReply::Status(_) | CallReply::Channel(_) | CallReply::Calls(_) | CallReply::Sponsor(_),
            _,
        ))
        | None => End::Undecided,
    };
    EndedCall { half: Half::Owner, end, charged, status, refusal, peer: None, operation: None }
}
