//! Causes of a purchase that failed, each as it arose.

use farthing_network::{Interrupted, NotStarted};
use farthing_os::clock;
use farthing_protocol::{Address, ChannelId, Usdc};

use super::{BooksError, BuyError, NotTold};

/// The last that is known of a call without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LastKnown {
    #[error(transparent)]
    NotSent(#[from] NotStarted),
    #[error(transparent)]
    Lost(#[from] Interrupted),
    #[error("the call is still running")]
    Running,
    #[error("the owner's node never served the call")]
    NeverServed,
    #[error(transparent)]
    NotTold(#[from] NotTold),
    /// The answer is about an attempt of before.
    #[error("an earlier attempt failed")]
    EarlierFailed,
    #[error("only the receipt is left")]
    ReceiptAlone,
}

impl LastKnown {
    /// The words under which the ledger closes such a promise without a charge. None are the owner's, and only a call that was
    /// not sent is said not to have started: the service may have got any other.
    pub(crate) const fn in_ledger(&self) -> &'static str {
        match self {
            Self::NotSent(_) => "never started",
            Self::Lost(_)
            | Self::Running
            | Self::NeverServed
            | Self::NotTold(_)
            | Self::EarlierFailed
            | Self::ReceiptAlone => "ended without an answer, and not charged",
        }
    }
}

/// The deposit that a call waited for until its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedDeposit {
    /// It goes on without the call.
    UnderWay(Usdc),
    /// The channel's books show it.
    Made(Usdc),
}

/// A deposit that was signed for an owner to bring, and that the chain does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDeposit {
    pub owner: Address,
    pub amount: Usdc,
    /// The time for which the owner can still bring it.
    pub left_secs: u64,
    pub why: String,
}

impl std::fmt::Display for PendingDeposit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { owner, amount, left_secs, why } = self;
        let hours = left_secs.div_ceil(3_600);
        write!(
            f,
            "the owner {owner} has your signed deposit of {amount} USDC, but the chain does not show it: {why}; it may \
             still arrive within {hours} h, and your node signs no second one for this time"
        )
    }
}

/// The close of a channel that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedClose {
    /// Its owner has just promised it.
    Soon,
    /// Its owner has promised it a while ago, and has until then.
    Overdue { until_secs: u64, left_secs: u64 },
    /// Its owner signed it and serves the channel again once the close has stood for so long, which begins when the chain shows
    /// it for good.
    Signed { wait_secs: u64, has_begun: bool },
}

impl AwaitedClose {
    /// Returns the time after which a call is worth repeating.
    pub fn wait_secs(self) -> u64 {
        match self {
            Self::Soon => 3,
            Self::Overdue { left_secs, .. } => left_secs.clamp(1, 60),
            Self::Signed { wait_secs, .. } => wait_secs,
        }
    }

    /// Tells people of the close of a channel with an owner.
    pub(super) fn told(self, owner: Address, channel: ChannelId) -> String {
        match self {
            Self::Soon => format!(
                "this node asked the owner {owner} to close the channel, and the chain does not show the close yet; \
                 nothing was sent"
            ),
            Self::Overdue { until_secs, .. } => format!(
                "the owner {owner} promised to close the channel {channel} and has until {} to do it; nothing was \
                 sent. To close it without the owner, use `farthing channel close {channel} --force`: the chain gives \
                 the rest back after the channel's delay",
                clock::timestamp(until_secs)
            ),
            Self::Signed { wait_secs, has_begun } => {
                let when = if has_begun {
                    format!("Try again in {wait_secs} s")
                } else {
                    format!(
                        "The chain has not confirmed it for good yet: try again {wait_secs} s after it has"
                    )
                };
                format!(
                    "the owner {owner} signed the close of the channel and serves nothing until the chain has \
                     confirmed it for two minutes; nothing was sent or deposited. {when}"
                )
            }
        }
    }

    pub(super) const fn next_step(self) -> &'static str {
        match self {
            Self::Soon => {
                "Repeat the call in a few seconds: when the channel is closed, a call opens a new one."
            }
            Self::Overdue { .. } => {
                "Repeat the call later, or find another service with `farthing catalog search`: the owner may lack ETH \
                 for gas. When its time is over, this node closes the channel on the chain."
            }
            Self::Signed { .. } => "Repeat the call when that time is over: it then opens a new channel.",
        }
    }
}

