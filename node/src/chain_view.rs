//! Questions the use cases ask about the chain, answered from memory: rule 1, no request on a call's path.

use farthing_chain::{ChainHandle, ChainStatus, view_age_max};

use crate::gas::{Gas, GasMeans};

/// Checks that something can be put on chain now.
///
/// # Errors
/// The reason in words, with what to do.
pub fn ready(chain: &ChainHandle) -> Result<(), String> {
    let name = &chain.spec().name;
    match &*chain.status().borrow() {
        ChainStatus::Ready => Ok(()),
        ChainStatus::Connecting => Err(format!("{name} has not answered yet")),
        ChainStatus::ContractMissing { contract } => {
            Err(format!("the channel contract {contract} is not deployed on {name}"))
        }
        ChainStatus::Unreachable { reason, .. } => Err(format!("{name} does not answer: {reason}")),
        ChainStatus::Refused { reason } => Err(format!("{name} is not used: {reason}")),
    }
}

/// Returns the cost of claiming now; `None` before the chain was read. It is dear above so many times its median.
#[must_use]
pub fn gas(chain: &ChainHandle, price_factor_max: u64) -> Option<Gas> {
    let fee = (*chain.base_fee().borrow())?;
    let is_dear = fee.current_wei > fee.median_wei.saturating_mul(u128::from(price_factor_max));
    Some(Gas::at(&fee, is_dear))
}

/// Returns what the wallet's ETH pays for: everything, as long as the chain was not read.
#[must_use]
pub fn means(chain: &ChainHandle) -> GasMeans {
    let (fee, balances) = (*chain.base_fee().borrow(), *chain.balances().borrow());
    fee.zip(balances).map_or(GasMeans::UNLIMITED, |(fee, balances)| GasMeans::of(&fee, balances.eth_wei))
}

/// The time by the chain's newest block, in seconds since the Unix epoch; `None` before it was read.
#[must_use]
pub fn time_secs(chain: &ChainHandle) -> Option<u64> {
    chain.head().borrow().as_ref().map(|head| head.timestamp_secs)
}

/// Returns whether the view of the chain is young enough to take on new value.
#[must_use]
pub fn is_fresh(chain: &ChainHandle) -> bool {
    let age_max = view_age_max(chain.spec().close_delay_secs);
    chain.head().borrow().as_ref().is_some_and(|head| head.is_fresh(age_max))
}
