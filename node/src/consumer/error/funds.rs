//! The money that a deposit needs and the wallet does not have.

use std::fmt;

use farthing_chain::eth;
use farthing_protocol::{Address, Usdc};

/// The money that the wallet lacks, with everything needed to mend that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFunds {
    pub address: Address,
    pub chain: String,
    pub usdc_have: Usdc,
    pub usdc_need: Usdc,
    /// The ETH for gas that is missing too, in wei.
    pub wei_missing: Option<u128>,
    /// The reason that the owner does not pay the gas instead.
    pub not_sponsored: Option<String>,
    /// A deposit that is signed for the owner to bring, and the time for which it can.
    pub signed: Option<(Usdc, u64)>,
}

impl fmt::Display for MissingFunds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lacks_usdc = self.usdc_have < self.usdc_need;
        write!(f, "the wallet {} on {} ", self.address, self.chain)?;
        if lacks_usdc {
            write!(f, "holds {} USDC and this call needs a deposit of {}", self.usdc_have, self.usdc_need)?;
        }
        if self.wei_missing.is_some() {
            write!(f, "{}has no ETH for gas", if lacks_usdc { ", and " } else { "" })?;
        }
        if let Some(why) = &self.not_sponsored {
            write!(f, ", which the owner does not pay ({why})")?;
        }
        f.write_str("; send ")?;
        if lacks_usdc {
            write!(f, "at least {} USDC", self.usdc_need.saturating_sub(self.usdc_have))?;
        }
        if let Some(wei) = self.wei_missing {
            write!(f, "{}{} ETH", if lacks_usdc { " and " } else { "" }, eth(wei))?;
        }
        f.write_str(" to it")?;
        let Some((amount, left_secs)) = self.signed else { return Ok(()) };
        let hours = left_secs.div_ceil(3_600);
        write!(
            f,
            ". You signed a deposit of {amount} USDC: the owner can bring it to the chain within {hours} h"
        )
    }
}