/// The reason that this node sends no more calls for now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    #[error(transparent)]
    Network(#[from] NotStarted),
    #[error(
        "this owner serves at most {owner_max} calls at once ({secret_max} free calls of one secret), and none of the \
         running calls ended in time"
    )]
    Places { owner_max: usize, secret_max: u32 },
}

/// The reason that a call which may have been served has no answer, or no end yet.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// This node does not ask for it now.
    #[error(transparent)]
    NotAsked(Box<BuyError>),
    #[error(transparent)]
    Books(#[from] BooksError),
    /// No receipt on it can be verified, so the owner is not asked for one.
    #[error(
        "it was promised on the channel {0}, which is in another contract or on another chain than the settings name; \
         the node asks the owner when `chain.preset`, `chain.chain_id` and `chain.contract` are set back"
    )]
    Elsewhere(ChannelId),
    #[error(transparent)]
    Last(#[from] LastKnown),
    /// The end that counts is that of the copy that may have arrived.
    #[error("{lost}; when it was asked again: {last}")]
    AskedAgain {
        #[source]
        lost: LastKnown,
        last: LastKnown,
    },
}

#[cfg(test)]
mod tests {
    use std::{error::Error, sync::Arc};

    use farthing_discovery::{CatalogError, ContentError};
    use farthing_ledger::LedgerError;
    use farthing_network::CallFailure;
    use farthing_protocol::{Address, ServiceId, listing::DetailsError};

    use super::*;
    use crate::consumer::unanswered::Unanswered;

    #[test]
    fn who_asked_for_more_than_is_passed_on_is_told_to_ask_for_less() {
        let next = |why| BuyError::UpstreamFailed { why, status: 200 }.next_step();
        assert!(next(Unanswered::Oversize).starts_with("Ask for less"));
        assert!(next(Unanswered::NotHttp).starts_with("Try again later"));
    }

    #[test]
    fn the_own_ledger_is_not_blamed_on_the_owner() {
        let failed = || BooksError::Ledger(LedgerError::Ending);
        assert!(matches!(BuyError::before_promise(failed()), BuyError::Ledger(LedgerError::Ending)));
        let not_stored = BuyError::NotStored(LedgerError::Ending);
        assert_eq!(BuyError::Undecided(failed().into()).next_step(), not_stored.next_step());
        let slow = BuyError::Undecided(BooksError::Slow.into());
        assert_ne!(slow.next_step(), not_stored.next_step());
    }

    #[test]
    fn a_call_on_a_channel_of_another_contract_is_told_as_this_nodes_settings_and_not_as_its_owners_silence()
    {
        let channel = ChannelId::from_bytes([9; 32]);
        let charged = Usdc::ZERO;
        for error in [
            BuyError::Undecided(NoAnswer::Elsewhere(channel)),
            BuyError::NotRepeated { charged, reason: NoAnswer::Elsewhere(channel) },
        ] {
            let (text, next) = (error.to_string(), error.next_step());
            assert!(text.contains(&channel.to_string()) && text.contains("`chain.contract`"), "{text}");
            assert!(!text.contains("keeps asking") && next.contains("settings back"), "{text} {next}");
        }
        let asked = BuyError::Undecided(LastKnown::Running.into());
        assert!(asked.to_string().ends_with("; this node keeps asking"), "{asked}");
    }

    #[test]
    fn details_that_their_owner_has_to_mend_are_told_as_that_and_not_as_its_silence() {
        let owner = Address::from_bytes([7; 20]);
        let failed = |reason| BuyError::from(CatalogError::DetailsUnavailable { owner, reason });
        let later = failed(ContentError::Gone).next_step();
        let unreadable = ContentError::Unreadable(Arc::new(DetailsError::OutOfBounds.into()));
        for reason in [unreadable, ContentError::OtherContent] {
            let why = reason.to_string();
            let error = failed(reason);
            assert_eq!(error.next_step(), "The owner must publish the service again. Nothing was sent.");
            assert_ne!(error.next_step(), later);
            let told = format!("the details of this service are not available from its owner {owner}: {why}");
            assert_eq!(error.to_string(), told);
        }
    }

