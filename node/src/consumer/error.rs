//! Every way a purchase can fail, with the step to take next.

use farthing_chain::ChainError;
use farthing_control::types::CancelStage;
use farthing_discovery::{CatalogError, ContentError, PlanError};
use farthing_ledger::LedgerError;
use farthing_os::clock;
use farthing_protocol::{Address, ChannelId, Refusal, RefusalCode, ServiceId, Usdc, call::OutOfBounds};
use farthing_shared::chain_view::NotReady;
use farthing_wallet::PolicyError;

use super::{
    answer::Mismatch, conduct::ServiceRefusal, rules::SpendingStop, spending::OverLimit, terms::Unfit,
    unanswered::Unanswered, undecided::TooMuchUndecided,
};

mod books;
mod causes;
mod foreign;
mod funds;

use books::spoken;
pub use books::{BadPage, BooksError, NotTold, Unseen};
pub use causes::{AwaitedClose, AwaitedDeposit, LastKnown, NoAnswer, NoRoom, PendingDeposit};
pub use foreign::ForeignError;
pub use funds::MissingFunds;

/// Every way a purchase can fail. Unless the text says otherwise nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum BuyError {
    #[error("{}", unusable(.0))]
    Service(#[from] CatalogError),
    #[error("the secret `{secret}` does not allow the service {service}")]
    NotScoped { secret: String, service: ServiceId },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    #[error("this call costs {price} USDC and `max_price` is {max_price} USDC")]
    AboveMaxPrice { price: Usdc, max_price: Usdc },
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("the owner accepts {offered}; this node pays on chain {chain} with channels")]
    NoCommonScheme { offered: String, chain: String },
    #[error("this node does not buy from this owner: {0}")]
    TermsRefused(#[from] Unfit),
    #[error("{0}")]
    Unfunded(MissingFunds),
    #[error("the channel with {owner} has {available} USDC left and the call costs {price} USDC")]
    ChannelLow { owner: Address, available: Usdc, price: Usdc },
    #[error("{}", flagged(*.service, .refused))]
    Flagged { service: ServiceId, refused: ServiceRefusal },
    #[error(transparent)]
    TooMuchUndecided(#[from] TooMuchUndecided),
    #[error("a close of the channel with this owner is pending")]
    ChannelClosing,
    #[error("{}", .close.told(*.owner, *.channel))]
    CloseAwaited { owner: Address, channel: ChannelId, close: AwaitedClose },
    #[error(
        "the deposit of channel {channel} can be withdrawn {has_secs} s after a request to close, but the owner \
         requires {asks_secs} s: close it with `farthing channel close {channel}`; the next call opens one that the \
         owner accepts"
    )]
    DelayTooShort { channel: ChannelId, has_secs: u64, asks_secs: u64 },
    #[error("an earlier receipt of this owner did not match what was bought")]
    OwnerDistrusted,
    #[error(transparent)]
    ChainNotReady(#[from] NotReady),
    #[error(transparent)]
    ChainUnreachable(ChainError),
    #[error(transparent)]
    OpenFailed(ChainError),
    #[error("{0}")]
    DepositPending(PendingDeposit),
    #[error("{}; the call was not sent and not charged", time_up(*.0))]
    TimeUp(Option<AwaitedDeposit>),
    /// This wallet's own policy keeps it from signing.
    #[error(transparent)]
    Unsigned(#[from] PolicyError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nothing was sent this time.
    #[error("{0}; the call was not sent; after a restart the node can say whether it was charged earlier")]
    Unread(#[source] LedgerError),
    /// The call was sent, and what it promised could not be stored.
    #[error("{}", not_stored(.0))]
    NotStored(#[source] LedgerError),
    #[error("{}", spending_stopped(*.0))]
    SpendingStopped(SpendingStop),
    #[error("the node is shutting down")]
    ShuttingDown,
    #[error("{}", cancelled(*.0))]
    Cancelled(CancelStage),
    /// A mistake in this program ended the purchase; what it promised is resolved by the call id.
    #[error("the node failed while it was buying the call")]
    Failed,
    #[error("this call now costs {now} USDC, but you accepted {before} USDC{}", above(.cap.as_ref()))]
    PriceChanged {
        before: Usdc,
        now: Usdc,
        /// The limit that keeps the caller from simply accepting the new price.
        cap: Option<Cap>,
    },
    #[error(
        "the owner now also charges {price} USDC for answers with a status from 400 to 499, which were free when this \
         node began to buy from it"
    )]
    DeclinedCharged { price: Usdc },
    #[error("the call id was already used with another service, path, parameters or body")]
    CallIdConflict,
    #[error(
        "the call id belongs to a call of another consumer secret; this request was not sent and not charged"
    )]
    CallIdOfAnother,
    #[error("the call did not reach the owner's node: {0}")]
    OwnerUnreachable(#[source] LastKnown),
    /// The owner may well be there. Never [`BooksError::Ledger`]: that is this node's fault, and [`BuyError::Ledger`].
    #[error("this node does not buy from this owner until its ledger agrees with yours: {0}")]
    BooksUnseen(#[source] BooksError),
    #[error("the call was not sent: {0}")]
    Busy(#[source] NoRoom),
    #[error(
        "the call was not sent: the secret `{secret}` made too many uncharged calls of this operation within a minute, \
         and the owner allows only a few"
    )]
    ShareUsed { secret: String, wait_secs: u64 },
    #[error("the owner's node refused the call ({}): {}", spoken(.0.code), .0.detail)]
    Refused(Refusal),
    /// `status` is what the service gave, by its owner's word; 0 when it gave none.
    #[error("{why}")]
    UpstreamFailed { why: Unanswered, status: u16 },
    #[error("{mismatch}")]
    BadAnswer {
        mismatch: Mismatch,
        /// `None` while it is not known.
        charged: Option<Usdc>,
    },
    #[error("the call was finished earlier and charged {charged} USDC; its answer is no longer kept")]
    BodyGone { charged: Usdc },
    #[error("the call was charged {charged} USDC earlier, but its answer is not available now: {reason}")]
    NotRepeated {
        charged: Usdc,
        #[source]
        reason: NoAnswer,
    },
    #[error("{}", not_known(.0))]
    Undecided(#[source] NoAnswer),
    #[error(transparent)]
    Foreign(#[from] ForeignError),
}

impl BuyError {
    /// Books that have to be seen before anything is promised, and are not. Nothing was sent.
    pub(super) fn before_promise(error: BooksError) -> Self {
        match error {
            BooksError::Ledger(error) => Self::Ledger(error),
            error => Self::BooksUnseen(error),
        }
    }

    /// The step to take next, for people.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Service(CatalogError::Unknown(_) | CatalogError::NotKept { .. }) => {
                "Check the id of the service; if the service is new, its owner may be offline."
            }
            Self::Service(retired @ CatalogError::Retired { .. }) => retired.next_step(),
            Self::Service(CatalogError::DetailsUnavailable {
                reason: ContentError::OtherContent | ContentError::Unreadable(_),
                ..
            }) => "The owner must publish the service again. Nothing was sent.",
            Self::Service(CatalogError::DetailsUnavailable { .. })
            | Self::OwnerUnreachable(_)
            | Self::BooksUnseen(_) => "Try again later. Nothing was sent.",
            Self::Service(CatalogError::NoMemory(_)) => {
                "Wait as Retry-After says, then send it again with the same call_id. Nothing was done this time."
            }
            Self::Service(CatalogError::NotRead(_)) => {
                "Read the node's log and restart the node, then send the call again with the same call_id."
            }
            Self::NotScoped { .. } => {
                "Use another secret, or allow the service with `farthing secret limit`."
            }
            Self::Plan(PlanError::UnknownPath(_)) => "Use a path of the service's description.",
            Self::Plan(PlanError::MethodNotAllowed(_)) => "Use a method of the service's description.",
            Self::Plan(PlanError::BadParameter(_)) => "Correct what is named and send the call again.",
            Self::OutOfBounds(_) => "Send less, or ask the owner for an operation that takes a reference.",
            Self::AboveMaxPrice { .. } => {
                "Raise `max_price` in the call, or leave it out. If an agent asked, the call may wait for your approval: see \
                 `farthing mcp approvals`."
            }
            Self::OverLimit(over) => over.next_step(),
            Self::NoCommonScheme { .. } => {
                "Compare the listing's `accepts` with this node's chain in `farthing status`."
            }
            Self::TermsRefused(_) => {
                "Find another service with `farthing catalog search`, or raise the named setting."
            }
            Self::Flagged { .. } => {
                "Find another service with `farthing catalog search`, or buy this one anyway with `farthing spending \
                 flagged SERVICE --rule warn` or on the console's page Limits."
            }
            Self::Unfunded { .. } => {
                "Send the missing amount to the wallet's address; `farthing wallet balance` shows when it has arrived."
            }
            Self::ChannelLow { .. } => {
                "Try again in a moment: if the wallet has funds, the node tops up the channel in the background."
            }
            Self::TooMuchUndecided(_) => {
                "Wait: this node keeps asking the owner, and calls continue when it answers. Compare both ledgers with \
                 `farthing audit --with`, or find another service with `farthing catalog search`."
            }
            Self::ChannelClosing => {
                "Try again when `farthing channel list` shows the channel as closed; a new call opens it again."
            }
            Self::CloseAwaited { close, .. } => close.next_step(),
            Self::DelayTooShort { .. } => {
                "Close it with `farthing channel close`; the next call opens a channel with the required delay."
            }
            Self::OwnerDistrusted => {
                "This node buys nothing more from this owner. Take the deposit back with `farthing channel close`; \
                 after that you can buy again with `farthing channel resume`."
            }
            Self::ChainNotReady(_) | Self::ChainUnreachable(_) => {
                "Paid calls resume automatically; `farthing doctor` checks the endpoints."
            }
            Self::TimeUp(Some(AwaitedDeposit::Made(_))) => "Repeat the call: its channel can pay for it now.",
            Self::TimeUp(_) => "Repeat the call: a deposit that has begun continues and pays for it.",
            Self::OpenFailed(ChainError::UnderWay { .. }) => {
                "Repeat the call when the node runs again: a deposit that has begun continues and pays for it."
            }
            Self::DepositPending(_) => {
                "Repeat the call later: your node sends the same deposit again, and the chain accepts it once. With a \
                 little ETH in the wallet, your node makes it without the owner."
            }
            Self::OpenFailed(_) | Self::Unsigned(_) => {
                "See the reason above; `farthing doctor` checks wallet and chain."
            }
            Self::Ledger(error) => error.next_step(),
            Self::Service(CatalogError::Store(_)) => {
                "Free disk space or repair the disk, then restart the node."
            }
            Self::Unread(error)
            | Self::NotStored(error)
            | Self::Undecided(NoAnswer::Books(BooksError::Ledger(error))) => repeat_after(error),
            Self::SpendingStopped(stopped) => stopped.next_step(),
            Self::Failed => {
                "Read the node's log, then repeat the call with the same call_id; it is never charged twice."
            }
            Self::ShuttingDown => "Try again when the node is back.",
            Self::Cancelled(CancelStage::Unpromised) => "Send the call again if you still want its answer.",
            Self::Cancelled(CancelStage::Promised) => {
                "`farthing calls` with the call id shows how it ended. For its answer, repeat the call with the same \
                 call_id: it is never charged twice."
            }
            Self::PriceChanged { cap, .. } => match cap {
                None => {
                    "Set the call's `max_price` to the new price, or accept it for all calls with `farthing spending \
                     accept` or on the console's page Limits."
                }
                Some(Cap::MaxPrice(_)) => "Raise `max_price` to the new price.",
                Some(Cap::Limit(OverLimit::SecretPrice { .. } | OverLimit::SecretBudget { .. })) => {
                    "Raise the limit of the secret with `farthing secret limit`, then set the call's `max_price` to the \
                     new price, or accept it with `farthing spending accept`."
                }
                Some(Cap::Limit(_)) => {
                    "Raise that limit with `farthing spending limits`, then set the call's `max_price` to the new \
                     price, or accept it with `farthing spending accept`."
                }
            },
            Self::DeclinedCharged { .. } => {
                "Set the call's `max_price`, or accept the price for all calls with `farthing spending accept` or on \
                 the console's page Limits."
            }
            Self::CallIdConflict => "Use a new call_id for a different call, or leave it out.",
            Self::CallIdOfAnother => {
                "Use a new call_id. Only that secret and the node's own one get the answer of the earlier call."
            }
            Self::Foreign(error) => error.next_step(),
            Self::Busy(_) | Self::ShareUsed { .. } => {
                "Wait as Retry-After says, then send the call again. Nothing was sent."
            }
            Self::Refused(refusal) => after_refusal(refusal.code),
            Self::UpstreamFailed { why: Unanswered::TimedOut, .. } => {
                "Try again. The owner is not paid for this call."
            }
            Self::UpstreamFailed { why: Unanswered::Oversize, .. } => {
                "Ask for less data if the service allows it. The owner is not paid for this call."
            }
            Self::UpstreamFailed { .. } => "Try again later. The owner is not paid for this call.",
            Self::BadAnswer { .. } => {
                "This node buys nothing more from this owner and is taking the deposit back."
            }
            Self::BodyGone { .. } => {
                "Repeat the call with the same call_id: it is never charged twice. If that brings no answer either, \
                 buy it again with a new call_id; a call with effects then has them twice."
            }
            Self::Undecided(NoAnswer::Elsewhere(_))
            | Self::NotRepeated { reason: NoAnswer::Elsewhere(_), .. } => {
                "Change the settings back (`farthing doctor` names them while there is money on that channel), restart \
                 the node, and repeat the call with the same call_id: it is never charged twice."
            }
            Self::NotRepeated { .. } => {
                "Repeat the call with the same call_id later: it is never charged twice."
            }
            Self::Undecided(_) => "Repeat the call with the same call_id: it is never charged twice.",
        }
    }

    /// Until a secret that used up its share may call again.
    pub const fn share_wait_ms(&self) -> Option<u64> {
        if let Self::ShareUsed { wait_secs, .. } = self {
            Some(wait_secs.saturating_mul(1_000))
        } else {
            None
        }
    }
}

