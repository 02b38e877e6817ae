//! A side that breaks the rules. Its own half goes on as ever; the line changes some of what it says, with the key of its wallet, so
//! that the other side meets true and false words.
//!
//! Only the honest side is judged, by what it is promised whatever the other one does. A consumer hands on no answer but the one
//! that its owner signed for the call, at its price at most, and its charges stay within what it has signed and within the limits
//! of its day. An owner gives away no answer of work with effects, and its vouchers cover what it charges.
//!
//! A consumer that distrusts its owner wants its deposit back, and asks the real chain, which has no such channel. The time of
//! that answer is not played, so a seed of a hostile owner may differ in what follows.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use bytes::Bytes;
use farthing_network::InboundCall;
use farthing_protocol::{
    CallId, CallMessage, CallReply, CallResponse, ChannelId, Domain, Refusal, RefusalCode, SecretKey, Usdc,
    Voucher,
    call::{CallStatus, Method, Payment, response_hash},
};
use tokio::time::sleep;

use super::{
    HISTORIES, TRIES, attempt_with,
    ground::{DEPOSIT, Ground},
    history::History,
    state::{Shared, call_id, method},
};
use crate::{play::Simulation, world::sum};

/// The answer of an owner that signs it for something else.
pub const FORGED: &[u8] = b"\"forged\"";
/// In the line of the log that tells of each.
const BREAKS: &str = "breaks the rules";
/// Of one call.
const PRICE: Usdc = Usdc::from_micros(1_000);
/// Longer than a service takes, and than an answer is asked for again and again.
const RESTS_FOR: Duration = Duration::from_secs(300);
/// Something that no call, request, answer or channel has.
const OTHER: u8 = 0x5a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Consumer,
    Owner,
}

/// The side that breaks the rules, with what it needs for that.
pub struct Hostile {
    pub side: Side,
    domain: Domain,
    key: SecretKey,
    /// What it has signed before.
    vouchers: Vec<Payment>,
    answers: Vec<(CallReply, Bytes)>,
}

impl Hostile {
    fn new(ground: &Ground, side: Side) -> Self {
        let party = match side {
            Side::Consumer => &ground.consumer,
            Side::Owner => &ground.owner,
        };
        let (domain, key) = (ground.escrow.domain(), party.key.clone());
        Self { side, domain, key, vouchers: Vec::new(), answers: Vec::new() }
    }

    fn pays(&self, channel: ChannelId, cumulative: Usdc, key: &SecretKey) -> Payment {
        let signature = Voucher { channel, cumulative }.sign(&self.domain, key);
        Payment::Channel { channel, cumulative, signature: Some(signature), receipted: None }
    }

    /// Signs an answer of which one thing is wrong.
    fn forge(&self, what: usize, response: &mut CallResponse, body: &mut Bytes) {
        *body = Bytes::from_static(FORGED);
        response.body_bytes = body.len() as u64;
        let receipt = &mut response.receipt;
        receipt.response_hash = response_hash(response.status, &response.headers, body);
        let mut key = self.key.clone();
        match what {
            0 => receipt.charged = PRICE.saturating_add(Usdc::from_micros(1)),
            1 => receipt.call_id = CallId::from_bytes([OTHER; 16]),
            2 => receipt.request_hash = [OTHER; 32],
            3 => receipt.channel = ChannelId::from_bytes([OTHER; 32]),
            4 => receipt.response_hash = [OTHER; 32],
            _ => key = stranger(),
        }
        response.signature = receipt.sign(&self.domain, &key);
    }
}

fn stranger() -> SecretKey {
    SecretKey::from_bytes(&[OTHER; 32]).unwrap()
}

/// Makes another request of a call that arrives, under its id.
pub fn ask_for_another(call: &mut InboundCall) {
    if let CallMessage::Call(request) = &mut call.message {
        call.body = Bytes::from_static(b"{}");
        request.body_bytes = call.body.len() as u64;
    }
}

impl Shared {
    fn is_hostile(&self, side: Side) -> bool {
        self.has_faults && self.hostile.as_ref().is_some_and(|hostile| hostile.side == side)
    }

    /// Lets a hostile consumer pay in another way than it should; true if it uses the call's id for another request as well.
    pub fn ask_otherwise(&mut self, message: &mut CallMessage) -> bool {
        if !self.is_hostile(Side::Consumer) {
            return false;
        }
        let CallMessage::Call(request) = message else { return false };
        let kind = self.choices.below(100);
        let Self { choices, hostile: Some(hostile), .. } = self else { return false };
        let Payment::Channel { channel, cumulative, .. } = request.payment else { return false };
        hostile.vouchers.push(request.payment.clone());
        let key = hostile.key.clone();
        let what = match kind {
            0..8 => {
                let earlier = choices.below(hostile.vouchers.len());
                request.payment = hostile.vouchers[earlier].clone();
                "pays with an old voucher"
            }
            8..16 => {
                request.payment = hostile.pays(channel, cumulative.saturating_sub(PRICE), &key);
                "pays with a voucher that is too low"
            }
            16..20 => {
                let other = ChannelId::from_bytes([OTHER; 32]);
                request.payment = hostile.pays(other, cumulative, &key);
                "pays with a voucher of another channel"
            }
            20..26 => {
                request.payment = hostile.pays(channel, DEPOSIT.saturating_add(PRICE), &key);
                "promises more than its deposit"
            }
            26..30 => {
                request.payment = hostile.pays(channel, DEPOSIT, &stranger());
                "pays with a stranger's signature"
            }
            30..34 => {
                request.payment = Payment::Free;
                "does not pay"
            }
            34..38 => {
                request.payment = hostile.pays(channel, cumulative, &key);
                "knows of no receipt"
            }
            38..50 => "asks for something else under the same id",
            _ => return false,
        };
        self.tell(format!("the consumer {BREAKS}: it {what}"));
        (38..50).contains(&kind)
    }

