//! Every way a purchase can fail, with the step to take next.

use std::fmt;

use farthing_chain::ChainError;
use farthing_discovery::{CatalogError, ContentError, PlanError};
use farthing_ledger::LedgerError;
use farthing_os::clock;
use farthing_protocol::{Address, ChannelId, Refusal, RefusalCode, ServiceId, Usdc, call::OutOfBounds};
use farthing_shared::chain_view::NotReady;
use farthing_wallet::PolicyError;

use super::{
    answer::Mismatch, conduct::ServiceRefusal, rules::Stopped, spending::OverLimit, terms::Unfit,
    unanswered::Unanswered, undecided::TooMuchUndecided,
};

mod books;
mod causes;

pub use books::{BadPage, BooksError, NotTold, Unseen};
pub use causes::{AwaitedClose, AwaitedDeposit, LastKnown, NoAnswer, NoRoom};

/// Every way a purchase can fail. Unless the text says otherwise nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum BuyError {
    #[error("{}", unusable(.0))]
    Service(#[from] CatalogError),
    #[error("the secret `{secret}` is not made for the service {service}")]
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
    #[error("{available} USDC are left on the channel with {owner} and the call costs {price} USDC")]
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
        "the channel {channel} with this owner can be withdrawn from {has_secs} s after a request to close, and the \
         owner lists {asks_secs} s: `farthing channel close {channel}` ends it, and the next call opens one that the \
         owner serves"
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
    #[error("{}; the call was not sent, and nothing was charged for it", time_up(*.0))]
    TimeUp(Option<AwaitedDeposit>),
    /// This wallet's own policy keeps it from signing.
    #[error(transparent)]
    Unsigned(#[from] PolicyError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nothing was sent this time.
    #[error("{0}; the call was not sent, and whether it was charged before is learned after a restart")]
    Unread(#[source] LedgerError),
    /// The call was sent, and what it promised could not be stored.
    #[error("{}", not_stored(.0))]
    NotStored(#[source] LedgerError),
    #[error("{}", spending_stopped(*.0))]
    SpendingStopped(Stopped),
    #[error("the node is shutting down")]
    ShuttingDown,
    /// A mistake in this program ended the purchase; what it promised is resolved by the call id.
    #[error("the node failed while it bought the call")]
    Failed,
    #[error("this call costs {now} USDC now, and {before} USDC is accepted{}", above(.cap.as_ref()))]
    PriceChanged {
        before: Usdc,
        now: Usdc,
        /// The limit that keeps the caller from simply accepting the new price.
        cap: Option<Cap>,
    },
    #[error(
        "the owner charges {price} USDC for answers with a status from 400 to 499 as well now, which were free when this \
         node began to buy from it"
    )]
    DeclinedCharged { price: Usdc },
    #[error("the call id was used with another service, path, parameters or body")]
    CallIdConflict,
    #[error("the call did not reach the owner's node: {0}")]
    OwnerUnreachable(#[source] LastKnown),
    /// The owner may well be there. Never [`BooksError::Ledger`]: that is this node's fault, and [`BuyError::Ledger`].
    #[error("nothing is promised to this owner before its books of the channel agree with yours: {0}")]
    BooksUnseen(#[source] BooksError),
    #[error("the call was not sent: {0}")]
    Busy(#[source] NoRoom),
    #[error(
        "the call was not sent: too many calls of this operation that the secret `{secret}` made came to nothing within a \
         minute, and its owner does no more than a few of these for nothing"
    )]
    ShareUsed { secret: String, wait_secs: u64 },
    #[error("the owner's node refused the call ({}): {}", .0.code.name(), .0.detail)]
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
    #[error("the call was finished earlier, charged {charged} USDC, and its answer is no longer kept")]
    BodyGone { charged: Usdc },
    #[error("the call was charged {charged} USDC before, and its answer is not to be had now: {reason}")]
    NotRepeated {
        charged: Usdc,
        #[source]
        reason: NoAnswer,
    },
    #[error("{}", not_known(.0))]
    Undecided(#[source] NoAnswer),
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
                "Check api_id_public; if the service is new, its owner may be offline."
            }
            Self::Service(retired @ CatalogError::Retired { .. }) => retired.next_step(),
            Self::Service(CatalogError::DetailsUnavailable {
                reason: ContentError::OtherContent | ContentError::Unreadable(_),
                ..
            }) => "Its owner has to publish the service again; nothing was sent.",
            Self::Service(CatalogError::DetailsUnavailable { .. })
            | Self::OwnerUnreachable(_)
            | Self::BooksUnseen(_) => "Try again later; nothing was sent.",
            Self::Service(CatalogError::NoMemory(_)) => {
                "Wait as Retry-After says, then send it again with the same call_id; nothing was done this time."
            }
            Self::Service(CatalogError::NotRead(_)) => {
                "The node's log says more; restart the node, then send the call again with the same call_id."
            }
            Self::NotScoped { .. } => {
                "Use a secret that is, or add the service with `farthing secret limit`."
            }
            Self::Plan(PlanError::UnknownPath(_)) => "Use a path of the service's description.",
            Self::Plan(PlanError::MethodNotAllowed(_)) => "Use a method of the service's description.",
            Self::Plan(PlanError::BadParameter(_)) => "Correct the named parameter and send the call again.",
            Self::OutOfBounds(_) => "Send less, or ask the owner for an operation that takes a reference.",
            Self::AboveMaxPrice { .. } => "Raise `max_price` in the call, or leave it out.",
            Self::OverLimit(_) => {
                "`farthing spending show` shows the limits, `farthing secret list` those of secrets."
            }
            Self::NoCommonScheme { .. } => {
                "Compare the listing's `accepts` with this node's chain in `farthing status`."
            }
            Self::TermsRefused(_) => {
                "Look for another service with `farthing catalog search`, or raise the setting that is named."
            }
            Self::Flagged { .. } => {
                "Look for another service with `farthing catalog search`, or buy it all the same with \
                 `farthing spending flagged SERVICE --rule warn` or on the console's page Limits."
            }
            Self::Unfunded { .. } => {
                "Send what is missing to the wallet's address; `farthing wallet balance` shows when it arrived."
            }
            Self::ChannelLow { .. } => {
                "A top-up is made in the background when the wallet has funds; try again in a moment."
            }
            Self::TooMuchUndecided(_) => {
                "Wait: this node goes on asking the owner, and calls go on once it tells. `farthing audit --with` compares \
                 both books, and `farthing catalog search` finds another service."
            }
            Self::ChannelClosing => {
                "Try again when `farthing channel list` shows it closed; a new call reopens it."
            }
            Self::CloseAwaited { close, .. } => close.next_step(),
            Self::DelayTooShort { .. } => {
                "Close it with `farthing channel close`; the next call opens one with the listed delay."
            }
            Self::OwnerDistrusted => {
                "Nothing more is promised to this owner: `farthing channel close` takes the deposit back, and then \
                 `farthing channel resume` buys from it again."
            }
            Self::ChainNotReady(_) | Self::ChainUnreachable(_) => {
                "Paid calls resume by themselves; `farthing doctor` checks the endpoints."
            }
            Self::TimeUp(Some(AwaitedDeposit::Made(_))) => "Repeat the call: its channel can pay for it now.",
            Self::TimeUp(_) => "Repeat the call: a deposit that was begun goes on, and pays for it.",
            Self::OpenFailed(ChainError::UnderWay { .. }) => {
                "Repeat the call when the node runs again: a deposit that was begun goes on, and pays for it."
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
                "The node's log says more; repeat the call with the same call_id, it is never charged twice."
            }
            Self::ShuttingDown => "Try again when it is back.",
            Self::PriceChanged { cap, .. } => match cap {
                None => {
                    "Name the new price in the call's `max_price`, or accept it for all calls with \
                         `farthing spending accept` or on the console's page Limits."
                }
                Some(Cap::MaxPrice(_)) => "Raise `max_price` to the new price.",
                Some(Cap::Limit(_)) => {
                    "Raise that limit with `farthing spending limits`, then name the new price in the call's \
                         `max_price`, or accept it with `farthing spending accept`."
                }
            },
            Self::DeclinedCharged { .. } => {
                "Name in the call's `max_price` what it may cost, or accept it for all calls with `farthing spending \
                 accept` or on the console's page Limits."
            }
            Self::CallIdConflict => "Use a new call_id (or Idempotency-Key) for a different call.",
            Self::Busy(_) | Self::ShareUsed { .. } => {
                "Wait as Retry-After says, then send the call again; nothing was sent."
            }
            Self::Refused(refusal) => after_refusal(refusal.code),
            Self::UpstreamFailed { why: Unanswered::TimedOut, .. } => {
                "Try again; the owner is not paid for this."
            }
            Self::UpstreamFailed { .. } => "Try again later; the owner is not paid for this.",
            Self::BadAnswer { .. } => {
                "Nothing more is promised to this owner; its deposit is being taken back."
            }
            Self::BodyGone { .. } => {
                "Repeat the call with the same call_id: it is never charged twice. When that brings no answer either, a new call_id buys \
                 it again; a call with effects has them again then."
            }
            Self::Undecided(NoAnswer::Elsewhere(_))
            | Self::NotRepeated { reason: NoAnswer::Elsewhere(_), .. } => {
                "Set the settings back (`farthing doctor` names them while money is on that channel), restart the node, and \
                 repeat the call with the same call_id: it is never charged twice."
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

/// The money that the wallet lacks, with everything needed to mend that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFunds {
    pub address: Address,
    pub chain: String,
    pub usdc_have: Usdc,
    pub usdc_need: Usdc,
    /// True if ETH for gas is missing too.
    pub eth_missing: bool,
}

impl fmt::Display for MissingFunds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lacks_usdc = self.usdc_have < self.usdc_need;
        write!(f, "the wallet {} on {} ", self.address, self.chain)?;
        if lacks_usdc {
            write!(f, "holds {} USDC and this call needs a deposit of {}", self.usdc_have, self.usdc_need)?;
        }
        if self.eth_missing {
            write!(f, "{}has no ETH for gas", if lacks_usdc { ", and " } else { "" })?;
        }
        f.write_str("; send ")?;
        if lacks_usdc {
            write!(f, "at least {} USDC", self.usdc_need.saturating_sub(self.usdc_have))?;
        }
        if self.eth_missing {
            write!(f, "{}0.0002 ETH", if lacks_usdc { " and " } else { "" })?;
        }
        write!(f, " to it")
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
            format!("the details of this service cannot be had from its owner {owner}: {reason}")
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
    format!("the call's time was up before its channel could pay for it{deposit}")
}

fn not_stored(error: &LedgerError) -> String {
    match error.is_failure() {
        true => format!("{error}; whether the call was served is learned after a restart"),
        false => format!("{error}; the call was sent all the same, and its owner may have charged it"),
    }
}

fn not_known(reason: &NoAnswer) -> String {
    let goes_on = if let NoAnswer::Elsewhere(_) = reason { "" } else { "; this node goes on asking" };
    format!("whether the call was charged is not known yet ({reason}){goes_on}")
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
        format!("A call tries it now; ask again in {wait_secs} s")
    } else {
        format!("It is tried again by the first call in {wait_secs} s")
    };
    format!("this node buys nothing from the service {service} for now: {flag}. {next}")
}

fn spending_stopped(stopped: Stopped) -> String {
    match stopped {
        Stopped::ByConfiguration => "`spending.enabled` is false in this node's configuration".to_owned(),
        Stopped::Since(secs) => format!("all spending was stopped on this node on {}", clock::date(secs)),
    }
}

/// The step after an owner's refusal.
const fn after_refusal(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => {
            "Correct the named parameter and send the call again."
        }
        RefusalCode::UnknownService | RefusalCode::UnknownOperation => {
            "Use a path of the service's current description."
        }
        RefusalCode::MethodNotAllowed => "Use a method of the service's description.",
        RefusalCode::PriceChanged => "Send the call again.",
        RefusalCode::CallIdConflict => "Use a new call_id (or Idempotency-Key) for a different call.",
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
            "Try again in a few minutes: the owner serves nothing on a channel before its close has stood in the chain. If \
             `farthing channel list` shows it open by then, close it again with `farthing channel close`."
        }
        RefusalCode::DelayTooShort => {
            "Close it with `farthing channel close`; the next call opens one with the listed delay."
        }
        RefusalCode::DepositTooSmall => {
            "Send the call again in a moment: where the owner has just closed the channel, the call opens it anew. Otherwise \
             `farthing channel open SERVICE --deposit AMOUNT` adds to it."
        }
        RefusalCode::DepositNotSafe => {
            "Wait until the chain's layer 1 holds the deposit, usually some minutes, then send the call again."
        }
        RefusalCode::OwnerCannotClaim => {
            "Try again later, or look for another service with `farthing catalog search`."
        }
        RefusalCode::BooksBehind => {
            "Try again in a minute. If it lasts, compare the books with `farthing audit --with OWNER`."
        }
        RefusalCode::MayHaveRun => "Check its effect before you repeat it with a new call_id.",
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
