//! Terms of the channels that this owner serves: deep enough, slow enough to close, and its money final enough.
//!
//! [`Terms::check`] judges a channel by what the chain says of it. One that fails takes no place in the books, and
//! its payer is told why.

use farthing_protocol::{ChannelConfig, Refusal, RefusalCode, Usdc};

/// Requirements for a channel. The listing tells the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Least that was ever deposited, claimed parts included. It makes filling this node with channels dear.
    pub deposit_min: Usdc,
    /// Least time between a payer's request to close and its withdrawal, in which this node claims.
    pub close_delay_secs: u64,
    /// The most that one payer is served for on deposits that the chain may still take back.
    pub unsafe_max: Usdc,
    /// The most that is served beyond what is claimed, in all, while the wallet's ETH does not pay for a claim.
    pub without_gas_max: Usdc,
}

impl Terms {
    /// # Errors
    /// The first rule that the channel does not keep, with what its payer can do.
    pub fn check(&self, config: &ChannelConfig, deposited: Usdc) -> Result<(), Refusal> {
        if config.close_delay_secs < self.close_delay_secs {
            let (has, asks) = (config.close_delay_secs, self.close_delay_secs);
            let detail = format!(
                "the deposit can be withdrawn {has} s after a request to close, but this owner requires {asks} s; \
                 close the channel and open one with the listed delay"
            );
            return Err(Refusal::new(RefusalCode::DelayTooShort, detail));
        }
        if deposited < self.deposit_min {
            let least = self.deposit_min;
            let detail = format!(
                "the channel has a deposit of {deposited} USDC, but this owner requires at least {least}"
            );
            return Err(Refusal::new(RefusalCode::DepositTooSmall, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    #[test]
    fn a_channel_is_served_at_the_listed_delay_and_deposit_and_not_below() {
        let terms = Terms {
            deposit_min: Usdc::from_micros(100),
            close_delay_secs: 86_400,
            unsafe_max: Usdc::ZERO,
            without_gas_max: Usdc::ZERO,
        };
        for (delay, deposited, expected) in [
            (86_400, 100, None),
            (86_401, 101, None),
            (86_399, 100, Some(RefusalCode::DelayTooShort)),
            (86_400, 99, Some(RefusalCode::DepositTooSmall)),
            (0, 0, Some(RefusalCode::DelayTooShort)),
        ] {
            let config = ChannelConfig {
                payer: Address::ZERO,
                payee: Address::ZERO,
                token: Address::ZERO,
                signer: Address::ZERO,
                close_delay_secs: delay,
                salt: [0; 32],
            };
            let refused =
                terms.check(&config, Usdc::from_micros(deposited)).err().map(|refusal| refusal.code);
            assert_eq!(refused, expected, "{delay} s, {deposited} micros");
        }
    }
}
