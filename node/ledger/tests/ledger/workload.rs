//! A day of both halves as a list of steps, each of which can say whether it is in a ledger.

use bytes::Bytes;
use farthing_ledger::{
    Call, Ledger, Namespace, PayeeChannelFacts, PurchaseEnd, Result, ServedRow, Settlement, SettlementRow,
    SettlementState,
};
use farthing_values::{Method, Outcome, Usdc};

use crate::world::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    OpenChannels(u8),
    Accept(u64),
    /// A call on the channel of this salt, bringing a voucher for this many prices.
    Serve {
        salt: u8,
        number: u64,
        prices: u64,
        kind: Kind,
    },
    OpenSettlement {
        salt: u8,
        to: Usdc,
    },
    /// The chain shows what was claimed.
    Pay {
        salt: u8,
        to: Usdc,
    },
    ConfirmSettlement {
        id: u64,
        salt: u8,
        to: Usdc,
    },
    Promise {
        salt: u8,
        number: u64,
        prices: u64,
    },
    Acknowledge {
        salt: u8,
        number: u64,
        prices: u64,
        charged: Usdc,
    },
    Release(u64),
    Put(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Answered,
    WithBody,
    Failed,
    Posted,
}

impl Step {
    pub(crate) async fn run(&self, ledger: &Ledger) -> Result<()> {
        match *self {
            Self::OpenChannels(salt) => {
                ledger.put_payee_channel(payee_channel(salt)).await?;
                ledger.put_payer_channel(payer_channel(salt)).await.map(drop)
            }
            Self::Accept(number) => ledger.accept(accepted(number)).await,
            Self::Serve { salt, number, prices, kind } => {
                let served = served(salt, micros(PRICE.micros() * prices), kind.call(number));
                ledger.serve(served).await.map(drop)
            }
            Self::OpenSettlement { salt, to } => {
                let row = SettlementRow { channel: channel(salt), from: Usdc::ZERO, to };
                ledger.open_settlement(vec![row], NOW_SECS).await.map(drop)
            }
            Self::Pay { salt, to } => {
                let paid = PayeeChannelFacts { claimed: to, ..payee_channel(salt) };
                ledger.put_payee_channel(paid).await.map(drop)
            }
            Self::ConfirmSettlement { id, salt, to } => {
                let rows = vec![SettlementRow { channel: channel(salt), from: Usdc::ZERO, to }];
                let state = SettlementState::Confirmed;
                let settlement = Settlement {
                    id,
                    transaction: Some([8; 32]),
                    rows,
                    time_secs: NOW_SECS,
                    state,
                    is_dropped: false,
                };
                ledger.record_claim(settlement).await.map(drop)
            }
            Self::Promise { salt, number, prices } => {
                let promise = promise(salt, number, micros(PRICE.micros() * prices));
                ledger.promise(promise).await?.await.map(drop)
            }
            Self::Acknowledge { salt, number, prices, charged } => {
                let promise = promise(salt, number, micros(PRICE.micros() * prices));
                let receipt = receipt(&promise, charged, Outcome::Answered);
                ledger.acknowledge(call_id(number), acknowledgement(receipt)).await
            }
            Self::Release(number) => ledger.release(call_id(number), "busy", NOW_SECS).await,
            Self::Put(number) => {
                let key = number.to_be_bytes().to_vec();
                ledger.put(Namespace::Transactions, key, vec![1; 300]).await
            }
        }
    }

    /// Whether this is an acknowledgement that is not there, of a call that is.
    pub(crate) fn is_forgotten(&self, ledger: &Ledger) -> bool {
        let Self::Acknowledge { number, .. } = *self else { return false };
        !self.is_in(ledger) && ledger.promise_of(call_id(number)).unwrap().is_some()
    }

