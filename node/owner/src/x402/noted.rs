//! The end of a request at the door, as metrics, the access log and the log of refused calls tell it.

use farthing_os::clock;
use farthing_protocol::{Address, Usdc};
use farthing_shared::{
    call_ends::{BegunCall, End, EndedCall, Half},
    refused::{RefusedCall, beginning},
};
use farthing_x402::InvalidPayment;

use super::DoorAnswer;
use crate::Owner;

impl Owner {
    /// Notes how a request ended, in metrics, the access log and the log of refused calls. Offers are no calls.
    pub(super) fn note_sold(&self, begun: &BegunCall, payer: Address, path: &str, answer: &DoorAnswer) {
        let (mut charged, mut status, mut refusal) = (Usdc::ZERO, None, None);
        let end = match answer {
            DoorAnswer::Due { invalid, .. } => {
                refusal = invalid.as_ref().map(InvalidPayment::code);
                End::Refused
            }
            DoorAnswer::Refused(refused) => {
                refusal = Some(refused.code.name());
                End::Refused
            }
            DoorAnswer::Failed(_) => End::Failed,
            DoorAnswer::Unpaid { .. } => End::Undecided,
            DoorAnswer::Said(said) => {
                status = Some(said.status);
                match said.paid_by {
                    _ if said.is_copy => End::Repeated,
                    None => End::Free,
                    Some(_) => {
                        charged = said.price;
                        End::Charged
                    }
                }
            }
        };
        self.note(
            begun,
            payer,
            EndedCall { half: Half::Owner, end, charged, status, refusal, peer: None, operation: None },
        );
        if let DoorAnswer::Refused(refused) = answer {
            let asked = RefusedCall {
                call_id: Some(begun.call_id),
                service: Some(begun.service),
                method: Some(begun.method),
                path: beginning(path).to_owned(),
                peer: Some(payer),
                took_us: clock::micros(begun.took()),
                ..RefusedCall::new(Half::Owner, clock::now_secs())
            };
            self.note_refused(asked, refused);
        }
    }
}
