//! Sending a call and learning its end, across lost connections.
//!
//! In order: the call is sent; an answer ends it; a refusal ends it while no other copy can have arrived. Once a copy
//! was lost, the same call is sent again, or the owner is asked what became of it, until its end is certain or the
//! deadline has passed. What decides is [`Copies`]; here its words meet the network.
//!
//! Invariant C4: a call that may be charged is never ended as free.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_control::types::CancelStage;
use farthing_network::{CallFailure, CallTiming, Interrupted, NetworkHandle, NotStarted};
use farthing_os::killpoint;
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallResponse, Refusal, RefusalCode, Signature,
    call::{CallStatus, Payment},
    channel::Receipt,
    resolution::{Copies, CopyOutcome, End, OwnerAnswer, Step},
};
use tokio::time::Instant;

use super::{
    BuyError, LastKnown, NoAnswer, NotTold, accounts::Attempt, awaited::AwaitedCall, channels::PayerChannels,
};

/// The time for which the owner may not know a channel that was just opened: its view of the chain may lag.
const CHANNEL_LAG: Duration = Duration::from_secs(20);
/// The time that an owner which has just started may need for its first look at the chain.
const START_LAG: Duration = Duration::from_secs(3);
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// Pauses before the first copies for an owner that has not seen a deposit of a moment ago: mostly its next look at the
/// chain shows it. Together they are [`RETRY_EVERY`], so an owner that sees nothing is sent five copies more, once. The fifth copy
/// leaves after 120 ms: an owner that looks every 100 ms has stored by then what it saw.
const FIRST_PAUSES_MS: [u64; 6] = [10, 20, 30, 30, 30, 130];
/// An owner answers a question from its memory or its ledger.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// The end of an exchange.
#[derive(Debug)]
pub(super) enum Exchanged {
    Response(CallResponse, Bytes),
    /// Served earlier; only the receipt is left.
    Gone {
        receipt: Receipt,
        signature: Signature,
        lost_at: LostAt,
    },
    /// The same, of a call that the owner never got before.
    Unasked(Receipt, Signature),
    /// Surely not charged.
    Refused(Refusal),
    /// Surely not charged: no copy can have arrived.
    NeverStarted(LastKnown),
    /// The same: this node did not send it, because too much is under way here or because it was cancelled.
    Busy(NotStarted),
    /// It may be charged, now or later.
    Undecided {
        reason: NoAnswer,
        lost_at: LostAt,
    },
}

/// The place where the answer of a call was lost, as far as this node can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostAt {
    /// Nothing was lost on the way: the owner took the call and keeps its answer, or its end, to itself.
    Owner,
    /// A copy of the call has no end. Whether the owner or the network lost it is not to be seen.
    Way,
    /// This node had no room for it.
    Here,
}

impl Exchanged {
    /// Returns where the answer of a call was lost that the owner may charge.
    pub(super) const fn lost_at(&self) -> Option<LostAt> {
        match self {
            Self::Gone { lost_at, .. } | Self::Undecided { lost_at, .. } => Some(*lost_at),
            _ => None,
        }
    }
}

impl LostAt {
    /// Reads it from the end of the copy that was lost last. An earlier exchange may have lost one.
    const fn of(lost: Option<&LastKnown>, was_in_doubt: bool) -> Self {
        match lost {
            None if !was_in_doubt => Self::Owner,
            None => Self::Way,
            Some(LastKnown::Lost(Interrupted::NoRoom { .. })) => Self::Here,
            Some(_) => Self::Way,
        }
    }
}

/// The copies of a call whose answers did not arrive.
#[derive(Debug, Default)]
struct LostCopies {
    /// The end of the last one.
    last: Option<LastKnown>,
    /// By the owner's word on the copy before, it has the call.
    is_taken: bool,
}

impl LostCopies {
    /// Takes note of what came of a copy. Of a call that its owner has, one that the caller's time broke off was not lost:
    /// what the owner said before is as true as if no time had been left for another copy.
    fn note(&mut self, heard: CopyOutcome, word: &OwnerWord) {
        let is_broken_off = matches!(word, OwnerWord::Nothing(LastKnown::Lost(Interrupted::Deadline)));
        if heard == CopyOutcome::Lost && !(self.is_taken && is_broken_off) {
            self.last = Some(word.last_known());
        }
        self.is_taken = heard == CopyOutcome::Running;
    }
}

