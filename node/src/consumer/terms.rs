//! The terms of payment that this node puts money aside on: pure checks of what an owner's listing asks for.
//!
//! A listing is its owner's word. What it asks to be deposited, and for how long the deposit is bound when the owner
//! does not answer, is believed only within the bounds of this node's user.

use farthing_chain::ChainSpec;
use farthing_control::counted;
use farthing_protocol::{
    Usdc,
    listing::{Accept, SCHEME_CHANNEL},
};

/// The most that a listing may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub deposit_max: Usdc,
    pub close_delay_max_secs: u64,
}

/// A term of a listing that is beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "the owner requires a deposit of at least {asked} USDC, but this node deposits at most {deposit_max} USDC \
         (`spending.deposit_max`)"
    )]
    Deposit { asked: Usdc, deposit_max: Usdc },
    #[error(
        "the owner binds a deposit for {} after a request to close, but this node binds money for at most {} \
         (`spending.close_delay_max_secs`)",
        in_words(*.asked_secs), in_words(*.max_secs)
    )]
    Delay { asked_secs: u64, max_secs: u64 },
}

impl Bounds {
    /// Checks what an owner asks for a new channel.
    pub fn check(&self, accept: &Accept) -> Result<(), Unfit> {
        let &Self { deposit_max, .. } = self;
        if accept.min_deposit > deposit_max {
            return Err(Unfit::Deposit { asked: accept.min_deposit, deposit_max });
        }
        self.check_delay(accept.close_delay_secs)
    }

    /// Checks for how long a deposit would be bound.
    pub const fn check_delay(&self, asked_secs: u64) -> Result<(), Unfit> {
        let max_secs = self.close_delay_max_secs;
        if asked_secs > max_secs { Err(Unfit::Delay { asked_secs, max_secs }) } else { Ok(()) }
    }
}

/// The payment that an owner accepts, for whoever cannot pay so: of this node's own chain, with what differs.
pub fn offered(accept: &Accept, spec: &ChainSpec) -> String {
    let mut offered = format!("{} on chain {}", accept.scheme, accept.chain_id);
    if accept.scheme == SCHEME_CHANNEL && accept.chain_id == spec.chain_id {
        let sides = [("token", accept.asset, spec.token), ("contract", accept.contract, spec.contract)];
        for (what, theirs, own) in sides.into_iter().filter(|(_, theirs, own)| theirs != own) {
            offered.push_str(&format!(" with the {what} {theirs} (this node's is {own})"));
        }
    }
    offered
}

fn in_words(secs: u64) -> String {
    match secs {
        _ if secs.is_multiple_of(86_400) => counted(secs / 86_400, "day"),
        _ if secs.is_multiple_of(3_600) => counted(secs / 3_600, "hour"),
        _ => counted(secs, "second"),
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    #[test]
    fn a_listing_is_believed_below_and_at_each_bound_and_not_above() {
        let bounds = Bounds { deposit_max: Usdc::from_micros(1_000_000), close_delay_max_secs: 604_800 };
        let asks = |min_deposit, close_delay_secs| Accept {
            scheme: SCHEME_CHANNEL.to_owned(),
            chain_id: 1,
            asset: Address::ZERO,
            pay_to: Address::ZERO,
            contract: Address::ZERO,
            min_deposit: Usdc::from_micros(min_deposit),
            close_delay_secs,
        };
        for (min_deposit, close_delay_secs, refusal) in [
            (0, 3_600, None),
            (1_000_000, 604_800, None),
            (1_000_001, 604_800, Some("deposit of at least 1.000001 USDC")),
            (1_000_000, 604_801, Some("7 days")),
            (0, 30 * 86_400, Some("30 days")),
            (u64::MAX, u64::MAX, Some("`spending.deposit_max`")),
        ] {
            let told =
                bounds.check(&asks(min_deposit, close_delay_secs)).err().map(|unfit| unfit.to_string());
            match refusal {
                None => assert_eq!(told, None),
                Some(part) => assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{told:?}"),
            }
        }
    }

    #[test]
    fn what_an_owner_accepts_on_this_chain_is_told_with_what_differs() {
        let [own, other] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        let spec = farthing_chain::local("http://127.0.0.1:8545", 5, own);
        let accepts = |chain_id, asset, contract| Accept {
            scheme: SCHEME_CHANNEL.to_owned(),
            chain_id,
            asset,
            pay_to: Address::ZERO,
            contract,
            min_deposit: Usdc::ZERO,
            close_delay_secs: 0,
        };
        for (accept, told) in [
            (accepts(6, other, other), "channel/1 on chain 6".to_owned()),
            (accepts(5, own, spec.contract), "channel/1 on chain 5".to_owned()),
            (
                accepts(5, other, spec.contract),
                format!("channel/1 on chain 5 with the token {other} (this node's is {own})"),
            ),
            (
                accepts(5, own, other),
                format!("channel/1 on chain 5 with the contract {other} (this node's is {})", spec.contract),
            ),
        ] {
            assert_eq!(offered(&accept, &spec), told);
        }
    }
}
