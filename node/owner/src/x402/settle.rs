//! The payment of a stored answer: taken, judged by the chain, and recorded as a call.

use std::time::Duration;

use bytes::Bytes;
use farthing_chain::{Head, PaymentState};
use farthing_ledger::{Call, LedgerError};
use farthing_os::{clock, killpoint};
use farthing_protocol::{Hash, Refusal};
use farthing_shared::{at_once::each, chain_view};
use tokio::time::Instant;

use super::{
    DoorAnswer, X402Sales, failed,
    noted::admit_line,
    sales::{Sale, SaleKey, SaleState},
    unstored,
};

/// A client waits no longer for a block. The payment goes on, and a copy of the request finds its end.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// A payment for a served call is taken as long as it pays its gas.
pub(super) const GAS_FACTOR_LEFT: u64 = 1;
const TENDED_EVERY: Duration = Duration::from_secs(30);

impl X402Sales {
    /// Takes the payment of a stored answer, and gives the answer once it is paid.
    pub(super) async fn settle(
        &self,
        key: SaleKey,
        sale: Sale,
        body: Option<Bytes>,
    ) -> Result<DoorAnswer, Refusal> {
        let payer = sale.payment.authorization.from;
        self.0.door.sales.note_refusal(&key, None);
        // What the chain took back before now cannot be the block that takes it.
        self.0.door.sales.note_look(&key, reorganisations(*self.0.chain.head().borrow()));
        let taking = async {
            let (chain, payment) = (&self.0.chain, sale.payment);
            if self.check_worth(sale.price, GAS_FACTOR_LEFT).is_ok() {
                return chain.take_payment(payment, sale.since_block).await;
            }
            // Gas has become too dear for its price since it was served, and a copy tries again; but somebody may have brought it.
            chain.payment_state(&payment.authorization, sale.since_block).await
        };
        let taken = tokio::time::timeout(SETTLED_WITHIN, taking).await;
        let reason = match taken {
            Ok(Ok(PaymentState::Paid(transaction))) => {
                let sale = self.book_sale(key, sale, transaction.0).await?;
                return self.told(&key, sale, (body, false));
            }
            Ok(Ok(PaymentState::Refused(reason))) => {
                if let Some(left_out) = admit_line() {
                    tracing::info!(
                        %payer,
                        reason,
                        left_out,
                        "a payment is refused by the chain, and its answer withheld"
                    );
                }
                self.0.door.notes.lock().refuse(key, reason.clone(), Instant::now());
                Some(reason)
            }
            Ok(Ok(PaymentState::Open)) | Err(_) => None,
            Ok(Err(error)) => {
                if let Some(left_out) = admit_line() {
                    tracing::warn!(
                        %payer,
                        %error,
                        left_out,
                        "a payment is not taken yet, and its answer withheld"
                    );
                }
                None
            }
        };
        self.0.door.sales.note_refusal(&key, reason.as_ref().map(|_| clock::now_secs()));
        // Until it is paid: then the count begins anew.
        self.count_sale(&sale, false);
        Ok(DoorAnswer::Unpaid { payer, reason })
    }

    /// Records a paid sale as a call, and then that it is settled. A crash between the two does the first again, which changes
    /// nothing.
    async fn book_sale(&self, key: SaleKey, sale: Sale, transaction: Hash) -> Result<Sale, Refusal> {
        let answer = sale.answer.clone().ok_or_else(failed)?;
        let payer = sale.payment.authorization.from;
        let call = Call {
            call_id: self.call_id_of(&sale.payment.authorization.nonce),
            service: sale.service,
            method: sale.method,
            path: sale.path.clone(),
            request_hash: sale.request_hash,
            response_hash: answer.response_hash,
            price: sale.price,
            charged: sale.price,
            outcome: answer.outcome,
            status: answer.status,
            headers: answer.headers,
            body: None,
            fault: None,
            upstream_us: Some(answer.upstream_us),
            time_secs: clock::now_secs(),
        };
        let call_id = call.call_id;
        match self.0.ledger.serve_paid(payer, call, transaction).await {
            Ok(_) | Err(LedgerError::AlreadyServed(_)) => {}
            Err(error) if self.0.ledger.closed().is_some() => return Err(unstored(&error)),
            // Its payer used the id for a call of the network. It has paid all the same.
            Err(error) => tracing::error!(%call_id, %error, "a paid call is missing in the history"),
        }
        killpoint::reached("x402.after_settlement");
        let sale = Sale { state: SaleState::Settled, paid_by: Some(transaction.into()), ..sale };
        self.0.door.sales.put(key, &sale, None).await.map_err(|error| unstored(&error))?;
        self.0.door.notes.lock().take(&key);
        self.count_sale(&sale, true);
        Ok(sale)
    }

    /// Lets a payment be tried again, within what its payer may ask for nothing: one that fails takes a turn of this wallet's
    /// writer, and its payer can repeat it for ever.
    ///
    /// # Errors
    /// A `RateLimited` refusal naming when to come back.
    pub(super) fn begin_settlement(&self, sale: &Sale) -> Result<(), Refusal> {
        let operation = self.operation_of(sale);
        let operation = operation.as_deref().map(|operation| (sale.service, operation));
        self.0.load.begin_uncharged(sale.payment.authorization.from, operation)
    }