/// The result that the network brought for one message.
type SendResult = Result<(CallReply, Bytes, CallTiming), CallFailure>;

/// The content of an owner's words beside their meaning.
#[derive(Debug)]
pub(super) enum OwnerWord {
    Response(CallResponse, Bytes),
    Receipt(Receipt, Signature),
    Refused(Refusal),
    /// Nothing that ends the call.
    Nothing(LastKnown),
}

/// The client of owners' nodes: it sends calls to them and asks what became of them. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct CallClient {
    network: NetworkHandle,
    channels: Arc<PayerChannels>,
    started: Instant,
}

impl CallClient {
    pub(super) fn new(network: NetworkHandle, channels: Arc<PayerChannels>) -> Self {
        Self { network, channels, started: Instant::now() }
    }

    /// Returns the time since this run began, in which the ages of copies are counted.
    pub(super) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sends the attempt until its end is certain, or out of time. Once its promise `has_failed`, or it was cancelled, no further copy
    /// leaves: what the ledger lacks is not to be charged.
    pub(super) async fn exchange(
        &self,
        attempt: &Attempt,
        deadline: Instant,
        copies: &mut Copies,
        awaited: &AwaitedCall,
        mut has_failed: impl FnMut() -> bool + Send,
    ) -> Exchanged {
        let started = Instant::now();
        let was_in_doubt = copies.are_in_doubt();
        let (mut asks, mut refused, mut lost) = (false, None, LostCopies::default());
        let mut too_early = 0;
        loop {
            let mut pause = RETRY_EVERY;
            let left = deadline.saturating_duration_since(Instant::now());
            let word = if asks {
                let (end, word) = self.ask(attempt.expected.owner, attempt.call_id(), copies, left).await;
                match end {
                    End::Receipt => return with_receipt(word, LostAt::of(lost.last.as_ref(), was_in_doubt)),
                    End::NotCharged => return not_charged(refused, word),
                    End::Open => word,
                }
            } else {
                let (heard, word) = heard(self.send(attempt, left, awaited).await);
                let waits = !copies.are_in_doubt() && self.is_lagging(&word, attempt, started);
                if waits && self.was_just_filled(attempt) {
                    pause = pause_after(too_early);
                    too_early += 1;
                }
                match if waits { Step::Again } else { copies.hear(heard, self.uptime()) } {
                    Step::Again => {}
                    Step::Ask => asks = true,
                    step => return concluded(step, word, LostAt::of(lost.last.as_ref(), was_in_doubt)),
                }
                lost.note(heard, &word);
                word
            };
            if Instant::now() + RETRY_EVERY >= deadline {
                return match copies.are_in_doubt() {
                    true => Exchanged::Undecided {
                        lost_at: LostAt::of(lost.last.as_ref(), was_in_doubt),
                        reason: no_answer(lost.last, &word),
                    },
                    false => concluded(Step::Uncharged, word, LostAt::Way),
                };
            }
            tokio::time::sleep(pause).await;
            if !asks && (has_failed() || awaited.is_cancelled()) {
                if !copies.are_in_doubt() {
                    return concluded(Step::Uncharged, word, LostAt::Way);
                }
                asks = true;
            }
            if let OwnerWord::Refused(refusal) = word {
                refused = Some(refusal);
            }
        }
    }

    async fn send(&self, attempt: &Attempt, left: Duration, awaited: &AwaitedCall) -> SendResult {
        let mut request = attempt.promise.request.clone();
        // As of now: a copy that is sent later may find the owner restored.
        if let Payment::Channel { channel, receipted, .. } = &mut request.payment {
            *receipted = self.channels.receipted(*channel);
        }
        let message = CallMessage::Call(request);
        killpoint::reached("consumer.before_send");
        let (owner, given_up) = (attempt.expected.owner, awaited.cancelled());
        self.network.call_unless(owner, message, attempt.body.clone(), left, given_up).await
    }