/// The limit that a changed price passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cap {
    /// The call's own.
    MaxPrice(Usdc),
    /// The node's.
    Limit(OverLimit),
}

/// The words for a caller: for it the network is searched, and its call was not sent.
fn unusable(error: &CatalogError) -> String {
    match error {
        CatalogError::Unknown(service) | CatalogError::NotKept { service, .. } => {
            format!("no connected node knows the service {service}")
        }
        CatalogError::DetailsUnavailable { owner, reason } => {
            format!("the details of this service are not available from its owner {owner}: {reason}")
        }
        CatalogError::NotRead(_) => format!("{error}; the call was not sent"),
        CatalogError::Store(error) => error.to_string(),
        CatalogError::Retired { .. } | CatalogError::NoMemory(_) => error.to_string(),
    }
}

fn above(cap: Option<&Cap>) -> String {
    match cap {
        None => String::new(),
        Some(Cap::MaxPrice(max_price)) => format!("; `max_price` is {max_price} USDC"),
        Some(Cap::Limit(limit)) => format!("; {limit}"),
    }
}

fn time_up(deposit: Option<AwaitedDeposit>) -> String {
    let deposit = match deposit {
        None => String::new(),
        Some(AwaitedDeposit::UnderWay(amount)) => {
            format!(": a deposit of {amount} USDC into it is under way")
        }
        Some(AwaitedDeposit::Made(amount)) => {
            format!(": a deposit of {amount} USDC into it was made meanwhile")
        }
    };
    format!("the call timed out before its channel could pay for it{deposit}")
}

