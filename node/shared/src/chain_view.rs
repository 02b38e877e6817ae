//! Questions the use cases ask about the chain, answered from memory: rule 1, no request on a call's path.

use std::{fmt, time::Duration};

use farthing_chain::{ChainHandle, ChainKind, ChainStatus, Head, view_age_max};
use farthing_values::Address;

use crate::gas::{Gas, GasMeans};

/// A chain may replace its newest blocks by others, which are dated no earlier than so much before.
pub const REORGANISED_SECS_MAX: u64 = 120;
/// The time for which an endpoint has to show what accuses the other side, or lets it take something back.
const SHOWN_FOR: Duration = Duration::from_secs(REORGANISED_SECS_MAX);

/// The reason that nothing can be put on chain now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("{chain} has not answered yet")]
    Connecting { chain: String },
    #[error("the channel contract {contract} is not deployed on {chain}")]
    ContractMissing { chain: String, contract: Address },
    #[error("{chain} does not answer: {reason}")]
    Unreachable { chain: String, reason: String },
    #[error("{chain} cannot be used: {reason}")]
    Refused { chain: String, reason: String },
    #[error("the wallet's balance is not known yet")]
    BalanceUnknown,
}

/// Checks that something can be put on chain now.
pub fn ready(chain: &ChainHandle) -> Result<(), NotReady> {
    let name = chain.spec().name.clone();
    match chain.status().borrow().clone() {
        ChainStatus::Ready => Ok(()),
        ChainStatus::Connecting => Err(NotReady::Connecting { chain: name }),
        ChainStatus::ContractMissing { contract } => Err(NotReady::ContractMissing { chain: name, contract }),
        ChainStatus::Unreachable { reason } => Err(NotReady::Unreachable { chain: name, reason }),
        ChainStatus::Refused { reason } => Err(NotReady::Refused { chain: name, reason }),
    }
}

/// Returns what brings the channel contract to a chain that lacks it.
pub const fn contract_next(kind: ChainKind) -> &'static str {
    match kind {
        ChainKind::Mainnet | ChainKind::Testnet => {
            "deploy it with `farthing contract deploy`, which costs only gas and shows the cost first"
        }
        ChainKind::Local => {
            "deploy it with `farthing contract deploy`; `farthing testnet up` runs a local chain that has it"
        }
    }
}

/// Returns where the money of a testnet comes from; `None` where it is real, or the chain is one's own.
pub const fn faucets(kind: ChainKind) -> Option<&'static str> {
    match kind {
        ChainKind::Testnet => Some(
            "test ETH comes from a faucet, such as Coinbase's or Alchemy's, and test USDC from Circle's faucet",
        ),
        ChainKind::Mainnet | ChainKind::Local => None,
    }
}

/// Returns the cost of claiming now; `None` before the chain was read. It is dear above so many times its median.
pub fn gas(chain: &ChainHandle, price_factor_max: u64) -> Option<Gas> {
    let fee = (*chain.base_fee().borrow())?;
    let is_dear = fee.current_wei > fee.median_wei.saturating_mul(u128::from(price_factor_max));
    Some(Gas::at(&fee, is_dear))
}

/// Returns what the wallet's ETH pays for: everything, as long as the chain was not read.
pub fn means(chain: &ChainHandle) -> GasMeans {
    means_after(chain, 0)
}

/// Returns what the wallet's ETH pays for once it has taken so many payments of others.
pub fn means_after(chain: &ChainHandle, payments: usize) -> GasMeans {
    let (fee, balances) = (*chain.base_fee().borrow(), *chain.balances().borrow());
    fee.zip(balances).map_or(GasMeans::UNLIMITED, |(fee, balances)| {
        GasMeans::after_payments(&fee, balances.eth_wei, payments)
    })
}

/// The time by the chain's newest block, in seconds since the Unix epoch; `None` before it was read.
pub fn time_secs(chain: &ChainHandle) -> Option<u64> {
    chain.head().borrow().as_ref().map(|head| head.timestamp_secs)
}

/// Returns whether the view of the chain is young enough to take on new value.
pub fn is_fresh(chain: &ChainHandle) -> bool {
    let age_max = view_age_max(chain.spec().close_delay_secs);
    chain.head().borrow().as_ref().is_some_and(|head| head.is_fresh(age_max))
}

/// The step to take when the chain shows nothing new.
pub const STALE_NEXT: &str =
    "set another endpoint in `chain.rpc_urls`; if the chain itself has stopped, wait for its next block";

/// A view of the chain that grows old while endpoints answer: they stand still, or the chain does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    chain: String,
    age: Duration,
    age_max: Duration,
}

impl Stale {
    /// A view of this age; `None` up to half of the age at which it is too old.
    pub fn of(chain: &str, age: Duration, age_max: Duration) -> Option<Self> {
        (age > age_max / 2).then(|| Self { chain: chain.to_owned(), age, age_max })
    }

    /// Returns whether it is too old to take on new value.
    pub fn is_too_old(&self) -> bool {
        self.age > self.age_max
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = |time: Duration| time.as_secs() / 60;
        write!(
            f,
            "the newest block known to the endpoints of {} is {} minutes old, ",
            self.chain,
            minutes(self.age)
        )?;
        if self.is_too_old() {
            f.write_str("so this node serves no paid calls")
        } else {
            write!(f, "and after {} minutes this node serves no paid calls", minutes(self.age_max))
        }
    }
}

/// Tells of the view of a chain that is ready and yet shows nothing new.
pub fn stale(chain: &ChainHandle) -> Option<Stale> {
    ready(chain).ok()?;
    let age = chain.head().borrow().as_ref().map(Head::age)?;
    Stale::of(&chain.spec().name, age, view_age_max(chain.spec().close_delay_secs))
}

/// Tells whether to act on what the chain has shown for so long: an endpoint may lie for a moment, except that of a
/// chain of one's own.
pub fn is_believed(chain: &ChainHandle, shown: Duration) -> bool {
    shown >= believed_after(chain.spec().kind)
}

/// Returns for how long a chain has to show something until it is acted on.
pub const fn believed_after(kind: ChainKind) -> Duration {
    match kind {
        ChainKind::Local => Duration::ZERO,
        ChainKind::Mainnet | ChainKind::Testnet => SHOWN_FOR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_grows_old_is_told_from_half_of_its_greatest_age_on() {
        let of = |secs| Stale::of("base", Duration::from_secs(secs), Duration::from_secs(600));
        assert_eq!(of(300), None);
        for (secs, words, is_too_old) in [
            (301, "is 5 minutes old, and after 10 minutes this", false),
            (600, "is 10 minutes old, and after 10 minutes this", false),
            (601, "is 10 minutes old, so this node serves no paid calls", true),
        ] {
            let stale = of(secs).unwrap();
            assert!(stale.to_string().contains(words), "{stale}");
            assert_eq!(stale.is_too_old(), is_too_old, "{stale}");
        }
    }

    #[test]
    fn what_an_endpoint_shows_for_a_moment_ends_no_signed_close() {
        for kind in [ChainKind::Mainnet, ChainKind::Testnet] {
            assert_eq!(believed_after(kind), Duration::from_secs(120), "{kind}");
        }
        assert_eq!(believed_after(ChainKind::Local), Duration::ZERO, "nobody lies on a chain of one's own");
    }
}