    /// Asks the owner what became of the call.
    pub(super) async fn ask(
        &self,
        owner: Address,
        call_id: CallId,
        copies: &Copies,
        left: Duration,
    ) -> (End, OwnerWord) {
        let message = CallMessage::Status(call_id);
        let asked = self.uptime();
        let brought = self.network.call(owner, message, Bytes::new(), left.min(ASK_TIMEOUT)).await;
        let (said, word) = said(brought);
        (said.map_or(End::Open, |said| said.end(copies, asked)), word)
    }

    /// Tells whether the owner refuses only because its view of the chain lags: it has not seen a confirmed deposit
    /// yet, or has just started.
    fn is_lagging(&self, word: &OwnerWord, attempt: &Attempt, started: Instant) -> bool {
        let OwnerWord::Refused(refusal) = word else { return false };
        attempt.reservation.is_some()
            && started.elapsed() < lag_of(refusal.code, self.was_just_filled(attempt))
    }

    /// Tells whether the owner may still see the channel as it was before the last deposit.
    fn was_just_filled(&self, attempt: &Attempt) -> bool {
        let channel = attempt.reservation.and_then(|reservation| self.channels.get(reservation.channel));
        channel.and_then(|channel| channel.filled_at).is_some_and(|at| at.elapsed() < CHANNEL_LAG)
    }
}

/// For how long an owner may refuse only because it has not seen on the chain what this node has.
const fn lag_of(code: RefusalCode, was_just_filled: bool) -> Duration {
    match code {
        RefusalCode::UnknownChannel
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::ChannelClosing
        | RefusalCode::DepositTooSmall
            if was_just_filled =>
        {
            CHANNEL_LAG
        }
        RefusalCode::UnknownChannel
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::ChainStale
        | RefusalCode::DepositNotSafe => START_LAG,
        _ => Duration::ZERO,
    }
}

/// The pause after so many copies that came before the owner had seen the deposit, and one more.
fn pause_after(too_early: usize) -> Duration {
    FIRST_PAUSES_MS.get(too_early).map_or(RETRY_EVERY, |millis| Duration::from_millis(*millis))
}

/// Reads what a copy of a call brought, for the rule and for people.
fn heard(brought: SendResult) -> (CopyOutcome, OwnerWord) {
    let heard = match &brought {
        Ok((reply, ..)) => CopyOutcome::of(reply),
        Err(CallFailure::NeverStarted(_)) => CopyOutcome::NotSent,
        Err(CallFailure::Unknown(_)) => CopyOutcome::Lost,
    };
    (heard, word(brought))
}

/// Reads what a question brought; `None` when that is nothing.
fn said(brought: SendResult) -> (Option<OwnerAnswer>, OwnerWord) {
    let said = brought.as_ref().ok().and_then(|(reply, ..)| OwnerAnswer::of(reply));
    (said, word(brought))
}

fn word(brought: SendResult) -> OwnerWord {
    match brought {
        Ok((CallReply::Response(response), body, _)) => OwnerWord::Response(response, body),
        Ok((CallReply::Status(CallStatus::Done { receipt, signature }), ..)) => {
            OwnerWord::Receipt(receipt, signature)
        }
        Ok((CallReply::Refused(refusal), ..)) => OwnerWord::Refused(refusal),
        Ok((CallReply::Status(CallStatus::Running), ..)) => OwnerWord::Nothing(LastKnown::Running),
        Ok((CallReply::Status(CallStatus::Unknown), ..)) => OwnerWord::Nothing(LastKnown::NeverServed),
        Ok((CallReply::Channel(_) | CallReply::Calls(_) | CallReply::Sponsor(_), ..)) => {
            OwnerWord::Nothing(NotTold::AnotherAnswer.into())
        }
        Err(CallFailure::NeverStarted(reason)) => OwnerWord::Nothing(reason.into()),
        Err(CallFailure::Unknown(reason)) => OwnerWord::Nothing(reason.into()),
    }
}

