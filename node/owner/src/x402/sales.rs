//! Sales as the ledger has them: one record for each payment, and the body of its answer beside it.
//!
//! A record is written before each step that it names. It goes a while after its end: from then on the call itself is in the ledger,
//! and the token takes its payment no second time.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::{
    Address, Hash, Outcome, ServiceId, SignedTransfer, TransferAuthorization, Usdc,
    call::{Method, response_hash},
    wire,
};
use farthing_shared::keyed_mutex::KeyedMutex;
use minicbor::{Decode, Encode, bytes::ByteArray};
use parking_lot::Mutex;

use crate::upstream::UpstreamAnswer;

/// The time for which an ended sale gives its answer again.
const KEPT_SECS: u64 = 600;
/// A payment whose time is over may still be in a block that is not read yet.
const AFTER_EXPIRY_SECS: u64 = 600;
/// However long an authorization is valid for, its sale waits for a settlement no longer.
const OPEN_SECS_MAX: u64 = 24 * 3_600;
/// Kept answers in all.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;
const KEPT_MAX: usize = 20_000;
/// The part of them that one payer's unpaid ones may take: they wait as long as their payments are valid, and cost it nothing.
const UNPAID_PART: usize = 16;
/// The size of a record beside the body.
const RECORD_BYTES: usize = 2 * 1024;

/// Payer, and the nonce of its payment.
pub(super) type SaleKey = [u8; 52];

pub(super) fn key_of(authorization: &TransferAuthorization) -> SaleKey {
    let mut key = [0; 52];
    key[..20].copy_from_slice(authorization.from.as_bytes());
    key[20..].copy_from_slice(&authorization.nonce);
    key
}

/// The part of a sale that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(super) enum SaleState {
    /// Given to its service; nothing is paid.
    #[n(0)]
    Running,
    /// The answer is stored, and its payment may be under way.
    #[n(1)]
    Answered,
    /// Paid, and recorded as a call.
    #[n(2)]
    Settled,
    /// The end of a call that costs nothing; its payment is never used.
    #[n(3)]
    Free,
}

/// A call that is paid by a transaction of its own.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Sale {
    #[n(0)]
    pub(super) chain_id: u64,
    /// Of what it asks for.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(super) request_hash: Hash,
    #[n(2)]
    pub(super) service: ServiceId,
    #[n(3)]
    pub(super) method: Method,
    #[n(4)]
    pub(super) path: String,
    #[n(5)]
    pub(super) price: Usdc,
    #[n(6)]
    pub(super) payment: SignedTransfer,
    /// No block before this one has the payment.
    #[n(7)]
    pub(super) since_block: u64,
    /// Seconds since the Unix epoch, at its beginning.
    #[n(8)]
    pub(super) time_secs: u64,
    #[n(9)]
    pub(super) state: SaleState,
    #[n(10)]
    pub(super) answer: Option<AnswerHead>,
    /// The transaction that paid it; `None` also once the chain has taken it back and nothing pays the sale any more.
    #[n(11)]
    pub(super) paid_by: Option<ByteArray<32>>,
    /// The headers that its hash covers, because they were parameters of its operation.
    #[n(12)]
    #[cbor(default)]
    pub(super) header_names: Vec<String>,
    /// The token that pays it; `None` in a record of a version that knew one token: that of the settings.
    #[n(13)]
    pub(super) token: Option<Address>,
}

/// An answer without its body.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct AnswerHead {
    #[n(0)]
    pub(super) status: u16,
    #[n(1)]
    pub(super) headers: BTreeMap<String, String>,
    #[n(2)]
    pub(super) outcome: Outcome,
    #[n(3)]
    pub(super) body_bytes: u64,
    #[cbor(n(4), with = "minicbor::bytes")]
    pub(super) response_hash: Hash,
    #[n(5)]
    pub(super) upstream_us: u64,
}

impl AnswerHead {
    pub(super) fn of(fetched: &UpstreamAnswer) -> Self {
        Self {
            status: fetched.status,
            headers: fetched.headers.clone(),
            outcome: fetched.outcome,
            body_bytes: fetched.body.len() as u64,
            response_hash: response_hash(fetched.status, &fetched.headers, &fetched.body),
            upstream_us: clock::micros(fetched.elapsed),
        }
    }
}

impl Sale {
    /// Returns whether it is paid in this token. No other one says anything of its payment.
    pub(super) fn is_in(&self, (chain_id, token): (u64, Address)) -> bool {
        self.chain_id == chain_id && self.token.is_none_or(|of| of == token)
    }