fn not_stored(error: &LedgerError) -> String {
    match error.is_failure() {
        true => format!("{error}; after a restart the node can say whether the call was served"),
        false => format!("{error}; the call was still sent, and the owner may have charged it"),
    }
}

fn not_known(reason: &NoAnswer) -> String {
    let goes_on = match reason {
        NoAnswer::Elsewhere(_) => "",
        NoAnswer::NotAsked(why) if matches!(**why, BuyError::Foreign(ForeignError::Removed(_))) => {
            "; this node asks the chain whether the server took the payment"
        }
        _ => "; this node keeps asking",
    };
    format!("it is not known yet whether the call was charged ({reason}){goes_on}")
}

/// The step before a call is repeated that may have been charged, where this node's ledger did not do its part.
const fn repeat_after(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Ending => {
            "When the node runs again, repeat the call with the same call_id: it is never charged twice."
        }
        _ if error.is_failure() => {
            "Free disk space or repair the disk, restart the node, then repeat the call with the same call_id."
        }
        _ => "Repeat the call with the same call_id: it is never charged twice.",
    }
}

fn flagged(service: ServiceId, refused: &ServiceRefusal) -> String {
    let ServiceRefusal { flag, wait_secs, is_tried } = refused;
    let next = if *is_tried {
        format!("A trial call is under way; try again in {wait_secs} s")
    } else {
        format!("The first call after {wait_secs} s tries it again")
    };
    format!("this node does not buy from the service {service} for now: {flag}. {next}")
}