fn concluded(step: Step, word: OwnerWord, lost_at: LostAt) -> Exchanged {
    match (step, word) {
        (Step::Answered, OwnerWord::Response(response, body)) => Exchanged::Response(response, body),
        (Step::Served, word @ OwnerWord::Receipt(..)) => with_receipt(word, lost_at),
        (Step::Unasked, OwnerWord::Receipt(receipt, signature)) => Exchanged::Unasked(receipt, signature),
        (Step::Uncharged, OwnerWord::Refused(refusal)) => Exchanged::Refused(refusal),
        (
            Step::Uncharged,
            OwnerWord::Nothing(LastKnown::NotSent(
                reason @ (NotStarted::NoRoom | NotStarted::LocalLimit | NotStarted::GivenUp),
            )),
        ) => Exchanged::Busy(reason),
        (Step::Uncharged, word) => Exchanged::NeverStarted(word.last_known()),
        (_, word) => undecided(&word),
    }
}

fn with_receipt(word: OwnerWord, lost_at: LostAt) -> Exchanged {
    match word {
        OwnerWord::Response(response, body) => Exchanged::Response(response, body),
        OwnerWord::Receipt(receipt, signature) => Exchanged::Gone { receipt, signature, lost_at },
        word => undecided(&word),
    }
}

fn undecided(word: &OwnerWord) -> Exchanged {
    Exchanged::Undecided { reason: word.last_known().into(), lost_at: LostAt::Way }
}

/// The owner's last word says why it did not serve the call, and else its refusal of a copy.
fn not_charged(refused: Option<Refusal>, word: OwnerWord) -> Exchanged {
    match (word, refused) {
        (OwnerWord::Refused(refusal), _) | (_, Some(refusal)) => Exchanged::Refused(refusal),
        (word, None) => Exchanged::NeverStarted(word.last_known()),
    }
}

/// The error of a call that this node surely did not send.
pub(super) fn not_sent(reason: NotStarted) -> BuyError {
    match reason {
        NotStarted::GivenUp => BuyError::Cancelled(CancelStage::Unpromised),
        reason => BuyError::Busy(reason.into()),
    }
}

/// Puts the end that counts first: the end of the copy that may have arrived.
fn no_answer(lost: Option<LastKnown>, word: &OwnerWord) -> NoAnswer {
    let last = word.last_known();
    match lost {
        Some(lost) if lost != last => NoAnswer::AskedAgain { lost, last },
        _ => NoAnswer::Last(last),
    }
}

