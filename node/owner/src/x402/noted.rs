//! The end of a request at the door, as metrics, the access log and the log of refused calls tell it.

use farthing_bounds::LineLimiter;
use farthing_os::clock;
use farthing_protocol::{Address, SignedTransfer, Usdc};
use farthing_shared::{
    call_ends::{BegunCall, End, EndedCall, Half},
    refused::{RefusedCall, beginning},
};
use farthing_x402::InvalidPayment;
use tokio::time::Instant;

use super::{DoorAnswer, X402Sales};
use crate::{ended, refusals};

/// Lines about payments, which anybody can cause for nothing: wallets are free.
static TOLD: LineLimiter = LineLimiter::new(30);

/// Admits one more of these lines. Returns how many were left out since the last one.
pub(super) fn admit_line() -> Option<u64> {
    TOLD.admits(Instant::now().into_std())
}

impl X402Sales {
    /// Notes how a request ended, in metrics, the access log and the log of refused calls. Offers are no calls.
    pub(super) fn note_sold(
        &self,
        begun: &BegunCall,
        payment: &SignedTransfer,
        path: &str,
        answer: &DoorAnswer,
    ) {
        let payer = self.signer_of(payment, answer);
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
        ended::note(
            (&self.0.ends, &self.0.registry),
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
                peer: payer,
                took_us: clock::micros(begun.took()),
                ..RefusedCall::new(Half::Owner, clock::now_secs())
            };
            refusals::note(&self.0.refused, asked, refused);
        }
    }

    /// The wallet that a payment names, if its key has signed the payment: anybody can name a wallet.
    fn signer_of(&self, payment: &SignedTransfer, answer: &DoorAnswer) -> Option<Address> {
        let is_signed = match answer {
            // Nothing is sold before the signature is checked.
            DoorAnswer::Said(_) | DoorAnswer::Failed(_) | DoorAnswer::Unpaid { .. } => true,
            DoorAnswer::Due { .. } | DoorAnswer::Refused(_) => {
                let token = self.0.chain.token_domain_told_last();
                token.is_some_and(|token| payment.verify(&token).is_ok())
            }
        };
        is_signed.then_some(payment.authorization.from)
    }
}