    /// The second from which its payment is not brought any more.
    pub(super) fn lapses_secs(&self) -> u64 {
        let waited = self.time_secs.saturating_add(OPEN_SECS_MAX);
        self.payment.authorization.valid_before_secs.min(waited)
    }

    /// The second until which it is kept, as of `now_secs`.
    fn until_secs(&self, now_secs: u64) -> u64 {
        let expired = self.payment.authorization.valid_before_secs.saturating_add(AFTER_EXPIRY_SECS);
        let open = expired.min(self.time_secs.saturating_add(OPEN_SECS_MAX));
        let ended = now_secs.saturating_add(KEPT_SECS);
        match self.state {
            SaleState::Settled => ended,
            // Its payment would have it run again.
            SaleState::Free => ended.max(open),
            SaleState::Running | SaleState::Answered => open,
        }
    }

    fn bytes(&self) -> usize {
        let body = self.answer.as_ref().map_or(0, |answer| answer.body_bytes);
        usize::try_from(body).unwrap_or(usize::MAX).saturating_add(RECORD_BYTES)
    }
}

/// A sale in the ledger, as far as its room and its time go.
#[derive(Clone, Copy, Debug)]
struct KeptSale {
    until_secs: u64,
    bytes: usize,
    is_paid: bool,
    is_open: bool,
    /// The second since which its payment is not tried: the chain refused it, or the call is free. Its payer may come back.
    idle_secs: Option<u64>,
    /// The reorganisations before the last look at the chain for its payment; `None` before the first one since the start.
    looked_at: Option<u64>,
}

impl KeptSale {
    fn of(sale: &Sale, now_secs: u64) -> Self {
        let (until_secs, bytes) = (sale.until_secs(now_secs), sale.bytes());
        let is_open = matches!(sale.state, SaleState::Running | SaleState::Answered);
        let idle_secs = (sale.state == SaleState::Free).then_some(now_secs);
        let is_paid = sale.state == SaleState::Settled;
        Self { until_secs, bytes, is_paid, is_open, idle_secs, looked_at: None }
    }
}

/// The sales that the ledger has.
#[derive(Debug)]
pub(super) struct Sales {
    ledger: Ledger,
    kept: Mutex<HashMap<SaleKey, KeptSale>>,
}