    /// Whether this step, once done, is still to be seen. Later steps build on earlier ones and undo none.
    pub(crate) fn is_in(&self, ledger: &Ledger) -> bool {
        let served = |number| ledger.served(world().payer.address(), call_id(number)).unwrap();
        let purchase = |number| ledger.purchase(call_id(number)).unwrap();
        match *self {
            Self::OpenChannels(salt) => {
                ledger.payer_channels().unwrap().iter().any(|c| c.id == channel(salt))
            }
            Self::Accept(number) => served(number).is_some(),
            Self::Serve { number, kind, .. } => match served(number) {
                Some(ServedRow::Done(row)) => {
                    kind == Kind::Failed || (row.call.charged == PRICE && row.call == kind.call(number))
                }
                _ => false,
            },
            Self::OpenSettlement { .. } => !ledger.settlements(10).unwrap().is_empty(),
            Self::Pay { salt, to } => {
                let claimed = ledger.payee_channel(channel(salt)).unwrap().map(|c| c.claimed);
                claimed >= Some(to)
            }
            Self::ConfirmSettlement { id, .. } => {
                let settlements = ledger.settlements(10).unwrap();
                let state = settlements.iter().find(|s| s.id == id).map(|s| s.state);
                state == Some(SettlementState::Confirmed)
            }
            Self::Promise { number, .. } => {
                ledger.promise_of(call_id(number)).unwrap().is_some() || purchase(number).is_some()
            }
            Self::Acknowledge { number, charged, .. } => purchase(number)
                .is_some_and(|p| matches!(p.end, PurchaseEnd::Acknowledged { .. }) && p.charged == charged),
            Self::Release(number) => purchase(number).is_some(),
            Self::Put(number) => {
                ledger.get(Namespace::Transactions, &number.to_be_bytes()).unwrap().is_some()
            }
        }
    }
}

impl Kind {
    fn call(self, number: u64) -> Call {
        match self {
            Self::Answered => call(number),
            Self::WithBody => Call { body: Some(Bytes::from(vec![1; 6_000])), ..call(number) },
            Self::Failed => failed_call(number),
            Self::Posted => Call { method: Method::Post, ..call(number) },
        }
    }
}

/// Rounds of steps; those of one round are sent together, the next round waits for them.
pub(crate) fn rounds(count: u64) -> Vec<Vec<Step>> {
    let mut rounds = vec![vec![Step::OpenChannels(1)], vec![Step::OpenChannels(2)]];
    for round in 0..count {
        let salt = 1 + (round % 2) as u8;
        let first = round * 10;
        // Vouchers count all calls of the channel, so that each is covered.
        let prices = 4 * (round / 2 + 1);
        let (to, id) = (micros(PRICE.micros() * (prices - 3)), round / 2 + 1);
        rounds.push(vec![
            Step::Accept(first + 3),
            Step::Serve { salt, number: first, prices, kind: Kind::Failed },
            Step::Promise { salt, number: first, prices },
            Step::Put(first),
        ]);
        rounds.push(vec![
            Step::Serve { salt, number: first, prices, kind: Kind::Answered },
            Step::Serve { salt, number: first + 1, prices, kind: Kind::Answered },
            Step::Serve { salt, number: first + 2, prices, kind: Kind::WithBody },
            Step::Serve { salt, number: first + 3, prices, kind: Kind::Posted },
            Step::Promise { salt, number: first + 1, prices },
            Step::Acknowledge { salt, number: first, prices, charged: PRICE },
        ]);
        if salt == 2 {
            rounds.push(vec![Step::OpenSettlement { salt, to }]);
            rounds.push(vec![Step::Pay { salt, to }]);
            rounds.push(vec![Step::ConfirmSettlement { id, salt, to }, Step::Release(first + 1)]);
        }
    }
    rounds
}

/// Everything a ledger answers, to compare two of them.
pub(crate) fn contents(ledger: &Ledger) -> String {
    format!(
        "{:?}{:?}{:?}{:?}{:?}{:?}{:?}",
        ledger.payee_channels().unwrap(),
        ledger.served_calls(10_000).unwrap(),
        ledger.settlements(100).unwrap(),
        ledger.payer_channels().unwrap(),
        ledger.unresolved().unwrap(),
        ledger.purchases(10_000).unwrap(),
        ledger.list(Namespace::Transactions).unwrap(),
    )
}