const fn cancelled(stage: CancelStage) -> &'static str {
    match stage {
        CancelStage::Unpromised => {
            "the call was cancelled at this node before its price was promised to the other side"
        }
        CancelStage::Promised => {
            "the call was cancelled at this node; it may have been sent before, so it may be served and charged"
        }
    }
}

fn spending_stopped(stopped: SpendingStop) -> String {
    match stopped {
        SpendingStop::ByConfiguration => {
            "`spending.enabled` is false in this node's configuration".to_owned()
        }
        SpendingStop::Since(secs) => {
            format!("all spending was stopped on this node on {}", clock::date(secs))
        }
    }
}

/// The step after an owner's refusal.
const fn after_refusal(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => {
            "Correct what is named and send the call again."
        }
        RefusalCode::UnknownService | RefusalCode::UnknownOperation => {
            "Use a path of the service's current description."
        }
        RefusalCode::MethodNotAllowed => "Use a method of the service's description.",
        RefusalCode::PriceChanged => "Send the call again.",
        RefusalCode::CallIdConflict => "Use a new call_id for a different call, or leave it out.",
        RefusalCode::Busy | RefusalCode::RateLimited => "Wait as Retry-After says, then send the call again.",
        RefusalCode::TooLarge => "Send less.",
        RefusalCode::ServicePaused | RefusalCode::Unavailable | RefusalCode::ChainStale => "Try again later.",
        RefusalCode::PaymentRequired
        | RefusalCode::SchemeUnsupported
        | RefusalCode::UnknownChannel
        | RefusalCode::BadSignature
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::InsufficientVoucher => "`farthing channel list` shows the channel with this owner.",
        RefusalCode::ChannelClosing => {
            "Try again in a few minutes: after a close the owner waits until the chain has confirmed it. If `farthing \
             channel list` then still shows the channel as open, close it again with `farthing channel close`."
        }
        RefusalCode::DelayTooShort => {
            "Close it with `farthing channel close`; the next call opens a channel with the required delay."
        }
        RefusalCode::DepositTooSmall => {
            "Send the call again in a moment: if the owner has just closed the channel, the call opens a new one. \
             Otherwise add to the deposit with `farthing channel open SERVICE --deposit AMOUNT`."
        }
        RefusalCode::DepositNotSafe => {
            "Wait until the chain's layer 1 holds the deposit, usually some minutes, then send the call again."
        }
        RefusalCode::OwnerCannotClaim => {
            "Try again later, or find another service with `farthing catalog search`."
        }
        RefusalCode::BooksBehind => {
            "Try again in a minute. If this goes on, compare the ledgers with `farthing audit --with OWNER`."
        }
        RefusalCode::MayHaveRun => {
            "Check whether the call had its effect before you repeat it with a new call_id."
        }
    }
}

impl From<ChainError> for BuyError {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Unreachable { .. } => Self::ChainUnreachable(error),
            ChainError::Stopped => Self::ShuttingDown,
            other => Self::OpenFailed(other),
        }
    }
}