impl Sales {
    pub(super) fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let (mut kept, now_secs) = (HashMap::new(), clock::now_secs());
        for (key, bytes) in ledger.list(Namespace::Sales)? {
            let sale = decode(&bytes);
            match (SaleKey::try_from(&*key), sale) {
                (Ok(key), Ok(sale)) => {
                    kept.insert(key, KeptSale::of(&sale, now_secs));
                }
                _ => tracing::warn!(key = hex::encode(&key), "a stored sale cannot be read and is left"),
            }
        }
        Ok(Self { ledger, kept: Mutex::new(kept) })
    }

    pub(super) fn find(&self, key: &SaleKey) -> Result<Option<Sale>, LedgerError> {
        let stored = self.ledger.get(Namespace::Sales, key)?;
        stored.map(|bytes| decode(&bytes)).transpose()
    }

    /// The body of a stored answer. A node that was restored from a backup has none: no backup has them.
    pub(super) fn body(&self, key: &SaleKey) -> Result<Option<Bytes>, LedgerError> {
        self.ledger.get(Namespace::SaleBodies, key)
    }

    /// Stores a sale durably, and its body where there is one: both or nothing.
    pub(super) async fn put(
        &self,
        key: SaleKey,
        sale: &Sale,
        body: Option<Bytes>,
    ) -> Result<(), LedgerError> {
        let document =
            |namespace, value| Document { namespace, key: Bytes::copy_from_slice(&key), value: Some(value) };
        let record = document(Namespace::Sales, wire::encode(sale).into());
        let body = body.map(|body| document(Namespace::SaleBodies, body));
        self.ledger.put_many([record].into_iter().chain(body).collect()).await?;
        let mut kept = self.kept.lock();
        let looked_at = kept.get(&key).and_then(|before| before.looked_at);
        kept.insert(key, KeptSale { looked_at, ..KeptSale::of(sale, clock::now_secs()) });
        drop(kept);
        Ok(())
    }

    /// Removes a sale and its answer.
    pub(super) async fn forget(&self, key: SaleKey) -> Result<(), LedgerError> {
        let document = |namespace| Document { namespace, key: Bytes::copy_from_slice(&key), value: None };
        self.ledger.put_many(vec![document(Namespace::Sales), document(Namespace::SaleBodies)]).await?;
        self.kept.lock().remove(&key);
        Ok(())
    }

    /// Returns whether a payer may have one more unpaid answer.
    pub(super) fn has_room(&self, payer: Address) -> bool {
        let kept = self.kept.lock();
        let (mut unpaid, mut unpaid_bytes) = (0_usize, 0_usize);
        for (key, sale) in &*kept {
            if !sale.is_paid && key.starts_with(payer.as_bytes()) {
                unpaid += 1;
                unpaid_bytes = unpaid_bytes.saturating_add(sale.bytes);
            }
        }
        unpaid < KEPT_MAX / UNPAID_PART && unpaid_bytes < KEPT_BYTES_MAX / UNPAID_PART
    }

    /// Makes room for one more answer, and returns whether there is any. Answers whose payments the chain has refused go, and free
    /// ones, the oldest first: wallets cost nothing, so strangers can leave as many as they like.
    pub(super) async fn make_room(&self, turns: &KeyedMutex<SaleKey>) -> Result<bool, LedgerError> {
        while self.is_full() {
            // Whoever works on it may have it paid now.
            let mut left = self.idle().into_iter().filter_map(|key| Some((key, turns.try_take(key)?)));
            let Some((key, turn)) = left.find(|(key, _)| self.is_idle(key)) else { return Ok(false) };
            self.forget(key).await?;
            drop(turn);
        }
        Ok(true)
    }

    /// Notes when the chain refused the payment of a sale; `None` if it may be taken yet.
    pub(super) fn note_refusal(&self, key: &SaleKey, refused_secs: Option<u64>) {
        if let Some(sale) = self.kept.lock().get_mut(key) {
            sale.idle_secs = refused_secs;
        }
    }

    /// Returns whether nothing becomes of a sale until its payer comes back.
    pub(super) fn is_idle(&self, key: &SaleKey) -> bool {
        self.idle_secs(key).is_some()
    }

    /// The second since which the payment of a sale is not tried.
    pub(super) fn idle_secs(&self, key: &SaleKey) -> Option<u64> {
        self.kept.lock().get(key)?.idle_secs
    }

    /// Notes that no reorganisation before this one can have taken back the payment of a sale.
    pub(super) fn note_look(&self, key: &SaleKey, reorganisations: Option<u64>) {
        if let Some(sale) = self.kept.lock().get_mut(key) {
            sale.looked_at = reorganisations;
        }
    }

    /// Returns whether the chain was asked for the payment of a sale after as many reorganisations.
    pub(super) fn is_looked_at(&self, key: &SaleKey, reorganisations: Option<u64>) -> bool {
        self.kept.lock().get(key).is_none_or(|sale| sale.looked_at == reorganisations)
    }

    /// Counts the sales whose payments may be taken yet, without those that the chain has refused.
    pub(super) fn under_way(&self) -> usize {
        let kept = self.kept.lock();
        kept.values().filter(|sale| sale.is_open && sale.idle_secs.is_none()).count()
    }

    fn is_full(&self) -> bool {
        let kept = self.kept.lock();
        let bytes = kept.values().fold(0_usize, |bytes, sale| bytes.saturating_add(sale.bytes));
        kept.len() >= KEPT_MAX || bytes >= KEPT_BYTES_MAX
    }

    /// Lists the sales that wait until their payers come back, the oldest first. One that was paid is not among them, also while its
    /// payment is missing again: it is brought again later.
    fn idle(&self) -> Vec<SaleKey> {
        let kept = self.kept.lock();
        let unpaid = kept.iter().filter(|(_, sale)| !sale.is_paid);
        let idle = unpaid.filter_map(|(key, sale)| Some((sale.idle_secs?, *key)));
        let mut idle: Vec<(u64, SaleKey)> = idle.collect();
        drop(kept);
        idle.sort_unstable();
        idle.into_iter().map(|(_, key)| key).collect()
    }

    /// Lists the sales that are kept.
    pub(super) fn keys(&self) -> Vec<SaleKey> {
        self.kept.lock().keys().copied().collect()
    }

    /// Returns whether the time of a sale is over, by this machine's clock and the date of the newest block. While a payment can be
    /// taken, it is so only by both: either may be ahead.
    pub(super) fn is_over(&self, key: &SaleKey, clock_secs: u64, block_secs: Option<u64>) -> bool {
        let both_secs = clock_secs.min(block_secs.unwrap_or_default());
        let is_over = |sale: &KeptSale| sale.until_secs <= if sale.is_paid { clock_secs } else { both_secs };
        self.kept.lock().get(key).is_none_or(is_over)
    }
}

fn decode(bytes: &[u8]) -> Result<Sale, LedgerError> {
    let read = minicbor::decode(bytes);
    read.map_err(|error| LedgerError::Damaged { table: "documents", cause: error.to_string() })
}

#[cfg(test)]
mod tests;