    fn count_sale(&self, sale: &Sale, is_charged: bool) {
        let operation = self.operation_of(sale);
        let operation = operation.as_deref().map(|operation| (sale.service, operation));
        self.0.load.count_end(sale.payment.authorization.from, operation, is_charged);
    }

    /// The operation of a sale; `None` if its service is not here any more.
    fn operation_of(&self, sale: &Sale) -> Option<String> {
        let service = self.0.registry.get(sale.service)?;
        service.known().operation_at(sale.method, &sale.path)
    }

    /// Ends now and then what no client comes back for: a payment that was taken after its client left is recorded, and what
    /// is over is forgotten. After a start and when the chain has taken back blocks, payments that were taken are looked for again
    /// (`taken_back`). Runs until the node stops.
    pub async fn tend_sales(&self) {
        let mut heads = self.0.chain.head();
        loop {
            let seen = reorganisations(*heads.borrow_and_update());
            // The chain may take its time for one of them.
            each(self.0.door.sales.keys(), |key| self.tend(key, seen)).await;
            let moved = async { heads.wait_for(|head| reorganisations(*head) != seen).await.map(drop) };
            let _ = tokio::time::timeout(TENDED_EVERY, moved).await;
        }
    }

    async fn tend(&self, key: SaleKey, seen: Option<u64>) {
        if let Err(refusal) = self.tend_in_turn(key, seen).await
            && let Some(left_out) = admit_line()
        {
            tracing::warn!(reason = refusal.detail, left_out, "a sale is looked at again later");
        }
    }

    async fn tend_in_turn(&self, key: SaleKey, seen: Option<u64>) -> Result<(), Refusal> {
        // Who works on it does all of this.
        let Some(_turn) = self.0.door.turns.try_take(key) else { return Ok(()) };
        let sales = &self.0.door.sales;
        let Some(sale) = sales.find(&key).map_err(|error| unstored(&error))? else { return Ok(()) };
        let is_here = sale.is_in(self.token_of_now());
        if is_here && self.may_be_taken_back(&key, &sale, seen) {
            // It is not forgotten before.
            return self.look_again(key, sale, seen).await;
        }
        let is_over = sales.is_over(&key, clock::now_secs(), chain_view::time_secs(&self.0.chain));
        // Strangers can leave any number of refused ones: the chain is asked about these once more, at their end.
        let is_asked_about = sale.state == SaleState::Answered && (is_over || !sales.is_idle(&key));
        if is_asked_about && is_here {
            let state = self.0.chain.payment_state(&sale.payment.authorization, sale.since_block).await;
            match state {
                Ok(PaymentState::Paid(transaction)) => {
                    return self.book_sale(key, sale, transaction.0).await.map(drop);
                }
                Ok(PaymentState::Open | PaymentState::Refused(_)) => {}
                // Nothing is forgotten that may be paid.
                Err(_) => return Ok(()),
            }
        }
        if is_over {
            sales.forget(key).await.map_err(|error| unstored(&error))?;
        }
        Ok(())
    }
}

/// The number of times that the chain took back blocks; `None` before it was read.
fn reorganisations(head: Option<Head>) -> Option<u64> {
    head.map(|head| head.reorganisations)
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{Ledger, OpenMode};
    use farthing_protocol::{
        ServiceId, Signature, SignedTransfer, TransferAuthorization, Usdc, call::Method,
    };
    use tokio::net::TcpListener;

    use super::*;
    use crate::{
        tests::{CHAIN_ID, key, owner},
        x402::sales::key_of,
    };

    /// A sale whose answer is stored, and whose payment may be under way.
    fn answered(number: u8) -> Sale {
        let authorization = TransferAuthorization {
            from: key(3).address(),
            to: key(2).address(),
            value: Usdc::from_micros(2_000),
            valid_after_secs: 0,
            valid_before_secs: u64::MAX,
            nonce: [number; 32],
        };
        Sale {
            chain_id: CHAIN_ID,
            request_hash: [3; 32],
            service: ServiceId::from_bytes([4; 16]),
            method: Method::Get,
            path: "/ok".to_owned(),
            price: Usdc::from_micros(2_000),
            payment: SignedTransfer { authorization, signature: Signature::from_bytes([5; 65]) },
            since_block: 0,
            time_secs: clock::now_secs(),
            state: SaleState::Answered,
            answer: None,
            paid_by: None,
            header_names: Vec::new(),
            token: None,
        }
    }

    #[tokio::test]
    async fn a_sale_for_which_the_chain_does_not_answer_holds_up_no_other() {
        // It takes connections, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        let sales = owner(key(2), ledger, &endpoint).await.x402().clone();
        let door = &sales.0.door;
        for number in 1..=2 {
            let sale = answered(number);
            door.sales.put(key_of(&sale.payment.authorization), &sale, None).await.unwrap();
        }
        let both_are_tended = async {
            // Whoever works on a sale has its turn.
            while !door.sales.keys().into_iter().all(|key| door.turns.try_take(key).is_none()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(60), both_are_tended);
        tokio::select! {
            tended = within => tended.expect("one sale waits for the other"),
            () = sales.tend_sales() => unreachable!("it runs until the node stops"),
        }
    }
}