impl OwnerWord {
    /// The word, of a call that it does not answer.
    pub(super) fn last_known(&self) -> LastKnown {
        match self {
            Self::Response(..) => LastKnown::EarlierFailed,
            Self::Receipt(..) => LastKnown::ReceiptAlone,
            Self::Refused(refusal) => {
                NotTold::Refused { code: refusal.code, detail: refusal.detail.clone() }.into()
            }
            Self::Nothing(known) => known.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_holds_its_caller_for_long_only_after_a_deposit() {
        let of_channels = [
            RefusalCode::UnknownChannel,
            RefusalCode::VoucherAboveDeposit,
            RefusalCode::ChannelClosing,
            RefusalCode::DepositTooSmall,
        ];
        assert_eq!(of_channels.map(|code| lag_of(code, true)), [CHANNEL_LAG; 4]);
        let none = Duration::ZERO;
        assert_eq!(of_channels.map(|code| lag_of(code, false)), [START_LAG, START_LAG, none, none]);
        assert_eq!(lag_of(RefusalCode::PriceChanged, true), none);
    }

    #[test]
    fn a_first_call_goes_again_soon_and_an_owner_that_sees_nothing_is_sent_few_copies_more() {
        let sent_within = |time: Duration| {
            let sent = (0..).scan(Duration::ZERO, |at, copies| {
                *at += pause_after(copies);
                Some(*at)
            });
            sent.take_while(|at| *at <= time).count()
        };
        assert_eq!(
            sent_within(Duration::from_millis(120)),
            5,
            "an owner that looks every 100 ms has time to store"
        );
        assert_eq!(sent_within(RETRY_EVERY), 6);
        for retries in [2_u32, 4, 80] {
            let flat = usize::try_from(retries).unwrap();
            assert_eq!(sent_within(RETRY_EVERY * retries), flat + 5, "within {retries} times as long");
        }
    }

    #[test]
    fn what_this_node_had_no_room_for_is_not_the_owners_fault() {
        let ended = |reason| {
            let (heard, word) = heard(Err(CallFailure::NeverStarted(reason)));
            assert_eq!(heard, CopyOutcome::NotSent);
            concluded(Step::Uncharged, word, LostAt::Way)
        };
        assert!(matches!(ended(NotStarted::NoRoom), Exchanged::Busy(_)));
        assert!(matches!(ended(NotStarted::LocalLimit), Exchanged::Busy(_)));
        assert!(matches!(ended(NotStarted::GivenUp), Exchanged::Busy(_)), "it was cancelled");
        assert!(matches!(ended(NotStarted::Deadline), Exchanged::NeverStarted(_)));
    }

    #[test]
    fn a_call_that_was_cancelled_before_its_first_byte_is_said_to_be_unpromised() {
        let unsent = BuyError::Cancelled(CancelStage::Unpromised).to_string();
        assert_eq!(not_sent(NotStarted::GivenUp).to_string(), unsent);
        assert!(matches!(not_sent(NotStarted::NoRoom), BuyError::Busy(_)));
    }

    #[test]
    fn however_an_exchange_broke_off_after_its_first_byte_the_call_may_have_been_served() {
        let what = || "what came".to_owned();
        for lost in [
            Interrupted::Deadline,
            Interrupted::ConnectionLost(what()),
            Interrupted::NoAnswer,
            Interrupted::BadAnswer(what()),
            Interrupted::NoRoom { bytes: 1 },
        ] {
            let (heard, word) = heard(Err(CallFailure::Unknown(lost)));
            assert_eq!(heard, CopyOutcome::Lost);
            assert!(matches!(word, OwnerWord::Nothing(LastKnown::Lost(_))), "{word:?}");
        }
    }

    #[test]
    fn what_this_node_had_no_room_for_was_lost_here_and_what_was_not_lost_is_kept_by_the_owner() {
        let lost_at = |lost: Interrupted| LostAt::of(Some(&lost.into()), false);
        assert_eq!(lost_at(Interrupted::NoRoom { bytes: 1 }), LostAt::Here);
        assert_eq!([Interrupted::NoAnswer, Interrupted::Deadline].map(lost_at), [LostAt::Way; 2]);
        assert_eq!(LostAt::of(None, false), LostAt::Owner);
        assert_eq!(LostAt::of(None, true), LostAt::Way, "a repeat of a call whose answer may have been lost");
    }

    #[test]
    fn a_copy_that_the_callers_time_broke_off_was_not_lost_where_the_owner_said_that_it_has_the_call() {
        let running = || {
            let timing = CallTiming { connect: Duration::ZERO, exchange: Duration::ZERO, warm: true };
            Ok((CallReply::Status(CallStatus::Running), Bytes::new(), timing))
        };
        let lost = |why| Err(CallFailure::Unknown(why));
        let lost_at = |all: Vec<SendResult>| {
            let mut copies = LostCopies::default();
            for brought in all {
                let (heard, word) = heard(brought);
                copies.note(heard, &word);
            }
            LostAt::of(copies.last.as_ref(), false)
        };
        assert_eq!(lost_at(vec![running(), running(), lost(Interrupted::Deadline)]), LostAt::Owner);
        assert_eq!(lost_at(vec![lost(Interrupted::Deadline)]), LostAt::Way, "it may never have come");
        assert_eq!(lost_at(vec![running(), lost(Interrupted::NoAnswer)]), LostAt::Way);
        let before = vec![lost(Interrupted::NoAnswer), running(), lost(Interrupted::Deadline)];
        assert_eq!(lost_at(before), LostAt::Way, "another one was");
    }

    #[test]
    fn the_end_of_the_copy_that_may_have_arrived_is_told_first() {
        let word = OwnerWord::Nothing(LastKnown::Running);
        let told = |lost| no_answer(lost, &word).to_string();
        assert_eq!(
            told(Some(Interrupted::NoAnswer.into())),
            "the peer closed the stream without an answer; when it was asked again: the call is still running"
        );
        assert_eq!(told(Some(LastKnown::Running)), "the call is still running");
        assert_eq!(told(None), "the call is still running");
    }
}