    #[test]
    fn a_service_that_is_not_found_is_told_in_a_callers_words() {
        let service = ServiceId::from_bytes([3; 16]);
        let told = |error: CatalogError| BuyError::from(error).to_string();
        let retired = CatalogError::Retired { service, owner: Address::ZERO, on_secs: 0 };
        let own = || farthing_catalog::CatalogError::Closed;
        let not_read = format!("this node failed while it read the description of the service {service}");
        for (error, words) in [
            (CatalogError::Unknown(service), format!("no connected node knows the service {service}")),
            (retired.clone(), retired.to_string()),
            (CatalogError::NotRead(service), format!("{not_read}; the call was not sent")),
            (CatalogError::Store(own()), own().to_string()),
        ] {
            assert_eq!(told(error), words);
        }
    }

    #[test]
    fn only_a_call_that_was_not_sent_is_kept_as_never_started() {
        assert_eq!(LastKnown::from(NotStarted::Deadline).in_ledger(), "never started");
        for known in [LastKnown::NeverServed, LastKnown::Running, Interrupted::NoAnswer.into()] {
            assert_eq!(known.in_ledger(), "ended without an answer, and not charged", "{known}");
        }
    }

    #[test]
    fn a_call_whose_time_is_up_tells_of_its_deposit() {
        let amount = Usdc::from_micros(400_000);
        for (deposit, told) in [
            (None, "before its channel could pay for it;"),
            (Some(AwaitedDeposit::UnderWay(amount)), "for it: a deposit of 0.40 USDC into it is under way;"),
            (
                Some(AwaitedDeposit::Made(amount)),
                "for it: a deposit of 0.40 USDC into it was made meanwhile;",
            ),
        ] {
            let text = BuyError::TimeUp(deposit).to_string();
            let is_told = text.contains(told);
            assert!(is_told && text.ends_with("the call was not sent and not charged"), "{text}");
        }
    }

    #[test]
    fn a_close_that_is_overdue_is_told_with_its_term_and_the_way_around_its_owner() {
        let (owner, channel) = (Address::from_bytes([7; 20]), ChannelId::from_bytes([9; 32]));
        let told = |close: AwaitedClose| BuyError::CloseAwaited { owner, channel, close };
        let soon = told(AwaitedClose::Soon);
        assert!(soon.next_step().contains("in a few seconds") && !soon.to_string().contains("--force"));
        for (left_secs, wait_secs) in [(3_000, 60), (20, 20), (0, 1)] {
            let close = AwaitedClose::Overdue { until_secs: 1_795_000_000, left_secs };
            assert_eq!(close.wait_secs(), wait_secs);
            let (text, next) = (told(close).to_string(), told(close).next_step());
            for part in ["has until 2026-11-18T", &format!("`farthing channel close {channel} --force`")] {
                assert!(text.contains(part), "{text}");
            }
            assert!(!next.contains("seconds"), "{next}");
        }
    }

    #[test]
    fn a_wait_that_has_not_begun_is_not_told_as_one_that_goes_by() {
        let (owner, channel) = (Address::from_bytes([7; 20]), ChannelId::from_bytes([9; 32]));
        for (has_begun, wait_secs, when) in [
            (true, 15, "Try again in 15 s"),
            (true, 181, "Try again in 181 s"),
            (false, 181, "try again 181 s after it has"),
        ] {
            let close = AwaitedClose::Signed { wait_secs, has_begun };
            let error = BuyError::CloseAwaited { owner, channel, close };
            assert!(error.to_string().ends_with(when), "{error}");
            // The text has the time, and nothing else names another.
            let next = error.next_step();
            assert!(next.contains("when that time is over") && !next.contains("minutes"), "{next}");
        }
    }

    #[test]
    fn a_cause_is_told_once_and_kept_to_its_root() {
        let lost = CallFailure::Unknown(Interrupted::NoAnswer);
        let error = BuyError::before_promise(lost.into());
        assert_eq!(
            error.to_string(),
            "this node does not buy from this owner until its ledger agrees with yours: the call was sent but its answer \
             was lost: the peer closed the stream without an answer"
        );
        let mut root: &(dyn Error + 'static) = &error;
        while let Some(cause) = root.source() {
            root = cause;
        }
        assert_eq!(root.downcast_ref::<Interrupted>(), Some(&Interrupted::NoAnswer));
    }
}