    /// Lets a hostile owner answer something else than it should.
    pub fn answer_otherwise(&mut self, reply: &mut CallReply, body: &mut Bytes) {
        if !self.is_hostile(Side::Owner) {
            return;
        }
        let kind = self.choices.below(100);
        let Self { choices, hostile: Some(hostile), .. } = self else { return };
        hostile.answers.push((reply.clone(), body.clone()));
        let instead = |reply: &mut CallReply, body: &mut Bytes, other: CallReply| {
            (*reply, *body) = (other, Bytes::new());
        };
        let what = match (kind, &mut *reply) {
            (0..6, _) => {
                instead(reply, body, CallReply::Status(CallStatus::Unknown));
                "denies"
            }
            (6..12, _) => {
                instead(reply, body, CallReply::Status(CallStatus::Running));
                "never ends"
            }
            (12..17, _) => {
                let codes = [RefusalCode::Busy, RefusalCode::Unavailable, RefusalCode::InsufficientVoucher];
                let code = codes[choices.below(codes.len())];
                instead(reply, body, CallReply::Refused(Refusal::new(code, "as it likes")));
                "refuses what it did"
            }
            (17..21, _) => {
                (*reply, *body) = hostile.answers[choices.below(hostile.answers.len())].clone();
                "repeats an old answer"
            }
            (21..33, CallReply::Response(response)) => {
                hostile.forge(choices.below(6), response, body);
                "forges an answer"
            }
            (33..36, CallReply::Response(response)) => {
                let receipt = &mut response.receipt;
                receipt.spent_total = receipt.spent_total.saturating_add(PRICE);
                response.signature = receipt.sign(&hostile.domain, &hostile.key);
                "counts too much"
            }
            (21..60, CallReply::Channel(books)) => {
                books.spent = books.spent.saturating_add(PRICE);
                "tells false books"
            }
            _ => return,
        };
        self.tell(format!("the owner {BREAKS}: it {what}"));
    }
}

impl History<'_> {
    /// Judges the side that keeps the rules, once the other one has had its time. What was charged.
    pub(super) async fn judge_against(mut self, side: Side) -> Usdc {
        {
            let mut shared = self.state.lock();
            shared.has_faults = false;
            shared.tell("rest");
        }
        sleep(RESTS_FOR).await;
        // A caller that panicked is heard of here.
        let is_busy = self.is_busy();
        self.state.tell(format!("the consumer is busy: {is_busy}"));
        let broken = std::mem::take(&mut self.state.lock().broken);
        assert!(broken.is_empty(), "{broken:?}");
        match side {
            Side::Owner => self.judge_consumer(),
            Side::Consumer => self.judge_owner(),
        }
    }

    fn judge_consumer(&self) -> Usdc {
        let buyer = &self.buyers[0];
        let audit = buyer.run.ledger().audit(Some(&buyer.ground.escrow.domain())).unwrap();
        assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        for (number, told) in self.state.lock().told() {
            assert!(told <= PRICE, "the caller of {number} hears that it cost {told}");
        }
        sum(buyer.bought().values().map(|purchase| purchase.charged))
    }

    fn judge_owner(&self) -> Usdc {
        let buyer = &self.buyers[0];
        let audit = self.owner.ledger().audit(Some(&buyer.ground.escrow.domain())).unwrap();
        assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        let sold = self.sold_to(buyer);
        let charged = sum(sold.values().map(|call| call.charged));
        let books = self.owner.half.book.get(buyer.ground.id).unwrap().state;
        assert_eq!((books.spent, books.reserved), (charged, Usdc::ZERO), "O2");
        let shared = self.state.lock();
        // Work without effects ends with its caller's deadline, which may pass.
        for number in shared.answered().filter(|number| method(*number) == Method::Post) {
            let is_charged = sold.get(&call_id(number)).is_some_and(|call| !call.charged.is_zero());
            assert!(is_charged, "{number} is served, and its owner gets nothing for it");
        }
        charged
    }
}

/// Plays histories in which this side breaks the rules.
fn play_against(name: &'static str, side: Side) {
    let (ground, _kept) = Ground::lay();
    let breaking = AtomicUsize::new(0);
    let attempt = |history: &[u8], _: bool| {
        let attempted = attempt_with(&ground, history, Some(Hostile::new(&ground, side)));
        let is_broken = attempted.as_ref().is_ok_and(|played| played.log.contains(BREAKS));
        breaking.fetch_add(usize::from(is_broken), Ordering::Relaxed);
        attempted
    };
    let simulation = Simulation { name, tries: TRIES, attempt: &attempt };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let totals = simulation.play_chosen(HISTORIES / 4, Vec::new(), cores);
    let breaking = breaking.into_inner();
    assert!(
        totals.histories == 1 || (totals.charging > 0 && 2 * breaking > totals.histories),
        "a side that breaks no rule, or buys nothing, shows nothing: {totals:?}, {breaking} break the rules"
    );
}

#[test]
fn a_consumer_pays_for_true_answers_alone_whatever_its_owner_says() {
    play_against("halves::hostile::a_consumer_pays", Side::Owner);
}

#[test]
fn an_owner_is_paid_for_what_it_serves_whatever_its_consumer_sends() {
    play_against("halves::hostile::an_owner_is_paid", Side::Consumer);
}
