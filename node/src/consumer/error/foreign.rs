//! Ways in which a call of an x402 server fails, which is no node and gives no receipts.

use farthing_protocol::{ServiceId, Usdc};
use farthing_x402::NoOffer;

/// The reason that a call of an x402 server brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignError {
    #[error("the x402 server {0} was removed from this node")]
    Removed(ServiceId),
    #[error("a call of an x402 server needs `max_price`, because the server names a price for each call")]
    NoMaxPrice,
    #[error("this call of an x402 server costs {price} USDC and `max_price` is {max_price} USDC")]
    AboveMaxPrice { price: Usdc, max_price: Usdc },
    #[error("the x402 server asks {price} USDC, and the highest price that you set for it is {most} USDC")]
    AboveServerPrice { price: Usdc, most: Usdc },
    #[error("the path leads out of the address of this x402 server")]
    Path,
    /// Read differently by different servers, or not what the caller means.
    #[error("the path of this call cannot be used: {0}")]
    BadPath(&'static str),
    #[error("the x402 server does not answer: {0}")]
    Unreachable(String),
    #[error(
        "this node pays an x402 server at an http address only if it is on this machine or in a private network: without TLS, \
         anyone on the way could take the payment"
    )]
    Plain,
    #[error(
        "the x402 server named its price so late that the rest of the call's time is too short for a payment and its answer"
    )]
    Late,
    #[error("this node does not pay this x402 server: {0}")]
    Offer(#[from] NoOffer),
    #[error(
        "this call costs {need} USDC, and only {have} USDC of the wallet are not set aside for other payments"
    )]
    Unfunded { have: Usdc, need: Usdc },
    /// By how many seconds, and whether `after` or `before`.
    #[error(
        "the chain's newest block is dated {secs} seconds {is} this machine's clock, so a payment would not end when it should"
    )]
    Clocks { secs: u64, is: &'static str },
    #[error("the payment of this call id was never taken, and its time is over")]
    Lapsed,
    /// Paid or not: the chain will tell.
    #[error(
        "the x402 server got the payment and {why}; it can take it until {until}, and the chain shows whether it did"
    )]
    Open { why: String, until: String },
    /// Paid or not: no chain and no token of the settings can tell.
    #[error(
        "the payment of this call is in {place}; while the settings name another token or chain, this node does not ask whether \
         the server took it"
    )]
    Elsewhere { place: String },
    #[error("the x402 server took the payment of {charged} USDC and {why}")]
    Withheld { charged: Usdc, why: String },
}

impl ForeignError {
    /// The step to take next, for people.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Removed(_) => {
                "`farthing x402 list` shows the servers of this node. If you add this one again, it gets another UUID."
            }
            Self::NoMaxPrice => "Set `max_price` to the most that this call may cost.",
            Self::AboveMaxPrice { .. } => {
                "Nothing was paid. Raise `max_price` in the call; every call of an x402 server needs one."
            }
            Self::AboveServerPrice { .. } => {
                "Nothing was paid. Set another highest price with `farthing x402 add URL --max-price USDC`, or in the console."
            }
            Self::Path => "Use a path below the address that `farthing x402 list` shows.",
            Self::BadPath(_) => "Nothing was sent. Correct the path, and name parameters in `params`.",
            Self::Unreachable(_) => "Try again later. Nothing was paid.",
            Self::Plain => "Nothing was paid. Add the server with its https address; it gets another UUID.",
            Self::Late => "Nothing was paid. Send the call again, or set a longer `limits.call_total_ms`.",
            Self::Offer(_) => {
                "Nothing was paid. Ask the operator of the server for other terms, or use another one."
            }
            Self::Unfunded { .. } => {
                "Try again in a moment: what a server has just taken is set aside until the chain shows it. If that does not help, send \
                 the missing amount to the wallet's address; `farthing wallet balance` shows when it has arrived."
            }
            Self::Clocks { .. } => {
                "Nothing was paid. Set the clock of this machine, or set another endpoint with `farthing chain set`; \
                 `farthing doctor` checks both."
            }
            Self::Lapsed => "Nothing was paid. Send the call again with a new call_id.",
            Self::Open { .. } => {
                "Repeat the call with the same call_id: the same payment is sent again, never a second one."
            }
            Self::Elsewhere { .. } => {
                "Set `chain.token` back, and the chain if you changed it, and restart the node: it then asks the chain. With a \
                 new call_id, the call can be paid twice."
            }
            Self::Withheld { .. } => {
                "Repeat the call with the same call_id: the same payment is sent again, never a second one. If that \
                 brings no answer either, ask the operator of the server."
            }
        }
    }
}
